// A call in pieces: of neighbouring roots, each with what the roots before do not reach, one after the other.
#include "structure/random_items.hpp"

using namespace structure_test;

namespace {

/// Whether two runs number these nodes alike, one of them with `shift` of what the other has, and have the same of
/// them.
struct Same {
  const cs::Workspace &whole, &alone;
  int piece;

  void check() const {
    const cs::Arrays &w = whole.arrays(), &a = alone.arrays();
    const int first = w.piece_batch[piece], last = w.piece_batch[piece + 1] - 1;
    REQUIRE(last - first + 1 == a.num_batches);
    for (int b = 0; b < a.num_batches; ++b) REQUIRE(w.batch_length[first + b] == a.batch_length[b]);
    for (int n = 0; n < a.num_nodes; ++n) {
      const int m = number(n);
      REQUIRE(whole.node(m) == alone.node(n));
      for (int k = 0; k < 2 && n < a.num_internal; ++k) REQUIRE(w.child[k][m] == number(a.child[k][n]));
      const cs::Csr &of_whole = w.children[0], &of_alone = a.children[0];
      const int kids = of_alone.begin[n + 1] - of_alone.begin[n];
      REQUIRE(of_whole.begin[m + 1] - of_whole.begin[m] == kids);
      for (int k = 0; k < kids; ++k)
        REQUIRE(of_whole.child[of_whole.begin[m] + k] == number(of_alone.child[of_alone.begin[n] + k]));
    }
    REQUIRE(w.piece_root[piece + 1] - w.piece_root[piece] == a.num_roots);
    for (int r = 0; r < a.num_roots; ++r) REQUIRE(w.root[w.piece_root[piece] + r] == number(a.root[r]));
  }

  /// What the node that a call on the piece alone gives number `n` has in the whole call.
  int number(int n) const {
    const cs::Arrays &w = whole.arrays(), &a = alone.arrays();
    const int first = w.piece_batch[piece], last = w.piece_batch[piece + 1] - 1;
    if (n == a.num_nodes) return w.num_nodes;
    return n < a.num_internal ? w.batch_begin[last] + n : w.batch_begin[first] + n - a.num_internal;
  }
};

/// The piece of each node of the last run.
std::map<const void*, int> pieces_of(const cs::Workspace& workspace) {
  const cs::Arrays& a = workspace.arrays();
  std::map<const void*, int> result;
  for (const auto& [node, batch] : batches_of(workspace))
    result[node] = int(std::upper_bound(a.piece_batch, a.piece_batch + a.num_pieces + 1, batch) - a.piece_batch) - 1;
  return result;
}

void visit(const Item* item, const std::function<void(const Item*)>& f, std::set<const Item*>& seen) {
  if (!seen.insert(item).second) return;
  f(item);
  for (const Item* child : children_of(*item)) visit(child, f, seen);
}

/// A forest of perfect trees with `height` levels of inner nodes.
struct Perfect {
  std::deque<Word> all;
  std::vector<const Word*> roots;
  Perfect(int count, int height) {
    for (int i = 0; i < count; ++i) roots.push_back(tree(height));
  }
  const Word* tree(int height) {
    if (height == 0) return &all.emplace_back(Word{int(all.size())});
    const Word *left = tree(height - 1), *right = tree(height - 1);
    return &all.emplace_back(Word{int(all.size()), left, right});
  }
};

}  // namespace

