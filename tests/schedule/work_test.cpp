// What the tuner predicts by, without compiling.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "cortex/ir/count_work.hpp"
#include "cortex/pass/loops.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cortex/runtime/compile.hpp"
#include "support/gru_models.hpp"
#include "support/models.hpp"
#include "support/odd_models.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

TEST_CASE("the work of a graph is that of the program compiled from it, before it has tiles", "[schedule]") {
  int sums = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const RandomModel model(seed, Grammar::whole);
    for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().workers(2), Schedule{},
                                     Schedule::standard().workers(3).tile_rows(2).tile_vectors(1)}) {
      INFO("seed " << seed << "\n" << to_string(schedule));
      const auto work = runtime::work_of(model.graph, schedule, Target::interpreter());
      const auto compiled = runtime::compile_graph(model.graph, schedule, Target::interpreter());
      const auto expected = ir::count_work(compiled->scheduled.body);
      REQUIRE(work.size() == expected.size());
      for (std::size_t i = 0; i < work.size(); ++i) {
        CHECK(work[i].kind == expected[i].kind);
        CHECK(work[i].unit == expected[i].unit);
        CHECK(work[i].depth == expected[i].depth);
        CHECK(work[i].gates == expected[i].gates);
        REQUIRE(work[i].operations.size() == expected[i].operations.size());
        for (std::size_t o = 0; o < work[i].operations.size(); ++o)
          CHECK(work[i].operations[o].flops == expected[i].operations[o].flops);
        CHECK(work[i].weights.size() == expected[i].weights.size());
        sums += work[i].gates > 0;
      }
    }
  }
  CHECK(sums > 100);
}

TEST_CASE("the work of a schedule by hand is counted before tiles, and before each worker has its share",
          "[schedule]") {
  const auto lstm = tree_lstm(32);
  const Schedule two = Schedule::standard().workers(2);
  const Loops shared = Loops::parse("distribute_rows(); share_work(); insert_barriers()"),
              tiled = shared.then(Loops::parse("pack_weights(); tile_nests(); share_loads()"));
  const auto flops_of = [&](const Schedule& schedule) {
    const auto work = runtime::work_of(lstm.graph(), schedule, Target::interpreter());
    const auto compiled = runtime::compile_graph(lstm.graph(), schedule, Target::interpreter());
    std::map<std::string, double> flops;
    for (const ir::Operations& total : ir::total_of(work)) flops[to_string(total.unit)] += total.flops;
    for (const ir::Operations& total : ir::total_of(ir::count_work(compiled->scheduled.body)))
      CHECK(total.flops == flops[to_string(total.unit)]);
    return flops;
  };
  const auto all = flops_of(Schedule::standard().loops(Loops{}));
  CHECK(all.size() == 3);  // a leaf's, an inner node's, an edge's
  CHECK(flops_of(two.loops(shared)) == all);
  CHECK(flops_of(two.loops(tiled)) == all);

  const auto compiled = runtime::compile_graph(lstm.graph(), two.loops(tiled), Target::interpreter());
  CHECK(ir::print(compiled->scheduled).find("vectorized for") == std::string::npos);
  CHECK(ir::print(compiled->tiled).find("vectorized for") != std::string::npos);
  CHECK_THROWS_AS(runtime::work_of(lstm.graph(), two.loops(tiled.unroll("none")), Target::interpreter()), Error);
}

TEST_CASE("a nest that stores a matrix at each node says how many rows it has, and vectors are no matrices",
          "[schedule]") {
  const auto rows_of = [](const ra::Graph& graph, const Schedule& schedule) {
    std::set<double> rows;
    for (const ir::WorkItem& item : runtime::work_of(graph, schedule, Target::interpreter()))
      if (item.gates > 0) rows.insert(item.matrix_rows);
    return rows;
  };
  const Schedule one = Schedule::standard(), two = Schedule::standard().workers(2);
  for (const Schedule& schedule : {one, two, two.refactor("candidate")})
    CHECK(rows_of(child_sum_gru<float, true, true>(16).graph(), schedule) == std::set<double>{1});
  for (const Schedule& schedule : {one, two}) CHECK(rows_of(odd::matrix_rows(24), schedule) == std::set<double>{1, 24});
}

