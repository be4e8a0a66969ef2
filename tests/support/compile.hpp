// Compiling models in tests: for this machine, or for the interpreter where the build has no LLVM.
#pragma once

#include <random>
#include <vector>

#include "cortex/cortex.hpp"

namespace cortex::test {

inline Target best_target() {
#if CORTEX_LLVM
  return runtime::host_target();
#else
  return Target::interpreter();
#endif
}

template <class Program>
auto compile_here(const Program& program, const Schedule& schedule = Schedule::standard()) {
  CompileOptions options;
  options.target = best_target();
  return compile(program, schedule, options);
}

/// `count` values in [-scale, scale), the same for the same seed.
inline std::vector<float> uniform(std::size_t count, float scale, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-scale, scale);
  std::vector<float> values(count);
  for (float& v : values) v = draw(engine);
  return values;
}

}  // namespace cortex::test
