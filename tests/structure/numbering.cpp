// The numbering of the paper's appendix B, against a recursive oracle.
#include "support.hpp"

using namespace structure_test;

namespace {

const std::vector<cs::FieldCheck> everywhere(3, cs::FieldCheck{cs::Where::all, -1, nullptr});

struct Sample {
  std::vector<std::unique_ptr<Item>> items;
  std::vector<const Item*> roots;
};

/// Random items, node i linking only to nodes before it. `parents` bounds how many links may lead to one node.
Sample sample(std::mt19937& random, int size, int children, bool single_parent) {
  Sample s;
  std::vector<int> parents(std::size_t(size), 0);
  auto draw = [&](int bound) { return int(random() % unsigned(bound)); };
  for (int i = 0; i < size; ++i) {
    auto item = std::make_unique<Item>();
    item->id = draw(100000);
    item->weight = float(draw(1000)) / 8;
    item->vector = {float(i), float(draw(9)), -1.f};
    const int links = i == 0 ? 0 : draw(children + 1);
    for (int k = 0; k < links; ++k) {
      const int target = draw(i);
      if (single_parent && parents[std::size_t(target)] > 0) continue;
      ++parents[std::size_t(target)];
      const Item* child = s.items[std::size_t(target)].get();
      const int through = draw(3);
      if (through == 0 && !item->left)
        item->left = child;
      else if (through == 1 && !item->right)
        item->right = child;
      else
        item->kids.push_back(child);
    }
    s.items.push_back(std::move(item));
  }
  for (int i = 0; i < size; ++i)
    if (parents[std::size_t(i)] == 0) s.roots.push_back(s.items[std::size_t(i)].get());
  return s;
}

void check_samples(const cortex::Structure& structure, int children, bool single_parent, bool extra_roots) {
  std::mt19937 random(20240607);
  cs::Workspace workspace;
  for (int round = 0; round < 150; ++round) {
    Sample s = sample(random, 1 + int(random() % (round % 10 == 0 ? 2000u : 60u)), children, single_parent);
    if (extra_roots)
      for (int i = 0; i < 5; ++i) s.roots.push_back(s.items[random() % s.items.size()].get());
    std::shuffle(s.roots.begin(), s.roots.end(), random);
    ItemLinearizer::run(workspace, structure, everywhere, s.roots);
    check_against_oracle(workspace, s.roots);
  }
}

}  // namespace

TEST_CASE("random forests are numbered as the oracle says", "[structure]") {
  check_samples(cortex::tree, 4, true, false);
}

TEST_CASE("random forests declared as DAGs are numbered as the oracle says", "[structure]") {
  check_samples(cortex::dag, 4, true, false);
}

TEST_CASE("random DAGs are numbered as the oracle says", "[structure]") { check_samples(cortex::dag, 5, false, false); }

TEST_CASE("random sequences are numbered as the oracle says", "[structure]") {
  check_samples(cortex::sequence, 1, true, false);
}

TEST_CASE("roots inside other roots' trees and roots given twice are numbered once", "[structure]") {
  check_samples(cortex::tree, 4, true, true);
  check_samples(cortex::sequence, 1, true, true);
  check_samples(cortex::dag, 4, false, true);
}

TEST_CASE("a small tree has the numbering that one writes by hand", "[structure]") {
  const Word a{1, nullptr, nullptr}, b{2, nullptr, nullptr}, c{3, nullptr, nullptr};
  const Word low{4, &a, &b}, top{5, &low, &c};
  cs::Workspace workspace;
  const cs::Arrays& arrays = WordLinearizer::run(workspace, cortex::tree, any_id, {&top});
  CHECK(arrays.num_nodes == 5);
  CHECK(arrays.num_internal == 2);
  CHECK(arrays.num_batches == 3);
  CHECK(arrays.root[0] == 0);
  CHECK(workspace.find(&low) == 1);
  CHECK(std::vector<int>(arrays.batch_begin, arrays.batch_begin + 3) == std::vector<int>{2, 1, 0});
  CHECK(std::vector<int>(arrays.batch_length, arrays.batch_length + 3) == std::vector<int>{3, 1, 1});
  CHECK(arrays.child[0][0] == 1);
  CHECK(arrays.child[1][0] == workspace.find(&c));
  CHECK(arrays.max_batch == 3);
  CHECK(arrays.max_internal_batch == 1);
}

TEST_CASE("leaves have num_nodes for every named child", "[structure]") {
  const Word a, b, top{0, &a, &b};
  cs::Workspace workspace;
  const cs::Arrays& arrays = WordLinearizer::run(workspace, cortex::tree, any_id, {&top});
  for (int k = 0; k < 2; ++k)
    for (int n = arrays.num_internal; n < arrays.num_nodes; ++n) CHECK(arrays.child[k][n] == arrays.num_nodes);
}

TEST_CASE("no roots give empty arrays and no error", "[structure]") {
  cs::Workspace workspace;
  const std::vector<const Item*> none;
  const cs::Arrays& arrays = ItemLinearizer::run(workspace, cortex::tree, everywhere, none);
  CHECK(arrays.num_nodes == 0);
  CHECK(arrays.num_roots == 0);
  CHECK(arrays.num_batches == 0);
  CHECK(arrays.max_batch == 0);
  CHECK(arrays.children[0].begin[0] == 0);
  CHECK(arrays.child[0] != nullptr);
  CHECK(arrays.field[0].data != nullptr);
}

