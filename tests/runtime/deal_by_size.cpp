// Uneven groups: their roots are dealt anew, by how many nodes each reaches.
#include <catch2/catch.hpp>
#include <numeric>
#include <stdexcept>

#include "cortex/tune/results.hpp"
#include "runtime/count_allocations.hpp"
#include "runtime/hand_made.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// The model "sum" in two groups, one worker each, where a node takes so long.
SumFunctor in_two(double node_seconds, runtime::Executable e = sum_executable()) {
  e.schedule = Schedule{}.workers(2).groups(2);
  e.node_seconds = node_seconds;
  return functor(e, CompileOptions{}.with_workers(std::make_shared<Workers>(1))).bind("Emb", embedding(600));
}

/// Two large trees and two small ones, in an order in which one group is given both of the large ones. Ids count up.
struct Uneven {
  Uneven() {
    int id = 0;
    for (const int depth : {6, 1, 1, 6}) {
      first.push_back(id);
      roots.push_back(tree_of_depth(nodes, depth, id));
      count.push_back(id - first.back());
    }
  }
  /// The sum of the first elements of a tree's leaves, whose ids are `first`, `first` + 1, ...
  float sum(std::size_t i) const { return float(count[i] * (2 * first[i] + count[i] + 1) / 2); }
  std::deque<Word> nodes;
  std::vector<const Word*> roots;
  std::vector<int> first, count;
};

template <class Result>
std::vector<int> nodes_of_groups(const Result& r) {
  std::vector<int> nodes;
  for (int g = 0; g < r.num_groups(); ++g) nodes.push_back(r.workspace().group(g).arrays().num_nodes);
  return nodes;
}

std::vector<runtime::RootPlace> dealt(const std::vector<std::int32_t>& sizes, std::size_t groups) {
  std::vector<runtime::RootPlace> places(sizes.size());
  std::vector<std::int32_t> order(sizes.size());
  runtime::deal_by_size(sizes.data(), sizes.size(), groups, order.data(), places.data());
  return places;
}

}  // namespace

TEST_CASE("roots go to the group with the least to do, the largest first", "[runtime][groups]") {
  using Places = std::vector<runtime::RootPlace>;
  CHECK(dealt({1, 9, 2, 8, 7}, 2) == Places{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}});
  CHECK(dealt({5, 5, 5, 5}, 4) == Places{{0, 0}, {1, 0}, {2, 0}, {3, 0}});
  CHECK(dealt({3, 0, 0}, 2) == Places{{0, 0}, {1, 0}, {1, 1}});
  CHECK(dealt({}, 3).empty());
}

TEST_CASE("each root is dealt once, and no two groups differ by more than a root", "[runtime][groups]") {
  Random random(5);
  for (int t = 0; t < 300; ++t) {
    const std::size_t groups = std::size_t(1 + random.below(8)), roots = std::size_t(1 + random.below(40));
    std::vector<std::int32_t> sizes(roots);
    for (std::int32_t& size : sizes) size = std::int32_t(random.below(91));
    const auto places = dealt(sizes, groups);
    std::vector<std::int64_t> nodes(groups), smallest(groups, 90);
    std::vector<std::size_t> count(groups);
    for (std::size_t r = 0; r < roots; ++r) {
      REQUIRE(places[r].group < groups);
      REQUIRE(places[r].number == count[places[r].group]++);
      nodes[places[r].group] += sizes[r];
      smallest[places[r].group] = std::min<std::int64_t>(smallest[places[r].group], sizes[r]);
    }
    const std::int64_t least = *std::min_element(nodes.begin(), nodes.end());
    for (std::size_t g = 0; g < groups; ++g) REQUIRE(nodes[g] - smallest[g] <= least);
  }
}

