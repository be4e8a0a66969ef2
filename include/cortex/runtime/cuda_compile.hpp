// What stands behind `cuda::compile`: from an operator graph and its schedule to CUDA C++. Needs no device and no CUDA.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cortex/lower/lower.hpp"
#include "cortex/pass/gpu_pipeline.hpp"
#include "cortex/ra/check.hpp"
#include "cortex/runtime/compile_steps.hpp"
#include "cortex/runtime/cuda_executable.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/runtime/plan_checks.hpp"
#include "cortex/runtime/store_weight.hpp"

namespace cortex::runtime {

namespace detail {

/// Decisions that only CPUs follow so far are refused rather than left out in silence.
inline void check_gpu_schedule(const Schedule& schedule) {
  const auto refuse = [](bool asked, const char* decision, const char* instead) {
    if (asked)
      throw Error(Code::invalid_schedule, std::string(decision) + " is for CPUs; leave it out for a GPU, " + instead);
  };
  refuse(schedule.sharing == Sharing::on, "share_subtrees", "which computes equal subtrees each");
  refuse(schedule.tabulating == Tabulating::on, "tabulate", "which computes all that follows from words");
  refuse(schedule.tiling != Tiling{}, "the shape of register tiles", "whose threads GpuSchedule::rows tiles");
}

}  // namespace detail

/// Compiles `graph` under `schedule` for `gpu`. Throws `invalid_model` and `invalid_schedule`.
inline std::shared_ptr<const CudaExecutable> build_cuda_executable(const ra::Graph& graph, const Schedule& schedule,
                                                                   const Gpu& gpu,
                                                                   const CudaCompileOptions& options = {}) {
  const auto start = std::chrono::steady_clock::now();
  ra::check(graph);
  detail::check_gpu_schedule(schedule);
  schedule::check_stored(graph, schedule);
  auto result = std::make_shared<CudaExecutable>();
  auto executable = std::make_shared<Executable>();
  executable->graph = graph;
  executable->schedule = schedule::with_tensor_cores(schedule);
  result->shape = schedule::gpu_shape(schedule.gpu, gpu, schedule::gpu_problem(graph, executable->schedule));
  executable->schedule.max_workers = result->shape.blocks;  // what `refactor` cuts its sums into
  GpuSchedule& chosen = executable->schedule.gpu;
  chosen.group = result->shape.group, chosen.blocks = result->shape.blocks;
  chosen.threads = result->shape.threads, chosen.rows = result->shape.rows;
  executable->target = Target::cuda(gpu);
  executable->lowered = lower::lower(graph, executable->schedule);
  const pass::PipelineOptions passes{options.verify, options.observer};
  detail::Keeper keeper(*executable, passes);
  executable->program = pass::run_gpu_pipeline(executable->lowered, executable->schedule, result->shape,
                                               executable->target, keeper.observing());
  executable->partition = partition_of(graph, ra::questions(graph, executable->schedule));
  for (const int depth : lower::unrolling(graph, executable->schedule))
    executable->subtree_depth = std::max(executable->subtree_depth, depth);
  plan_checks(*executable);
  detail::describe_tensors(*executable);
  executable->store = store_weight;
  executable->times.lower = detail::since(start);
  codegen::CudaTextOptions text;
  text.barrier = barrier_of(result->shape);
  text.blocks = result->shape.blocks;
  text.threads = result->shape.threads;
  text.spin_limit = options.spin_limit;
  result->spin_limit = options.spin_limit;
  result->text = codegen::cuda_text(executable->program, text);
  executable->times.codegen = detail::since(start) - executable->times.lower;
  result->executable = std::move(executable);
  return result;
}

}  // namespace cortex::runtime
