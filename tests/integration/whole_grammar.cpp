// Random models of the whole grammar (several recursions that go up, down or nowhere, readouts, switches, branches on
// any of the structure), and programs of whatever the language has, on random trees, graphs and sequences under random
// schedules, compiled for vectors of one width or another, against the equations interpreted. `tests/run --cases N`
// runs N cases in place of the suite's own number; with CORTEX_SEED they begin at another model.
#include <catch2/catch.hpp>
#include <optional>

#include "support/compile.hpp"
#include "support/random_cases.hpp"
#include "support/random_programs.hpp"
#include "support/random_schedules.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Tally {
  int cases = 0, refused = 0;
};

/// `forests` cases for each schedule of a random model or program.
void check(const GraphCase& model, std::uint64_t seed, const Schedule& schedule, int forests,
           const std::shared_ptr<Workers>& pool, Tally& tally) {
  const Target target = target_of(seed);
  INFO("seed " << seed << ", " << target.cpu << ", " << text_of(schedule) << "\n" << ra::print(model.graph));
  std::optional<RandomFunctor> functor;
  try {
    functor.emplace(compile_model(model, schedule, target));
  } catch (const Error& error) {
    if (error.code != Code::invalid_schedule) FAIL(error.message);
    ++tally.refused;  // with a sentence: what may be refused is tested elsewhere
    return;
  }
  if (schedule.max_workers > 1) functor->use(pool);
  for (int f = 0; f < forests; ++f, ++tally.cases) {
    Random own(seed * 100 + std::uint64_t(f));
    const Forest forest = random_forest(own, model.graph, f == 0 ? 4 : 30);
    if (const auto wrong = mismatch(model, *functor, forest))
      FAIL(*wrong << "\nsmallest:\n" << smallest_failure(model, *functor, seed));
  }
}

/// `count` cases: for each model three schedules, for each of these ten forests, or fifty where the cases are many.
Tally run_models(std::uint64_t first, int count) {
  const int forests = count > 10000 ? 50 : 10;
  const auto pool = std::make_shared<Workers>(2);
  Tally tally;
  for (std::uint64_t seed = first; tally.cases < count; ++seed) {
    RandomModel model(seed, Grammar::whole);
    Random random(seed), results(~seed);
    if (results.chance(0.5)) model.list_results(results);
    for (int s = 0; s < 3; ++s) check(model, seed, random_schedule(random, model.graph), forests, pool, tally);
  }
  return tally;
}

/// `count` cases: for each program the schedule that does nothing, the standard one and a random one, on four forests.
Tally run_programs(std::uint64_t first, int count) {
  const auto pool = std::make_shared<Workers>(2);
  Tally tally;
  for (std::uint64_t seed = first; tally.cases < count; ++seed) {
    Random random(seed), results(~seed);
    const bool large_states = results.chance(0.3);
    RandomProgram program(seed, large_states);
    if (large_states || results.chance(0.3)) program.list_results(results);
    for (const Schedule& schedule : {Schedule(), Schedule::standard(), random_schedule(random, program.graph)})
      check(program, seed, schedule, 4, pool, tally);
  }
  return tally;
}

}  // namespace

TEST_CASE("random models of the whole grammar equal their equations under random schedules", "[differential][slow]") {
  const Tally tally = run_models(first_seed(20000), wanted_cases(built_with_llvm() ? 500 : 300));
  CHECK(tally.refused < 3 + tally.cases / 5);
  WARN(tally.cases << " cases, and " << tally.refused << " schedules refused");
}

TEST_CASE("random programs equal their equations with and without a schedule", "[differential][slow]") {
  const Tally tally = run_programs(first_seed(1), wanted_cases(200));
  CHECK(tally.refused < 3 + tally.cases / 5);
  WARN(tally.cases << " cases, and " << tally.refused << " schedules refused");
}

TEST_CASE("some random models of the whole grammar equal their equations", "[differential][smoke]") {
  run_models(90000, wanted_cases(100));
}

TEST_CASE("some random programs equal their equations", "[differential][smoke]") {
  run_programs(90000, wanted_cases(60));
}
