// Pools whose threads sleep, as after a pause of calls.
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

}  // namespace cortex::test
