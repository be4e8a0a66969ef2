// Rows of recycled states: each serves one node until its parents are computed, and then others.
#include "structure/random_items.hpp"

using namespace structure_test;

namespace {

using OptionalWords = cs::Linearizer<Word, cs::Accessors<cs::OptionalChild<&Word::left>, cs::Field<&Word::id>>>;

/// [batch] the level: the batches of inner nodes count, and a piece's leaves are of the level before them.
std::vector<int> levels_of(const cs::Arrays& a) {
  std::vector<int> level(std::size_t(a.num_batches));
  int last = 0;
  for (int p = 0; p < a.num_pieces; ++p)
    for (int b = a.piece_batch[p]; b < a.piece_batch[p + 1]; ++b) level[std::size_t(b)] = last += b > a.piece_batch[p];
  return level;
}

/// Goes through a call and checks that no row is written within `apart` levels of a time when another node's is read,
/// unless by the only node that reads it, if these overwrite their children. Returns how often they do.
int check_rows(const cs::Workspace& workspace, int apart, bool overwrites) {
  const cs::Arrays& a = workspace.arrays();
  REQUIRE((a.state_row && a.num_state_rows <= a.num_nodes && a.state_row[a.num_nodes] == a.num_state_rows));
  const std::vector<int> level = levels_of(a);
  std::vector<int> owner(std::size_t(a.num_state_rows), -1), last(std::size_t(a.num_nodes), -1);
  const std::set<int> roots(a.root, a.root + a.num_roots);
  std::vector<std::set<int>> parents(std::size_t(a.num_nodes));
  int overwritten = 0;
  for (int b = 0; b < a.num_batches; ++b)
    for (int n = a.batch_begin[b]; n < a.batch_begin[b] + a.batch_length[b]; ++n) {
      const int now = level[std::size_t(b)];
      last[std::size_t(n)] = now;
      const auto read = [&](int child) {
        if (child == a.num_nodes) return;
        REQUIRE(owner[std::size_t(a.state_row[child])] == child);
        last[std::size_t(child)] = now;
        parents[std::size_t(child)].insert(n);
      };
      for (int k = 0; k < 2 && n < a.num_internal; ++k) read(a.child[k][n]);
      for (int e = a.children[0].begin[n]; e < a.children[0].begin[n + 1]; ++e) read(a.children[0].child[e]);
      const int row = a.state_row[n];
      REQUIRE((row >= 0 && row < a.num_state_rows));
      const int before = std::exchange(owner[std::size_t(row)], n);
      if (before < 0) continue;
      const bool own_child = overwrites && parents[std::size_t(before)] == std::set<int>{n};
      overwritten += own_child;
      REQUIRE((own_child || last[std::size_t(before)] + apart <= now));
      REQUIRE(!roots.contains(before));
    }
  for (const int root : roots) REQUIRE(owner[std::size_t(a.state_row[root])] == root);
  return overwritten;
}

}  // namespace

TEST_CASE("a row of a recycled state serves other nodes once its node's parents are computed", "[structure]") {
  int fewer = 0, overwritten = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const bool graph = seed % 2;
    const Items items(seed, graph, 5 + int(seed));
    std::vector<const Item*> roots = items.roots;
    if (graph)
      for (int i = 0; i < 3; ++i) roots.push_back(&items.all[(seed * 7 + unsigned(i) * 31) % items.all.size()]);
    INFO("seed " << seed);
    cs::Workspace workspace;
    const int apart = 1 + int(seed / 2 % 2);
    const bool overwrites = seed / 4 % 2;
    workspace.recycle_rows(apart, overwrites);
    workspace.share_subtrees(seed % 3 == 0);
    workspace.fill_levels(1 + int(seed % 4));
    workspace.set_pieces(seed % 5 == 0 ? 7 : 0);
    const cs::Arrays& a = ItemLinearizer::run(workspace, cortex::dag, all_read, roots);
    overwritten += check_rows(workspace, apart, overwrites);
    fewer += a.num_state_rows < a.num_nodes;
  }
  CHECK(fewer > 100);
  CHECK(overwritten > 1000);
}

TEST_CASE("a sequence takes two rows of a recycled state, three where workers share a call, or one", "[structure]") {
  std::vector<Word> words(50);
  for (std::size_t i = 1; i < words.size(); ++i) words[i].left = &words[i - 1];
  const auto rows_of = [&](std::vector<const Word*> roots, int apart, bool overwrites = false) {
    cs::Workspace workspace;
    workspace.recycle_rows(apart, overwrites);
    return OptionalWords::run(workspace, cortex::dag, any_id, roots).num_state_rows;
  };
  CHECK(rows_of({&words.back()}, cs::apart_of_one) == 2);
  CHECK(rows_of({&words.back()}, cs::apart_of_workers) == 3);
  CHECK(rows_of({&words.back(), &words[20]}, cs::apart_of_one) == 3);  // a root keeps its own
  CHECK(rows_of({&words.back()}, cs::apart_of_one, true) == 1);
  CHECK(rows_of({&words.back()}, cs::apart_of_workers, true) == 1);
  CHECK(rows_of({&words.back(), &words[20]}, cs::apart_of_one, true) == 2);
  CHECK(rows_of({}, cs::apart_of_one) == 0);
}

TEST_CASE("a workspace makes no rows of states unless it is asked to", "[structure]") {
  const Items items(1, false, 20);
  cs::Workspace workspace;
  CHECK(ItemLinearizer::run(workspace, cortex::tree, all_read, items.roots).state_row == nullptr);
}
