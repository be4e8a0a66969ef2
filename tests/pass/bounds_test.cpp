// Bounds inference through uninterpreted functions: regions, and programs whose every index is in bounds.
#include <catch2/catch.hpp>

#include "cortex/pass/check_bounds.hpp"
#include "support/gru_models.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/odd_models.hpp"
#include "support/random_models.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;
using pass::BoundsReport;
using pass::check_bounds;

namespace {

const Dim H("hidden", 4);

ir::Expr call(ir::UfKind kind, std::vector<ir::Expr> args = {}, int accessor = -1) {
  return ir::call(kind, "f", std::move(args), accessor);
}

ir::Program program(std::vector<ir::Buffer> buffers, const ir::Stmt& body) {
  ir::Program p{"handmade", std::move(buffers), body, ir::Level::loops, {}};
  p.field_components = {1};
  return p;
}

std::vector<std::string> texts(const ir::Stmt& body, pass::Scope& scope) {
  std::vector<std::string> result;
  for (const pass::Region& region : pass::regions(body, scope))
    result.push_back((region.written ? "writes " : "reads ") + to_string(region, scope.atoms()));
  return result;
}

/// The reports of a model's program after each pass above `device`, added up.
struct Sums {
  pass::ProofCounts all;
  int data = 0, programs = 0;
  std::string first_unproved;

  void add(const ra::Graph& graph, const Schedule& schedule, const Target& target, bool last_alone) {
    std::vector<Snapshot> passes;
    try {
      passes = passes_of(graph, schedule, target);
    } catch (const Error& error) {
      if (error.code != Code::invalid_schedule) throw;
      return;
    }
    for (const Snapshot& s : passes) {
      if (s.program.level == ir::Level::device ||
          (last_alone && s.pass != "share_loads" && s.pass != "resolve_structure"))
        continue;
      const BoundsReport report = check_bounds(s.program, false);
      for (const auto* counts : {&report.loads, &report.stores, &report.functions}) all += *counts;
      data += report.checked_by_calls;
      ++programs;
      for (const std::string& what : report.unproved)
        if (first_unproved.empty() && !is_share_of_subtrees(what))
          first_unproved = graph.name + " after " + s.pass + ": " + what;
    }
  }

  /// worker * the number of subtrees might not fit 32 bits, were there more than 2^31 / 1024 of them.
  static bool is_share_of_subtrees(const std::string& what) {
    return what.rfind("groups(", 0) == 0 || what.rfind("group_node[", 0) == 0;
  }
};

}  // namespace

TEST_CASE("a batch is contiguous, and a child may be any node above its parent", "[pass]") {
  const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);
  const ir::Expr b = var("b"), n = var("n_idx"), node = var("node"), i = var("i");
  pass::Scope scope;
  scope.enter_loop(b, call(ir::UfKind::num_internal_batches));
  const ir::Stmt work = loop(i, H, store(h, {node, i}, load(h, {call(ir::UfKind::child, {node}, 0), i})));
  const ir::Stmt body = ir::For::make(n, dims::batch, call(ir::UfKind::internal_batch_length, {b}), ir::ForKind::serial,
                                      ir::LetStmt::make(node, call(ir::UfKind::internal_batch_node, {b, n}), work));
  CHECK(texts(body, scope) ==
        std::vector<std::string>{"reads h[batch_begin(b + 1) + 1 .. + num_nodes - batch_begin(b + 1), 0 .. + 4]",
                                 "writes h[batch_begin(b + 1) .. + batch_length(b + 1), 0 .. + 4]"});
}

TEST_CASE("a region joins all accesses, and what has no bound is the whole dimension", "[pass]") {
  const Dim K("wide", 40);
  const ir::Buffer x = buffer("x", {K}), y = buffer("y", {K}), t = buffer("t", {K}, ir::Role::weight);
  const ir::Expr o = var("o"), i = var("i");
  pass::Scope scope;
  scope.enter_loop(o, ir::imm(8));
  const ir::Expr word = call(ir::UfKind::field, {i}, 0);
  const ir::Stmt body = loop(i, H,
                             block({store(y, {o * 4 + i}, load(x, {o * 4 + i}) + load(x, {o * 4 + i + 3})),
                                    store(y, {ir::imm(39) - i}, load(t, {word}))}));
  const std::vector<std::string> all = texts(body, scope);
  CHECK(all[0] == "reads x[4 * o .. + 7]");
  CHECK(all[1] == "writes y[4 * o .. + -4 * o + 40]");
  CHECK(all[2] == "reads t[-2147483648 .. + 4294967296]");
}

TEST_CASE("an index that is out of bounds for every input is refused with its place", "[pass][refusal]") {
  const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);
  const ir::Expr node = var("node"), i = var("i");
  const auto storing = [&](const ir::Expr& at, const ir::Expr& j) {
    return program({h}, for_nodes(node, loop(i, H, store(h, {at, j}, number(0)))));
  };
  CHECK_NOTHROW(check_bounds(storing(node, i)));
  CHECK_THROWS_WITH(check_bounds(storing(node, i + 4)),
                    Catch::Contains("h[node,i + 4]: index i + 4") && Catch::Contains("dimension 'hidden' of 'h'") &&
                        Catch::Contains("never below the extent, 4") && Catch::Contains("for n_idx = 0:num_nodes") &&
                        Catch::Contains("for i = 0:4"));
  CHECK_THROWS_WITH(check_bounds(storing(ir::imm(-1) - node, i)), Catch::Contains("is always negative"));
  CHECK_THROWS_WITH(check_bounds(storing(node + call(ir::UfKind::num_nodes), i)),
                    Catch::Contains("never below the extent, num_nodes"));
  ir::Program flat = storing(node, i);
  flat.level = ir::Level::device;
  CHECK_THROWS_WITH(check_bounds(flat), Catch::Contains("offsets in place of indices"));
}

