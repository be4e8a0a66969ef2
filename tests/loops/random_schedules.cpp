// Random loop schedules of random models: whatever the steps are, a program computes what the recursion as written
// does, or the step is refused. Interpreted, and compiled; CORTEX_CASES cases, from the model CORTEX_SEED on, in place
// of the suite's own.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "support/lowering.hpp"
#include "support/node_tables.hpp"
#include "support/random_cases.hpp"
#include "support/random_loops.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

NodeTable random_nodes(Random& random, ra::StructureKind kind) {
  std::mt19937 engine(unsigned(random.below(1 << 30)));
  const int count = 1 + random.below(18);
  NodeTable table = kind == ra::StructureKind::sequence ? chain_table(count)
                                                        : random_table(count, 1 + random.below(4), vocabulary, engine,
                                                                       false, kind == ra::StructureKind::dag);
  for (int n = 0; n < count; ++n)
    table.data.push_back({float(random.uniform(-1, 1)), float(random.uniform(-1, 1)), float(random.uniform(-1, 1))});
  return table;
}

Schedule random_recursion(Random& random) {
  Schedule schedule;
  if (random.chance(0.7)) schedule = schedule.dynamic_batch();
  if (random.chance(0.5)) schedule = schedule.specialize_leaves_and_switches();
  if (random.chance(0.5)) schedule = schedule.specialize_leaves();
  return schedule;
}

/// One random model under one random schedule on some structures.
void run_model(std::uint64_t seed, int structures, Tally& tally) {
  const RandomModel model(seed);
  Random random(seed);
  Schedule schedule = random_recursion(random).exact_activations();
  const Target target = machine(random.chance(0.5) ? 16 : 32);
  INFO("seed " << seed);

  RandomLoops made(random, lower::lower(model.graph, schedule).body, target, tally);
  const int workers = made.draw() ? 2 + random.below(2) : 1;
  schedule = schedule.workers(workers).loops(made.loops);
  INFO(to_string(made.loops));
  CHECK(Loops::parse(to_string(made.loops)) == made.loops);

  const std::vector<Snapshot> programs = passes_of(model.graph, schedule, target);
  ra::Weights weights = weights_for(model.graph, vocabulary, unsigned(seed));
  for (int s = 0; s < structures; ++s, ++tally.cases) {
    const NodeTable table = random_nodes(random, model.graph.structure);
    const Linear linear(table, 2);
    const Reference reference(model.graph, table, linear.arrays, linear.number, weights);
    const auto check = [&](const Snapshot& at, const ir::InterpretOptions& options) {
      const std::string wrong = reference.difference(at.program, options);
      if (!wrong.empty())
        FAIL(to_string(made.loops) << "after " << at.pass << ", " << options.workers << " workers: " << wrong << "\n"
                                   << ir::print(at.program));
    };
    check(programs.back(), {workers, s % 2 == 1});
    if (s == 0 && workers == 1) check(programs[std::size_t(random.below(int(programs.size())))], {});
  }
}

int wanted_cases(int usual) {
  const char* asked = std::getenv("CORTEX_CASES");
  return asked ? std::atoi(asked) : usual;
}
std::uint64_t first_seed(std::uint64_t usual) {
  const char* asked = std::getenv("CORTEX_SEED");
  return asked ? std::strtoull(asked, nullptr, 10) : usual;
}

}  // namespace

TEST_CASE("random loop schedules keep what random models compute", "[differential][slow]") {
  const int cases = wanted_cases(50000);
  Tally tally;
  for (std::uint64_t seed = first_seed(1); tally.cases < cases; ++seed) run_model(seed, 10, tally);
  WARN(tally.text());
  CHECK(tally.applied > tally.cases / 10);
}

TEST_CASE("compiled, random loop schedules keep what random models compute", "[differential][slow]") {
  const int cases = wanted_cases(CORTEX_LLVM ? 2000 : 300);
  const auto pool = std::make_shared<Workers>(2);
  const Target target = best_target();
  Tally tally;
  for (std::uint64_t seed = first_seed(700000); tally.cases < cases; ++seed) {
    const RandomModel model(seed);
    Random random(seed);
    Schedule schedule = random_recursion(random);
    RandomLoops made(random, lower::lower(model.graph, schedule).body, target, tally);
    const bool several = made.draw();
    schedule = schedule.workers(several ? 2 + random.below(2) : 1).loops(made.loops);
    INFO("seed " << seed << "\n" << to_string(schedule));
    RandomFunctor functor = compile_model(model, schedule);
    if (several) functor.use(pool);
    for (int f = 0; f < 10; ++f, ++tally.cases) {
      const Forest forest = random_forest(random, model.graph.structure, f == 0 ? 4 : 30);
      if (const auto wrong = mismatch(model, functor, forest))
        FAIL(*wrong << "\nsmallest:\n" << smallest_failure(model, functor, seed));
    }
  }
  WARN(tally.text());
  CHECK(tally.applied > tally.cases / 10);
}
