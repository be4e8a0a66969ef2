// The recursion's back edge moved to a contraction: one barrier a level instead of two, the same results, and what is
// refused.
#include "cortex/lower/refactor.hpp"

#include <catch2/catch.hpp>

#include "cortex/structure/linearizer.hpp"
#include "support/compile.hpp"
#include "support/differential.hpp"
#include "support/golden.hpp"
#include "support/gru_models.hpp"
#include "support/lowering.hpp"
#include "support/node_tables.hpp"

using namespace cortex;

namespace {

constexpr int words = 9;

/// How many barriers stand in the loops that carry the dependence.
int barriers_a_level(const ir::Program& program) {
  int found = 0;
  ir::visit_with(program.body, [&](const ir::For& loop) {
    if (loop.dim == dims::all_batches || loop.dim == dims::sequence)
      ir::visit_with(loop.body, [&](const ir::Barrier&) { ++found; });
  });
  return found;
}

int barriers_a_level(const ra::Graph& graph, const Schedule& schedule) {
  return barriers_a_level(test::program_after("insert_barriers", graph, schedule, test::machine(32)));
}

/// The first pass after which the program gives something else, run by any number of workers up to one more than there
/// are slices, in both orders; "" if there is none. Tiles are made for as many workers as there are, and no more.
std::string difference(const test::Reference& reference, const std::vector<test::Snapshot>& passes, int most_workers) {
  bool shared = false, tiled = false;
  for (const test::Snapshot& s : passes) {
    shared |= s.pass == "insert_barriers";
    tiled |= s.pass == "tile_nests";
    for (int workers = 1; workers <= (shared ? most_workers + !tiled : 1); ++workers)
      for (const bool last_first : {false, true}) {
        const std::string d = reference.difference(s.program, {workers, last_first});
        if (!d.empty())
          return "after " + s.pass + ", " + std::to_string(workers) + " workers: " + d + "\n" + ir::print(s.program);
      }
  }
  return {};
}

/// The number of slices that the cut of `graph` at its candidate has under `schedule`.
std::int64_t slices_of(const ra::Graph& graph, const Schedule& schedule) {
  for (const ir::Buffer& buffer : lower::lower(graph, schedule.refactor("candidate")).buffers)
    for (const Dim& dim : buffer->dims)
      if (dim.kind() == DimKind::slice) return dim.extent();
  return 1;
}

/// Holds `graph`, cut at its candidate, against the recursion as written under every schedule, and counts its barriers.
void check_cut(const ra::Graph& graph, const test::NodeTable& table) {
  const test::Linear linear(table, 1);
  const test::Reference reference(graph, table, linear.arrays, linear.number, test::weights_for(graph, words, 1));
  int target = 0;
  for (const bool batched : {false, true})
    for (const bool specialized : {false, true})
      for (const bool apart : {false, true})
        for (const int workers : {1, 2, 4}) {
          Schedule schedule = Schedule{}.exact_activations().workers(workers).refactor("candidate");
          schedule.batched = batched, schedule.leaves_apart = apart;
          if (specialized) schedule = test::with_leaf_branches(std::move(schedule), graph);
          INFO(graph.name << (batched ? ", batched" : "") << (specialized ? ", specialized" : "")
                          << (apart ? ", leaves apart" : "") << ", workers " << workers);
          const auto passes = test::passes_of(graph, schedule, test::machine(16 << (++target % 3), 32));
          CHECK(difference(reference, passes, workers) == "");
          CHECK(barriers_a_level(passes.back().program) == (workers > 1));
        }
  // Of as many workers as there are in the pool, and slices by the shape: more than workers, or fewer.
  for (const int workers : {1, 2, 3}) {
    const Schedule schedule = Schedule::standard().exact_activations().workers(workers).workers_where_they_pay();
    INFO(graph.name << ", up to " << workers << " workers");
    const auto passes = test::passes_of(graph, schedule.refactor("candidate"), test::machine(32, 32));
    CHECK(difference(reference, passes, workers) == "");
    CHECK(barriers_a_level(passes.back().program) == (workers > 1));
  }
}

test::NodeTable tree_table() {
  std::mt19937 random(5);
  return test::random_table(24, 3, words, random);
}

/// The message with which the cut is refused.
std::string refusal(const ra::Graph& graph, const Schedule& schedule) {
  try {
    lower::lower(graph, schedule);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "not refused";
}
template <class Op>
std::string refusal(const ra::Graph& graph, const Op& op) {
  return refusal(graph, Schedule::standard().workers(2).refactor(op));
}

}  // namespace

TEST_CASE("SimpleTreeGRU cut at its candidate lowers to partial sums and copies of the state",
          "[lower][refactor][golden]") {
  const auto program = test::child_sum_gru<float, true, true>(16);
  const Schedule schedule = Schedule::standard().tabulate_nothing().workers(2).refactor("candidate");
  check_golden("lower/simple_tree_gru_refactored.ilir", ir::print(lower::lower(program.graph(), schedule)));
  check_golden("pass/insert_barriers/simple_tree_gru_refactored.ilir",
               test::text_after("insert_barriers", program.graph(), schedule));
}

TEST_CASE("a GRU needs two barriers a level, and one if it is cut at its candidate", "[lower][refactor]") {
  for (const Schedule& schedule : {Schedule::standard().workers(2), Schedule{}.workers(3).specialize_leaves()})
    for (const ra::Graph& graph : {test::child_sum_gru(24).graph(), test::child_sum_gru<float, true, true>(24).graph(),
                                   test::sequential_gru(24).graph(), test::two_state_gru(24).graph()}) {
      INFO(graph.name);
      CHECK(barriers_a_level(graph, schedule) == 2);
      CHECK(barriers_a_level(graph, schedule.refactor("candidate")) == 1);
    }
}

TEST_CASE("a cut TreeGRU is right after every pass, however many workers take part", "[lower][refactor]") {
  check_cut(test::child_sum_gru(20).graph(), tree_table());
  check_cut(test::child_sum_gru<double, false, true>(12).graph(), tree_table());
}

TEST_CASE("a cut SimpleTreeGRU is right after every pass, however many workers take part", "[lower][refactor]") {
  check_cut(test::child_sum_gru<float, true>(16).graph(), tree_table());
  check_cut(test::child_sum_gru<float, true, true>(32).graph(), test::chain_table(6));
}

TEST_CASE("a cut sequential GRU is right after every pass, however many workers take part", "[lower][refactor]") {
  check_cut(test::sequential_gru(12).graph(), test::chain_table(7));
  check_cut(test::child_sum_gru<float>(8, cortex::sequence).graph(), test::chain_table(7));
}

TEST_CASE("two states behind a cut are right after every pass, however many workers take part", "[lower][refactor]") {
  check_cut(test::two_state_gru(16).graph(), tree_table());
}

TEST_CASE("random models cut wherever that is legal are right after every pass", "[lower][refactor][random]") {
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    test::RandomModel model(seed);
    if (model.graph.structure == ra::StructureKind::dag) continue;
    test::Random random(seed + 1000);
    const test::Forest forest = test::random_forest(random, model.graph, 12);
    structure::Workspace workspace;
    const std::vector<structure::FieldCheck> checks(2);
    using Linearizer = structure::Linearizer<test::Vertex, test::VertexSet>;
    const structure::Arrays& arrays =
        Linearizer::run(workspace, Structure{structure::Kind(int(model.graph.structure))}, checks, forest.roots);
    const ra::ArraysView<structure::Arrays> view(arrays, model.graph);
    std::vector<std::int32_t> number(std::size_t(arrays.num_nodes));
    std::iota(number.begin(), number.end(), 0);
    const test::Reference reference(model.graph, view, arrays, number,
                                    test::weights_for(model.graph, test::num_words, 1));
    for (const ra::Op& op : model.graph.ops)
      for (const int workers : {2, 3}) {
        Schedule schedule = Schedule{}.exact_activations().workers(workers).refactor(op.name());
        schedule.batched = cut % 2, schedule.leaves_apart = cut / 4 % 2;
        if (cut / 2 % 2) schedule = test::with_leaf_branches(std::move(schedule), model.graph);
        std::vector<test::Snapshot> passes;
        try {
          passes = test::passes_of(model.graph, schedule, test::machine(16 << (cut % 3)));
        } catch (const Error& error) {
          if (error.code != Code::invalid_schedule) throw;
          continue;
        }
        ++cut;
        INFO("seed " << seed << ", cut at " << op.name() << "\n" << ra::print(model.graph) << test::describe(forest));
        CHECK(difference(reference, passes, workers) == "");
      }
  }
  CHECK(cut > 10);
}

