// What the tuner finds on a GPU beside the default schedule, for one case.
#pragma once

#include <algorithm>
#include <cortex/tune/cuda.hpp>
#include <cstdio>
#include <string>

#include "cortex_models.hpp"
#include "data.hpp"
#include "json.hpp"

namespace bench {

/// Searches for so many seconds; the winner is measured again, interleaved with the default. "ratio" is its time to the
/// default's, whole calls from the roots to their first states on the host.
inline Json tuned_on(const cortex::cuda::Device& device, const Weights& weights, const Batches& batches,
                     double seconds) {
  cortex::TuneOptions options;
  options.seconds = seconds;
  options.most_candidates = 1000;
  const auto bind = [&](auto& model) {
    for (const auto& spec : model.executable().weights) model.bind(spec.name, weights(spec.name));
  };
  const cortex::Tuned tuned = with_program(weights.model, int(weights.hidden), [&](const auto& program) {
    return cortex::cuda::tune(program, batches.roots, bind, device, options);
  });
  const std::size_t size = batches.roots[0].size();
  const auto was_measured = [](const auto& record) { return record.outcome == cortex::tuning::Outcome::measured; };
  const auto measured = std::count_if(tuned.candidates.begin(), tuned.candidates.end(), was_measured);
  std::printf("\n%s, hidden %zu, batch %zu: %s", name_of(weights.model), weights.hidden, size,
              to_string(tuned).c_str());
  std::fflush(stdout);
  return Json::object({{"model", name_of(weights.model)},
                       {"hidden", weights.hidden},
                       {"batch", size},
                       {"default_us", tuned.candidates[0].seconds * 1e6 / double(batches.roots.size())},
                       {"ratio", tuned.ratio},
                       {"noise", tuned.noise},
                       {"faster", int(tuned.faster)},
                       {"tried", std::size_t(measured) - 1},
                       {"schedule", to_string(tuned.schedule)}});
}

}  // namespace bench
