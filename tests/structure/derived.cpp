// What follows from the links: parents, members, parts of batches, subtrees, steps of sequences.
#include <deque>

#include "structure/support.hpp"
#include "support/memory_limit.hpp"

using namespace structure_test;

namespace {

using KidsOf = cs::Children<&Kids::kids>;
constexpr auto kids = cortex::children<&Kids::kids>;
using DerivedSet = cs::Accessors<KidsOf, cs::Parents<kids>, cs::Members>;
using DerivedLinearizer = cs::Linearizer<Kids, DerivedSet>;

std::vector<int> row(const cs::Csr& csr, int n) { return {csr.child + csr.begin[n], csr.child + csr.begin[n + 1]}; }

/// Random nodes, children before parents; shared ones with `dag`.
struct RandomNodes {
  std::deque<Kids> nodes;
  std::vector<const Kids*> roots;
  RandomNodes(unsigned seed, int count, bool dag) {
    std::mt19937 random(seed);
    std::vector<const Kids*> free;
    for (int i = 0; i < count; ++i) {
      Kids& node = nodes.emplace_back();
      for (int k = int(random() % 4); k > 0 && !free.empty(); --k) {
        const std::size_t which = random() % free.size();
        if (std::find(node.kids.begin(), node.kids.end(), free[which]) != node.kids.end()) continue;
        node.kids.push_back(free[which]);
        if (!dag || random() % 2) free.erase(free.begin() + std::ptrdiff_t(which));
      }
      free.push_back(&node);
    }
    roots.assign(free.begin(), free.end());
  }
};

}  // namespace

TEST_CASE("a node's parents are those that have it as a child, each once, in the order of numbers", "[structure]") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomNodes made(seed, 1 + int(seed * 3), true);
    cs::Workspace workspace;
    const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::dag, {}, made.roots);
    std::vector<std::vector<int>> expected(std::size_t(a.num_nodes));
    for (int n = 0; n < a.num_nodes; ++n)
      for (const int kid : row(a.children[0], n)) expected[std::size_t(kid)].push_back(n);
    for (int n = 0; n < a.num_nodes; ++n) CHECK(row(a.children[1], n) == expected[std::size_t(n)]);
  }
}

TEST_CASE("two links from one parent are one parent", "[structure]") {
  Kids leaf, top{{&leaf, &leaf}};
  cs::Workspace workspace;
  const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::dag, {}, {&top});
  CHECK(row(a.children[1], 1) == std::vector<int>{0});
  CHECK(row(a.children[1], 0).empty());
}

TEST_CASE("the members of a root are all that it reaches, itself first; other nodes have none", "[structure]") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomNodes made(seed, 1 + int(seed * 2), seed % 2 == 0);
    made.roots.push_back(made.roots.front());                  // twice
    made.roots.push_back(&made.nodes[made.nodes.size() / 2]);  // inside another
    cs::Workspace workspace;
    const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::dag, {}, made.roots);
    const std::set<int> roots(a.root, a.root + a.num_roots);
    for (int n = 0; n < a.num_nodes; ++n) {
      const std::vector<int> members = row(a.children[2], n);
      if (!roots.count(n)) {
        CHECK(members.empty());
        continue;
      }
      std::set<int> reached{n};
      for (int m = n; m < a.num_nodes; ++m)  // children are numbered above their parents
        if (reached.count(m))
          for (const int kid : row(a.children[0], m)) reached.insert(kid);
      CHECK(members.front() == n);
      CHECK(std::set<int>(members.begin(), members.end()) == reached);
      CHECK(members.size() == reached.size());
    }
  }
}

TEST_CASE("the order of a root's members does not depend on what else is in the call", "[structure]") {
  const RandomNodes made(5, 60, false);
  const auto members_alone = [](const Kids* root, const std::vector<const Kids*>& roots) {
    cs::Workspace workspace;
    const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::tree, {}, roots);
    std::map<int, const Kids*> of;
    std::vector<const Kids*> open{root}, result;
    while (!open.empty()) {
      const Kids* at = open.back();
      open.pop_back();
      of[workspace.find(at)] = at;
      open.insert(open.end(), at->kids.begin(), at->kids.end());
    }
    for (const int m : row(a.children[2], workspace.find(root))) result.push_back(of.at(m));
    return result;
  };
  for (const Kids* root : made.roots) CHECK(members_alone(root, {root}) == members_alone(root, made.roots));
}

