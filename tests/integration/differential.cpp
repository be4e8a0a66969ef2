// Random models on random structures under four schedules, compiled, against the equations interpreted: every state of
// every node must lie within the bound that the interpreter computes from the operations.
#include <catch2/catch.hpp>

#include "support/compile.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr int models = 60, forests_per_model = 4;  // times four schedules each

struct Scheduled {
  std::string name;
  Schedule schedule;
};

std::vector<Scheduled> four_schedules() {
  return {{"node by node", Schedule{}},
          {"batched", Schedule{}.dynamic_batch()},
          {"specialized", Schedule{}.specialize_if_else().specialize_leaves().share_subtrees().tabulate(1)},
          {"batched and specialized", Schedule::standard().share_subtrees().tabulate(1)}};
}

void run(std::uint64_t first, int count, int workers) {
  const auto pool = workers > 1 ? std::make_shared<Workers>(workers - 1) : nullptr;
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const RandomModel model(seed);
    for (const Scheduled& s : four_schedules()) {
      RandomFunctor functor = compile_model(model, s.schedule.workers(workers));
      functor.use(pool);
      for (int f = 0; f < forests_per_model; ++f) {
        Random random(seed * 100 + std::uint64_t(f));
        const Forest forest = random_forest(random, model.graph, f == 0 ? 4 : 40);
        const auto wrong = mismatch(model, functor, forest);
        if (!wrong) continue;
        FAIL("seed " << seed << ", " << s.name << ", " << workers << " workers: " << *wrong << "\n"
                     << ra::print(model.graph) << "smallest:\n"
                     << smallest_failure(model, functor, seed));
      }
    }
  }
  SUCCEED(count * forests_per_model << " pairs of model and forest under four schedules");
}

}  // namespace

TEST_CASE("random models on random structures equal their equations under every schedule", "[differential][slow]") {
  run(1, built_with_llvm() ? models : 30, 1);
}

TEST_CASE("random models shared by three workers equal their equations under every schedule", "[differential][slow]") {
  run(5000, 8, 3);
}

TEST_CASE("some random models equal their equations", "[differential][smoke]") { run(9000, 6, 1); }
