// Removes what nothing reads: stores to temporaries without loads, stores that no load sees (`reaching_stores.hpp`),
// then the loops, conditions and locals left empty.
//
//   for i: lh[node,i] = rnn[left(node),i]      # lh is read nowhere, or elsewhere alone
//     ->
//   (nothing)
//
// Runs after each pass that takes reads away. States are results and stay.
#pragma once

#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/pass/reaching_stores.hpp"

namespace cortex::pass {

namespace detail {

inline ir::Stmt remove_dead_once(const ir::Stmt& body) {
  PointerSet read;
  ir::visit_with(
      body,
      [&](const ir::Store& store) {
        // A value that only feeds its own buffer (an accumulator's update) does not keep it alive.
        const auto note = [&](const ir::Expr& e) {
          ir::visit_with(e, [&](const ir::Load& load) {
            if (!(load.buffer == store.buffer)) read.insert(load.buffer.id());
          });
        };
        note(store.value);
        for (const ir::Expr& index : store.indices) note(index);
        return false;
      },
      [&](const ir::LetStmt& let) { ir::add_loaded(let.value, read); },
      [&](const ir::For& loop) { ir::add_loaded(loop.extent, read); },
      [&](const ir::If& branch) { ir::add_loaded(branch.condition, read); });
  const PointerSet unseen = unseen_stores(body);
  return ir::mutate_with(
      body,
      [&](auto&, const ir::Store& store) -> ir::Stmt {
        const bool result = store.buffer->role != ir::Role::temp;
        const bool stays = result || (read.contains(store.buffer.id()) && !unseen.contains(&store));
        return stays ? handle_of(store) : ir::nothing();
      },
      [](auto& self, const ir::For& loop) -> ir::Stmt {
        const ir::Stmt inner = self(loop.body);
        if (ir::is_nothing(inner)) return inner;
        return inner.same_as(loop.body) ? handle_of(loop)
                                        : ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner, loop.piece);
      },
      [](auto& self, const ir::LetStmt& let) -> ir::Stmt {
        const ir::Stmt inner = self(let.body);
        if (ir::is_nothing(inner) || !ir::uses(inner, let.var)) return inner;
        return inner.same_as(let.body) ? handle_of(let) : ir::LetStmt::make(let.var, let.value, inner);
      },
      [](auto& self, const ir::Alloc& alloc) -> ir::Stmt {
        const ir::Stmt inner = self(alloc.body);
        if (ir::is_nothing(inner)) return inner;
        return inner.same_as(alloc.body) ? handle_of(alloc) : ir::Alloc::make(alloc.buffer, inner);
      },
      [](auto& self, const ir::If& branch) -> ir::Stmt {
        const ir::Stmt then_body = self(branch.then_body),
                       else_body = branch.else_body ? self(branch.else_body) : ir::Stmt();
        const bool no_else = !else_body || ir::is_nothing(else_body);
        if (ir::is_nothing(then_body) && no_else) return ir::nothing();
        if (then_body.same_as(branch.then_body) && else_body.same_as(branch.else_body)) return handle_of(branch);
        if (ir::is_nothing(then_body)) return ir::If::make(ir::negation(branch.condition), else_body);
        return ir::If::make(branch.condition, then_body, no_else ? ir::Stmt() : else_body);
      });
}

}  // namespace detail

inline ir::Stmt remove_dead(ir::Stmt body) {
  for (;;) {
    const ir::Stmt next = detail::remove_dead_once(body);
    if (next.same_as(body)) return body;
    body = next;
  }
}

}  // namespace cortex::pass
