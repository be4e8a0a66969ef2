// Small levels are filled with nodes from below: the same bits, in fewer rows at a time, and not where results would
// depend on the rest of a call.
#include <catch2/catch.hpp>
#include <cstring>

#include "cortex/explain.hpp"
#include "support/chosen_schedules.hpp"
#include "support/compile.hpp"
#include "support/differential.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;

auto cell(Structure structure, int hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Vertex> m("cell", structure);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H), W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto g =
      m.compute("g", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return W(i, j) * s(n, j); })); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(g(n, i) * sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + Emb(word(n), i));
  });
  return m.recursion_op(h, body);
}

template <class Program>
int fill_of(const Program& program, const Schedule& schedule) {
  return runtime::compile_graph(program.graph(), schedule, wide_machine())->level_fill;
}

}  // namespace

TEST_CASE("filled levels give the same bits, alone and in any batch, and levels of fewer nodes", "[runtime]") {
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence}) {
    const auto program = cell(structure, 24);
    const auto bind = [](auto model) {
      model.bind("Emb", uniform(std::size_t(num_words) * 24, 1, 1)).bind("U", uniform(576, 0.2f, 2));
      model.bind("W", uniform(576, 0.2f, 3));
      return model;
    };
    const Schedule plain = Schedule{}.dynamic_batch().specialize_leaves();
    const auto by_height = bind(compile_here(program, plain));
    int moved = 0;  // rows of nodes that have another number
    for (const int nodes : {2, 3, 7}) {
      auto filled = bind(compile_here(program, plain.fill_levels(nodes).workers(2)));
      filled.use(std::make_shared<Workers>(1));
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        Random random(seed);
        const Forest forest = random_forest(random, ra::StructureKind(int(structure.kind)), 40);
        const ForestView view(forest);
        const auto expected = by_height(forest.roots), all = filled(forest.roots), one = filled({forest.roots[0]});
        for (const auto* node : view.nodes) {
          moved += all.node(node).data() - all[0].data() != expected.node(node).data() - expected[0].data();
          CHECK(std::memcmp(all.node(node).data(), expected.node(node).data(), 24 * sizeof(float)) == 0);
        }
        CHECK(std::memcmp(one[0].data(), expected[0].data(), 24 * sizeof(float)) == 0);
      }
    }
    CHECK(moved > 0);
  }
}

TEST_CASE("fill_levels is refused, or left out by default, where there is nothing to fill", "[runtime]") {
  const auto up = cell(cortex::tree, 256);
  const Schedule batched = Schedule{}.dynamic_batch();
  CHECK(refusal(up, batched.fill_levels(4)).empty());
  CHECK(refusal(up, Schedule{}.fill_levels(1)).empty());
  CHECK_THAT(refusal(up, Schedule{}.fill_levels(2)),
             Catch::Contains("fill_levels: model 'cell'") && Catch::Contains("ask for dynamic_batch"));
  CHECK_THAT(refusal(up, batched.fill_levels(2).unroll("h", 2)), Catch::Contains("it is unrolled"));
  CHECK_THAT(refusal(up, batched.fill_levels(-1)), Catch::Contains("levels of -1 nodes"));
  CHECK_THAT(refusal(up, batched.fill_levels(1025)), Catch::Contains("levels of 1025 nodes"));
  CHECK(refusal(up, Schedule::standard().unroll("h", 2)).empty());
  CHECK(fill_of(up, Schedule::standard().unroll("h", 2)) == 1);
  CHECK(fill_of(up, Schedule{}.fill_levels_where_it_pays()) == 1);

  Dim H{"hidden", 256};
  Model<Vertex> m("down", cortex::tree);
  auto U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  constexpr auto above = cortex::parents<kids>;
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(above(n), [&](auto p) { return sum(H, [&](auto j) { return U(i, j) * h(p, j); }); });
  });
  const auto down = m.recursion_op(h, body);
  CHECK_THAT(refusal(down, batched.fill_levels(4)), Catch::Contains("it reads the parents of nodes"));
  CHECK(fill_of(down, Schedule::standard()) == 1);
}

TEST_CASE("the compiler fills levels until their weights are worth reading, and says so", "[runtime]") {
  const auto wide = cell(cortex::tree, 256);
  CHECK(fill_of(wide, Schedule{}.dynamic_batch()) == 1);
  CHECK(fill_of(wide, Schedule::standard().fill_levels(5)) == 5);
  const int fill = fill_of(wide, Schedule::standard());
  CHECK((fill >= 2 && fill <= 16));
  CHECK(fill_of(cell(cortex::tree, 1024), Schedule::standard()) >= fill);  // weights that no cache holds
  CHECK(fill_of(cell(cortex::tree, 4), Schedule::standard()) == 1);
  const auto text = [&](const Schedule& schedule) {
    CompileOptions options;
    options.target = wide_machine();
    return explain(compile(wide, schedule, options));
  };
  CHECK_THAT(text(Schedule::standard()),
             Catch::Contains("of fewer than " + std::to_string(fill) + " nodes are filled up with nodes from below") &&
                 Catch::Contains("by the cost model"));
  CHECK_THAT(text(Schedule::standard().fill_levels(1)), Catch::Contains("are of nodes of one height"));
}
