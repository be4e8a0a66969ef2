// Random loop schedules of random models: whatever the steps are, a program computes what the recursion as written
// does, or the step is refused. Interpreted, compiled, and with a GPU's threads as workers; CORTEX_CASES cases, from
// the model CORTEX_SEED on, in place of the suite's own.
#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "cortex/ir/places.hpp"
#include "cortex/pass/insert_thread_barriers.hpp"
#include "support/compile.hpp"
#include "support/differential.hpp"
#include "support/lowering.hpp"
#include "support/node_tables.hpp"
#include "support/races.hpp"
#include "support/random_cases.hpp"
#include "support/random_loops.hpp"
#include "support/random_programs.hpp"
#include "support/small_loops.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

NodeTable random_nodes(Random& random, ra::StructureKind kind) {
  std::mt19937 engine(unsigned(random.below(1 << 30)));
  const int count = 1 + random.below(18);
  NodeTable table = kind == ra::StructureKind::sequence ? chain_table(count)
                                                        : random_table(count, 1 + random.below(4), num_words, engine,
                                                                       false, kind == ra::StructureKind::dag);
  for (int n = 0; n < count; ++n)
    table.data.push_back({float(random.uniform(-1, 1)), float(random.uniform(-1, 1)), float(random.uniform(-1, 1))});
  return table;
}

Schedule random_recursion(Random& random, const ra::Graph& graph) {
  Schedule schedule;
  if (random.chance(0.7)) schedule = schedule.dynamic_batch();
  if (random.chance(0.5)) schedule = with_leaf_branches(std::move(schedule), graph);
  if (random.chance(0.5)) schedule = schedule.specialize_leaves();
  return schedule;
}

/// The same, and the recursions of every fifth model unrolled where they can be, whatever else is drawn.
Schedule random_recursion(Random& random, const ra::Graph& graph, std::uint64_t seed) {
  const Schedule schedule = random_recursion(random, graph);
  if (seed % 5 != 0) return schedule;
  const Schedule unrolled = schedule.unroll(graph.name, 2 + int(seed / 5 % 2));
  try {
    lower::lower(graph, unrolled);
  } catch (const Error& error) {
    if (error.code != Code::invalid_schedule) FAIL(error.message);
    return schedule;
  }
  return unrolled;
}

/// One random model under one random schedule on some structures.
void run_model(std::uint64_t seed, int structures, Tally& tally) {
  const RandomModel model(seed);
  Random random(seed);
  Schedule schedule = random_recursion(random, model.graph, seed).exact_activations();
  const Target target = machine(random.chance(0.5) ? 16 : 32);
  INFO("seed " << seed);

  RandomLoops made(random, lower::lower(model.graph, schedule).body, target, tally);
  const int workers = made.draw() ? 2 + random.below(2) : 1;
  schedule = schedule.workers(workers).loops(made.loops);
  INFO(to_string(made.loops));
  CHECK(Loops::parse(to_string(made.loops)) == made.loops);

  const std::vector<Snapshot> programs = passes_of(model.graph, schedule, target);
  const ra::Weights weights = weights_for(model.graph, num_words, unsigned(seed));
  const auto check = [&](const Reference& reference, const Snapshot& at, const ir::InterpretOptions& options) {
    const std::string wrong = reference.difference(at.program, options);
    if (!wrong.empty())
      FAIL(to_string(made.loops) << "after " << at.pass << ", " << options.workers << " workers: " << wrong << "\n"
                                 << ir::print(at.program));
  };
  const auto check_on = [&](const Reference& reference, int s) {
    check(reference, programs.back(), {workers, s % 2 == 1});
    if (s == 0 && workers == 1) check(reference, programs[std::size_t(random.below(int(programs.size())))], {});
  };
  if (schedule.unrolled.empty()) {
    for (int s = 0; s < structures; ++s, ++tally.cases) {
      const NodeTable table = random_nodes(random, model.graph.structure);
      const Linear linear(table, 2);
      check_on({model.graph, table, linear.arrays, linear.number, weights}, s);
    }
    return;
  }
  const Calls calls(model.graph, schedule, seed, structures);  // which have subtrees
  for (int s = 0; s < structures; ++s, ++tally.cases) {
    const ForestView view(calls.forest(s));
    check_on({model.graph, view, calls.envs[std::size_t(s)], calls.numbers(s), weights}, s);
  }
  // Workers that take turns use one row of a temporary one after the other: that they share it is seen here.
  if (workers > 1) CHECK(first_race(programs.back().program, calls) == "");
}

}  // namespace

TEST_CASE("a nest that reads a group's results and finds it full stands behind it", "[differential]") {
  Tally tally;
  run_model(4021042, 2, tally);  // where it once stood before
  CHECK(tally.applied > 0);
}

TEST_CASE("a nest whose split has left columns out is refused where workers share it", "[differential]") {
  Tally tally;
  run_model(2000278, 2, tally);  // where lanes once parted
  CHECK(tally.applied > 0);
}

TEST_CASE("random loop schedules keep what random models compute", "[differential][slow]") {
  const int cases = wanted_cases(4000);
  Tally tally;
  for (std::uint64_t seed = first_seed(1); tally.cases < cases; ++seed) run_model(seed, 10, tally);
  WARN(tally.text());
  CHECK(tally.applied > tally.cases / 10);
}

