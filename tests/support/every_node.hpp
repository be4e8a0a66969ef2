// Results of a program of the front end at every node of a random forest: compiled, and as the equations are written.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "support/compile.hpp"
#include "support/random_cases.hpp"

namespace cortex::test {

/// All states of `program` at all nodes of a forest that is the same for the same structure, with weights of one scale.
template <class Program>
std::vector<float> values_at_every_node(const Program& program, const Schedule& schedule, const Target& target) {
  auto model = compile(program, schedule, CompileOptions{}.on(target));
  model.bind_together([&] {
    for (const auto& weight : model.executable().weights) {
      std::size_t size = 1;
      for (const Dim& dim : weight.dims) size *= std::size_t(dim.kind() == DimKind::open ? num_words : dim.extent());
      model.bind(weight.name, uniform(size, 0.3F, unsigned(size) + unsigned(weight.name[0])));
    }
  });
  Random random(3);
  const Forest forest = random_forest(random, {program.graph().structure}, 30);
  const auto result = model(forest.roots);
  std::vector<float> all;
  for (const auto& state : model.executable().states)
    for (const auto& vertex : forest.all) {
      const auto own = result.template node<float>(vertex.get(), state.name);
      all.insert(all.end(), own.begin(), own.end());
    }
  return all;
}

/// Checks that `program` gives under `schedule`, at every node, what it gives as it is written.
template <class Program>
void check_at_every_node(const Program& program, const Schedule& schedule = Schedule::standard()) {
  const std::vector<float> expected = values_at_every_node(program, Schedule{}, Target::interpreter());
  for (const Target& target : all_targets()) {
    const std::vector<float> own = values_at_every_node(program, schedule, target);
    REQUIRE(own.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(own[i] == Approx(expected[i]).margin(1e-5));
  }
}

}  // namespace cortex::test