TEST_CASE("roots may have as many members together as a call may have visits, and no more", "[structure][refusal]") {
  constexpr int count = 20, members = count * (count + 1) / 2;
  std::vector<Kids> chain(count);
  std::vector<const Kids*> roots;
  for (int i = 0; i < count; ++i) {
    if (i > 0) chain[std::size_t(i)].kids = {&chain[std::size_t(i) - 1]};
    roots.push_back(&chain[std::size_t(i)]);
  }
  cs::Workspace exact(members), narrow(members - 1);
  CHECK(DerivedLinearizer::run(exact, cortex::dag, {}, roots).children[2].num_edges == members);
  for (int i = 0; i < 2; ++i) {
    check_says(error_of(Code::out_of_range, [&] { DerivedLinearizer::run(narrow, cortex::dag, {}, roots); }),
               {"more than 209 members", "once for each root", "fewer roots"});
    CHECK(narrow.arrays().num_nodes == 0);
    CHECK(DerivedLinearizer::run(narrow, cortex::dag, {}, {roots.back()}).children[2].num_edges == count);
  }
}

TEST_CASE("where there is no memory for members, it is said what takes it", "[structure][memory]") {
  std::vector<Kids> chain(8000);
  std::vector<const Kids*> roots;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    if (i > 0) chain[i].kids = {&chain[i - 1]};
    roots.push_back(&chain[i]);
  }
  cs::Workspace workspace;
  const cortex::test::MemoryLimit limit(16 << 20);  // of 128 MB
  check_says(error_of(Code::out_of_memory, [&] { DerivedLinearizer::run(workspace, cortex::dag, {}, roots); }),
             {"no memory for", "members of roots are listed so far", "once for each root that reaches it"});
  CHECK(DerivedLinearizer::run(workspace, cortex::dag, {}, {&chain[9]}).children[2].num_edges == 10);
}

TEST_CASE("batches are sorted into parts by the answers of a partition", "[structure]") {
  using Op = cs::KeyStep::Op;
  cs::Partition partition;
  partition.selectors.push_back({{{Op::num_children, 0, 0}}, {}, cs::Where::internal, {1, 2}, false, true, "count"});
  partition.selectors.push_back(
      {{{Op::num_parents}, {Op::constant, 0}, {Op::equal}}, {}, cs::Where::all, {1}, false, true, "root"});
  partition.parts = 6;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomNodes made(seed, 1 + int(seed * 3), seed % 2 == 0);
    cs::Workspace workspace;
    workspace.set_partition(&partition);
    const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::dag, {}, made.roots);
    REQUIRE(a.num_parts == 6);
    std::vector<int> met(std::size_t(a.num_nodes));
    for (int b = 0; b < a.num_batches; ++b)
      for (int p = 0; p < 6; ++p)
        for (int i = 0; i < a.part_length[b * 6 + p]; ++i) {
          const int n = a.part_begin[b * 6 + p] + i;
          ++met[std::size_t(n)];
          CHECK((n >= a.batch_begin[b] && n < a.batch_begin[b] + a.batch_length[b]));
          const std::size_t count = row(a.children[0], n).size();
          const int answer = b == 0 ? 0 : count == 1 ? 0 : count == 2 ? 1 : 2;
          CHECK(p == answer * 2 + (row(a.children[1], n).empty() ? 0 : 1));
        }
    CHECK(met == std::vector<int>(std::size_t(a.num_nodes), 1));
  }
}