TEST_CASE("an index that may be out of bounds is told with its place", "[pass]") {
  const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);
  const ir::Expr node = var("node"), i = var("i");
  const auto report = [&](const ir::Expr& at, const ir::Expr& j) {
    return check_bounds(program({h}, for_nodes(node, loop(i, H, store(h, {at, j}, number(0))))));
  };
  const BoundsReport child = report(call(ir::UfKind::child, {node}, 0), i);  // may be the row of zeros
  CHECK(child.stores.unproved == 1);
  REQUIRE(child.unproved.size() == 1);
  CHECK_THAT(child.unproved[0], Catch::Contains("child#0(n_idx)") && Catch::Contains("for n_idx = 0:num_nodes"));
  CHECK(report(node, i + 1).stores.unproved == 1);
  CHECK(report(node, i).stores == pass::ProofCounts{0, 2, 0, 0});
}

TEST_CASE("of a vector all lanes are in bounds, and not the first alone", "[pass][refusal]") {
  const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);
  const ir::Expr node = var("node"), i = var("i");
  const auto storing = [&](const ir::Expr& first, int lanes) {
    const ir::Stmt vector = store(h, {node, ir::Ramp::make(first, lanes)}, ir::Broadcast::make(number(0), lanes));
    return program({h}, for_nodes(node, ir::For::make(i, H, ir::imm(2), ir::ForKind::serial, vector)));
  };
  CHECK(check_bounds(storing(i * 2, 2)).stores == pass::ProofCounts{0, 2, 0, 0});
  CHECK(check_bounds(storing(i * 2, 4)).stores.unproved == 1);
  CHECK_THROWS_WITH(check_bounds(storing(i * 2, 8)), Catch::Contains("never below the extent, 4"));
}

TEST_CASE("indices of the nodes' data are counted apart", "[pass]") {
  const Dim V("vocabulary"), three("three", 3);
  const ir::Buffer h = buffer("h", {dims::node}, ir::Role::state), E = buffer("E", {V}, ir::Role::weight),
                   T = buffer("T", {three}, ir::Role::weight);
  const ir::Expr node = var("node"), word = call(ir::UfKind::field, {node}, 0);
  const BoundsReport report =
      check_bounds(program({h, E, T}, for_nodes(node, store(h, {node}, load(E, {word}) + load(T, {word})))));
  CHECK(report.checked_by_calls == 2);
  CHECK(report.unproved.empty());
}

TEST_CASE("every index of the models is in bounds after every pass", "[pass]") {
  Sums sums;
  for (const ra::Graph& graph : {tree_rnn(16).graph(), tree_lstm(19).graph(), dependency_rnn(4).graph(),
                                 tree_gru(16).graph(), common_initial_state(16).graph()})
    for (const bool batched : {false, true})
      for (const int workers : {1, 3}) {
        Schedule schedule = Schedule{}.workers(workers);
        schedule.batched = schedule.specializes_where_it_pays = schedule.leaves_apart = batched;
        sums.add(graph, schedule, machine(16), false);
      }
  INFO(to_string(sums.all) << ", " << sums.data << " checked by calls, in " << sums.programs << " programs");
  CHECK(sums.first_unproved == "");
  CHECK(sums.all.rules > 1000);
  CHECK(sums.all.intervals > 1000);
}

TEST_CASE("every index of odd models is in bounds", "[pass]") {
  Sums sums;
  for (ra::Graph (*model)(int) :
       {odd::matrix_state, odd::matrix_rows, odd::extremes, odd::shared_bodies, odd::conditions, odd::free_at_leaves,
        odd::indices, odd::attention, odd::tensor_product, odd::beside, odd::mixed_types, odd::degrees, odd::constants,
        odd::chosen_children, odd::half_contracted})
    for (const int workers : {1, 2})
      sums.add(model(19), Schedule::standard().workers(workers), machine(workers == 1 ? 32 : 16), true);
  CHECK(sums.first_unproved == "");
}

namespace {

void check_random_models(std::uint64_t first, int count) {
  Sums sums;
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const RandomModel model(seed, Grammar::whole);
    Random random(seed);
    Schedule schedule;
    schedule.batched = random.chance(0.6);
    schedule.leaves_apart = random.chance(0.5);
    schedule.specializes_where_it_pays = random.chance(0.3), schedule.specialize_every = random.chance(0.3);
    if (random.chance(0.25)) schedule = schedule.unroll(model.graph.name, 1 + random.below(4));
    if (random.chance(0.4)) schedule = schedule.workers(2 + random.below(2));
    INFO("seed " << seed);
    sums.add(model.graph, schedule, machine(16 << random.below(3), random.chance(0.5) ? 16 : 32), true);
    REQUIRE(sums.first_unproved == "");
  }
  CHECK(sums.programs > count);
}

}  // namespace

TEST_CASE("every index of random models of the whole grammar is in bounds", "[pass][random]") {
  check_random_models(first_seed(0), wanted_cases(40));
}

TEST_CASE("every index of further random models of the whole grammar is in bounds", "[pass][random]") {
  check_random_models(first_seed(0) + 1000000, wanted_cases(40));
}
