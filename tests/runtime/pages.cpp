// Memory on huge pages: how blocks share them, and how those are chosen that a cache can hold.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "cortex/runtime/storage.hpp"

using namespace cortex;
using namespace cortex::runtime;

namespace {

/// Pages in the order in which they are read, each with the time that is said of it, and marked by its number.
struct Said {
  std::deque<double> times;
  int reads = 0;
  Reading operator()(const std::byte* page) {
    const int number = reads++;
    std::memcpy(const_cast<std::byte*>(page), &number, sizeof number);
    REQUIRE(std::size_t(number) < times.size());
    return {times[std::size_t(number)], 1};
  }
};

/// The number that the page at `data` was read as.
int number_of(const std::byte* data) {
  int number;
  std::memcpy(&number, data, sizeof number);
  return number;
}

/// A search that other work of the machine does not cut short.
PageSearch patient() {
  PageSearch search;
  search.most_ns = std::int64_t(3600) * 1'000'000'000;
  return search;
}

/// Which pages lie there in the end.
std::vector<int> chosen(std::size_t count, Said& said, const PageSearch& search = patient()) {
  std::byte* const data = map_pages(count);
  REQUIRE(data);
  REQUIRE(choose_pages(
      data, count, [&](const std::byte* page) { return said(page); }, search));
  std::vector<int> numbers;
  for (std::size_t p = 0; p < count; ++p) {
    numbers.push_back(number_of(data + p * huge_page));
    std::memset(data + p * huge_page, 1, huge_page);  // all of it is there
  }
  unmap_pages(data, count);
  return numbers;
}

/// Of the process, in bytes.
std::size_t address_space() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file);
  unsigned long pages = 0;
  const int read = std::fscanf(file, "%lu", &pages);
  std::fclose(file);
  REQUIRE(read == 1);
  return pages * 4096;
}

}  // namespace

TEST_CASE("blocks are aligned, and to huge pages when they are large", "[runtime]") {
  for (const std::size_t bytes : {std::size_t(1), std::size_t(100), std::size_t(1) << 20, std::size_t(3) << 20}) {
    const Block block(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % (bytes >= (2u << 20) ? 2u << 20 : 64u) == 0);
    CHECK(block.data()[bytes + slack_bytes - 1] == std::byte(0));
  }
}

TEST_CASE("blocks smaller than a huge page share one, and it is given back after the last of them", "[runtime]") {
  std::mt19937 random(11);
  HugePages pages;
  struct Piece {
    std::byte* at;
    std::size_t bytes;
    std::byte mark;
  };
  std::vector<Piece> held;
  std::size_t bytes_held = 0, most_held = 0, most_pages = 0;
  int kept = 0, given_back = 0;
  const auto give_back = [&](std::size_t i) {
    const Piece piece = held[i];
    kept += std::all_of(piece.at, piece.at + piece.bytes, [&](std::byte b) { return b == piece.mark; });
    ++given_back;
    pages.give_back(piece.at, piece.bytes);
    bytes_held -= piece.bytes;
    held.erase(held.begin() + std::ptrdiff_t(i));
  };
  for (int step = 0; step < 400; ++step) {
    if (held.size() > 12 || (!held.empty() && random() % 3 == 0)) give_back(random() % held.size());
    const std::size_t bytes = 65536 + random() % (huge_page - 65536);
    std::byte* const at = pages.take(bytes);
    REQUIRE(at);
    REQUIRE(std::uintptr_t(at) % 4096 == 0);
    held.push_back({at, bytes, std::byte(step % 251)});
    std::fill(at, at + bytes, held.back().mark);
    bytes_held += bytes, most_held = std::max(most_held, bytes_held), most_pages = std::max(most_pages, pages.count());
  }
  CHECK(most_pages * huge_page < 2 * most_held);  // gaps are filled again
  while (!held.empty()) give_back(0);
  CHECK(kept == given_back);  // nobody wrote what another one had
  CHECK(pages.count() == 0);
  constexpr std::size_t half = huge_page / 2;
  std::byte* const halves[] = {pages.take(half), pages.take(half)};
  CHECK(pages.count() == 1);
  for (std::byte* at : halves) pages.give_back(at, half);
  CHECK(pages.count() == 0);
}

