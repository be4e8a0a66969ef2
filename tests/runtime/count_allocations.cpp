// Counts what each thread and all of them allocate by `new`, in this executable, and refuses what it is told to. In a
// file of its own: inlined into the code that calls them, these operators look to the compiler like a mismatch of `new`
// and `free`.
#include "runtime/count_allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "cortex/base/config.hpp"

namespace {

thread_local std::int64_t allocations = 0, refused = -1;
thread_local bool has_refused = false;
std::atomic<std::int64_t> all_allocations{0};

[[maybe_unused]] void* counted(std::size_t size, std::size_t alignment) {
  if (allocations++ == refused) {
    has_refused = true;
    throw std::bad_alloc();
  }
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace cortex::test {
std::int64_t allocations_of_this_thread() { return allocations; }
std::int64_t allocations_of_all_threads() { return all_allocations; }
bool refuse_allocation(std::int64_t more) {
  refused = more < 0 ? -1 : allocations + more;
  return std::exchange(has_refused, false);
}
}  // namespace cortex::test

#if !CORTEX_ADDRESS_SANITIZER  // which has operators of its own, and then nothing is counted
// The array and nothrow forms of new end up in these two.
void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) { return counted(size, std::size_t(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
