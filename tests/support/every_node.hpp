// Results of a program of the front end at every node of a random forest: compiled, and as its equations say.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "support/compile.hpp"
#include "support/differential.hpp"
#include "support/random_cases.hpp"

namespace cortex::test {

/// Checks that `program` gives under `schedule`, at every node, what an interpreter of its equations gives, on all of
/// `targets`, with weights of one scale. It reads `first` before `second`, and words alone of the nodes.
template <class Program>
void check_at_every_node(const Program& program, const Schedule& schedule = Schedule::standard(),
                         const std::vector<Target>& targets = all_targets()) {
  GraphCase given{program.graph(), {}};
  for (const ra::Op& op : given.graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    std::size_t size = 1;
    for (const Dim& dim : op.dims) size *= std::size_t(dim.kind() == DimKind::open ? num_words : dim.extent());
    given.weights[op.name()] = uniform(size, 0.3F, unsigned(size) + unsigned(op.name()[0]));
  }
  Random random(3);
  const Forest forest = random_forest(random, {given.graph.structure}, 30);
  const ForestView view(forest);
  const auto expected = ra::interpret<double>(given.graph, view, interpreter_weights(given));
  for (const Target& target : targets) {
    auto model = compile(program, schedule, CompileOptions{}.on(target));
    model.bind_together([&] {
      for (const auto& [name, values] : given.weights) model.bind(name, values);
    });
    const auto result = model(forest.roots);
    for (std::size_t s = 0; s < expected.size(); ++s)
      for (std::size_t n = 0; n < view.nodes.size(); ++n) {
        const auto own = result.template node<float>(view.nodes[n], model.executable().states[s].name);
        CAPTURE(model.executable().states[s].name, n);
        REQUIRE(own.size() == expected[s][n].size());
        for (std::size_t i = 0; i < own.size(); ++i) REQUIRE(own[i] == Approx(expected[s][n][i]).margin(1e-5));
      }
  }
}

}  // namespace cortex::test
