#include "cortex_system.hpp"

#include "cell_program.hpp"
#include "cortex_models.hpp"

namespace bench {

std::unique_ptr<CortexSystem> compiled(const Weights& weights, const Recipe& recipe) {
  return with_program(weights, [&](const auto& program) { return compiled(program, recipe, weights); });
}

std::unique_ptr<CortexSystem> compiled(const Cell& cell, const Weights& weights, const Recipe& recipe) {
  return with_program(cell, int(weights.hidden),
                      [&](const auto& program) { return compiled(program, recipe, weights); });
}

cortex::runtime::CompileTimes compile_times(Model model, int hidden, const cortex::Schedule& schedule) {
  return with_program(model, hidden, [&](const auto& program) {
    return cortex::runtime::compile_graph(program.graph(), schedule, cortex::host_target())->times;
  });
}

}  // namespace bench
