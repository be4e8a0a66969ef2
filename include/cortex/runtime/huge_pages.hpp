// Huge pages that blocks share which are smaller than one.
#pragma once

#include <sys/mman.h>

#include <bitset>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "cortex/base/config.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/mutex.hpp"
#include "cortex/base/vector.hpp"

namespace cortex::runtime {

/// The process's huge pages, each given out in pieces of 4 KB. A model's weights come and go one by one, and a set of
/// them seldom fills a huge page; yet what streams through a second-level cache gains from one: its small pages lie
/// together in memory, so that they do not compete for the same places there. Thread-safe.
class HugePages {
 public:
  static constexpr std::size_t bytes_of_one = std::size_t(2) << 20;
  /// Smaller blocks would gain nothing, and larger ones have pages of their own. The tools that watch memory are to see
  /// each block by itself.
#if CORTEX_ADDRESS_SANITIZER
  static bool are_for(std::size_t) { return false; }
#else
  static bool are_for(std::size_t bytes) { return bytes >= 65536 && bytes < bytes_of_one; }
#endif

  /// Asks for huge pages; without them memory is as good, if slower.
  static void advise(std::byte* data, std::size_t bytes) { ::madvise(data, bytes, MADV_HUGEPAGE); }

  /// Never destroyed: blocks may be held by static objects.
  static HugePages& of_process() {
    static HugePages* const all = new HugePages;
    return *all;
  }

  /// Memory of its own, aligned to 4 KB; null where there is none.
  std::byte* take(std::size_t bytes) noexcept {
    const std::size_t count = pieces(bytes);
    const Lock lock(mutex_);
    for (Page& page : pages_)
      if (std::byte* const at = taken_of(page, count)) return at;
    return grow() ? taken_of(pages_.back(), count) : nullptr;
  }

  /// What `take` has given for so many bytes.
  void give_back(std::byte* at, std::size_t bytes) noexcept {
    const Lock lock(mutex_);
    for (Page& page : pages_) {
      if (at < page.data || at >= page.data + bytes_of_one) continue;
      const std::size_t first = std::size_t(at - page.data) / piece;
      for (std::size_t i = 0; i < pieces(bytes); ++i) page.taken.reset(first + i);
      if (page.taken.any()) return;
      std::free(page.data);
      page = pages_.back();
      pages_.pop_back();
      return;
    }
  }

  std::size_t count() const {
    const Lock lock(mutex_);
    return pages_.size();
  }

 private:
  static constexpr std::size_t piece = 4096, pieces_of_one = bytes_of_one / piece;
  struct Page {
    std::byte* data = nullptr;
    std::bitset<pieces_of_one> taken;
  };

  static std::size_t pieces(std::size_t bytes) { return ceil_div(bytes, piece); }

  /// The first gap of so many pieces, taken; null if the page has none.
  static std::byte* taken_of(Page& page, std::size_t count) {
    std::size_t free = 0;  // pieces before `i` that nobody has
    for (std::size_t i = 0; i < pieces_of_one; ++i) {
      free = page.taken[i] ? 0 : free + 1;
      if (free < count) continue;
      for (std::size_t k = i + 1 - count; k <= i; ++k) page.taken.set(k);
      return page.data + (i + 1 - count) * piece;
    }
    return nullptr;
  }

  bool grow() noexcept {
    auto* const data = static_cast<std::byte*>(std::aligned_alloc(bytes_of_one, bytes_of_one));
    if (!data) return false;
    advise(data, bytes_of_one);
    try {
      pages_.push_back({data, {}});
    } catch (const std::bad_alloc&) {
      std::free(data);
      return false;
    }
    return true;
  }

  mutable Mutex mutex_;
  Vector<Page> pages_;
};

}  // namespace cortex::runtime
