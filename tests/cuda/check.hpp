// Running models in the emulation of a GPU, beside the interpreter.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cortex/cuda.hpp"
#include "models/check.hpp"
#include "support/fake_cuda.hpp"

namespace cortex::test {

using Group = GpuSchedule::Group;

/// Few and small blocks: the emulation has a fibre for each thread. How many threads share a sum decides over rounding,
/// and does not follow from the others. Without tables of words: a kernel computes all that a test looks for in it.
inline Schedule on_gpu(Group group, int blocks, GpuSchedule::Weights weights = GpuSchedule::Weights::automatic,
                       bool lock_based = false, int threads = 32, int parts = 1) {
  GpuSchedule how;
  how.group = group, how.blocks = blocks, how.weights = weights, how.lock_based = lock_based;
  how.threads = threads, how.parts = parts;
  return Schedule::standard().tabulate_nothing().on_gpu(how);
}

/// A `spin_limit` for devices that are there, on which nothing else ends a kernel whose blocks wait for ever: seconds,
/// and then an error.
inline constexpr std::int64_t patient_looks = 10'000'000;

/// Without rows that blocks keep at hand: for what tests see of shared memory and of the text itself.
inline Schedule without_recent_rows(const Schedule& schedule) {
  GpuSchedule how = schedule.gpu;
  how.recent_rows = 0;
  return schedule.on_gpu(how);
}

/// The first state at each root, dense, one root after the other.
inline std::vector<float> all_roots(cuda::Result& result) { return result.roots(); }

/// What the interpreter gives for the same.
template <class Program>
std::vector<float> interpreted(const Program& program, const NamedNumbers& weights, const Items& items,
                               const Schedule& schedule = Schedule::standard()) {
  CompileOptions options;
  options.target = Target::interpreter();
  auto model = compile(program, schedule, options);
  bind_all<float>(model, weights);
  const auto result = model(items.roots);
  std::vector<float> all;
  for (std::size_t r = 0; r < result.size(); ++r) {
    std::vector<float> row(std::size_t(result.size() ? result[r].size() : 0));
    std::copy(result[r].begin(), result[r].end(), row.begin());
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

/// The greatest difference, in units of what float arithmetic is allowed (see `error_of`).
inline double difference(const std::vector<float>& got, const std::vector<float>& right) {
  if (got.size() != right.size()) return 1e9;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(double(got[i]) - right[i]) / (1e-5 * std::abs(right[i]) + 1e-6);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

/// `program` under `schedule` on a GPU of so many multiprocessors, in that interleaving.
template <class Program>
std::vector<float> emulated(FakeCuda& fake, const Program& program, const Schedule& schedule,
                            const NamedNumbers& weights, const Items& items) {
  runtime::CudaCompileOptions options;
  options.verify = true;
  auto model = cuda::compile(program, schedule, fake.gpu, options);
  bind_all<float>(model, weights);
  auto result = model.to(cuda::Device(fake.device()))(items.roots);
  return all_roots(result);
}

/// Where a source's kernel begins, behind the preludes.
constexpr const char* kernel = "KERNEL(cortex_kernel, THREADS)";
/// Which barrier orders nothing without tables, the one behind their rows: of threads, as two stand behind what a call
/// brings, and of the blocks of a group.
constexpr int threads_behind_rows = 2, blocks_behind_rows = 0;

/// `text` with the nth occurrence of `what` behind `from` replaced.
inline std::string without(std::string text, const std::string& from, const std::string& what, const std::string& by,
                           int n) {
  std::size_t at = text.find(from);
  for (int i = 0; i <= n; ++i) at = text.find(what, at + 1);
  return text.replace(at, what.size(), by);
}

inline int occurrences(const std::string& text, const std::string& from, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what, text.find(from)); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

}  // namespace cortex::test