TEST_CASE("dealing anew has to gain more than numbering again takes", "[runtime][groups]") {
  using runtime::worth_dealing_by_size;
  CHECK(worth_dealing_by_size(300, 400, 2, 1e-6));
  CHECK_FALSE(worth_dealing_by_size(200, 400, 2, 1));      // even
  CHECK(worth_dealing_by_size(209, 400, 2, 1e-6));         // nearly so: 9 us, for numbering that takes 2.6
  CHECK_FALSE(worth_dealing_by_size(203, 400, 2, 1e-6));   // 3 us
  CHECK_FALSE(worth_dealing_by_size(300, 400, 2, 50e-9));  // 5 us, for numbering that takes 3.5
  CHECK_FALSE(worth_dealing_by_size(3, 4, 2, 0.5e-6));     // 0.5 us, for what takes as long
  CHECK_FALSE(worth_dealing_by_size(300, 400, 2, 0));      // not known
}

TEST_CASE("a walk counts what each root reaches before any other", "[runtime][groups]") {
  runtime::Executable e = sum_executable();
  e.graph.structure = ra::StructureKind::dag;
  e.schedule = Schedule{};
  const SumFunctor m = functor(e).bind("Emb", embedding(600));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const a = tree_of_depth(nodes, 3, id);
  const Word* const b = tree_of_depth(nodes, 1, id);
  const Word* const ab = &nodes.emplace_back(Word{-1, a, b});
  const Word* const aab = &nodes.emplace_back(Word{-1, a, ab});
  const auto counts = [&](const std::vector<const Word*>& roots) {
    const auto r = m(roots);
    std::vector<std::int32_t> result(roots.size());
    const_cast<runtime::Workspace&>(r.workspace()).nodes.count_by_root(result.data());
    CHECK(std::accumulate(result.begin(), result.end(), 0) == int(r.num_computed()));
    return result;
  };
  using Counts = std::vector<std::int32_t>;
  CHECK(counts({a, b}) == Counts{15, 3});
  CHECK(counts({b, b, a}) == Counts{3, 0, 15});
  CHECK(counts({aab}) == Counts{15 + 3 + 2});
  CHECK(counts({a, aab, ab}) == Counts{15, 1, 1 + 3});
}

TEST_CASE("uneven groups are dealt anew, and each root and node has its result", "[runtime][groups]") {
  const Uneven trees;
  const SumFunctor kept = in_two(0), m = in_two(1e-6);
  CHECK(nodes_of_groups(kept(trees.roots)) == std::vector{254, 6});
  for (int call = 0; call < 3; ++call) {
    const auto r = m(trees.roots);
    REQUIRE(nodes_of_groups(r) == std::vector{130, 130});
    REQUIRE(r.num_nodes() == 260);
    for (std::size_t i = 0; i < 4; ++i) {
      REQUIRE(r[i][0] == trees.sum(i));
      REQUIRE(r.node(trees.roots[i]).data() == r[i].data());
    }
    REQUIRE(r.node(trees.roots[3]->right)[0] + r.node(trees.roots[3]->left)[0] == trees.sum(3));
    std::vector<float> dense(4 * 8);
    REQUIRE(m(trees.roots, dense) == 4);
    REQUIRE(dense[3 * 8] == trees.sum(3));
    const std::vector<const Word*> even{trees.roots[0], trees.roots[3]};
    REQUIRE(m(even)[1][0] == trees.sum(3));
    REQUIRE(m(trees.roots[1])[0][0] == trees.sum(1));
    REQUIRE(m({trees.roots[1], trees.roots[2], trees.roots[0], trees.roots[3]})[2][0] == trees.sum(0));
  }
  CHECK(tuning::fingerprint(m(trees.roots).workspace()) == tuning::fingerprint(kept(trees.roots).workspace()));
}

TEST_CASE("bad input in uneven groups is named as in one group", "[runtime][groups]") {
  const SumFunctor m = in_two(1e-6);
  Uneven trees;
  auto& last = const_cast<Word&>(*trees.roots[3]);
  const Word kept = last;
  for (int call = 0; call < 3; ++call) {
    last.left = nullptr;
    CHECK_THAT(error_of(Code::invalid_structure, [&] { m(trees.roots); }), Contains("(reached from root 3) has no"));
    last.left = trees.roots[0]->left;  // in the other group by formula, and by size
    CHECK_THAT(error_of(Code::invalid_structure, [&] { m(trees.roots); }), Contains("a shared child"));
    last = kept;
    CHECK(m(trees.roots)[3][0] == trees.sum(3));
  }
}

