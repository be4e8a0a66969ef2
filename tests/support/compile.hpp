// Compiling models in tests: for this machine, or for the interpreter where the build has no LLVM.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cortex/cortex.hpp"
#include "support/skip.hpp"

namespace cortex::test {

/// Whether the library has LLVM. Asked when tests run: their objects are linked with a library with LLVM and with one
/// without.
inline bool built_with_llvm() {
  static const bool built = [] {
    try {
      return runtime::host_target().backend == Backend::llvm;
    } catch (const Error& error) {
      if (error.code != Code::unavailable) throw;
      return false;
    }
  }();
  return built;
}

/// Skips where the library is built without LLVM.
inline void need_llvm() {
  if (!built_with_llvm()) skip("built without LLVM");
}

inline Target best_target() { return built_with_llvm() ? runtime::host_target() : Target::interpreter(); }

/// The levels of x86-64 that have narrower vectors than this CPU: it runs their code, whose tiles have other shapes.
inline std::vector<Target> narrower_targets() {
  std::vector<Target> narrower;
  for (const int level : {2, 3})
    if (Target::x86_64(level).vector_bytes < best_target().vector_bytes && built_with_llvm())
      narrower.push_back(Target::x86_64(level));
  return narrower;
}

/// These, and the best.
inline std::vector<Target> all_targets() {
  std::vector<Target> all = narrower_targets();
  all.push_back(best_target());
  return all;
}

/// One target or another for each number.
inline Target target_of(std::uint64_t number) {
  const std::vector<Target> all = all_targets();
  return all[number % all.size()];
}

template <class Program>
auto compile_here(const Program& program, const Schedule& schedule = Schedule::standard(),
                  const Target& target = best_target()) {
  CompileOptions options;
  options.target = target;
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
