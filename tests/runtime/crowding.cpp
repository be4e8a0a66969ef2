// How many threads calls take where other threads want the CPUs: fewer for a while, and all again.
#include "cortex/runtime/crowding.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "runtime/hand_made.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr std::int64_t ms = 1'000'000;
int workers_seen = 0;  // by the last call

}  // namespace

TEST_CASE("what calls lose by waiting for threads halves how many they take, once it is more than they gain",
          "[runtime][crowding]") {
  runtime::Crowding crowding;
  CHECK(crowding.limit(8, 0) == 8);
  // Small losses are paid by what was gained, however often they come.
  for (int i = 0; i < 1000; ++i) crowding.note(2 * ms, ms, 0);
  CHECK(crowding.limit(8, 0) == 8);
  // One turn of another process, on a pool that was fine before.
  crowding.note(ms, 4 * ms, 0);
  CHECK(crowding.limit(8, 0) == 8);
  crowding.note(ms, 9 * ms, 0);
  CHECK(crowding.limit(8, 0) == 4);
  CHECK(crowding.limit(2, 0) == 1);
  CHECK(crowding.limit(1, 0) == 1);
  // Fewer are too many as well.
  crowding.note(0, 1, ms);
  CHECK(crowding.limit(8, ms) == 2);
}

TEST_CASE("after a while calls try more threads again, the later the more often that fails", "[runtime][crowding]") {
  runtime::Crowding crowding;
  std::int64_t now = 0;
  for (const std::int64_t pause :
       {10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1000 * ms, 1000 * ms}) {
    crowding.note(0, 20 * ms, now);
    CHECK(crowding.limit(4, now + pause - 1) == 2);
    now += pause;
    CHECK(crowding.limit(4, now) == 4);
  }
  // A pool that gains for long is trusted as at first.
  for (int i = 0; i < 20; ++i) crowding.note(ms, 0, now);
  crowding.note(0, 9 * ms, now);
  CHECK(crowding.limit(4, now) == 4);
  for (int i = 0; i < 20; ++i) crowding.note(ms, 0, now);
  crowding.note(0, 11 * ms, now);
  CHECK(crowding.limit(4, now + 10 * ms - 1) == 2);
  CHECK(crowding.limit(4, now + 10 * ms) == 4);
}

TEST_CASE("a pool notices threads that come late to barriers, and to the end", "[runtime][crowding]") {
  const auto late = [](bool at_barrier) {
    Workers pool(1);
    Workers::Times times = pool.run(2, [&](int worker, int, runtime::Barrier& barrier) {
      if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      if (at_barrier) barrier.wait();
    });
    REQUIRE(times.num_workers == 2);
    CHECK(times.late_ns > 20 * ms);
    CHECK(times.working_ns < times.late_ns);
    CHECK(pool.limit(2) == 2);
    CHECK(times.end > now_ns() - 1000 * ms);
    times.woke = true;
    pool.note(times, times.working_ns);  // a call far from others is late for no more than twice its work
    CHECK(pool.limit(2) == 2);
    times.woke = false;
    times.end += 1000 * ms;              // so that the pause is not over when the next line runs
    pool.note(times, 0, times.late_ns);  // what was to be waited for is nobody's loss
    CHECK(pool.limit(2) == 2);
    pool.note(times, 0);
    CHECK(pool.limit(2) == 1);
  };
  late(true);
  late(false);
}

TEST_CASE("only calls that may have fewer workers take fewer where threads come late", "[runtime][crowding]") {
  const auto workers_of_call = [](bool fewer) {
    runtime::Executable made = sum_executable();
    made.schedule.max_workers = 2, made.schedule.fewer_workers = fewer;
    made.kernel = [](const codegen::KernelArgs* args) {
      sum_kernel(args);
      if (args->worker == 0) workers_seen = args->num_workers;
    };
    const auto pool = std::make_shared<Workers>(1);
    auto model = functor(std::move(made));
    model.use(pool).bind("Emb", embedding(2));
    const Word leaf{1};
    CHECK(model(leaf)[0][0] == 2);
    CHECK(workers_seen == 2);
    pool->note({2, 0, 1000 * ms, now_ns() + 1000 * ms}, 0);
    CHECK(model(leaf)[0][0] == 2);
    return workers_seen;
  };
  CHECK(workers_of_call(true) == 1);
  CHECK(workers_of_call(false) == 2);
}
