// How often this thread, or the whole program, has allocated memory by `new`.
#pragma once

#include <cstdint>

namespace cortex::test {
std::int64_t allocations_of_this_thread();
std::int64_t allocations_of_all_threads();
}  // namespace cortex::test
