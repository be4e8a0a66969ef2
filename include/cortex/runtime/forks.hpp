// How often this process has been made by a fork.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace cortex::runtime {

/// How many times this process came about by a fork that its program knows of: a child has none of its parent's
/// threads, and no device of its parent's is of use to it.
inline std::atomic<std::uint32_t>& forks() {
  static std::atomic<std::uint32_t> count{0};
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1, std::memory_order_relaxed); });
  return count;
}

}  // namespace cortex::runtime
