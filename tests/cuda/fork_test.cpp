// Processes that fork while a device is at work, and their children.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "cuda/stay.hpp"

using namespace cortex;
using namespace cortex::test;

TEST_CASE("a fork does not wait for who waits for a kernel, nor do threads that have nothing to do with it", "[cuda]") {
  Stay s;
  const ResidentFake resident = s.on->resident({.patience_ms = 3000});
  CHECK(s.serves(resident));
  s.fake.deaf = true;
  std::atomic<bool> waits{false}, given_up{false};
  std::thread other([&] {
    waits = true;
    error_of_call([&] { s.call(resident); });
    given_up = true;
  });
  while (!waits) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // until it is at that, as nothing shows
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  Mutex mutex;
  { const Lock lock(mutex); }
  CHECK(!given_up);
  s.fake.deaf = false;
  other.join();
  CHECK(::waitpid(child, nullptr, 0) == child);
  CHECK(s.serves(resident));
}

TEST_CASE("a forked child leaves its parent's kernel alone", "[cuda]") {
  Stay s;
  std::optional<ResidentFake> resident(s.on->resident());
  CHECK(s.serves(*resident));
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int alive = s.fake.alive();
    const std::string said = error_of_call([&] { s.call(*resident); });
    resident.reset(), s.on.reset();
    ::_exit(s.fake.alive() == alive && said.find("CUDA does not outlive a fork") != said.npos ? 7 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
  CHECK(s.serves(*resident));
  CHECK(resident->launches() == 1);
}
