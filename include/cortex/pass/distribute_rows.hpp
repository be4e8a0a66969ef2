// Gives each nest its own loop over the nodes of a batch.
//
//   for n_idx: node = ...:  {A; B}     ->     for n_idx: node = ...: A
//                                             for n_idx: node = ...: B
//
// Nodes of a batch do not depend on each other (P.3), so this is always legal. Loops that carry the dependence (over
// batches, or over single nodes) stay, but inside them too every nest gets its own condition, so that no `else` is
// left. Runs before the passes that fuse nests, which need each nest alone, and where a nest has become several.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

/// The nests of `body`, each under the conditions that it stands under.
inline void separate(const ir::Stmt& body, Vector<ir::Stmt>& out) {
  if (const auto* branch = body.as<ir::If>()) {
    Vector<ir::Stmt> then_parts, else_parts;
    separate(branch->then_body, then_parts);
    if (branch->else_body) separate(branch->else_body, else_parts);
    for (const ir::Stmt& part : then_parts) out.push_back(ir::If::make(branch->condition, part));
    const ir::Expr otherwise = ir::negation(branch->condition);
    for (const ir::Stmt& part : else_parts) out.push_back(ir::If::make(otherwise, part));
  } else if (const auto* block = body.as<ir::Block>()) {
    for (const ir::Stmt& part : block->stmts) separate(part, out);
  } else {
    out.push_back(body);
  }
}

}  // namespace detail

inline ir::Stmt distribute_rows(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto&, const ir::For& loop) -> ir::Stmt {
    const ir::LetStmt* let = schedule::node_let(loop);
    if (!let || !(schedule::is_row_dim(loop.dim) || loop.dim == dims::sequence)) {
      const ir::Stmt inner = distribute_rows(loop.body);
      return inner.same_as(loop.body) ? handle_of(loop)
                                      : ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner, loop.piece);
    }
    Vector<ir::Stmt> parts, loops;
    detail::separate(let->body, parts);
    for (ir::Stmt& part : parts)
      if (part.as<ir::For>() && part.as<ir::For>()->dim == dims::sequence) part = distribute_rows(part);
    if (parts.size() < 2) return handle_of(loop);
    if (loop.dim == dims::sequence) {
      const ir::Stmt inner = ir::LetStmt::make(let->var, let->value, ir::Block::make(parts));
      return ir::equal(inner, loop.body) ? handle_of(loop)
                                         : ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner, loop.piece);
    }
    for (const ir::Stmt& part : parts) {
      const ir::Expr row = ir::Var::make(loop.var.as<ir::Var>()->name),
                     value = ir::Var::make(let->var.as<ir::Var>()->name);
      const ir::Stmt own = ir::LetStmt::make(value, ir::substitute(let->value, {{loop.var.get(), row}}),
                                             ir::substitute(part, {{let->var.get(), value}, {loop.var.get(), row}}));
      loops.push_back(ir::For::make(row, loop.dim, loop.extent, loop.loop, own, loop.piece));
    }
    return ir::Block::make(loops);
  });
}

}  // namespace cortex::pass
