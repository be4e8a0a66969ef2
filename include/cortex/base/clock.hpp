// Time by the clock that never goes back. <chrono> would cost every user a tenth of the library's time to include.
#pragma once

#include <time.h>

#include <cstdint>

namespace cortex {

/// Nanoseconds since some time before the program began.
inline std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

/// How many nanoseconds `f()` takes.
template <class F>
std::int64_t ns_of(F f) {
  const std::int64_t start = now_ns();
  f();
  return now_ns() - start;
}

}  // namespace cortex
