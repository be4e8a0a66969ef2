// What the shape of a GPU's launches depends on, of a model: the matrices that its levels read, and its widest result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/schedule/gpu_shape.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

/// Whether nodes decide what is read of an input, as a word decides the row of an embedding.
inline bool is_looked_up(const ra::Graph& graph, const ir::Buffer& input) {
  bool found = false;
  for (const ra::Op& op : graph.ops) {
    if (!op.body) continue;
    ir::visit_with(op.body, [&](const ir::Load& load) {
      if (load.buffer != input) return;
      for (const ir::Expr& index : load.indices)
        ir::visit_with(
            index, [&](const ir::UfCall&) { found = true; }, [&](const ir::Load&) { found = true; });
    });
  }
  return found;
}

namespace detail {

/// The inputs that loops which carry the recursion read: shared memory keeps of these alone. What does not depend on
/// the recursion is computed ahead of it, and its matrices are read once.
inline PointerSet read_by_levels(const ra::Graph& graph, const Schedule& schedule) {
  PointerSet read;
  ir::visit_with(lower::lower(graph, schedule.workers(1), lower::Ahead::apart).body, [&](const ir::For& loop) {
    if (!carries_recursion(loop)) return true;
    ir::add_loaded(loop.body, read);
    return false;
  });
  return read;
}

/// What slices of one size divide of the sums at which the recursion is cut: those over a dimension, of what depends on
/// placeholders.
inline std::int64_t extent_of_cuts(const ra::Graph& graph, const Schedule& schedule) {
  std::int64_t extent = 0;
  PointerSet recurrent;
  const auto reads_recurrent = [&](const ir::Expr& e) {
    bool found = false;
    ir::visit_with(e, [&](const ir::Load& load) { found |= recurrent.contains(load.buffer.id()); });
    return found;
  };
  for (const ra::Op& op : graph.ops) {
    bool depends = op.kind == ra::OpKind::placeholder || (op.body && reads_recurrent(op.body));
    if (op.kind == ra::OpKind::if_then_else)
      for (const int side : {op.then_op, op.else_op})
        depends |= recurrent.contains(graph.ops[std::size_t(side)].buffer.id());
    if (depends) recurrent.insert(op.buffer.id());
    if (!op.body || !contains(schedule.refactored, op.name())) continue;
    ir::visit_with(op.body, [&](const ir::Reduce& sum) {
      if (sum.axis.dim.kind() == DimKind::dense && reads_recurrent(sum.body))
        extent = std::gcd(extent, sum.axis.dim.extent());
    });
  }
  return extent;
}

}  // namespace detail

inline GpuProblem gpu_problem(const ra::Graph& graph, const Schedule& schedule = {}) {
  GpuProblem problem;
  problem.shares_columns = schedule.unrolled.empty() && schedule.refactored.empty();
  problem.cut = detail::extent_of_cuts(graph, schedule);
  const PointerSet read = detail::read_by_levels(graph, schedule);
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input || op.dims.size() < 2 || is_looked_up(graph, op.buffer)) continue;
    if (!read.contains(op.buffer.id())) continue;
    DType type = op.buffer->dtype == DType::f32 ? schedule.weight_type : op.buffer->dtype;
    for (const auto& [name, own] : schedule.stored)
      if (name == op.name()) type = own;
    std::int64_t bytes = std::int64_t(size_of(type));
    bool dense = true;
    for (const Dim& dim : op.dims) {
      dense &= dim.kind() == DimKind::dense;
      if (dim.kind() == DimKind::dense) bytes *= dim.extent();
    }
    if (dense) problem.weight_bytes += bytes;
  }
  for (const ra::State& state : graph.states) {
    const ra::Op& op = graph.ops[std::size_t(state.placeholder)];
    if (op.dims.empty()) continue;
    problem.columns = std::max(problem.columns, op.dims.back().extent());
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < op.dims.size(); ++d) rows *= op.dims[d].extent();
    problem.rows = std::max(problem.rows, rows);
  }
  return problem;
}

}  // namespace cortex::schedule
