// What stands behind `cuda::compile`: from an operator graph and its schedule to CUDA C++. Needs no device and no CUDA.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/clock.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/lower/split_recursions.hpp"
#include "cortex/pass/gpu_pipeline.hpp"
#include "cortex/ra/check.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "cortex/runtime/compile_steps.hpp"
#include "cortex/runtime/cuda_executable.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/runtime/plan_checks.hpp"
#include "cortex/runtime/store_weight.hpp"
#include "cortex/schedule/gpu_problem.hpp"
#include "cortex/schedule/level_fill.hpp"

namespace cortex::runtime {

namespace detail {

/// Decisions that only CPUs follow are refused rather than left out in silence.
inline void check_gpu_schedule(const Schedule& schedule) {
  const auto refuse = [](bool asked, const char* decision, const char* instead) {
    if (asked)
      throw Error(Code::invalid_schedule, std::string(decision) + " is for CPUs; leave it out for a GPU, " + instead);
  };
  refuse(schedule.tiling != Tiling{}, "the shape of register tiles", "whose threads GpuSchedule::rows tiles");
  refuse(schedule.max_workers != 1, "workers", "where GpuSchedule::blocks says how many blocks a group has");
  refuse(schedule.piece_nodes > 0, "pieces", "which computes calls as a whole");
  refuse(schedule.vectors_alone, "multiply_in_vectors", "where GpuSchedule::tensor_cores says what multiplies");
  check_common(schedule);
  if (schedule.tabulating == Tabulating::on && schedule.gpu.tensor_cores != GpuSchedule::TensorCores::off)
    throw Error(Code::invalid_schedule,
                "tabulate: tensor cores take all products of a model, those in tables too, and tables are made without "
                "them; leave out tabulate, or tensor_cores");
}

/// What a schedule of the loops by hand leaves to be said of a GPU: without barriers of blocks in it, a group is one
/// block unless it is said otherwise.
inline GpuSchedule gpu_schedule(const Schedule& schedule) {
  GpuSchedule wish = schedule.gpu;
  if (!schedule.by_hand) return wish;
  const auto refuse = [](const std::string& what) {
    throw Error(Code::invalid_schedule, what + "; leave it out, or the loop schedule");
  };
  if (wish.rows) refuse("GpuSchedule::rows shapes the compiler's own tiles, and with loops() there are none");
  if (wish.parts > 1)
    refuse("GpuSchedule::parts splits sums where the loops are the compiler's own; rfactor(k, n) does by hand");
  if (wish.tensor_cores != GpuSchedule::TensorCores::off)
    refuse("GpuSchedule::tensor_cores: products become tiles where the loops are the compiler's own");
  if (wish.weights == GpuSchedule::Weights::resident)
    refuse(
        "GpuSchedule::Weights::resident: slices of weights stay in shared memory where the loops are the compiler's "
        "own, and with loops() they are not");
  if (wish.weights == GpuSchedule::Weights::registers)
    refuse(
        "GpuSchedule::Weights::registers: what threads read at every level stays in registers where the loops are the "
        "compiler's own, and with loops() they are not");
  if (wish.recent_rows > 0)
    refuse(
        "GpuSchedule::recent_rows: what blocks exchange is kept in shared memory where the loops are the compiler's "
        "own, and with loops() it is not");
  using Group = GpuSchedule::Group;
  if (wish.group == Group::automatic && !wish.blocks && !schedule.by_hand->has_barriers()) wish.group = Group::block;
  wish.weights = GpuSchedule::Weights::streamed, wish.parts = 1;
  return wish;
}

}  // namespace detail

/// Compiles the graph, as it is written, under `schedule` for `gpu`. Throws `invalid_model` and `invalid_schedule`.
inline std::shared_ptr<const CudaExecutable> build_cuda_executable(const ra::Graph& written, const Schedule& schedule,
                                                                   const Gpu& gpu,
                                                                   const CudaCompileOptions& options = {}) {
  const std::int64_t start = now_ns();
  ra::check(written);
  detail::check_gpu_schedule(schedule);
  schedule::check_stored(written, schedule);
  schedule::check_level_fill(written, schedule);
  const ra::Graph graph = lower::split_recursions(written, schedule);
  auto result = std::make_shared<CudaExecutable>();
  auto executable = std::make_shared<Executable>();
  executable->graph = graph;
  executable->graph.results = -1;  // that rows of states serve several nodes, CPUs alone make use of
  executable->schedule = schedule::with_tensor_cores(schedule);
  // That is known of CPUs: threads of a GPU go through all nodes of a level at once, and through its parts in turn.
  if (schedule.sorting == Sorting::where_it_pays) executable->schedule = executable->schedule.sort_by_no_matrix();
  result->shape = schedule::gpu_shape(detail::gpu_schedule(executable->schedule), gpu,
                                      schedule::gpu_problem(executable->graph, executable->schedule));
  executable->schedule = executable->schedule.workers(result->shape.blocks);  // what `refactor` cuts its sums into
  GpuSchedule& chosen = executable->schedule.gpu;
  chosen.group = result->shape.group, chosen.blocks = result->shape.blocks;
  chosen.threads = result->shape.threads, chosen.rows = result->shape.rows;
  chosen.parts = result->shape.parts;
  // Where it pays is known of CPUs alone: a GPU waits while its host looks for equal subtrees.
  executable->shares_subtrees = schedule.sharing == Sharing::on && ra::shares_subtrees(graph, schedule);
  executable->target = Target::cuda(gpu);
  executable->lowered = lower::lower(executable->graph, executable->schedule, lower::Ahead::apart);
  const pass::PipelineOptions passes{options.verify, options.observer, {}};
  detail::Keeper keeper(*executable, passes);
  executable->program = pass::run_gpu_pipeline(executable->lowered, executable->schedule, result->shape,
                                               executable->target, keeper.observing());
  executable->partition = partition_of(graph, ra::questions(graph, executable->schedule), executable->program);
  for (const int depth : lower::unrolling(graph, executable->schedule))
    executable->subtree_depth = std::max(executable->subtree_depth, depth);
  executable->level_fill = schedule::gpu_level_fill(graph, executable->schedule);
  plan_checks(*executable);
  detail::describe_tensors(*executable);
  executable->store = store_weight;
  executable->times.lower = detail::since(start);
  codegen::CudaTextOptions text;
  text.barrier = barrier_of(result->shape);
  text.blocks = result->shape.blocks;
  text.threads = result->shape.threads;
  text.spin_limit = options.spin_limit;
  text.shared_bytes = result->shape.shared_bytes;
  result->spin_limit = options.spin_limit;
  result->timings = options.timings;
  result->text = codegen::cuda_text(executable->program, text);
  executable->times.codegen = detail::since(start) - executable->times.lower;
  result->executable = std::move(executable);
  return result;
}

}  // namespace cortex::runtime
