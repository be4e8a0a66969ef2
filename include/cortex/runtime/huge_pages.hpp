// Huge pages that blocks share which are smaller than one.
#pragma once

#include <bitset>
#include <cstddef>
#include <new>

#include "cortex/base/config.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/mutex.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/choose_pages.hpp"

namespace cortex::runtime {

/// The process's huge pages, each given out in pieces of 4 KB. A model's weights come and go one by one, and a set of
/// them seldom fills a huge page; yet what streams through a second-level cache gains from one: its small pages lie
/// together in memory, so that they do not compete for the same places there. Thread-safe.
class HugePages {
 public:
  /// Smaller blocks would gain nothing, and larger ones have pages of their own, which are worth a choice if a cache
  /// may hold a worker's share of them. The tools that watch memory are to see each block by itself.
#if CORTEX_ADDRESS_SANITIZER
  static bool are_for(std::size_t) { return false; }
  static bool are_worth_choice(std::size_t) { return false; }
#else
  static bool are_for(std::size_t bytes) { return bytes >= 65536 && bytes < huge_page; }
  static bool are_worth_choice(std::size_t bytes) { return bytes >= huge_page && bytes <= 32 * huge_page; }
#endif

  /// Never destroyed: blocks may be held by static objects.
  static HugePages& of_process() {
    static HugePages* const all = new HugePages;
    return *all;
  }

  /// Memory of its own, aligned to 4 KB; null where there is none. `chosen`: on pages that a cache holds whole, which
  /// takes time if there is no room on such a page.
  std::byte* take(std::size_t bytes, bool chosen = false) noexcept {
    const std::size_t count = pieces(bytes);
    {
      const Lock lock(mutex_);
      for (Page& page : pages_) {
        if (chosen && !page.chosen) continue;
        if (std::byte* const at = taken_of(page, count)) return at;
      }
    }
    std::byte* const data = chosen ? map_chosen_pages(1) : map_pages(1);  // others take from theirs meanwhile
    if (!data) return nullptr;
    const Lock lock(mutex_);
    try {
      pages_.push_back({data, chosen, {}});
    } catch (const std::bad_alloc&) {
      unmap_pages(data, 1);
      return nullptr;
    }
    return taken_of(pages_.back(), count);
  }

  /// What `take` has given for so many bytes.
  void give_back(std::byte* at, std::size_t bytes) noexcept {
    const Lock lock(mutex_);
    for (Page& page : pages_) {
      if (at < page.data || at >= page.data + huge_page) continue;
      const std::size_t first = std::size_t(at - page.data) / piece;
      for (std::size_t i = 0; i < pieces(bytes); ++i) page.taken.reset(first + i);
      if (page.taken.any()) return;
      unmap_pages(page.data, 1);
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
  static constexpr std::size_t piece = small_page, pieces_of_one = huge_page / piece;
  struct Page {
    std::byte* data = nullptr;
    bool chosen = false;
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

  mutable Mutex mutex_;
  Vector<Page> pages_;
};

}  // namespace cortex::runtime