TEST_CASE("single nodes make one batch of leaves", "[structure]") {
  const Word a{7, nullptr, nullptr}, b{8, nullptr, nullptr};
  cs::Workspace workspace;
  const cs::Arrays& arrays = WordLinearizer::run(workspace, cortex::sequence, any_id, {&a, &b});
  CHECK(arrays.num_internal == 0);
  CHECK(arrays.num_batches == 1);
  CHECK(arrays.max_internal_batch == 0);
}

TEST_CASE("a chain of a million nodes is linearized without recursion", "[structure]") {
  std::vector<Kids> chain(1000000);
  for (std::size_t i = 1; i < chain.size(); ++i) chain[i].kids = {&chain[i - 1]};
  cs::Workspace workspace;
  for (const cortex::Structure& structure : {cortex::sequence, cortex::tree, cortex::dag}) {
    const std::array roots{static_cast<const Kids*>(&chain.back())};
    const cs::Arrays& arrays = KidsLinearizer::run(workspace, structure, {}, roots);
    CHECK(arrays.num_batches == 1000000);
    CHECK(workspace.find(&chain[0]) == 999999);
    CHECK(arrays.children[0].child[0] == 1);
  }
}

TEST_CASE("a chain of a million nodes of which every one is also a root is legal", "[structure]") {
  std::vector<Kids> chain(1000000);
  for (std::size_t i = 1; i < chain.size(); ++i) chain[i].kids = {&chain[i - 1]};
  cs::Workspace workspace;
  const cs::Arrays& arrays = KidsLinearizer::run(workspace, cortex::sequence, {}, chain);
  CHECK(arrays.num_nodes == 1000000);
  CHECK(arrays.num_batches == 1000000);
  CHECK(arrays.root[0] == 999999);
}

TEST_CASE("a node with very many children keeps their order", "[structure]") {
  std::vector<Kids> leaves(5000);
  Kids top;
  for (const Kids& leaf : leaves) top.kids.push_back(&leaf);
  cs::Workspace workspace;
  const std::array roots{&top};
  const cs::Arrays& arrays = KidsLinearizer::run(workspace, cortex::tree, {}, roots);
  REQUIRE(arrays.children[0].num_edges == 5000);
  CHECK(arrays.children[0].max_batch_edges == 5000);
  for (std::size_t i = 0; i < leaves.size(); ++i) REQUIRE(arrays.children[0].child[i] == workspace.find(&leaves[i]));
}

TEST_CASE("a DAG whose links outnumber its nodes by far is numbered once per node", "[structure]") {
  std::vector<Kids> layers(200);
  for (std::size_t i = 1; i < layers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) layers[i].kids.push_back(&layers[j]);
  cs::Workspace workspace;
  const std::array roots{&layers.back()};
  const cs::Arrays& arrays = KidsLinearizer::run(workspace, cortex::dag, {}, roots);
  CHECK(arrays.num_nodes == 200);
  CHECK(arrays.num_batches == 200);
  CHECK(arrays.children[0].num_edges == 199 * 200 / 2);
}

TEST_CASE("a DAG's container may hold a child twice", "[structure]") {
  const Kids leaf, top{{&leaf, &leaf}};
  cs::Workspace workspace;
  const cs::Arrays& arrays = KidsLinearizer::run(workspace, cortex::dag, {}, std::array{&top});
  CHECK(arrays.num_nodes == 2);
  CHECK(arrays.children[0].num_edges == 2);
  CHECK(arrays.children[0].child[1] == 1);
}

TEST_CASE("named children and a container may show the same children of a tree", "[structure]") {
  using Set = cs::Accessors<cs::Children<&Word::left, &Word::right>, Left, Right>;
  const Word a, b, c, low{0, &a, &b}, top{0, &low, &c};
  cs::Workspace workspace;
  const cs::Arrays& arrays = cs::Linearizer<Word, Set>::run(workspace, cortex::tree.with_max_children(2), {}, {&top});
  CHECK(arrays.num_nodes == 5);
  CHECK(arrays.children[0].num_edges == 4);
  for (int n = 0; n < arrays.num_internal; ++n) {
    CHECK(arrays.children[0].child[arrays.children[0].begin[n]] == arrays.child[0][n]);
    CHECK(arrays.children[0].child[arrays.children[0].begin[n] + 1] == arrays.child[1][n]);
  }
}

TEST_CASE("a set without children makes every root a leaf", "[structure]") {
  const Word a{3, nullptr, nullptr}, top{4, &a, &a};
  cs::Workspace workspace;
  const cs::Arrays& arrays = cs::Linearizer<Word, cs::Accessors<Id>>::run(workspace, cortex::tree, any_id, {&top});
  CHECK(arrays.num_nodes == 1);
  CHECK(cs::Linearizer<Word, cs::Accessors<>>::run(workspace, cortex::tree, {}, {&a, &top}).num_nodes == 2);
}