TEST_CASE("one worker alone has one slice, and a cut changes nothing", "[lower][refactor][nothing]") {
  const auto program = test::child_sum_gru(16);
  const auto text = [&](const Schedule& schedule) { return ir::print(lower::lower(program.graph(), schedule)); };
  const Schedule alone = Schedule::standard().workers(1);
  CHECK(text(alone.refactor("candidate")) == text(alone));
}

TEST_CASE("a cut has a slice for each worker, and by the shape where the pool says how many there are",
          "[lower][refactor]") {
  for (const int workers : {1, 2, 4, 8, 16})
    CHECK(slices_of(test::child_sum_gru(64).graph(), Schedule::standard().workers(workers)) == workers);
  const auto by_shape = [](int hidden, int pool) {
    Schedule schedule = Schedule::standard();
    schedule.max_workers = pool + 1;  // as `compile` has it
    return slices_of(test::child_sum_gru(hidden).graph(), schedule);
  };
  for (int pool = 0; pool <= 7; ++pool) {
    INFO("a pool of " << pool);
    CHECK(by_shape(256, pool) == 4);
    CHECK(by_shape(64, pool) == 4);
    CHECK(by_shape(56, pool) == 2);  // four would have 14 elements each
    CHECK(by_shape(75, pool) == 3);
    CHECK(by_shape(8, pool) == 2);
    CHECK(by_shape(9, pool) == 3);
    Schedule schedule = Schedule::standard().refactor("candidate");
    schedule.max_workers = pool + 1;
    CHECK_THAT(refusal(test::child_sum_gru(17).graph(), schedule),
               Catch::Contains("operator 'candidate' contracts over dimension 'hidden' of 17 elements, which cannot be "
                               "cut into 2 to 7 slices of one size"));
  }
}

