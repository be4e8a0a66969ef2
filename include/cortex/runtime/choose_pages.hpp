// Huge pages that a second-level cache holds whole, found by reading them.
//
// A cache places a line by its physical address. Those of a huge page are spread evenly, but a virtual machine's page
// may be made of its host's small ones, which lie anywhere and compete for places: 1.5 MB in such a page are read from
// a cache of 2 MB at 0.3 to 0.9 of the rate, each time, for as long as they lie there. No system tells which pages
// these are; to read a page some times does, in 0.2 ms.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "cortex/base/clock.hpp"
#include "cortex/base/memory.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/caches.hpp"

namespace cortex::runtime {

inline constexpr std::size_t huge_page = std::size_t(2) << 20, small_page = 4096;

/// Memory of so many huge pages of its own, zeros; null where there is none. Asks for huge pages; without them memory
/// is as good, if slower.
inline std::byte* map_pages(std::size_t count) noexcept {
  const std::size_t bytes = count * huge_page;
  void* const raw = ::mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const std::size_t before = round_up(std::uintptr_t(raw), huge_page) - std::uintptr_t(raw);
  auto* const data = static_cast<std::byte*>(raw) + before;
  if (before) ::munmap(raw, before);
  ::munmap(data + bytes, huge_page - before);
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}
inline void unmap_pages(std::byte* data, std::size_t count) noexcept { ::munmap(data, count * huge_page); }

/// What it takes to read a page again, in nanoseconds a byte: parts of it, each as large as a worker's weights may be
/// that stay in a second-level cache, and as little as leaves nothing to compete for.
struct Reading {
  double parts = 0, little = 0;
};

/// `cache`: how large the second-level cache is, in bytes.
inline Reading read_page(const std::byte* page, std::size_t cache) {
  const auto time = [](const std::byte* at, std::size_t bytes) {
    const auto read = [&] {
      for (std::size_t b = 0; b < bytes; b += cache_line)
        static_cast<void>(*const_cast<const volatile std::byte*>(at + b));
    };
    std::int64_t least = ns_of(read);
    for (int i = 0; i < 5; ++i) least = std::min(least, ns_of(read));
    return double(least) / double(bytes);
  };
  const std::size_t part = std::clamp(cache / 4 * 3 / small_page * small_page, 2 * small_page, huge_page);
  const std::size_t little = std::clamp(part / 8, std::min(part, std::size_t(65536)), part);  // above the first level's
  const std::size_t parts = ceil_div(huge_page, part), last = huge_page - part;
  Reading reading{0, time(page, little)};
  for (std::size_t i = 0; i < parts; ++i)
    reading.parts += time(page + (i ? last * i / (parts - 1) / small_page * small_page : 0), part) / double(parts);
  return reading;
}

/// What a search for pages may cost, and what it is content with.
struct PageSearch {
  std::size_t most_others = 8;  // pages held beside those that are to be good
  std::int64_t most_ns = 20'000'000;
  double good = 1.1;  // times as long as where nothing competes
};

/// Puts better pages in the place of slow ones among the `count` at `data`, which `map_pages` gave and which hold
/// nothing yet. False: nothing may be there any more, and they are to be unmapped. `read`: gives the `Reading` of a
/// page.
template <class Read>
bool choose_pages(std::byte* data, std::size_t count, const Read& read, const PageSearch& search = {}) {
#if defined(__linux__)
  struct Page {
    std::byte* at;
    double time;
  };
  Vector<Page> pages, others;
  pages.reserve(count), others.reserve(search.most_others);
  double fastest = 1e9;
  const auto add = [&](Vector<Page>& to, std::byte* at) {
    for (std::size_t b = 0; b < huge_page; b += small_page) at[b] = std::byte(0);  // else all are the page of zeros
    const Reading reading = read(static_cast<const std::byte*>(at));
    fastest = std::min(fastest, reading.little);
    to.push_back({at, reading.parts});
  };
  const auto good_of = [&](const Vector<Page>& of) {
    return std::size_t(
        std::count_if(of.begin(), of.end(), [&](const Page& p) { return p.time <= search.good * fastest; }));
  };
  const std::int64_t start = now_ns();
  for (std::size_t p = 0; p < count; ++p) add(pages, data + p * huge_page);
  while (good_of(pages) + good_of(others) < count && others.size() < search.most_others &&
         now_ns() - start < search.most_ns) {
    std::byte* const at = map_pages(1);
    if (!at) break;
    add(others, at);
  }
  std::sort(pages.begin(), pages.end(), [](const Page& a, const Page& b) { return a.time > b.time; });
  std::sort(others.begin(), others.end(), [](const Page& a, const Page& b) { return a.time < b.time; });
  bool whole = true;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const bool better = whole && i < count && others[i].time < pages[i].time;
    if (better &&
        ::mremap(others[i].at, huge_page, huge_page, MREMAP_MAYMOVE | MREMAP_FIXED, pages[i].at) != MAP_FAILED)
      continue;
    whole &= !better;  // what was there may be gone, and what was to come may not
    unmap_pages(others[i].at, 1);
  }
  return whole;
#else
  return static_cast<void>(data), static_cast<void>(count), static_cast<void>(read), static_cast<void>(search), true;
#endif
}

/// As many pages as `map_pages` gives, and of those that it would give the better ones.
inline std::byte* map_chosen_pages(std::size_t count) noexcept {
  std::byte* const data = map_pages(count);
  if (!data) return nullptr;
  try {
    static const std::size_t cache = std::size_t(cache_sizes().second);
    if (choose_pages(data, count, [](const std::byte* page) { return read_page(page, cache); })) return data;
  } catch (const std::bad_alloc&) {
    return data;
  }
  unmap_pages(data, count);
  return map_pages(count);
}

}  // namespace cortex::runtime
