// Turns: one thread after the other, in the order in which they come, and none for a fork to wait for.
#include "cortex/runtime/turn.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "cortex/base/mutex.hpp"

using cortex::runtime::Turn;

TEST_CASE("threads take turns one at a time, in the order in which they come", "[runtime]") {
  Turn turn;
  std::optional<Turn::Holder> first(std::in_place, turn);
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    std::atomic<bool> comes{false};
    threads.emplace_back([&, t] {
      comes = true;
      const Turn::Holder own(turn);
      order.push_back(t);  // which nobody else does meanwhile
    });
    while (!comes) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until it has come, as nothing shows
  }
  CHECK(order.empty());
  first.reset();
  for (std::thread& thread : threads) thread.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("turns are as many as are taken, also where their numbers wrap", "[runtime]") {
  Turn turn;
  long sum = 0;
  const auto take = [&] {
    for (int i = 0; i < 50000; ++i) {
      const Turn::Holder own(turn);
      ++sum;
    }
  };
  std::thread other(take);
  take();
  other.join();
  CHECK(sum == 100000);
}

TEST_CASE("a fork does not wait for who has a turn, and in the child nobody has it", "[runtime]") {
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
