// How often this process has been made by a fork.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace cortex::runtime {

namespace detail {

inline constinit std::atomic<std::uint32_t> num_forks{0};
/// Set when the library is loaded: a fork while the first thread asks would not be counted.
inline const int forks_are_counted =
    ::pthread_atfork(nullptr, nullptr, [] { num_forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace detail

/// How many times this process came about by a fork that its program knows of: a child has none of its parent's
/// threads, and no device of its parent's is of use to it.
inline std::atomic<std::uint32_t>& forks() { return detail::num_forks; }

}  // namespace cortex::runtime
