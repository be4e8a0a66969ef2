// How often this thread, or the whole program, has allocated memory by `new`, and memory that runs out at any point.
#pragma once

#include <cstdint>

namespace cortex::test {
std::int64_t allocations_of_this_thread();
std::int64_t allocations_of_all_threads();

/// Lets one allocation of this thread fail, once `more` of them have been made; -1: none. Whether one has failed since
/// the last time. Under AddressSanitizer none ever does.
bool refuse_allocation(std::int64_t more);
}  // namespace cortex::test
