// What calls take that come after pauses, in which the threads that help with them have gone to sleep.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "data.hpp"
#include "system.hpp"

namespace bench {

struct PausedCalls {
  double median_us = 0, p99_us = 0;
};

/// Of so many calls, which go through the batches again and again; `out` has room for the states of the largest one.
inline PausedCalls time_paused_calls(System& system, const Batches& batches, std::vector<float>& out, int pause_us,
                                     std::size_t calls) {
  std::vector<double> times;
  for (std::size_t call = 0; call < calls; ++call) {
    if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    const double start = now_us();
    system.run(batches.roots[call % batches.roots.size()], out.data());
    times.push_back(now_us() - start);
  }
  std::sort(times.begin(), times.end());
  return {times[calls / 2], times[calls * 99 / 100]};
}

}  // namespace bench
