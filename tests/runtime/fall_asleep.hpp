// Pools whose threads sleep, as after a pause of calls, or have never been late.
#pragma once

#include <chrono>
#include <thread>

#include "cortex/runtime/workers.hpp"

namespace cortex::test {

/// Waits until all threads sleep that wait for calls; false if some never do.
inline bool fall_asleep(const Workers& workers) {
  for (int i = 0; i < 5000 && (workers.free(workers.size() + 1).awake > 1 || workers.follow()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return workers.free(workers.size() + 1).awake == 1;
}

/// Waits until calls take all threads that they want, as on a machine where none has been late: tests share theirs.
inline void calm(Workers& workers) {
  const int all = workers.size() + 1;
  while (workers.limit(all) < all) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  workers.note({all, 0, 0, now_ns()}, 1'000'000'000);
}

}  // namespace cortex::test