TEST_CASE("products with several weights are no rows of one matrix, each row has a weight of its own", "[schedule]") {
  odd::Odd g("bilinear", 24);
  const int Q = g.input("Q", {g.K, g.H, g.H}), U = g.input("U", {g.H, g.K}), h = g.placeholder("h", {g.H});
  const int s = g.compute("s", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) { return g.at(h, {kid, i[0]}); });
  });
  const int q = g.compute("q", {g.K}, [&](auto& n, auto& k) {
    return g.dot(g.H, [&](auto& i) {
      return g.at(s, {n, i}) * g.dot(g.H, [&](auto& j) { return g.at(Q, {k[0], i, j}) * g.at(s, {n, j}); });
    });
  });
  const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return graphs::tanh_of(g.dot(g.K, [&](auto& k) { return g.at(U, {i[0], k}) * g.at(q, {n, k}); }));
  });
  g.recursion_op(h, body);
  double read = 0;
  for (const ir::WorkItem& item : runtime::work_of(g.done(), Schedule::standard(), Target::interpreter())) {
    CHECK(item.matrix_rows == 1);
    for (const ir::WeightRead& weight : item.weights)
      if (weight.weight->name.rfind("Q", 0) == 0) read += weight.bytes;
  }
  CHECK(read == 4 * 3 * 24 * 24);
}

TEST_CASE("units of work are told by what they are, and under which conditions", "[schedule]") {
  using Unit = ir::WorkUnit::Kind;
  CHECK(to_string(ir::WorkUnit{}) == "call");
  CHECK(to_string(ir::WorkUnit{Unit::subtree_level}) == "level of subtrees");
  CHECK(to_string(ir::WorkUnit{Unit::iteration, 0, "hidden", " where not x"}) == "iteration over hidden where not x");
  CHECK(to_string(ir::edge_of({Unit::node})) == "edge");
  CHECK(ir::edge_of({Unit::inner_node}) == ir::edge_of({Unit::node}));
  CHECK(to_string(ir::edge_of({Unit::subtree_top})) == "edge of a subtree's top");
  CHECK(to_string(ir::edge_of({Unit::part_node, 3, {}, " where x"})) == "edge of a node of part 3 where x");
  CHECK(ir::edge_of({Unit::part_node, 3, {}, " where x"}).kind == Unit::part_edge);
  CHECK(to_string(ir::edge_of({Unit::node, 0, {}, " where x"})) == "edge of a node where x");
  CHECK(to_string(ir::edge_of(ir::edge_of({Unit::leaf}))) == "edge of a edge of a leaf");
}

TEST_CASE("workers read each other's rows of what is multiplied, and their own columns of what is not", "[schedule]") {
  const auto exchanged = [](const ra::Graph& graph, int workers) {
    std::set<std::string> names;
    for (const ir::WorkItem& item :
         runtime::work_of(graph, Schedule::standard().workers(workers), Target::interpreter()))
      for (const ir::Buffer& buffer : item.exchanged) names.insert(buffer->name);
    return names;
  };
  const auto lstm = tree_lstm(32);
  CHECK(exchanged(lstm.graph(), 2) == std::set<std::string>{"h"});
  const auto phrases = mv_phrases(64);  // workers own rows of its matrices, and sums over these rows
  CHECK(exchanged(phrases.graph(), 2) == std::set<std::string>{"v_sum_partial"});
  const Schedule unrolled = Schedule::standard().workers(2).unroll(phrases, 2);  // a worker has subtrees whole
  for (const ir::WorkItem& item : runtime::work_of(phrases.graph(), unrolled, Target::interpreter()))
    CHECK(item.exchanged.empty() == !item.unit.is_any(ir::WorkUnit::Kind::leaf));
  const auto narrow = mv_phrases(24);  // these sums are by columns
  CHECK(exchanged(narrow.graph(), 2) == std::set<std::string>{"M", "v"});
}

TEST_CASE("a schedule that has no meaning is refused as by compiling", "[schedule][refusal]") {
  const RandomModel model(1, Grammar::one_recursion);
  CHECK_THROWS_AS(runtime::work_of(model.graph, Schedule{}.workers(0), Target::interpreter()), Error);
}
