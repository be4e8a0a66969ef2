// Threads of a call: they start together, wait for each other, and are shared without waiting.
#include "cortex/runtime/workers.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

using namespace cortex;

namespace {

/// Rounds in which each worker writes its own number and reads its neighbour's; true if none was read too early or
/// late.
bool barrier_holds(Workers& workers, int wanted, int rounds) {
  std::vector<int> written(std::size_t(wanted) * 64, 0);  // plain integers: the barrier alone orders them
  std::atomic<int> wrong{0};
  workers.run(wanted, [&](int worker, int count, runtime::Barrier& barrier) {
    const int neighbour = (worker + 1) % count;
    for (int round = 1; round <= rounds; ++round) {
      written[std::size_t(worker) * 64] = round;
      barrier.wait();
      if (written[std::size_t(neighbour) * 64] != round) wrong.fetch_add(1);
      barrier.wait();
    }
  });
  return wrong == 0;
}

}  // namespace

TEST_CASE("nobody leaves a barrier before all have entered it", "[runtime]") {
  for (const int threads : {1, 2, 3, 4, 7}) {
    Workers workers(threads);
    CHECK(barrier_holds(workers, threads + 1, 300));
    CHECK(barrier_holds(workers, 2, 300));
  }
}

TEST_CASE("each worker runs once, and all of them at the same time", "[runtime]") {
  Workers workers(3);
  for (int call = 0; call < 200; ++call) {
    std::vector<std::atomic<int>> runs(4);
    int count = 0;
    workers.run(4, [&](int worker, int num_workers, runtime::Barrier& barrier) {
      runs[std::size_t(worker)].fetch_add(1);
      barrier.wait();
      if (worker == 0) count = num_workers;
    });
    REQUIRE(count == 4);
    for (const auto& r : runs) REQUIRE(r == 1);
  }
}

TEST_CASE("a call takes the threads that are free and waits for no others", "[runtime]") {
  Workers workers(2);
  CHECK(workers.available() == 2);
  int inner = 0, left = 0;
  workers.run(2, [&](int worker, int, runtime::Barrier& barrier) {
    if (worker == 0) {
      left = workers.available();
      std::thread other([&] {
        workers.run(3, [&](int w, int count, runtime::Barrier&) {
          if (w == 0) inner = count;
        });
      });
      other.join();
    }
    barrier.wait();
  });
  CHECK(left == 1);
  CHECK(inner == 2);
  CHECK(workers.available() == 2);
}

TEST_CASE("a call alone runs on its caller", "[runtime]") {
  Workers workers(1);
  std::thread::id id;
  workers.run(1, [&](int, int count, runtime::Barrier& barrier) {
    barrier.wait();
    if (count == 1) id = std::this_thread::get_id();
  });
  CHECK(id == std::this_thread::get_id());
}

TEST_CASE("threads that have fallen asleep are woken", "[runtime]") {
  Workers workers(2);
  int calls = 0;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    workers.run(3, [&](int worker, int, runtime::Barrier& barrier) {
      if (worker == 1) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the others sleep in the barrier
      barrier.wait();
      if (worker == 0) ++calls;
    });
  }
  CHECK(calls == 20);
}

TEST_CASE("many callers share one pool", "[runtime]") {
  Workers workers(3);
  std::atomic<int> done{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        std::atomic<int> entered{0};
        int seen = 0, count = 0;
        workers.run(4, [&](int worker, int num_workers, runtime::Barrier& barrier) {
          entered.fetch_add(1, std::memory_order_relaxed);
          barrier.wait();
          if (worker == 0) seen = entered.load(std::memory_order_relaxed), count = num_workers;
        });
        wrong += seen != count;
        ++done;
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(done == 8 * 300);
  CHECK(wrong == 0);
}

TEST_CASE("the default number of threads fits this machine", "[runtime]") {
  CHECK(runtime::usable_cpus() >= 1);
  CHECK(Workers().size() == runtime::usable_cpus() - 1);
  CHECK_THROWS_AS(Workers(-1), Error);
}

TEST_CASE("a quota of CPU time counts as whole CPUs, at least one", "[runtime]") {
  CHECK(runtime::detail::cpus_of_quota("max 100000") == 0);
  CHECK(runtime::detail::cpus_of_quota("150000 100000") == 1);
  CHECK(runtime::detail::cpus_of_quota("50000 100000") == 1);
  CHECK(runtime::detail::cpus_of_quota("400000 100000") == 4);
  CHECK(runtime::detail::cpus_of_quota("-1 100000") == 0);
  CHECK(runtime::detail::cpus_of_quota("") == 0);
}
