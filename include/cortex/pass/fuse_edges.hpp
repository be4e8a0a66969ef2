// Fuses the loop over a batch's nodes with the loop over each node's children into one loop over the batch's edges, so
// that work per child runs over rows without gaps, however many children each node has.
//
//   for n_idx = 0:len: node = batch(n_idx): for k = 0:num_children(node): ... kth_child(node,k), edge(node,k) ...
//     ->
//   for e_idx = 0:span_edges(batch(0),len): edge = edge(batch(0),0) + e_idx: ... edge_child(edge), edge ...
//
// Needs each nest alone in its loop over nodes (`distribute_rows`). Legal because edges are numbered by node (paper
// appendix B): those of consecutive nodes are consecutive. A nest that needs its node for anything else is left alone.
#pragma once

#include <optional>

#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

inline ir::Stmt fuse_edges(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& loop) -> ir::Stmt {
    const std::optional<schedule::Nest> nest = schedule::parse_nest(handle_of(loop));
    const bool candidate = nest && nest->let_var && nest->rows->dim == dims::batch && !nest->guard &&
                           !nest->loops.empty() && nest->loops[0].dim == dims::child;
    const auto* nodes = candidate ? nest->let_value.as<ir::UfCall>() : nullptr;
    const bool consecutive = !nodes || nodes->uf.kind != ir::UfKind::root_node;
    const auto* count = candidate ? nest->loops[0].extent.as<ir::UfCall>() : nullptr;
    const bool all_kids = count && count->uf.kind == ir::UfKind::num_children && count->args[0].same_as(nest->let_var);
    if (!all_kids || !consecutive) return self.children(loop);
    const schedule::LoopHeader& kids = nest->loops[0];
    const ir::Expr row = ir::Var::make("e_idx"), edge = ir::Var::make("edge");
    const auto is_pair = [&](const ir::UfCall& call) {
      return call.uf.accessor == count->uf.accessor && call.args.size() == 2 && call.args[0].same_as(nest->let_var) &&
             call.args[1].same_as(kids.var);
    };
    schedule::Nest fused = *nest;
    fused.inner = ir::mutate_with(nest->inner, [&](auto& inner_self, const ir::UfCall& call) -> ir::Expr {
      if (call.uf.kind == ir::UfKind::edge && is_pair(call)) return edge;
      if (call.uf.kind == ir::UfKind::kth_child && is_pair(call))
        return ir::call(ir::UfKind::edge_child, "edge_child", {edge}, call.uf.accessor);
      return inner_self.children(call);
    });
    if (ir::uses(fused.inner, nest->let_var) || ir::uses(fused.inner, kids.var)) return self.children(loop);
    const int container = count->uf.accessor;
    const ir::Expr first = ir::substitute(nest->let_value, {{nest->rows->var.get(), ir::imm(0)}});
    fused.loops.erase(fused.loops.begin());
    fused.rows = schedule::LoopHeader{
        row, dims::batch_edge, ir::call(ir::UfKind::span_edges, "span_edges", {first, nest->rows->extent}, container)};
    fused.let_var = edge;
    fused.let_value = ir::call(ir::UfKind::edge, "edge", {first, ir::imm(0)}, container) + row;
    return schedule::build_nest(fused);
  });
}

}  // namespace cortex::pass
