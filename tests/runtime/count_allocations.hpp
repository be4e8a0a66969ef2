// How often this thread has allocated memory by `new`.
#pragma once

#include <cstdint>

namespace cortex::test {
std::int64_t allocations_of_this_thread();
}  // namespace cortex::test
