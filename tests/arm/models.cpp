// Models on an ARM CPU, against recursion in double: models MODEL HIDDEN WORKERS. `tests/arm/run` builds and runs it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "../../bench/support/cortex_models.hpp"
#include "../../bench/support/recursion.hpp"

#if !defined(__aarch64__)
extern "C" void cortex_kernel(const cortex::codegen::KernelArgs*) {
}  // is never called: its text is written, and that is all
#endif

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const bench::Model model = bench::model_named(arguments[1]);
  const int hidden = std::atoi(arguments[2]), workers = std::atoi(arguments[3]);
  const bench::Weights weights = bench::random_weights(model, hidden);
  const bench::Batches batches = bench::batches_for(model, 3, bench::Trees::random, 3);
  double worst = 0, largest = 1;
  bench::with_program(model, hidden, [&](const auto& program) {
    cortex::CompileOptions options;
    if (workers > 1) options.workers = std::make_shared<cortex::Workers>(workers - 1);
    auto functor = cortex::compile(program, cortex::Schedule::standard().workers(workers), options);
    for (const auto& spec : functor.executable().weights) functor.bind(spec.name, weights(spec.name));
    bench::Recursion<double> recursion(weights);
    for (const bench::Roots& roots : batches.roots) {
      std::vector<float> states(roots.size() * std::size_t(hidden), NAN);
      functor(roots, std::span(states));
      const std::vector<double> right = recursion.first_states(roots);
      for (std::size_t i = 0; i < states.size(); ++i) {
        const double off = std::abs(double(states[i]) - right[i]);
        worst = std::isnan(off) ? INFINITY : std::max(worst, off);
        largest = std::max(largest, std::abs(right[i]));
      }
    }
  });
  const bool fine = worst <= 1e-5 * largest;
  std::printf("%-9s %3d, %d worker%s: largest difference %.1e%s\n", arguments[1], hidden, workers,
              workers > 1 ? "s" : "", worst, fine ? "" : "  WRONG");
  return fine ? 0 : 1;
}
