// What the tuner finds on a GPU beside the default schedule, for one case.
#pragma once

#include <cortex/tune/cuda.hpp>
#include <cstdio>

#include "cortex_models.hpp"
#include "data.hpp"
#include "json.hpp"
#include "tuned.hpp"

namespace bench {

/// Searches for so many seconds; the winner is measured again, interleaved with the default. "ratio" is its time to the
/// default's, whole calls from the roots to their first states on the host.
inline Json tuned_on(const cortex::cuda::Device& device, const Weights& weights, const Batches& batches,
                     double seconds) {
  cortex::TuneOptions options;
  options.seconds = seconds;
  options.most_candidates = 1000;
  const cortex::Tuned tuned = with_program(weights, [&](const auto& program) {
    return cortex::cuda::tune(program, batches.roots, binding(weights), device, options);
  });
  const std::size_t size = batches.roots[0].size();
  std::printf("\n%s, hidden %zu, batch %zu: %s", name_of(weights.model), weights.hidden, size,
              to_string(tuned).c_str());
  std::fflush(stdout);
  return row_of(tuned, weights, size,
                {{"default_us", tuned.candidates[0].seconds * 1e6 / double(batches.roots.size())}});
}

}  // namespace bench