TEST_CASE("pieces have at least as many nodes as they are to have, and their batches and roots follow each other",
          "[structure]") {
  const Perfect forest(10, 2);  // 7 nodes each
  cs::Workspace workspace;
  const auto roots_of = [&](int nodes) {
    workspace.set_pieces(nodes);
    const cs::Arrays& a = WordLinearizer::run(workspace, cortex::tree, any_id, forest.roots);
    REQUIRE((a.num_nodes == 70 && a.num_internal == 30 && a.num_roots == 10));
    return std::vector<int>(a.piece_root, a.piece_root + a.num_pieces + 1);
  };
  CHECK(roots_of(0) == std::vector<int>{0, 10});
  CHECK(roots_of(36) == std::vector<int>{0, 10});
  CHECK(roots_of(35) == std::vector<int>{0, 5, 10});
  CHECK(roots_of(17) == std::vector<int>{0, 3, 6, 10});  // no last one of a single tree
  CHECK(roots_of(1) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  roots_of(35);
  const cs::Arrays& a = workspace.arrays();
  const std::vector<int> lengths(a.batch_length, a.batch_length + a.num_batches);
  const std::vector<int> begins(a.batch_begin, a.batch_begin + a.num_batches);
  CHECK(lengths == std::vector<int>{20, 10, 5, 20, 10, 5});
  CHECK(begins == std::vector<int>{50, 20, 15, 30, 5, 0});
  CHECK((a.max_batch == 20 && a.max_internal_batch == 10));
}

TEST_CASE("a piece of a forest is numbered as a call on its roots alone", "[structure]") {
  int pieces = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Items items(seed, false, 20 + 2 * int(seed));
    INFO("seed " << seed);
    cs::Workspace whole, alone;
    whole.set_pieces(1 + int(seed % 7));
    const cs::Arrays& w = ItemLinearizer::run(whole, cortex::tree, all_read, items.roots);
    for (int p = 0; p < w.num_pieces; ++p, ++pieces) {
      ItemLinearizer::run(
          alone, cortex::tree, all_read,
          std::vector(items.roots.begin() + w.piece_root[p], items.roots.begin() + w.piece_root[p + 1]));
      Same{whole, alone, p}.check();
    }
  }
  CHECK(pieces > 60);
}

TEST_CASE("a node stands in the first piece that reaches it, above all that it waits for", "[structure]") {
  int shared = 0;  // children in other pieces
  for (unsigned seed = 0; seed < 300; ++seed) {
    const bool graph = seed % 2, shares = seed % 3 == 0;
    const Items items(seed, graph, 5 + int(seed));
    std::vector<const Item*> roots = items.roots;
    if (graph)
      for (int i = 0; i < 4; ++i) roots.push_back(&items.all[(seed * 7 + unsigned(i) * 31) % items.all.size()]);
    if (seed % 5 == 0) std::reverse(roots.begin(), roots.end());
    const int nodes = 1 + int(seed % 23);
    INFO("seed " << seed);
    cs::Workspace workspace, plain;
    workspace.share_subtrees(shares), plain.share_subtrees(shares);
    workspace.fill_levels(1 + int(seed % 4));
    workspace.set_pieces(nodes);
    const cs::Arrays& a = ItemLinearizer::run(workspace, cortex::dag, all_read, roots);
    const cs::Arrays& p = ItemLinearizer::run(plain, cortex::dag, all_read, roots);
    REQUIRE((a.num_nodes == p.num_nodes && a.num_internal == p.num_internal && a.num_roots == p.num_roots));
    REQUIRE((a.piece_batch[0] == 0 && a.piece_batch[a.num_pieces] == a.num_batches));
    REQUIRE((a.piece_root[0] == 0 && a.piece_root[a.num_pieces] == a.num_roots));
    int counted = 0;
    for (int piece = 0; piece < a.num_pieces; ++piece) {
      REQUIRE(a.piece_root[piece] < a.piece_root[piece + 1]);
      REQUIRE(a.piece_batch[piece] < a.piece_batch[piece + 1]);
      for (int b = a.piece_batch[piece]; b < a.piece_batch[piece + 1]; ++b) {
        const bool leaves = b == a.piece_batch[piece];
        REQUIRE((leaves || a.batch_length[b] > 0));
        REQUIRE((a.batch_length[b] == 0 || (a.batch_begin[b] >= a.num_internal) == leaves));
        counted += a.batch_length[b];
      }
    }
    REQUIRE(counted == a.num_nodes);
    int past_inner = a.num_internal, past_leaves = a.num_nodes;  // the first piece's numbers are the highest
    for (int piece = 0; piece < a.num_pieces; ++piece) {
      const cs::NodeNumbers inner = cs::inner_of(a, piece), leaves = cs::leaves_of(a, piece);
      REQUIRE((inner.count == 0 || inner.first + inner.count == past_inner));
      REQUIRE(leaves.first + leaves.count == past_leaves);
      past_inner -= inner.count, past_leaves -= leaves.count;
    }
    REQUIRE((past_inner == 0 && past_leaves == a.num_internal));
    const auto batch = batches_of(workspace), piece = pieces_of(workspace);
    REQUIRE(int(batch.size()) == a.num_nodes);
    std::map<const void*, int> first;
    for (int r = 0; r < a.num_roots; ++r) {
      const int own = int(std::upper_bound(a.piece_root, a.piece_root + a.num_pieces + 1, r) - a.piece_root) - 1;
      std::set<const Item*> seen;
      visit(
          roots[std::size_t(r)],
          [&](const Item* item) { first.try_emplace(workspace.node(workspace.find(item)), own); }, seen);
    }
    REQUIRE(first == piece);
    for (const Item& item : items.all) {
      const int n = workspace.find(&item);
      if (n < 0) continue;
      const int own = batch.at(workspace.node(n));
      for (const Item* child : children_of(item)) {
        const int number = workspace.find(child);
        REQUIRE(number > n);
        REQUIRE(batch.at(workspace.node(number)) < own);
        shared += piece.at(workspace.node(number)) != piece.at(workspace.node(n));
      }
      CHECK(static_cast<const std::int32_t*>(a.field[0].data)[n] == item.id);
      CHECK(a.child[0][n] == (item.left ? workspace.find(item.left) : a.num_nodes));
      for (std::size_t k = 0; k < item.kids.size(); ++k)
        CHECK(a.children[0].child[a.children[0].begin[n] + int(k)] == workspace.find(item.kids[k]));
    }
  }
  CHECK(shared > 100);
}

