// Whether nodes of a call that are the same value may be computed once, and whether that is worth looking for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cortex/ra/recursions.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::ra {

/// Whether some operator reads containers of that relation.
inline bool reads(const Graph& graph, Relation relation) {
  bool found = false;
  const auto look = [&](const ir::Expr& e) {
    if (!e) return;
    ir::visit_with(e, [&](const ir::UfCall& call) {
      const bool of_container = call.uf.kind == ir::UfKind::kth_child || call.uf.kind == ir::UfKind::num_children;
      found |= of_container && graph.containers[std::size_t(call.uf.accessor)].relation == relation;
    });
  };
  for (const Op& op : graph.ops) look(op.body), look(op.condition), look(op.key);
  return found;
}

namespace detail {

/// Why a node's results are not a function of what is below it alone, or the schedule needs every node; empty: they
/// are, and it does not.
inline std::string reason_against_sharing(const Graph& graph, const Schedule& schedule) {
  if (reads(graph, Relation::parents)) return "it reads the parents of nodes, and equal nodes have different ones";
  if (reads(graph, Relation::members)) return "it reads all nodes of a root, each as often as it is there";
  const Vector<bool> read = operators_read(graph);
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!read[i] || graph.ops[i].kind != OpKind::field) continue;
    const Accessor& field = graph.fields[std::size_t(graph.ops[i].buffer->slot)];
    if (field.own_length) return "it reads '" + field.name + "', rows of each node's own, which are hardly ever equal";
  }
  if (!schedule.unrolled.empty()) return "it is unrolled, and a node of several parents would be in several subtrees";
  if (!schedule.refactored.empty())
    return "it is cut by refactor, and what follows from a node would join several parents' beginnings";
  return {};
}

/// Multiply-adds of the products over dense dimensions at one node, all branches taken.
inline std::int64_t products_of(const Graph& graph) {
  std::int64_t count = 0;
  for (const Op& op : graph.ops) {
    if (op.kind != OpKind::compute) continue;
    std::int64_t outputs = 1;
    for (const Dim& dim : op.dims) outputs *= dim.extent();
    ir::visit_with(op.body, [&](const ir::Reduce& reduce) {
      if (reduce.axis.dim.kind() == DimKind::dense) count += outputs * reduce.axis.dim.extent();
    });
  }
  return count;
}

}  // namespace detail

/// Where `Schedule::share_subtrees_where_it_pays` looks for equal subtrees: finding them takes a few nanoseconds a
/// node, a hundredth of what so many multiply-adds take.
inline constexpr std::int64_t products_worth_sharing = 16384;

/// Whether equal subtrees may be computed once.
inline bool may_share_subtrees(const Graph& graph, const Schedule& schedule) {
  return detail::reason_against_sharing(graph, schedule).empty();
}

/// Whether equal subtrees of a call are computed once. Throws `Error{invalid_schedule}` if the schedule asks for it
/// where it would change results.
inline bool shares_subtrees(const Graph& graph, const Schedule& schedule) {
  if (schedule.sharing == Sharing::off) return false;
  const std::string reason = detail::reason_against_sharing(graph, schedule);
  if (schedule.sharing == Sharing::where_it_pays)
    return reason.empty() && detail::products_of(graph) >= products_worth_sharing;
  if (reason.empty()) return true;
  throw Error(Code::invalid_schedule, "share_subtrees: model '" + graph.name +
                                          "': equal subtrees cannot be computed once: " + reason +
                                          "; leave it out, or ask for share_subtrees_where_it_pays");
}

}  // namespace cortex::ra
