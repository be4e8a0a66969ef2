// What everything that lays out memory agrees on.
#pragma once

#include <cstddef>

namespace cortex {

/// Bytes of a cache line of a CPU, which are those of its widest vectors, too: arrays begin at multiples of them.
inline constexpr int cache_line = 64;

/// Generated code may read and write whole vectors at the end of an array: so many bytes past it are ours.
inline constexpr std::size_t slack_bytes = 64;

}  // namespace cortex
