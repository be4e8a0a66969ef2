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

/// Steps drawn one after the other; those that are refused are left out.
class RandomLoops {
 public:
  RandomLoops(Random& random, const ir::Stmt& lowered, const Target& target, Tally& tally)
      : random_(random), target_(target), tally_(tally), maker_(random), body_(loops.named(lowered)) {}

  Loops loops;

  /// Up to `wanted` steps; those for several workers only if there are any.
  void draw(int wanted, bool several) {
    for (int attempt = 0; wanted > 0 && attempt < 60; ++attempt) {
      const auto& all = pass::detail::loop_primitives;
      const std::string primitive(all[std::size_t(random_.below(int(all.size())))].name);
      if (primitive == "insert_barriers" || (!several && primitive == "share_work")) continue;
      wanted -= take(maker_.step(body_, primitive));
    }
  }

  /// Whether the step is possible and changes something.
  bool take(const LoopStep& step) {
    INFO(to_string(loops) << to_string(step) << "\n" << ir::print(body_));
    try {
      std::vector<LoopStep> steps = loops.steps();
      steps.push_back(step);
      const Loops longer(steps);
      const ir::Stmt after = longer.apply(loops.size(), body_, target_);
      if (after.same_as(body_)) return false;
      ir::verify(after, ir::Level::scheduled);
      body_ = after;
      loops = longer;
    } catch (const Error& error) {
      if (error.code != Code::invalid_schedule) FAIL(error.message);
      ++tally_.refused;
      return false;
    }
    ++tally_.by_primitive[step.primitive], ++tally_.applied;
    return true;
  }

 private:
  Random& random_;
  const Target& target_;
  Tally& tally_;
  StepMaker maker_;
  ir::Stmt body_;
};

/// One random model under one random schedule on some structures.
void run_model(std::uint64_t seed, int structures, Tally& tally) {
  const RandomModel model(seed);
  Random random(seed);
  Schedule schedule = Schedule{}.exact_activations();
  if (random.chance(0.7)) schedule = schedule.dynamic_batch();
  if (random.chance(0.5)) schedule = schedule.specialize_leaves_and_switches();
  if (random.chance(0.5)) schedule = schedule.specialize_leaves();
  const Target target = machine(random.chance(0.5) ? 16 : 32);
  INFO("seed " << seed);

  RandomLoops made(random, lower::lower(model.graph, schedule).body, target, tally);
  made.draw(random.below(5), true);
  const bool several = random.chance(0.3) && made.take({"insert_barriers", {}, {}});
  made.draw(1 + random.below(4), several);
  const int workers = several ? 2 + random.below(2) : 1;
  schedule = schedule.workers(workers).loops(made.loops);
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

}  // namespace

TEST_CASE("random loop schedules keep what random models compute", "[differential][slow]") {
  const char *asked = std::getenv("CORTEX_CASES"), *first = std::getenv("CORTEX_SEED");
  const int cases = asked ? std::atoi(asked) : 50000;
  Tally tally;
  for (std::uint64_t seed = first ? std::strtoull(first, nullptr, 10) : 1; tally.cases < cases; ++seed)
    run_model(seed, 10, tally);
  std::string counts;
  for (const auto& [name, count] : tally.by_primitive) counts += " " + name + " " + std::to_string(count);
  WARN(tally.cases << " cases, " << tally.applied << " steps, " << tally.refused << " refused;" << counts);
  CHECK(tally.applied > tally.cases / 10);
}
