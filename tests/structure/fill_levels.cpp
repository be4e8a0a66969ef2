// Small batches are filled from below: every node above its children and below its parents, none that could stand
// higher in a batch with room, and nothing else of the arrays changed.
#include "structure/random_items.hpp"

using namespace structure_test;

namespace {

std::vector<int> lengths_of(const cs::Workspace& workspace) {
  const cs::Arrays& a = workspace.arrays();
  return {a.batch_length, a.batch_length + a.num_batches};
}

/// A right-branching spine of `length` inner nodes, each with a leaf, and the first of them with a full tree of
/// `height` levels in place of its leaf.
struct Spine {
  std::deque<Word> all;
  const Word* top;
  Spine(int length, int height) {
    const Word* below = leaf();
    for (int i = 0; i < length; ++i) below = join(i + 1 == length ? full(height) : leaf(), below);
    top = below;
  }
  const Word* leaf() { return &all.emplace_back(); }
  const Word* join(const Word* left, const Word* right) { return &all.emplace_back(Word{0, left, right}); }
  const Word* full(int height) {
    if (height == 0) return leaf();
    const Word *left = full(height - 1), *right = full(height - 1);
    return join(left, right);
  }
};

}  // namespace

TEST_CASE("batches towards the root are filled with nodes from below", "[structure]") {
  const Spine spine(9, 3);
  cs::Workspace workspace;
  WordLinearizer::run(workspace, cortex::tree, any_id, {spine.top});
  CHECK(lengths_of(workspace) == std::vector<int>{17, 5, 3, 2, 1, 1, 1, 1, 1, 1});
  workspace.fill_levels(8);  // 16 inner nodes in 9 batches: two each, but that nothing stands beside the root
  const cs::Arrays& a = WordLinearizer::run(workspace, cortex::tree, any_id, {spine.top});
  CHECK(lengths_of(workspace) == std::vector<int>{17, 1, 2, 2, 2, 2, 2, 2, 2, 1});
  CHECK(a.num_internal == 16);
  CHECK(a.root[0] == 0);
  CHECK((a.max_internal_batch == 2 && a.max_batch == 17));
  workspace.fill_levels(1);
  WordLinearizer::run(workspace, cortex::tree, any_id, {spine.top});
  CHECK(lengths_of(workspace) == std::vector<int>{17, 5, 3, 2, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("a tree that is lower than others of its call stands where these have room", "[structure]") {
  const Spine high(6, 1), low(2, 1), other(2, 1);
  cs::Workspace workspace;
  workspace.fill_levels(2);
  WordLinearizer::run(workspace, cortex::tree, any_id, {high.top, low.top, other.top});
  CHECK(lengths_of(workspace) == std::vector<int>{16, 3, 2, 2, 2, 2, 2});
}

TEST_CASE("where every batch has room and nothing can move, nothing moves", "[structure]") {
  for (const bool equal : {true, false}) {
    std::deque<Word> all;
    std::vector<const Word*> roots;
    for (const int length : {5, 5, equal ? 5 : 2})
      for (int i = 0; i < length; ++i) {
        const Word* const below = i ? &all.back() : nullptr;
        if (i + 1 == length)
          roots.push_back(&all.emplace_back(Word{0, below, nullptr}));
        else
          all.push_back({0, below, nullptr});
      }
    using Sequence = cs::Linearizer<Word, cs::Accessors<Left, Id>>;
    cs::Workspace workspace;
    workspace.fill_levels(4);
    const cs::Arrays& a = Sequence::run(workspace, cortex::sequence, any_id, roots);
    CHECK(a.child_step == (equal ? 3 : 0));
    CHECK(lengths_of(workspace) == (equal ? std::vector<int>{3, 3, 3, 3, 3} : std::vector<int>{3, 2, 2, 2, 3}));
  }
}

TEST_CASE("nodes of filled batches stand above their children, below their parents, and as high as there is room",
          "[structure]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const bool graph = seed % 2, shares = seed % 3 == 0;
    const Items items(seed, graph, 5 + int(seed));
    const int most = 1 + int(seed % 7);
    INFO("seed " << seed);
    cs::Workspace workspace, plain;
    workspace.share_subtrees(shares), plain.share_subtrees(shares);
    workspace.fill_levels(most);
    const cs::Arrays& a = ItemLinearizer::run(workspace, cortex::dag, all_read, items.roots);
    const cs::Arrays& p = ItemLinearizer::run(plain, cortex::dag, all_read, items.roots);
    REQUIRE((a.num_nodes == p.num_nodes && a.num_internal == p.num_internal && a.num_batches == p.num_batches));
    const auto batch = batches_of(workspace);
    REQUIRE(int(batch.size()) == a.num_nodes);
    const int inner = a.num_batches - 1, full = inner ? std::min(most, (a.num_internal + inner - 1) / inner) : 1;
    std::map<int, int> highest;  // by number: the highest batch that the parents leave
    for (const Item& item : items.all) {
      const int n = workspace.find(&item), own = batch.at(workspace.node(n));
      CHECK((own == 0) == children_of(item).empty());
      for (const Item* child : children_of(item)) {
        const int number = workspace.find(child);
        CHECK(number > n);
        CHECK(batch.at(workspace.node(number)) < own);
        highest.try_emplace(number, a.num_batches - 1);
        highest[number] = std::min(highest[number], own - 1);
      }
    }
    for (int n = 0; n < a.num_internal; ++n) {
      const int own = batch.at(workspace.node(n));
      const int bound = highest.count(n) ? highest[n] : a.num_batches - 1;
      for (int b = own + 1; b <= bound; ++b) CHECK(a.batch_length[b] >= full);
    }
    for (const Item& item : items.all) {  // children and fields are the node's own
      const int n = workspace.find(&item);
      CHECK(static_cast<const std::int32_t*>(a.field[0].data)[n] == item.id);
      if (item.left) CHECK(a.child[0][n] == workspace.find(item.left));
      for (std::size_t k = 0; k < item.kids.size(); ++k)
        CHECK(a.children[0].child[a.children[0].begin[n] + int(k)] == workspace.find(item.kids[k]));
    }
  }
}

TEST_CASE("filled batches have parts, and subtrees of some heights are not filled", "[structure]") {
  using Op = cs::KeyStep::Op;
  cs::Partition partition;
  partition.selectors.push_back({{{Op::field, 0, 0, 0}}, {}, cs::Where::all, {0, 1}, false, true, "id"});
  partition.parts = 3;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Items items(seed, seed % 2, 60);
    cs::Workspace workspace;
    workspace.set_partition(&partition);
    workspace.fill_levels(3);
    const cs::Arrays& a = ItemLinearizer::run(workspace, cortex::dag, all_read, items.roots);
    for (int b = 0; b < a.num_batches; ++b) {
      int next = a.batch_begin[b];
      for (int p = 0; p < 3; ++p) {
        CHECK(a.part_begin[b * 3 + p] == next);
        for (int i = 0; i < a.part_length[b * 3 + p]; ++i, ++next)
          CHECK(static_cast<const Item*>(workspace.node(next))->id == p);
      }
      CHECK(next == a.batch_begin[b] + a.batch_length[b]);
    }
  }
  const Spine spine(9, 3);
  cs::Workspace workspace;
  workspace.fill_levels(8);
  workspace.set_subtree_depth(2);
  WordLinearizer::run(workspace, cortex::tree, any_id, {spine.top});
  CHECK(lengths_of(workspace) == std::vector<int>{17, 5, 3, 2, 1, 1, 1, 1, 1, 1});
}
