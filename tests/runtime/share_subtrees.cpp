// A model that computes equal subtrees once gives every node what it gives without: the same bits.
#include "cortex/ra/share_subtrees.hpp"

#include <catch2/catch.hpp>
#include <cstring>

#include "cortex/explain.hpp"
#include "support/chosen_schedules.hpp"
#include "support/compile.hpp"
#include "support/random_cases.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;

/// Compares `count` random models under the schedule with and without sharing.
void compare(std::uint64_t first, int count, const Schedule& schedule, const Target& target) {
  const auto pool = std::make_shared<Workers>(2);
  std::size_t reached = 0, computed = 0;
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const RandomModel model(seed);
    RandomFunctor plain = compile_model(model, schedule.share_no_subtrees(), target);
    RandomFunctor shared = compile_model(model, schedule.share_subtrees(), target);
    if (schedule.max_workers > 1) plain.use(pool), shared.use(pool);
    for (int f = 0; f < 6; ++f) {
      Random random(seed * 100 + std::uint64_t(f));
      const Forest forest = random_forest(random, model.graph, 40);
      INFO("seed " << seed << "\n" << describe(forest));
      CHECK(same_bits(model, plain, shared, forest));
      reached += shared(forest.roots).num_nodes();
      computed += shared(forest.roots).num_computed();
      CHECK(plain(forest.roots).num_computed() == plain(forest.roots).num_nodes());
    }
  }
  CHECK(computed < reached);
}

/// h = tanh(Emb + U s), with more products at a node than are worth sharing for.
auto cell(Structure structure, std::int64_t hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Vertex> m("cell", structure);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(Emb(word(n), i) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }));
  });
  return m.recursion_op(h, body);
}

bool shares(const ra::Graph& graph, const Schedule& schedule) { return ra::shares_subtrees(graph, schedule); }

}  // namespace

TEST_CASE("random models give the same bits with equal subtrees computed once", "[runtime][sharing]") {
  compare(1, wanted_cases(14), Schedule::standard(), Target::interpreter());
  compare(100, wanted_cases(8), Schedule{}.specialize_if_else(), Target::interpreter());
  compare(200, wanted_cases(4), Schedule::standard().workers(3), Target::interpreter());
}

TEST_CASE("machine code gives the same bits with equal subtrees computed once", "[runtime][sharing]") {
  need_llvm();
  compare(300, 3, Schedule::standard(), best_target());
  compare(310, 1, Schedule::standard().workers(3), best_target());
}

TEST_CASE("of roots that are equal one is computed, and each has its result", "[runtime][sharing]") {
  CompileOptions options;
  options.target = Target::interpreter();
  auto model = compile(cell(cortex::tree, 128), options);
  model.bind("Emb", uniform(std::size_t(num_words) * 128, 1, 1)).bind("U", uniform(128 * 128, 0.1f, 2));
  Vertex a{3}, b{3}, c{4}, up{5}, other{5};
  up.kids = {&a}, other.kids = {&b};
  const auto result = model({&up, &other, &c, &up});
  CHECK(result.size() == 4);
  CHECK(result.num_nodes() == 5);
  CHECK(result.num_computed() == 3);
  for (std::size_t i : {1, 3}) CHECK(std::memcmp(result[0].data(), result[i].data(), result[0].size_bytes()) == 0);
  CHECK(result.node(&a).data() == result.node(&b).data());
  CHECK(result[2][0] != result[0][0]);
  CHECK_THAT(explain(model), Catch::Contains("equal ones of a call are found by their data, and computed once"));
}

TEST_CASE("sharing is refused, or left out by default, where it would change results", "[runtime][sharing]") {
  const auto up = cell(cortex::tree, 128);
  CHECK(refusal(up, Schedule{}.share_subtrees()).empty());
  CHECK_THAT(refusal(up, Schedule::standard().unroll("h", 2).share_subtrees()),
             Catch::Contains("share_subtrees: model 'cell'") && Catch::Contains("it is unrolled"));
  CHECK_THAT(refusal(up, Schedule::standard().workers(2).refactor("body").share_subtrees()),
             Catch::Contains("cut by refactor"));
  CHECK(refusal(up, Schedule::standard().unroll("h", 2)).empty());

  Dim H{"hidden", 256};
  Model<Vertex> m("down", cortex::tree);
  auto U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  constexpr auto above = cortex::parents<kids>;
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(above(n), [&](auto p) { return sum(H, [&](auto j) { return U(i, j) * h(p, j); }); });
  });
  const auto down = m.recursion_op(h, body);
  CHECK_THAT(refusal(down, Schedule{}.share_subtrees()), Catch::Contains("reads the parents of nodes"));
  CHECK_FALSE(shares(down.graph(), Schedule::standard()));

  Model<Vertex> r("mean", cortex::tree);
  auto W = r.input<float>("W", H, H);
  auto g = r.placeholder<float>("g", H);
  auto g_body = r.compute("g_body", H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return W(i, j) * g(k, j); }); });
  });
  auto all = r.recursion(g, g_body);
  auto mean = r.readout<float>(
      "mean", H, [&](auto n, auto i) { return sum(cortex::nodes(n), [&](auto k) { return all(k, i); }); });
  const auto readout = r.program(mean, all);
  CHECK_THAT(refusal(readout, Schedule{}.share_subtrees()), Catch::Contains("reads all nodes of a root"));
  CHECK_FALSE(shares(readout.graph(), Schedule::standard()));
}

TEST_CASE("rows of each node's own are not compared, and no matter where nothing reads them", "[runtime][sharing]") {
  struct Phrase {
    std::vector<const Phrase*> kids;
    std::vector<float> row;
  };
  const auto refused = [](bool reads) {
    Dim H{"hidden", 4};
    Model<Phrase> m("rows", cortex::tree);
    auto row = m.field("row", cortex::field<&Phrase::row>, H);
    auto h = m.placeholder<float>("h", H);
    auto summed = m.compute("summed", H, [&](auto n, auto i) {
      return 1 + sum(cortex::children<&Phrase::kids>(n), [&](auto k) { return h(k, i); });
    });
    auto with_row = m.compute("with_row", H, [&](auto n, auto i) { return summed(n, i) + row(n, i); });
    return reads ? refusal(m.recursion_op(h, with_row), Schedule{}.share_subtrees())
                 : refusal(m.recursion_op(h, summed), Schedule{}.share_subtrees());
  };
  CHECK_THAT(refused(true), Catch::Contains("it reads 'row', rows of each node's own"));
  CHECK(refused(false).empty());
}

TEST_CASE("the standard schedule shares where products are many", "[runtime][sharing]") {
  CHECK(shares(cell(cortex::tree, 128).graph(), Schedule::standard()));
  CHECK(shares(cell(cortex::dag, 128).graph(), Schedule::standard()));
  CHECK_FALSE(shares(cell(cortex::tree, 127).graph(), Schedule::standard()));
  CHECK(shares(cell(cortex::tree, 4).graph(), Schedule::standard().share_subtrees()));
  CHECK_FALSE(shares(cell(cortex::tree, 128).graph(), Schedule::standard().share_no_subtrees()));
  CHECK_FALSE(shares(cell(cortex::tree, 128).graph(), Schedule{}));
}
