// Random models of the whole grammar (several recursions that go up, down or nowhere, readouts, switches, branches on
// any of the structure) on random trees, graphs and sequences under random schedules, compiled, against the equations
// interpreted. `tests/run --cases N` runs N cases in place of the suite's own number;
// with CORTEX_SEED they begin at another model.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "support/random_cases.hpp"
#include "support/random_schedules.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Tally {
  int cases = 0, refused = 0;
};

/// `count` cases: for each model three schedules, for each of these ten forests, or fifty where the cases are many.
Tally run(std::uint64_t first, int count) {
  constexpr int schedules = 3;
  const int forests = count > 10000 ? 50 : 10;
  const auto pool = std::make_shared<Workers>(2);
  Tally tally;
  for (std::uint64_t seed = first; tally.cases < count; ++seed) {
    const RandomModel model(seed, Grammar::whole);
    Random random(seed);
    for (int s = 0; s < schedules; ++s) {
      const Schedule schedule = random_schedule(random, model.graph);
      INFO("seed " << seed << ", " << text_of(schedule) << "\n" << ra::print(model.graph));
      std::optional<RandomFunctor> functor;
      try {
        functor.emplace(compile_model(model, schedule));
      } catch (const Error& error) {
        if (error.code != Code::invalid_schedule) FAIL(error.message);
        ++tally.refused;  // with a sentence: what may be refused is tested elsewhere
        continue;
      }
      if (schedule.max_workers > 1) functor->use(pool);
      for (int f = 0; f < forests; ++f, ++tally.cases) {
        Random own(seed * 100 + std::uint64_t(f));
        const Forest forest = random_forest(own, model.graph.structure, f == 0 ? 4 : 30);
        if (const auto wrong = mismatch(model, *functor, forest))
          FAIL(*wrong << "\nsmallest:\n" << smallest_failure(model, *functor, seed));
      }
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("random models of the whole grammar equal their equations under random schedules", "[differential][slow]") {
  const char *asked = std::getenv("CORTEX_CASES"), *seed = std::getenv("CORTEX_SEED");
  const Tally tally = run(seed ? std::strtoull(seed, nullptr, 10) : 20000, asked         ? std::atoi(asked)
                                                                           : CORTEX_LLVM ? 1000
                                                                                         : 300);
  CHECK(tally.refused < tally.cases / 5);
  WARN(tally.cases << " cases, and " << tally.refused << " schedules refused");
}

TEST_CASE("some random models of the whole grammar equal their equations", "[differential][smoke]") { run(90000, 100); }
