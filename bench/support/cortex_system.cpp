#include "cortex_system.hpp"

#include "cortex_models.hpp"

namespace bench {

std::unique_ptr<CortexSystem> compiled(const Weights& weights, const Recipe& recipe) {
  return with_program(weights.model, int(weights.hidden),
                      [&](const auto& program) { return compiled(program, recipe, weights); });
}

}  // namespace bench
