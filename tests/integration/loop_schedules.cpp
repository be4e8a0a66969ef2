// Random loop schedules of random models: whatever the steps are, a program computes what the recursion as written
// does, or the step is refused. Interpreted; `tests/run --cases N` runs N cases, from CORTEX_SEED on.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "support/lowering.hpp"
#include "support/node_tables.hpp"
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

struct Tally {
  int cases = 0, applied = 0, refused = 0;
  std::map<std::string, int> by_primitive;
};

/// One random model under one random schedule on some structures.
void run_model(std::uint64_t seed, int structures, Tally& tally) {
  const RandomModel model(seed);
  Random random(seed);
  Schedule recursion = Schedule{}.exact_activations();
  if (random.chance(0.7)) recursion = recursion.dynamic_batch();
  if (random.chance(0.5)) recursion = recursion.specialize_leaves_and_switches();
  if (random.chance(0.5)) recursion = recursion.specialize_leaves();
  const Target target = machine(random.chance(0.5) ? 16 : 32);
  const ir::Program lowered = lower::lower(model.graph, recursion);

  StepMaker maker(random);
  Loops loops;
  ir::Stmt body = loops.named(lowered.body);
  std::string text;
  for (int wanted = 1 + random.below(8), attempt = 0; wanted > 0 && attempt < 60; ++attempt) {
    const auto& all = pass::detail::loop_primitives;
    const std::string primitive(all[std::size_t(random.below(int(all.size())))].name);
    if (primitive == "insert_barriers" || primitive == "share_work") continue;  // of several workers
    const LoopStep step = maker.step(body, primitive);
    INFO("seed " << seed << "\n" << text << to_string(step) << "\n" << ir::print(body));
    try {
      const Loops one({step});
      const ir::Stmt after = one.apply(0, body, target);
      if (after.same_as(body)) continue;
      ir::verify(after, ir::Level::scheduled);
      body = after;
      loops = Loops([&] {
        std::vector<LoopStep> steps = loops.steps();
        steps.push_back(step);
        return steps;
      }());
    } catch (const Error& error) {
      if (error.code != Code::invalid_schedule) FAIL(error.message);
      ++tally.refused;
      continue;
    }
    text += to_string(step) + "\n";
    ++tally.by_primitive[primitive], ++tally.applied, --wanted;
  }
  INFO("seed " << seed << "\n" << to_string(recursion.loops(loops).by_hand ? loops : Loops()) << ir::print(body));
  CHECK(Loops::parse(to_string(loops)) == loops);
  const std::vector<Snapshot> programs = passes_of(model.graph, recursion.loops(loops), target);
  ra::Weights weights;
  for (const auto& [name, tensor] : weights_for(model.graph, vocabulary, unsigned(seed))) weights.emplace(name, tensor);
  for (int s = 0; s < structures; ++s, ++tally.cases) {
    const NodeTable table = random_nodes(random, model.graph.structure);
    const Linear linear(table, 2);
    const Reference reference(model.graph, table, linear.arrays, linear.number, weights);
    // All that is left of the steps, and at device level.
    for (const std::size_t at : {programs.size() - 1, s == 0 ? std::size_t(0) : programs.size() - 1}) {
      const std::string wrong = reference.difference(programs[at].program);
      if (!wrong.empty())
        FAIL("after " << programs[at].pass << ": " << wrong << "\n" << ir::print(programs[at].program));
    }
  }
}

}  // namespace

TEST_CASE("random loop schedules keep what random models compute", "[differential][slow]") {
  const char *asked = std::getenv("CORTEX_CASES"), *first = std::getenv("CORTEX_SEED");
  const int cases = asked ? std::atoi(asked) : 5000;
  Tally tally;
  for (std::uint64_t seed = first ? std::strtoull(first, nullptr, 10) : 1; tally.cases < cases; ++seed)
    run_model(seed, 10, tally);
  std::string counts;
  for (const auto& [name, count] : tally.by_primitive) counts += " " + name + " " + std::to_string(count);
  WARN(tally.cases << " cases, " << tally.applied << " steps, " << tally.refused << " refused;" << counts);
  CHECK(tally.applied > tally.cases / 10);
}