#if defined(__linux__)
TEST_CASE("a slow page is exchanged for the first that is good", "[runtime]") {
  Said said{{1.5, 1.3, 1.05, 1.0}};
  CHECK(chosen(1, said) == std::vector{2});
  CHECK(said.reads == 3);
}

TEST_CASE("a good page stays, and no other is looked at", "[runtime]") {
  Said said{{1.1}};
  CHECK(chosen(1, said) == std::vector{0});
  CHECK(said.reads == 1);
}

TEST_CASE("where no page is good, the best of some are taken", "[runtime]") {
  PageSearch search = patient();
  search.most_others = 3;
  Said worse{{1.5, 1.8, 1.4, 1.6, 1.0}};
  CHECK(chosen(1, worse, search) == std::vector{2});
  CHECK(worse.reads == 4);
  Said none{{1.5, 1.8, 1.6, 1.7, 1.0}};
  CHECK(chosen(1, none, search) == std::vector{0});
}

TEST_CASE("the slowest of several pages are exchanged", "[runtime]") {
  Said said{{1.0, 1.5, 1.05, 2.0, 1.6, 1.08, 1.3, 1.02}};
  CHECK(chosen(4, said) == std::vector{0, 5, 2, 7});
  CHECK(said.reads == 8);
}

TEST_CASE("the search for pages ends when its time is over", "[runtime]") {
  PageSearch search;
  search.most_ns = 0;
  Said said{{1.5, 1.0}};
  CHECK(chosen(1, said, search) == std::vector{0});
  CHECK(said.reads == 1);
}

TEST_CASE("pages that are looked at and not taken are given back", "[runtime]") {
  const auto search = [] {
    Said said{{2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4, 1.3, 1.2}};
    CHECK(chosen(1, said) == std::vector{8});
  };
  search();
  const std::size_t before = address_space();
  for (int i = 0; i < 10; ++i) search();
  CHECK(address_space() < before + huge_page);
}
#endif

TEST_CASE("pages are read to choose them", "[runtime]") {
  std::byte* const page = map_pages(1);
  REQUIRE(page);
  CHECK(std::uintptr_t(page) % huge_page == 0);
  std::memset(page, 1, huge_page);
  for (const std::size_t cache :
       {std::size_t(0), std::size_t(256) << 10, std::size_t(2) << 20, std::size_t(64) << 20}) {
    const Reading reading = read_page(page, cache);
    CHECK(reading.parts > 0);
    CHECK(reading.parts < 1000);
    CHECK(reading.little > 0);
    CHECK(reading.little < 1000);
  }
  unmap_pages(page, 1);
}

TEST_CASE("what is read again and again lies on pages that were chosen, and anything on those that have room",
          "[runtime]") {
  HugePages pages;
  constexpr std::size_t some = huge_page / 4;
  std::vector<std::byte*> held;
  const auto pages_with = [&](int more, bool chosen) {
    for (int i = 0; i < more; ++i) held.push_back(pages.take(some, chosen));
    return pages.count();
  };
  CHECK(pages_with(1, false) == 1);
  CHECK(pages_with(1, true) == 2);
  CHECK(pages_with(3, true) == 2);
  CHECK(pages_with(3, false) == 2);
  CHECK(pages_with(1, true) == 3);
  for (std::byte* at : held) pages.give_back(at, some);
  CHECK(pages.count() == 0);
}

TEST_CASE("blocks that are read again and again are given back, whatever their size", "[runtime]") {
  const auto use = [] {
    for (const std::size_t bytes : {std::size_t(100), std::size_t(1) << 20, huge_page - slack_bytes,
                                    std::size_t(5) << 20, std::size_t(65) << 20}) {
      Block block(bytes, Block::store_less, Block::Use::read_again);
      std::memset(block.data(), 1, bytes + slack_bytes);
      const Block moved = std::move(block);
      CHECK(moved.data()[bytes + slack_bytes - 1] == std::byte(1));
    }
  };
  use();
  const std::size_t before = address_space();
  for (int i = 0; i < 3; ++i) use();
  if (!CORTEX_ADDRESS_SANITIZER) CHECK(address_space() < before + huge_page);  // which keeps what is freed for a while
}
