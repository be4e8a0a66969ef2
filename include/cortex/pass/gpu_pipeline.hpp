// The list of passes from lowered ILIR to code for a GPU, beside the CPU's in `pipeline.hpp`.
#pragma once

#include "cortex/pass/insert_thread_barriers.hpp"
#include "cortex/pass/order_nests.hpp"
#include "cortex/pass/pipeline.hpp"
#include "cortex/pass/zero_absent_rows.hpp"
#include "cortex/schedule/gpu_shape.hpp"
#include "cortex/schedule/keep_recent.hpp"
#include "cortex/schedule/keep_registers.hpp"
#include "cortex/schedule/keep_weights.hpp"
#include "cortex/schedule/share_bound_loops.hpp"
#include "cortex/schedule/share_threads.hpp"

namespace cortex::pass {

/// Of words, unless registers hold weights: as many as leave just enough of them for code without tables.
inline TablesOf tables_of(const Schedule& schedule, const schedule::GpuShape& shape) {
  const bool by_default = schedule.tabulating == Tabulating::where_it_pays;
  return by_default && shape.weight_registers ? TablesOf::weights : tables_of(schedule);
}

/// The compiler's schedule of a program's loops on a GPU: a worker is a thread block.
inline void schedule_for_gpu(Pipeline& p, const Schedule& schedule, const schedule::GpuShape& shape,
                             const Target& target) {
  const bool shared = shape.blocks > 1;
  constexpr int gates = 6;  // accumulators side by side for each node

  make_nests(p, schedule, gates);
  // Tensor cores take all products. Rows of zeros are written in any case.
  if (shape.products == DType::f32)
    p.run_on_program("tabulate", [&](ir::Program& program) { tabulate(program, tables_of(schedule, shape)); });
  p.run("zero_absent_rows", zero_absent_rows);
  p.run("order_nests", order_nests);

  // Work for each block, and barriers of blocks
  p.enter(ir::Level::scheduled);
  const auto by_columns = [](const ir::Stmt& s) {
    return schedule::share_work(s, schedule::SlicesOfMatrices::columns);
  };
  if (shared) p.run("share_work", by_columns);
  if (shared) p.run("insert_barriers", insert_barriers);
  p.run("share_storage", [&](const ir::Stmt& s) { return share_storage(s, shared); });

  // Weights where they are read fast, and work for each thread
  p.run("store_weights", [&](const ir::Stmt& s) { return schedule::store_weights(s, schedule); });
  if (shape.products != DType::f32)
    p.run("tensor_products", [&](const ir::Stmt& s) { return schedule::tensor_products(s, shape.products); });
  else if (shape.parts > 1)
    p.run("lay_out_parts", [&](const ir::Stmt& s) { return schedule::lay_out_parts(s, shape.parts); });
  p.run("pack_weights", [&](const ir::Stmt& s) { return schedule::pack_weights(s, target); });
  p.run("keep_weights", [&](const ir::Stmt& s) { return schedule::keep_weights(s, shape); });
  if (shape.products == DType::f32 && shape.parts > 1)
    p.run("split_sums", [&](const ir::Stmt& s) { return schedule::split_sums(s, shape.parts); });
  p.run("keep_recent", [&](const ir::Stmt& s) { return schedule::keep_recent(s, shape); });
  p.run("insert_thread_barriers", insert_thread_barriers);

  // Each thread's own iterations
  p.enter(Stage::tiled);
  p.run("share_threads", [&](const ir::Stmt& s) { return schedule::share_threads(s, shape); });
  if (shape.weight_registers)
    p.run("keep_registers", [&](const ir::Stmt& s) { return schedule::keep_registers(s, shape); });
  p.run("share_loads", share_loads);
}

/// A schedule of the loops by hand: what is bound to blocks and threads by its steps, and the rest for the first of
/// them.
inline void schedule_by_hand_for_gpu(Pipeline& p, const Schedule& schedule, const schedule::GpuShape& shape,
                                     const Target& target) {
  p.run("zero_absent_rows", zero_absent_rows);
  p.by_hand(*schedule.by_hand, schedule, target);
  p.run("share_iterations", [&](const ir::Stmt& s) { return schedule::share_iterations(s, shape.slice_unit); });
  p.run("rest_for_first_thread", schedule::rest_for_first_thread);
  p.run("insert_thread_barriers", insert_thread_barriers_by_hand);
  p.enter(Stage::tiled);
  p.run("share_bound_loops", [&](const ir::Stmt& s) { return schedule::share_bound_loops(s, shape.threads); });
}

/// From the lowered ILIR (level `loops`) to level `device`, for `target.gpu`.
inline ir::Program run_gpu_pipeline(const ir::Program& lowered, const Schedule& schedule,
                                    const schedule::GpuShape& shape, const Target& target,
                                    const PipelineOptions& options = {}) {
  Pipeline p(lowered, options);
  if (schedule.by_hand)
    schedule_by_hand_for_gpu(p, schedule, shape, target);
  else
    schedule_for_gpu(p, schedule, shape, target);

  // Down to the machine
  p.enter(Stage::device);
  p.run("resolve_structure",
        [&](const ir::Stmt& s) { return resolve_structure(s, lowered.field_components, lowered.chains); });
  if (!schedule.exact) p.run("approximate_activations", approximate_activations);
  p.flatten();
  return p.take();
}

}  // namespace cortex::pass
