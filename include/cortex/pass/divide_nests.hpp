// Has nests over all nodes of a call, and over all its inner nodes, run over those of one piece of it
// (structure/pieces.hpp): its inner nodes have consecutive numbers, and so have its leaves, far from these.
//
//   for t = 0:num_nodes / 4:                        ->   for range = 0:num_ranges:
//     .. node = all_nodes(t * 4 + r) ..                    for t = 0:range_length(range) / 4:
//                                                            .. node = range_nodes(range,t * 4 + r) ..
//
//   for n_idx = 0:num_internal:                     ->   for n_idx = 0:range_length(2):
//     node = internal_nodes(n_idx)                         node = range_nodes(2,n_idx)
//
// In a whole call all nodes are one range (`ir::NodeRange`). Nodes of such nests do not depend on each other. Runs when
// nests are tiled: no pass before it has to know of ranges, and none after it looks for nests over all nodes.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::pass {

namespace detail {

class NestDivider {
 public:
  ir::Stmt run(const ir::Stmt& stmt) {
    if (const auto* block = stmt.as<ir::Block>()) {
      Vector<ir::Stmt> parts;
      bool changed = false;
      for (const ir::Stmt& part : block->stmts) changed |= !parts.emplace_back(run(part)).same_as(part);
      return changed ? ir::Block::make(parts) : stmt;
    }
    bool all = false, some = false;
    ir::visit_with(stmt, [&](const ir::UfCall& call) {
      all |= call.uf.kind == K::all_node;
      some |= call.uf.kind == K::internal_node;
    });
    if (all) {
      const ir::Expr range = ir::Var::make("range");
      return ir::For::make(range, dims::sequence, ir::call(K::num_ranges, "num_ranges"), ir::ForKind::serial,
                           over(range, K::num_nodes, K::all_node, stmt));
    }
    return some ? over(ir::imm(std::int64_t(ir::NodeRange::inner)), K::num_internal, K::internal_node, stmt) : stmt;
  }

 private:
  using K = ir::UfKind;

  /// `stmt` with the nodes of a range in place of those that `number` goes through, `count` of them.
  static ir::Stmt over(const ir::Expr& range, K count, K number, const ir::Stmt& stmt) {
    return ir::mutate_with(stmt, [&](auto& self, const ir::UfCall& call) -> ir::Expr {
      if (call.uf.kind == count) return ir::call(K::range_length, "range_length", {range}, call.uf.accessor);
      if (call.uf.kind == number) return ir::call(K::range_node, "range_nodes", {range, self(call.args[0])});
      return self.children(call);
    });
  }
};

}  // namespace detail

inline ir::Stmt divide_nests(const ir::Stmt& body) { return detail::NestDivider().run(body); }

}  // namespace cortex::pass