TEST_CASE("what the user's nodes throw passes through, when they are read again too", "[runtime][groups]") {
  struct Moody {
    int id = 0;
    const Moody *left = nullptr, *right = nullptr;
    int word() const {
      if (id == 0 && ++reads == throws_at) throw std::runtime_error("not again");
      return id;
    }
    mutable int reads = 0;
    mutable int throws_at = 0;
  };
  using L = structure::Child<&Moody::left>;
  using R = structure::Child<&Moody::right>;
  using I = structure::Field<&Moody::word>;
  runtime::Executable e = sum_executable<L, R, I>();
  e.schedule = Schedule{}.workers(2).groups(2);
  e.node_seconds = 1e-5;
  Functor<Moody, structure::Accessors<L, R, I>> m(std::make_shared<const runtime::Executable>(e),
                                                  CompileOptions{}.with_workers(std::make_shared<Workers>(1)));
  m.bind("Emb", embedding(8));
  Moody moody{0};
  std::deque<Moody> inner;  // two combs of 30 leaves, and two leaves by themselves
  std::vector<const Moody*> roots;
  for (int comb = 0; comb < 2; ++comb) {
    const Moody* top = comb ? &moody : &inner.emplace_back(Moody{2});
    for (int i = 0; i < 29; ++i) {
      inner.push_back({1});
      const Moody* const other = &inner.back();
      inner.push_back({-1, top, other});
      top = &inner.back();
    }
    roots.push_back(top);
  }
  const Moody one{1}, two{2};
  roots.insert(roots.begin() + 1, {&one, &two});
  for (int call = 0; call < 3; ++call) {
    moody.reads = moody.throws_at = 0;
    const auto dealt = m(roots);
    CHECK(dealt.num_groups() == 2);
    CHECK(moody.reads == 2);
    CHECK(dealt[3][0] == 1 + 29 * 2);
    for (const int read : {1, 2}) {
      moody.reads = 0, moody.throws_at = read;
      CHECK_THROWS_WITH(m(roots), "not again");
      CHECK(moody.reads == read);  // nobody asks once more
    }
  }
}

TEST_CASE("a warm call that deals its roots anew allocates nothing", "[runtime][groups]") {
  const SumFunctor m = in_two(1e-6);
  const Uneven trees;
  for (int call = 0; call < 3; ++call) m(trees.roots);
  const std::int64_t before = allocations_of_all_threads();
  for (int call = 0; call < 50; ++call) m(trees.roots);
  CHECK(allocations_of_all_threads() == before);
}

TEST_CASE("random models give the same bits when their roots are dealt anew", "[runtime][groups]") {
  int changed = 0;
  for (const int workers : {2, 3, 4}) {
    const auto pool = std::make_shared<Workers>(workers - 1);
    for (std::uint64_t seed = 700; seed < 706; ++seed) {
      const RandomModel model(seed, Grammar::one_recursion);
      const int groups = workers == 4 ? 2 : workers;
      runtime::Executable e =
          compile_model(model, Schedule::standard().workers(workers).groups(groups), Target::interpreter())
              .executable();
      e.node_seconds = 1;
      RandomFunctor m = bound(model, std::make_shared<const runtime::Executable>(std::move(e)));
      for (int f = 0; f < 6; ++f) {
        Random random(seed * 10 + std::uint64_t(f));
        const Forest forest = random_forests(random, model.graph, {20, 2, 3, 25, 1, 9});
        INFO("seed " << seed << ", " << workers << " workers\n" << describe(forest));
        const auto alone = m.use(nullptr)(forest.roots), shared = m.use(pool)(forest.roots);
        CHECK(same_bits(model, alone, shared, forest));
        for (std::size_t i = 0; i < shared.size() && shared.num_groups() > 1; ++i)
          if (shared.workspace().root_place(i) != runtime::place_of_root(i, std::size_t(groups))) {
            ++changed;
            break;
          }
      }
    }
  }
  CHECK(changed > 10);
}
