// Random programs of whatever the language has: the same bits with tables, with equal subtrees computed once, divided
// among workers and groups of them, and with all of these.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "cortex/ra/schedule_text.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "support/compile.hpp"
#include "support/random_cases.hpp"
#include "support/random_programs.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Tally {
  int tables = 0, shared = 0, divided = 0;
};

/// Small structures and larger ones.
std::vector<int> random_sizes(Random& random) {
  std::vector<int> sizes(std::size_t(1 + random.below(5)));
  for (int& size : sizes) size = random.chance(0.5) ? 4 : 20;
  return sizes;
}

Tally compare(std::uint64_t first, int count, const Target& target) {
  const auto pool = std::make_shared<Workers>(3);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const RandomProgram program(seed);
    INFO("seed " << seed << "\n" << ra::print(program.graph));
    const Schedule plain = Schedule::standard().workers(1).tabulate_nothing().share_no_subtrees();
    const Schedule divided = plain.workers(4).groups(seed % 3 == 0 ? 4 : 2);
    std::vector<Schedule> others{plain.tabulate(1), divided, divided.tabulate(1)};
    if (ra::detail::reason_against_sharing(program.graph, plain).empty()) {
      others.push_back(plain.share_subtrees());
      others.push_back(divided.tabulate(1).share_subtrees());
    }
    const RandomFunctor alone = compile_model(program, plain, target);
    for (const Schedule& schedule : others) {
      RandomFunctor functor = compile_model(program, schedule, target);
      if (schedule.max_workers > 1) functor.use(pool);
      tally.tables += functor.memory().tables > alone.memory().tables;
      for (std::uint64_t f = 0; f < 4; ++f) {
        Random random(seed * 100 + f);
        const Forest forest = random_forests(random, program.graph, random_sizes(random));
        INFO(to_string(schedule) << describe(forest));
        const auto right = alone(forest.roots), result = functor(forest.roots);
        CHECK(same_bits(program, right, result, forest));
        tally.shared += result.num_computed() < result.num_nodes();
        tally.divided += result.num_groups() > 1;
      }
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("random programs give the same bits however they are run", "[runtime][differential]") {
  const Tally tally = compare(first_seed(1), wanted_cases(15), Target::interpreter());
  if (std::getenv("CORTEX_CASES")) return;
  CHECK(tally.tables > 0);
  CHECK(tally.shared > 0);
  CHECK(tally.divided > 0);
}

TEST_CASE("machine code of random programs gives the same bits however it is run", "[runtime][differential]") {
  need_llvm();
  compare(first_seed(1), wanted_cases(3), best_target());
}