TEST_CASE("the nodes of each part are listed, of all batches or but for the leaves", "[structure]") {
  using Op = cs::KeyStep::Op;
  cs::Partition partition;
  partition.selectors.push_back({{{Op::num_parents}}, {}, cs::Where::all, {0, 1}, false, true, "parents"});
  partition.parts = 3;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomNodes made(seed, 1 + int(seed * 3), seed % 2 == 0);
    partition.listed = seed % 4 < 2 ? cs::Where::internal : cs::Where::all;
    cs::Workspace workspace;
    workspace.set_partition(&partition);
    workspace.set_pieces(seed % 3 == 0 ? 9 : 0);
    const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::dag, {}, made.roots);
    std::vector<int> listed, wanted;
    for (int piece = 0; piece < a.num_pieces; ++piece)
      for (int p = 0; p < 3; ++p) {
        for (int i = a.part_offset[piece * 4 + p]; i < a.part_offset[piece * 4 + p + 1]; ++i) {
          CHECK(std::min<std::size_t>(row(a.children[1], a.part_list[i]).size(), 2) == std::size_t(p));
          listed.push_back(a.part_list[i]);
        }
        const bool leaves = partition.listed == cs::Where::all;
        for (int b = a.piece_batch[piece] + !leaves; b < a.piece_batch[piece + 1]; ++b)
          for (int i = 0; i < a.part_length[b * 3 + p]; ++i) wanted.push_back(a.part_begin[b * 3 + p] + i);
        CHECK(listed == wanted);
      }
    CHECK(int(listed.size()) == (partition.listed == cs::Where::all ? a.num_nodes : a.num_internal));
  }
  partition.listed = cs::Where::nowhere;
  cs::Workspace workspace;
  workspace.set_partition(&partition);
  CHECK(DerivedLinearizer::run(workspace, cortex::dag, {}, RandomNodes(1, 9, true).roots).part_list == nullptr);
}

TEST_CASE("subtrees hold each inner node once, within the levels of one group, and do not touch", "[structure]") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const RandomNodes made(seed, 1 + int(seed * 3), false);
    const int depth = 1 + int(seed % 4);
    cs::Workspace workspace;
    workspace.set_subtree_depth(depth);
    const cs::Arrays& a = DerivedLinearizer::run(workspace, cortex::tree, {}, made.roots);
    const cs::Subtrees& s = a.subtrees;
    std::vector<int> height(std::size_t(a.num_nodes)), met(std::size_t(a.num_internal));
    for (int b = 0; b < a.num_batches; ++b)
      for (int i = 0; i < a.batch_length[b]; ++i) height[std::size_t(a.batch_begin[b] + i)] = b;
    for (int g = 0; g < s.num_groups; ++g)
      for (int t = s.group_begin[g]; t < s.group_begin[g + 1]; ++t) {
        std::vector<std::pair<int, int>> open{{s.group_node[t], 1}};
        while (!open.empty()) {
          const auto [n, level] = open.back();
          open.pop_back();
          ++met[std::size_t(n)];
          CHECK(level <= depth);
          CHECK((height[std::size_t(n)] - 1) / depth == g);
          for (int e = s.inner_begin[n]; e < s.inner_begin[n + 1]; ++e) open.push_back({s.inner_child[e], level + 1});
          for (const int kid : row(a.children[0], n)) {
            const bool inside = std::find(s.inner_child + s.inner_begin[n], s.inner_child + s.inner_begin[n + 1],
                                          kid) != s.inner_child + s.inner_begin[n + 1];
            CHECK(inside == (height[std::size_t(kid)] > 0 && (height[std::size_t(kid)] - 1) / depth == g));
          }
        }
      }
    CHECK(met == std::vector<int>(std::size_t(a.num_internal), 1));
  }
}

TEST_CASE("sequences of one length have a common step from parent to child, others none", "[structure]") {
  struct Step {
    const Step* previous;
  };
  using StepLinearizer = cs::Linearizer<Step, cs::Accessors<cs::OptionalChild<&Step::previous>>>;
  std::vector<std::vector<Step>> chains(4, std::vector<Step>(7));
  std::vector<const Step*> roots;
  for (auto& chain : chains) {
    for (std::size_t t = 0; t < chain.size(); ++t) chain[t].previous = t ? &chain[t - 1] : nullptr;
    roots.push_back(&chain.back());
  }
  cs::Workspace workspace;
  CHECK(StepLinearizer::run(workspace, cortex::sequence, {}, roots).child_step == 4);
  CHECK(StepLinearizer::run(workspace, cortex::sequence, {}, {roots[0]}).child_step == 1);
  roots[2] = &chains[2][1];
  CHECK(StepLinearizer::run(workspace, cortex::sequence, {}, roots).child_step == 0);
  CHECK(StepLinearizer::run(workspace, cortex::sequence, {}, {&chains[0][0]}).child_step == 0);
}

TEST_CASE("parts of more batches than have numbers are refused", "[structure][refusal]") {
  cs::WalkState walk;
  cs::Arrays arrays;
  arrays.num_batches = 1 << 26;
  const std::string said = error_of(Code::out_of_range, [&] { cs::numbering::lay_out_parts(walk, 64, arrays); });
  check_says(said, {"67108864 levels deep", "64 parts", "specialize fewer branches"});
}
