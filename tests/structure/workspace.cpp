// The workspace: reuse, growth, find, moves.
#include "cortex/base/config.hpp"
#include "support.hpp"
#include "support/skip.hpp"

using namespace structure_test;

namespace {

/// `count` binary trees of depth `depth`, complete.
std::vector<Word> forest(int depth, int count) {
  const std::size_t size = (std::size_t(1) << (depth + 1)) - 1;
  std::vector<Word> words(size * std::size_t(count));
  for (std::size_t t = 0; t < std::size_t(count); ++t)
    for (std::size_t i = 0; i < size / 2; ++i) {
      words[t * size + i].left = &words[t * size + 2 * i + 1];
      words[t * size + i].right = &words[t * size + 2 * i + 2];
    }
  return words;
}

std::vector<const Word*> roots_of(const std::vector<Word>& words, int count) {
  std::vector<const Word*> roots;
  for (std::size_t t = 0; t < std::size_t(count); ++t) roots.push_back(&words[t * words.size() / std::size_t(count)]);
  return roots;
}

}  // namespace

TEST_CASE("find knows every node of the last run and no other address", "[structure]") {
  const std::vector<Word> words = forest(6, 3);
  const Word other;
  cs::Workspace workspace;
  CHECK(workspace.find(&other) == -1);
  WordLinearizer::run(workspace, cortex::tree, any_id, roots_of(words, 3));
  std::set<int> numbers;
  for (const Word& word : words) numbers.insert(workspace.find(&word));
  CHECK(numbers.size() == words.size());
  CHECK(*numbers.begin() == 0);
  CHECK(*numbers.rbegin() == int(words.size()) - 1);
  CHECK(workspace.find(&other) == -1);
  CHECK(workspace.find(nullptr) == -1);
  CHECK(workspace.find(reinterpret_cast<const char*>(&words[0]) + 1) == -1);
}

TEST_CASE("a filter of addresses knows those that it was given, and few others", "[structure]") {
  cs::AddressFilter filter;
  const std::vector<std::array<char, 64>> memory(4000);
  for (const std::size_t count : {2000, 1000, 10}) {  // what it was given before is forgotten
    filter.reset(count);
    for (std::size_t i = 0; i < count; ++i) filter.add(&memory[2 * i]);
    std::size_t known = 0, all = 0;
    for (std::size_t i = 0; i < count; ++i) known += filter.may_contain(&memory[2 * i]);
    for (const auto& at : memory) all += filter.may_contain(&at);
    CHECK(known == count);
    CHECK(all <= (count < 1000 ? 4 * count : count));  // few bits stand for addresses 64 KB apart as well
  }
}

TEST_CASE("find forgets the run before the last", "[structure]") {
  const Word a, b;
  cs::Workspace workspace;
  WordLinearizer::run(workspace, cortex::tree, any_id, {&a});
  WordLinearizer::run(workspace, cortex::tree, any_id, {&b});
  CHECK(workspace.find(&a) == -1);
  CHECK(workspace.find(&b) == 0);
}

TEST_CASE("find gives the number of a shared node whichever way it was reached", "[structure]") {
  const Kids leaf, a{{&leaf}}, b{{&a, &leaf}};
  cs::Workspace workspace;
  KidsLinearizer::run(workspace, cortex::dag, {}, std::array{&b, &leaf});
  CHECK(workspace.find(&leaf) == 2);
  CHECK(workspace.arrays().root[1] == 2);
}

TEST_CASE("after a failed run the arrays are empty, and the next run is as if nothing had been", "[structure]") {
  const Word leaf, other, good{0, &leaf, &other}, bad{0, &leaf, nullptr};
  cs::Workspace workspace;
  for (int round = 0; round < 3; ++round) {
    CHECK_THROWS_AS(WordLinearizer::run(workspace, cortex::tree, any_id, {&good, &bad}), cortex::Error);
    CHECK(workspace.arrays().num_nodes == 0);
    CHECK(workspace.find(&leaf) == -1);
    CHECK(WordLinearizer::run(workspace, cortex::tree, any_id, {&good}).num_nodes == 3);
  }
}

TEST_CASE("large and small calls follow each other in any order", "[structure]") {
  cs::Workspace workspace;
  for (int depth : {1, 14, 2, 0, 15, 3, 9, 1}) {
    const std::vector<Word> words = forest(depth, 2);
    const cs::Arrays& arrays = WordLinearizer::run(workspace, cortex::tree, any_id, roots_of(words, 2));
    REQUIRE(arrays.num_nodes == int(words.size()));
    REQUIRE(arrays.num_batches == depth + 1);
    for (const Word& word : words)
      if (word.left) REQUIRE(arrays.child[0][workspace.find(&word)] == workspace.find(word.left));
  }
}

TEST_CASE("one workspace serves several node types in turn", "[structure]") {
  cs::Workspace workspace;
  const std::vector<Word> words = forest(8, 1);
  const Kids leaf, top{{&leaf}};
  const Item item;
  for (int round = 0; round < 3; ++round) {
    CHECK(KidsLinearizer::run(workspace, cortex::tree, {}, std::array{&top}).num_nodes == 2);
    CHECK(WordLinearizer::run(workspace, cortex::tree, any_id, {&words[0]}).num_nodes == 511);
    CHECK(ItemLinearizer::run(workspace, cortex::tree, std::vector<cs::FieldCheck>(3), std::array{&item}).num_nodes ==
          1);
  }
}

TEST_CASE("a moved workspace takes its arrays along and leaves a usable one behind", "[structure]") {
  const Word a{4, nullptr, nullptr}, b;
  cs::Workspace first;
  const int* data = static_cast<const int*>(WordLinearizer::run(first, cortex::tree, any_id, {&a}).field[0].data);
  cs::Workspace second = std::move(first);
  CHECK(second.find(&a) == 0);
  CHECK(static_cast<const int*>(second.arrays().field[0].data) == data);
  CHECK(first.find(&a) == -1);
  CHECK(first.arrays().num_nodes == 0);
  CHECK(WordLinearizer::run(first, cortex::tree, any_id, {&b, &a}).num_nodes == 2);
  second = std::move(first);
  CHECK(second.arrays().num_nodes == 2);
}

TEST_CASE("the same input gives the same arrays again", "[structure]") {
  const std::vector<Word> words = forest(5, 4);
  cs::Workspace warm, fresh;
  for (int round = 0; round < 5; ++round)
    WordLinearizer::run(warm, cortex::tree, any_id, roots_of(words, 1 + round % 4));
  const cs::Arrays& a = WordLinearizer::run(warm, cortex::tree, any_id, roots_of(words, 4));
  const cs::Arrays& b = WordLinearizer::run(fresh, cortex::tree, any_id, roots_of(words, 4));
  REQUIRE(a.num_nodes == b.num_nodes);
  CHECK(std::equal(a.child[0], a.child[0] + a.num_nodes, b.child[0]));
  CHECK(std::equal(a.child[1], a.child[1] + a.num_nodes, b.child[1]));
}

TEST_CASE("a block that cannot grow says so, and keeps what it has", "[structure]") {
#if CORTEX_ADDRESS_SANITIZER
  cortex::test::skip("AddressSanitizer ends the process that asks for so much memory");
#endif
  cs::Block<std::int32_t> block;
  block.reserve(100)[7] = 5;
  const std::size_t capacity = block.capacity();
  check_says(error_of(Code::out_of_memory, [&] { block.extend(std::size_t(1) << 58, 100); }),
             {"no memory for 1.649e+12 MB more", "fewer roots"});
  CHECK(block.capacity() == capacity);
  CHECK(block.data()[7] == 5);
}
