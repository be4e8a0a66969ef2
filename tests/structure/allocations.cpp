// A warm workspace allocates nothing. This file replaces the program's operator new to count, so at most one test file
// of an executable may do so.
#include <atomic>
#include <cstdlib>
#include <new>

#include "support.hpp"

namespace {

std::atomic<long> allocations{0};
std::atomic<long> refused{-1};  // the number of the allocation that fails

void* counted(std::size_t size, std::size_t alignment) {
  if (allocations++ == refused) throw std::bad_alloc();
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

// g++ sees through some of these and not through others, and then takes free for the wrong partner.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t size) { return counted(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) { return counted(size, std::size_t(alignment)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return ++allocations, std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace structure_test;

namespace {

template <class Run>
long allocations_of(Run&& run) {
  const long before = allocations;
  run();
  return allocations - before;
}

}  // namespace

TEST_CASE("a warm workspace allocates nothing for trees", "[structure]") {
  std::vector<Item> items(4001);
  for (std::size_t i = 0; i < 2000; ++i) {
    items[i].left = &items[2 * i + 1];
    items[i].kids = {&items[2 * i + 2]};
  }
  const std::array roots{static_cast<const Item*>(&items[0])};
  const std::vector<cs::FieldCheck> checks(3);
  cs::Workspace workspace;
  auto run = [&] { ItemLinearizer::run(workspace, cortex::tree, checks, roots); };
  CHECK(allocations_of(run) > 0);
  CHECK(allocations_of(run) == 0);
}

TEST_CASE("a warm workspace allocates nothing for DAGs", "[structure]") {
  std::vector<Kids> layers(100);
  for (std::size_t i = 1; i < layers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) layers[i].kids.push_back(&layers[j]);
  const std::array roots{static_cast<const Kids*>(&layers.back())};
  cs::Workspace workspace;
  auto run = [&] { KidsLinearizer::run(workspace, cortex::dag, {}, roots); };
  CHECK(allocations_of(run) > 0);
  CHECK(allocations_of(run) == 0);
}

TEST_CASE("a warm workspace allocates nothing for smaller inputs, whatever came before", "[structure]") {
  std::vector<Word> words(2001);
  for (std::size_t i = 0; i < 1000; ++i) words[i].left = &words[2 * i + 1], words[i].right = &words[2 * i + 2];
  cs::Workspace workspace;
  auto run = [&](std::size_t root) { WordLinearizer::run(workspace, cortex::tree, any_id, std::array{&words[root]}); };
  run(0);
  CHECK(allocations_of([&] {
          for (int round = 0; round < 100; ++round)
            for (std::size_t root : {2000, 1, 0, 500, 3}) run(root);
        }) == 0);
}

TEST_CASE("a warm workspace that shares equal subtrees allocates nothing", "[structure][sharing]") {
  std::vector<Word> words(2001);
  for (std::size_t i = 0; i < words.size(); ++i) words[i].id = int(i % 7);
  for (std::size_t i = 0; i < 1000; ++i) words[i].left = &words[2 * i + 1], words[i].right = &words[2 * i + 2];
  cs::Workspace workspace;
  workspace.share_subtrees(true);
  auto run = [&](std::size_t root) { WordLinearizer::run(workspace, cortex::tree, any_id, std::array{&words[root]}); };
  run(0);
  CHECK(allocations_of([&] {
          for (int round = 0; round < 100; ++round)
            for (std::size_t root : {0, 2000, 1, 500, 0, 3}) run(root);
        }) == 0);
}

TEST_CASE("a workspace works on after any one allocation has failed", "[structure]") {
  std::vector<Item> items(41);
  for (std::size_t i = 0; i < 20; ++i) {
    items[i].left = &items[2 * i + 1];
    items[i].kids = {&items[2 * i + 2]};
  }
  const std::array roots{static_cast<const Item*>(&items[0])};
  const std::vector<cs::FieldCheck> checks(3);
  int failures = 0;
  for (bool done = false; !done; ++failures) {
    cs::Workspace workspace;
    refused = allocations + failures;
    done = true;
    try {
      ItemLinearizer::run(workspace, cortex::tree, checks, roots);
    } catch (const std::bad_alloc&) {
      done = false;
    } catch (const cortex::Error& error) {
      done = error.code != cortex::Code::out_of_memory;
    }
    refused = -1;
    CHECK(ItemLinearizer::run(workspace, cortex::tree, checks, roots).num_nodes == 41);
  }
  CHECK(failures > 10);
}
