// Which thread runs.
#pragma once

#include <atomic>
#include <cstdint>

namespace cortex {

/// The running thread's number, which no other one ever has: the system gives what it calls threads by to later ones
/// anew, in a child process (fork) also to such as its parent had.
inline std::uint64_t this_thread() {
  static constinit std::atomic<std::uint64_t> threads{0};
  static thread_local constinit std::uint64_t number = 0;
  if (number == 0) number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace cortex
