// The barriers of models under schedules of all kinds, held against vector clocks on many forests: none is missing, and
// few could be spared.
#include <catch2/catch.hpp>

#include "cortex/ra/print.hpp"
#include "support/gru_models.hpp"
#include "support/models.hpp"
#include "support/odd_models.hpp"
#include "support/races.hpp"
#include "support/random_schedules.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// Every schedule of the recursion that a model may have, for several workers; some are refused.
std::vector<Schedule> schedules_of(const std::string& cut_at) {
  std::vector<Schedule> result;
  for (const bool batched : {false, true}) {
    Schedule plain = Schedule{}.workers(2);
    plain.batched = batched;
    for (const Schedule& s : {plain, plain.specialize_leaves(), plain.specialize_if_else(),
                              plain.specialize_where_it_pays().specialize_leaves()}) {
      result.push_back(s);
      if (!cut_at.empty()) result.push_back(s.refactor(cut_at));
    }
  }
  return result;
}

std::vector<Schedule> unrolled(const std::string& model) {
  std::vector<Schedule> result;
  for (const int depth : {1, 2, 3}) result.push_back(Schedule::standard().workers(3).unroll(model, depth));
  return result;
}

/// Holds the program with its barriers against `forests` calls, and each barrier against its absence.
void hold(const ra::Graph& graph, const Schedule& schedule, std::uint64_t seed, int forests, BarrierTally& tally) {
  INFO(graph.name << ", seed " << seed << ", " << text_of(schedule) << "\n" << ra::print(graph));
  std::vector<Snapshot> passes;
  try {
    passes = passes_of(graph, schedule.exact_activations(), machine(16 << seed % 3, seed % 2 ? 16 : 32));
  } catch (const Error& error) {
    if (error.code != Code::invalid_schedule) FAIL(error.message);
    ++tally.refused;
    return;
  }
  const ir::Program& program = with_barriers(passes);
  const Calls calls(graph, schedule, seed, forests);
  ++tally.programs;
  REQUIRE(first_race(program, calls) == "");
  CHECK(order_matters(program, calls.envs.front(), calls.weights) == "");
  const int count = count_barriers(program);
  for (int b = 0; b < count; ++b)
    if (first_race(without_barrier(program, b), calls).empty())
      tally.unneeded.push_back("barrier " + std::to_string(b) + " of " + graph.name + ", " + text_of(schedule) + "\n" +
                               ir::print(program));
  tally.barriers += count;
}

/// Holds the program after the barriers, after tiling and for the device against `forests` calls.
void hold_device(const ra::Graph& graph, const Schedule& schedule, std::uint64_t seed, int forests = 3) {
  INFO(graph.name << ", seed " << seed << ", " << text_of(schedule));
  try {
    const auto passes = passes_of(graph, schedule.exact_activations(), machine(16 << seed % 3));
    const Calls calls(graph, schedule, seed, forests);
    for (const Snapshot& s : passes)
      if (s.pass == "insert_barriers" || s.pass == "tile_nests" || s.pass == "flatten_storage")
        CHECK(first_race(s.program, calls) == "");
  } catch (const Error& error) {
    if (error.code != Code::invalid_schedule) FAIL(error.message);
  }
}

/// A model and the operator to cut it at.
struct Case {
  ra::Graph graph;
  std::string cut_at;
};

std::vector<Case> cells() {
  return {{tree_rnn(5).graph(), ""},
          {tree_lstm(6).graph(), ""},
          {dependency_rnn(6).graph(), ""},
          {tree_gru(6).graph(), "candidate"},
          {child_sum_gru(6).graph(), "candidate"},
          {sequential_gru(6).graph(), "candidate"},
          {two_state_gru(6).graph(), "candidate"},
          {common_initial_state(6).graph(), ""}};
}

std::vector<ra::Graph> odd_ones() {
  std::vector<ra::Graph> result{odd::scalar_state()};
  for (const auto model :
       {odd::matrix_state, odd::matrix_rows, odd::extremes, odd::shared_bodies, odd::conditions, odd::free_at_leaves,
        odd::indices, odd::attention, odd::tensor_product, odd::beside, odd::mixed_types, odd::degrees, odd::constants,
        odd::common_number, odd::chosen_children, odd::own_matrices_of_four, odd::half_contracted})
    result.push_back(model(5));
  return result;
}

}  // namespace

TEST_CASE("every barrier of a cell is needed, and none is missing", "[pass][races]") {
  BarrierTally tally;
  for (const Case& c : cells()) {
    for (const Schedule& schedule : schedules_of(c.cut_at)) hold(c.graph, schedule, 1, 12, tally);
    for (const Schedule& schedule : unrolled(c.graph.name)) hold(c.graph, schedule, 2, 40, tally);
  }
  CHECK(tally.programs > 80);
  CHECK(tally.barriers > 100);
  CHECK(tally.unneeded == std::vector<std::string>());
}

TEST_CASE("every barrier of an odd model is needed, and none is missing", "[pass][races]") {
  BarrierTally tally;
  for (const ra::Graph& graph : odd_ones())
    for (const Schedule& schedule : schedules_of("")) hold(graph, schedule, 3, 40, tally);
  for (const Schedule& schedule : schedules_of("")) hold(odd::matrix_rows(32), schedule, 3, 6, tally);  // in slices
  CHECK(tally.programs > 100);
  CHECK(tally.unneeded == std::vector<std::string>());
}

TEST_CASE("no barrier is missing from the device's program", "[pass][races]") {
  for (const Case& c : cells()) {
    for (const Schedule& schedule : schedules_of(c.cut_at)) hold_device(c.graph, schedule, 4);
    for (const Schedule& schedule : unrolled(c.graph.name)) hold_device(c.graph, schedule, 5);
  }
  for (const ra::Graph& graph : odd_ones())
    for (const Schedule& schedule : schedules_of("")) hold_device(graph, schedule, 6);
  for (const Schedule& schedule : schedules_of(""))
    for (const int extent : {32, 37})
      hold_device(odd::matrix_rows(extent), schedule, 7, 1);  // slices; nine vectors a row
}

// Those that no forest needs part a node from children that it cannot have (the second of a chain, those of an inner
// node on a condition that leaves alone fulfil), or rows of a batch's parts that happen to have no nodes: of which
// nodes there are, the pass knows what the loops number and what conditions exclude, not what forests look like.
TEST_CASE("of a random model's barriers, few are needed on no forest, and none is missing", "[pass][races][random]") {
  BarrierTally tally;
  std::uint64_t seed = first_seed(30000);
  for (int models = wanted_cases(50); models > 0; ++seed) {
    const RandomModel model(seed, Grammar::whole);
    if (model.graph.structure == ra::StructureKind::sequence) continue;  // whose nodes have no second child
    --models;
    Random random(seed);
    for (int s = 0; s < 2; ++s) hold(model.graph, random_schedule(random, model.graph, 1), seed, 24, tally);
  }
  WARN(tally.programs << " programs without race, " << tally.refused << " refused, " << tally.barriers
                      << " barriers, of which " << tally.unneeded.size() << " were needed on no forest");
  CHECK(int(tally.unneeded.size()) * 12 <= tally.barriers);
}

TEST_CASE("no barrier is missing from a random model's program, with its barriers or for the device",
          "[pass][races][random]") {
  const std::uint64_t first = first_seed(50000);
  for (std::uint64_t seed = first; seed < first + std::uint64_t(wanted_cases(150)); ++seed) {
    const RandomModel model(seed, Grammar::whole);
    Random random(seed);
    hold_device(model.graph, random_schedule(random, model.graph, 1), seed);
  }
}