TEST_CASE("dimensions that can be cut each, but not alike, are refused together", "[lower][refactor][refusal]") {
  Dim H("hidden", 6), K("inner", 35);
  Model<test::Token> m("m", cortex::tree);
  auto U = m.input<float>("U", H, H), V = m.input<float>("V", H, K), W = m.input<float>("W", K, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) {
    return 1 + sum(cortex::children<&test::Token::kids>(n), [&](auto k) { return h(k, i); });
  });
  auto t = m.compute("t", K, [&](auto n, auto k) { return tanh(sum(H, [&](auto j) { return W(k, j) * s(n, j); })); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + sum(K, [&](auto k) { return V(i, k) * t(n, k); }));
  });
  Schedule schedule = Schedule::standard().refactor("body");
  schedule.max_workers = 4;
  const std::string message = refusal(m.recursion_op(h, body).graph(), schedule);
  CHECK_THAT(message, Catch::Contains("'hidden' of 6 elements") && Catch::Contains("'inner' of 35 elements") &&
                          Catch::Contains("together cannot be cut into 2 to 7 slices"));
}

TEST_CASE("a recursion can be cut by the handle of an operator", "[lower][refactor]") {
  Dim H("hidden", 4);
  Model<test::Token> m("m", cortex::tree);
  auto U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) {
    return 1 + sum(cortex::children<&test::Token::kids>(n), [&](auto k) { return h(k, i); });
  });
  auto body =
      m.compute("body", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); })); });
  const auto out = m.recursion_op(h, body);
  CHECK(Schedule{}.refactor(body) == Schedule{}.refactor("body"));
  CHECK(test::count(ir::print(lower::lower(out.graph(), Schedule{}.workers(2).refactor(body))), "h_sum_partial") > 0);
}

TEST_CASE("a cut at a product with a matrix that is made of weights gives what none gives", "[lower][refactor]") {
  constexpr int hidden = 16;
  Dim V("vocabulary"), H("hidden", hidden);
  Model<test::Token> m("m", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H), W = m.input<float>("W", H, H);
  auto d = m.input<float>("d", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) {
    return sum(cortex::children<&test::Token::kids>(n), [&](auto k) { return h(k, i); });
  });
  auto cut = m.compute("cut", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return (U(i, j) + W(i, j) * exp(d(j))) * s(n, j); });
  });
  auto body = m.compute("body", H,
                        [&](auto n, auto i) { return tanh(Emb(cortex::field<&test::Token::id>(n), i) + cut(n, i)); });
  const auto program = m.recursion_op(h, body);
  test::Token leaf, other, top, root;
  other.id = 1, top.kids = {&leaf, &other}, root.kids = {&top};
  const auto run = [&](const Schedule& schedule, const Target& target) {
    auto model = compile(program, schedule, CompileOptions{}.on(target));
    model.bind_together([&] {
      model.bind("Emb", test::uniform(2 * hidden, 1, 1)).bind("d", test::uniform(hidden, 1, 2));
      model.bind("U", test::uniform(hidden * hidden, 0.3f, 3)).bind("W", test::uniform(hidden * hidden, 0.3f, 4));
    });
    const auto result = model(root);
    return std::vector<float>(result[0].begin(), result[0].end());
  };
  const std::vector<float> expected = run(Schedule{}, Target::interpreter());
  for (const Target& target : {Target::interpreter(), test::best_target()})
    for (const int workers : {1, 2}) {
      const std::vector<float> values = run(Schedule::standard().workers(workers).refactor(cut), target);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-5));
    }
}

