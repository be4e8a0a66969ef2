// Random models on random structures under four schedules, compiled, against the equations interpreted: every state of
// every node must lie within the bound that the interpreter computes from the operations.
#include "support/differential.hpp"

#include <catch2/catch.hpp>
#include <optional>

#include "support/compile.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr int models = 130, forests_per_model = 4;  // times four schedules each

using RandomFunctor = Functor<Vertex, VertexSet, float>;

struct Scheduled {
  std::string name;
  Schedule schedule;
};

std::vector<Scheduled> four_schedules() {
  return {{"node by node", Schedule{}},
          {"batched", Schedule{}.dynamic_batch()},
          {"specialized", Schedule{}.specialize_if_else().specialize_leaves()},
          {"batched and specialized", Schedule::standard()}};
}

RandomFunctor compile_model(const RandomModel& model, const Schedule& schedule) {
  RandomFunctor functor(runtime::compile_graph(model.graph, schedule, best_target()));
  for (const auto& [name, values] : model.weights) functor.bind(name, values);
  return functor;
}

/// The first value outside its bound, as text; nothing if all are right.
std::optional<std::string> mismatch(const RandomModel& model, const RandomFunctor& functor, const Forest& forest) {
  const ForestView view(forest);
  const auto expected = ra::interpret<ra::Bounded>(model.graph, view, interpreter_weights(model));
  const auto result = functor(forest.roots);
  for (std::size_t s = 0; s < model.graph.states.size(); ++s) {
    const std::string& name = model.graph.ops[std::size_t(model.graph.states[s].placeholder)].name();
    for (int n = 0; n < view.num_nodes(); ++n) {
      const auto values = result.node<float>(view.nodes[std::size_t(n)], name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const ra::Bounded& right = expected[s][std::size_t(n)][i];
        if (right.covers(values[i])) continue;
        std::ostringstream out;
        out.precision(9);
        out << name << "[" << n << "," << i << "] = " << values[i] << ", but the equations give " << right.value
            << " within " << right.error;
        return out.str();
      }
    }
  }
  return {};
}

/// Smaller and smaller forests, to print the smallest that still goes wrong.
std::string smallest_failure(const RandomModel& model, const RandomFunctor& functor, std::uint64_t seed) {
  for (int most = 1; most < 40; ++most)
    for (std::uint64_t attempt = 0; attempt < 20; ++attempt) {
      Random random(seed * 1000 + attempt);
      const Forest forest = random_forest(random, model.graph.structure, most);
      if (const auto wrong = mismatch(model, functor, forest)) return describe(forest) + *wrong;
    }
  return "no smaller forest goes wrong";
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
        const Forest forest = random_forest(random, model.graph.structure, f == 0 ? 4 : 40);
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
  run(1, CORTEX_LLVM ? models : 30, 1);
}

TEST_CASE("random models shared by three workers equal their equations under every schedule", "[differential][slow]") {
  run(5000, CORTEX_LLVM ? 25 : 10, 3);
}

TEST_CASE("some random models equal their equations", "[differential][smoke]") { run(9000, 6, 1); }