TEST_CASE("compiled, random loop schedules keep what random models and programs compute", "[differential][slow]") {
  const int cases = wanted_cases(built_with_llvm() ? 1000 : 300);
  const auto pool = std::make_shared<Workers>(2);
  const Target target = best_target();
  Tally tally;
  for (std::uint64_t seed = first_seed(700000); tally.cases < cases; ++seed) {
    const GraphCase model = seed % 4 ? GraphCase(RandomModel(seed)) : GraphCase(RandomProgram(seed));
    Random random(seed);
    Schedule schedule = random_recursion(random, model.graph, seed);
    RandomLoops made(random, lower::lower(model.graph, schedule).body, target, tally);
    const bool several = made.draw();
    schedule = schedule.workers(several ? 2 + random.below(2) : 1).loops(made.loops);
    INFO("seed " << seed << "\n" << to_string(schedule));
    RandomFunctor functor = compile_model(model, schedule);
    if (several) functor.use(pool);
    for (int f = 0; f < 10; ++f, ++tally.cases) {
      const Forest forest = random_forest(random, model.graph, f == 0 ? 4 : 30);
      if (const auto wrong = mismatch(model, functor, forest))
        FAIL(*wrong << "\nsmallest:\n" << smallest_failure(model, functor, seed));
    }
  }
  WARN(tally.text());
  CHECK(tally.applied > tally.cases / 10);
}

namespace {

/// One block's program with its threads as workers: its own worker is the only one.
ir::Program threads_as_workers(ir::Program program) {
  PointerMap<ir::Buffer> homes;
  for (ir::Buffer& buffer : program.buffers) {
    if (buffer->scope != ir::Scope::worker) continue;
    ir::BufferInfo info = *buffer;
    info.scope = ir::Scope::shared;
    buffer = homes.emplace(buffer.id(), ir::Buffer(std::move(info))).first->second;
  }
  program.body = ir::mutate_with(
      ir::with_buffers(program.body, homes),
      [](auto& self, const ir::For& loop) -> ir::Stmt {
        const bool own = loop.loop == ir::ForKind::threads;
        return ir::For::make(loop.var, loop.dim, self(loop.extent), own ? ir::ForKind::parallel : ir::ForKind::serial,
                             self(loop.body));
      },
      [](auto&, const ir::Barrier&) -> ir::Stmt { return ir::Barrier::make(); },
      [](auto& self, const ir::UfCall& call) -> ir::Expr {
        if (call.uf.kind == ir::UfKind::thread) return ir::call(ir::UfKind::worker, "worker");
        if (call.uf.kind == ir::UfKind::worker) return ir::imm(0);
        return call.uf.kind == ir::UfKind::num_workers ? ir::imm(1) : self.children(call);
      });
  return program;
}

/// The program of a block with barriers of threads, of which some loops are shared at random.
struct Drawn {
  Loops loops;
  ir::Program program;

  Drawn(Random& random, const ra::Graph& graph, const Schedule& schedule, Tally& tally) {
    const Target target = Target::cuda();
    program = lower::lower(graph, schedule);
    program.level = ir::Level::scheduled;
    RandomLoops made(random, program.body, target, tally);
    made.draw(random.below(4), true);
    for (int n = 1 + random.below(4); n > 0; --n) made.take_any("bind", 8);
    made.draw(random.below(3), false);
    loops = made.loops;
    program =
        small::program_of(pass::insert_thread_barriers_by_hand(schedule::rest_for_first_thread(made.body())), program);
    ir::verify(program, ir::Level::scheduled);
  }
};

}  // namespace

TEST_CASE("random loops of threads have the barriers that they need", "[differential][slow]") {
  const int cases = wanted_cases(400);
  Tally tally;
  int shared = 0, refused = 0;
  for (std::uint64_t seed = first_seed(1); tally.cases < cases; ++seed, ++tally.cases) {
    const RandomModel model(seed);
    Random random(seed);
    const Schedule schedule = random_recursion(random, model.graph).exact_activations();
    INFO("seed " << seed);
    std::optional<Drawn> drawn;
    try {
      drawn.emplace(random, model.graph, schedule, tally);
    } catch (const Error& error) {
      if (error.code != Code::invalid_schedule) FAIL(error.message);
      ++refused;
      continue;
    }
    const ir::Program program = threads_as_workers(drawn->program);
    INFO(to_string(drawn->loops) << ir::print(program));
    CHECK(first_race(program, Calls(model.graph, schedule, seed, 2)) == "");
    const NodeTable table = random_nodes(random, model.graph.structure);
    const Linear linear(table, 2);
    const Reference reference(model.graph, table, linear.arrays, linear.number,
                              weights_for(model.graph, num_words, unsigned(seed)));
    for (const bool last_first : {false, true}) CHECK(reference.difference(program, {3, last_first}) == "");
    shared += ir::print(program).find("parallel for") != std::string::npos;
  }
  WARN(tally.text() << "; " << shared << " with loops of threads, " << refused << " refused at the end");
  CHECK(shared > cases / 2);
  CHECK(refused < cases / 20);
}
