// Turns: one thread after the other, and none for a fork to wait for.
#include "cortex/runtime/turn.hpp"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "cortex/base/mutex.hpp"

using cortex::runtime::Turn;

namespace {

/// Ends the process if a thread waits for what never comes: it could not be joined.
struct Deadline {
  Deadline() { ::alarm(60); }
  ~Deadline() { ::alarm(0); }
};

}  // namespace

TEST_CASE("threads take turns one at a time, and each that comes has one", "[runtime]") {
  const Deadline deadline;
  Turn turn;
  std::atomic<int> inside{0}, most{0};
  long sum = 0;
  const auto take = [&] {
    for (int i = 0; i < 20000; ++i) {
      const Turn::Holder own(turn);
      const int now = ++inside;
      if (now > most) most = now;
      ++sum;
      --inside;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(take);
  for (std::thread& thread : threads) thread.join();
  CHECK(sum == 80000);
  CHECK(most == 1);
}

TEST_CASE("who waits long for a turn sleeps, and is woken", "[runtime]") {
  const Deadline deadline;
  Turn turn;
  std::optional<Turn::Holder> first(std::in_place, turn);
  std::atomic<int> had{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const Turn::Holder own(turn);
      ++had;
    });
  timespec before{}, after{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  CHECK(had == 0);
  const double spent = double(after.tv_sec - before.tv_sec) + 1e-9 * double(after.tv_nsec - before.tv_nsec);
  CHECK(spent < 0.15);  // of 0.9 that three threads could
  first.reset();
  for (std::thread& thread : threads) thread.join();
  CHECK(had == 3);
}

TEST_CASE("a fork does not wait for who has a turn, and in the child nobody has it", "[runtime]") {
  const Deadline deadline;
  Turn turn;
  std::optional<Turn::Holder> mine(std::in_place, turn);
  std::atomic<bool> comes{false}, had{false};
  std::thread other([&] {
    comes = true;
    const Turn::Holder own(turn);
    had = true;
  });
  while (!comes) std::this_thread::yield();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);  // the parent's is not the child's
    { const Turn::Holder own(turn); }
    mine.reset();  // which was the parent's
    { const Turn::Holder own(turn); }
    ::_exit(7);
  }
  CHECK(!had);
  cortex::Mutex mutex;
  { const cortex::Lock lock(mutex); }  // nor do others wait
  mine.reset();
  other.join();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}