TEST_CASE("a cut of a model for DAGs is refused with the reason", "[lower][refactor][refusal]") {
  CHECK_THAT(
      refusal(test::child_sum_gru(8, cortex::dag).graph(), "candidate"),
      Catch::Contains("DAGs, where a node has several parents, and what follows the cut would be computed again"));
}

TEST_CASE("a cut at what is no operator of the model is refused by name", "[lower][refactor][refusal]") {
  const auto program = test::child_sum_gru(8);
  CHECK_THAT(refusal(program.graph(), "candidat"),
             Catch::Contains("there is no operator 'candidat'; did you mean 'candidate'?"));
  CHECK_THAT(refusal(program.graph(), "Uh"), Catch::Contains("'Uh' is no computed operator"));
}

TEST_CASE("a cut at an operator without a contraction over the recursion's data is refused",
          "[lower][refactor][refusal]") {
  CHECK_THAT(refusal(test::child_sum_gru(8).graph(), "rec"),
             Catch::Contains("'rec' contracts over nothing that depends on the recursion"));
}

TEST_CASE("a cut behind which there is another contraction is refused with its name", "[lower][refactor][refusal]") {
  CHECK_THAT(refusal(test::child_sum_gru(8).graph(), "r"),
             Catch::Contains("what follows the contraction of 'r' at a node holds that of 'candidate'"));
}

TEST_CASE("an extent that is no multiple of the number of workers is refused", "[lower][refactor][refusal]") {
  CHECK_THAT(refusal(test::child_sum_gru(9).graph(), "candidate"),
             Catch::Contains("operator 'candidate' contracts over dimension 'hidden' of 9 elements, which 2 workers"));
  CHECK_THAT(refusal(test::child_sum_gru(9).graph(), "candidate"),
             Catch::Contains("with workers(n) or, on a GPU, GpuSchedule::blocks"));
}

TEST_CASE("two cuts of one recursion are refused", "[lower][refactor][refusal]") {
  CHECK_THAT(refusal(test::child_sum_gru(8).graph(), Schedule{}.workers(2).refactor("candidate").refactor("z")),
             Catch::Contains("'candidate' and 'z' are in the same recursion, which has one back edge"));
}

TEST_CASE("a cut of a matrix along another dimension than the last is refused", "[lower][refactor][refusal]") {
  Dim H("hidden", 4), K("columns", 4);
  Model<test::Token> m("m", cortex::tree);
  auto U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H, K);
  auto s = m.compute("s", H, K, [&](auto n, auto i, auto k) {
    return 1 + sum(cortex::children<&test::Token::kids>(n), [&](auto c) { return h(c, i, k); });
  });
  auto body = m.compute(
      "body", H, K, [&](auto n, auto i, auto k) { return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j, k); })); });
  CHECK_THAT(
      refusal(m.recursion_op(h, body).graph(), "body"),
      Catch::Contains("the contraction of 'body' runs over no last dimension of what it reads of the recursion"));
}

TEST_CASE("cuts where no node reads its children are refused, and of recursions that go down",
          "[lower][refactor][refusal]") {
  Dim H("hidden", 4);
  constexpr auto kids = cortex::children<&test::Token::kids>;
  constexpr auto above = cortex::parents<kids>;
  Model<test::Token> m("m", cortex::tree);
  auto U = m.input<float>("U", H, H), a = m.input<float>("a", H, H);
  auto h = m.placeholder<float>("h", H);
  auto first =
      m.compute("first", H, [&](auto n, auto i) { return a(i, i) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto up = m.recursion(h, first);
  auto d = m.placeholder<float>("d", H);
  auto second = m.compute("second", H, [&](auto n, auto i) {
    return up(n, i) + sum(H, [&](auto j) { return U(i, j) * sum(above(n), [&](auto p) { return d(p, j); }); });
  });
  auto down = m.recursion(d, second);
  auto logits = m.output<float>("logits", H,
                                [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * down(n, j); }); });
  const ra::Graph graph = m.program(down, logits).graph();
  CHECK_THAT(refusal(graph, "second"), Catch::Contains("'second' is in a recursion from parents to children"));
  for (const ra::Op& op : graph.ops)
    if (op.kind == ra::OpKind::compute && op.name() != "first" && op.name() != "second")
      CHECK_THAT(refusal(graph, op.name()), Catch::Contains("is in no recursion"));
}
