// Takes conditions that do not change in a loop out of it, so that they are asked once.
//
//   for i: if leaf(node): h[i] = f(i) else: h[i] = g(i)
//     ->
//   if leaf(node): for i: h[i] = f(i) else: for i: h[i] = g(i)
//
// Only where the condition is all that the loop does, after lets that it does not use: otherwise the loop would be
// there twice. Barriers stand under no condition, so a loop with one keeps its conditions.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::pass {

namespace detail {

/// Whether an expression is the same before each iteration of a loop: it asks nothing of its variable, nor of memory
/// that the loop writes, or other workers do while it waits for them.
inline bool is_invariant_in(const ir::Expr& e, const ir::For& loop) {
  bool same = !ir::uses(e, loop.var), reads = false;
  ir::visit_with(e, [&](const ir::Load& load) {
    reads |= ir::changes_in_calls(*load.buffer);
    ir::visit_with(loop.body, [&](const ir::Store& store) { same &= !(store.buffer == load.buffer); });
  });
  return same && !(reads && ir::has_barrier(loop.body));
}

}  // namespace detail

inline ir::Stmt hoist_conditions(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& outer) -> ir::Stmt {
    const ir::Stmt inner = self.children(outer);
    const ir::For& loop = *inner.template as<ir::For>();
    Vector<const ir::LetStmt*> lets;  // which node is at work
    ir::Stmt work = loop.body;
    for (const auto* let = work.as<ir::LetStmt>(); let; let = work.as<ir::LetStmt>()) {
      lets.push_back(let);
      work = let->body;
    }
    const auto* branch = work.as<ir::If>();
    if (!branch || loop.loop == ir::ForKind::parallel || !detail::is_invariant_in(branch->condition, loop))
      return inner;
    if (ir::has_barrier(loop.body)) return inner;
    for (const ir::LetStmt* let : lets)
      if (ir::uses(branch->condition, let->var)) return inner;
    const auto around = [&](const ir::Stmt& side) {
      if (!side) return ir::Stmt();
      return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::with_lets(lets, side), loop.piece);
    };
    return ir::If::make(branch->condition, around(branch->then_body), around(branch->else_body));
  });
}

}  // namespace cortex::pass