TEST_CASE("filled batches stay in their pieces, and pieces have parts", "[structure]") {
  using Op = cs::KeyStep::Op;
  cs::Partition partition;
  partition.selectors.push_back({{{Op::field, 0, 0, 0}}, {}, cs::Where::all, {0, 1}, false, true, "id"});
  partition.parts = 3;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Items items(seed, seed % 2, 60);
    cs::Workspace workspace, by_height;
    workspace.set_partition(&partition);
    workspace.fill_levels(3);
    for (cs::Workspace* each : {&workspace, &by_height}) {
      each->set_pieces(9);
      ItemLinearizer::run(*each, cortex::dag, all_read, items.roots);
    }
    CHECK(pieces_of(workspace) == pieces_of(by_height));
    const cs::Arrays& a = workspace.arrays();
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
}

TEST_CASE("calls are left whole where pieces would have more batches than the call has nodes", "[structure]") {
  // Each root has a few nodes of its own, and one far below.
  std::deque<Kids> all(1);
  for (int i = 0; i < 1000; ++i) all.push_back({{&all.back()}});
  const Kids* const chain = &all.back();
  std::vector<const Kids*> roots{chain};
  for (int r = 0; r < 100; ++r) {
    const Kids* below = chain;
    for (int i = 0; i < 10; ++i) below = &all.emplace_back(Kids{{below}});
    roots.push_back(below);
  }
  cs::Workspace workspace;
  workspace.set_pieces(10);
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, roots).num_pieces == 1);
  CHECK(workspace.arrays().num_batches == 1011);
  roots.resize(4);
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, roots).num_pieces == 4);
  CHECK(workspace.arrays().num_batches == 1001 + 3 * 11);
  CHECK(workspace.arrays().num_nodes < 2 * workspace.arrays().num_batches);
  workspace.set_pieces(10, 2);  // they would have a node or so each
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, roots).num_pieces == 1);
  workspace.set_pieces(10);
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, roots).num_pieces == 4);
  workspace.set_subtree_depth(2);
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, roots).num_pieces == 1);
  const std::vector<const Kids*> none;
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, none).num_pieces == 1);
}
