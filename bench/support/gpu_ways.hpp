// The ways in which a model is timed on a GPU: how its calls are shared, where its weights are, and what of the
// compiler is left out.
#pragma once

#include <algorithm>
#include <cortex/cuda.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "models.hpp"

namespace bench {

/// A way to share a call, or to compile the model for it.
struct Way {
  const char* name;
  cortex::GpuSchedule gpu{};
  bool on_device = false;  // weights come from the device's memory, and results go there before they come to the host
  bool stays = false;      // the kernel, from one call to the next: none is launched
  bool helped = false;     // by threads of the host that number nodes beside the caller
  bool ablation = false;   // only where it is asked for
  cortex::Schedule (*recursion)(const std::string& model) = [](const std::string&) {
    return cortex::Schedule::standard();
  };

  cortex::Schedule schedule(const std::string& model) const { return recursion(model).on_gpu(gpu); }

  /// Of values up to `size`. Tensor cores multiply what is rounded to so many bits; 16 roundings are a guard against
  /// wrong programs, while the tests hold what they compute against the interpreter with the same roundings.
  double allowed(double size, std::size_t hidden) const {
    using Cores = cortex::GpuSchedule::TensorCores;
    const double f32 = allowed_error(size, hidden);
    if (gpu.tensor_cores == Cores::off) return f32;
    return f32 + 16 * std::max(size, 1.0) * (gpu.tensor_cores == Cores::bf16 ? 0x1p-9 : 0x1p-12);
  }
};

inline const std::vector<Way>& all_ways() {
  using cortex::Schedule;
  using Group = cortex::GpuSchedule::Group;
  using Kept = cortex::GpuSchedule::Weights;
  using Cores = cortex::GpuSchedule::TensorCores;
  static const std::vector<Way> ways{
      {"cortex", {}},
      {"cortex_block", {.group = Group::block}},
      {"cortex_cluster", {.group = Group::cluster}},
      {"cortex_grid", {.group = Group::grid}},
      {"cortex_grid_flags", {.group = Group::grid, .lock_based = false}},
      {"cortex_streamed", {.weights = Kept::streamed}},
      {"cortex_resident", {.weights = Kept::resident}},
      {"cortex_registers", {.weights = Kept::registers}},
      {"cortex_recent", {.group = Group::cluster, .recent_rows = 16}},
      {"cortex_bf16", {.tensor_cores = Cores::bf16}},
      {"cortex_f16", {.tensor_cores = Cores::f16}},
      {"cortex_tf32", {.tensor_cores = Cores::tf32}},
      {.name = "cortex_no_tables",
       .recursion = [](const std::string&) { return Schedule::standard().tabulate_nothing(); }},
      {.name = "cortex_on_device", .on_device = true},
      {.name = "cortex_served", .stays = true},
      {.name = "cortex_helped", .helped = true},
      {.name = "cortex_unfused",
       .ablation = true,
       .recursion = [](const std::string&) { return Schedule::standard().fuse_nothing(); }},
      {.name = "cortex_unspecialized",
       .ablation = true,
       .recursion = [](const std::string&) { return Schedule{}.dynamic_batch(); }},
      {.name = "cortex_unbatched",
       .ablation = true,
       .recursion = [](const std::string&) { return Schedule{}.specialize_where_it_pays().specialize_leaves(); }},
      {.name = "cortex_unrolled",
       .ablation = true,
       .recursion = [](const std::string& model) { return Schedule::standard().unroll(model, 2); }},
      {.name = "cortex_refactored",
       .ablation = true,
       .recursion = [](const std::string&) { return Schedule::standard().refactor("candidate"); }},
  };
  return ways;
}

}  // namespace bench
