// What a kernel that serves many calls does once: filling shared memory and registers with weights (O2, the paper's
// model persistence, from one call to the next).
//
//   W_slice[..] = W[..]; a; local W_registers[P]; W_registers[..] = W[..]; b
//     ->
//   registers: W_registers; fills: W_slice[..] = W[..]; W_registers[..] = W[..]; rest: a; b
//
// Such a fill reads weights alone, at places that the thread alone decides, and nothing else writes what it fills: so
// it may stand before all else, and gives every call the same. A fill inside another loop stays where it is. The order
// of what is left is as before. Runs on a finished program for a GPU.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::schedule {

struct SplitFills {
  Vector<ir::Buffer> registers;  // local, of all of the kernel
  ir::Stmt fills, rest;          // neither is null
};

namespace detail {

/// Whether a statement does nothing but copy weights to where a block or a thread keeps them.
inline bool is_fill(const ir::Stmt& s) {
  bool stores = false, other = false;
  PointerSet own;
  const auto is_kept = [](const ir::BufferInfo& buffer) {
    return ir::keeps_weights(buffer.scope) || (buffer.scope == ir::Scope::local && buffer.role == ir::Role::weight);
  };
  ir::visit_with(
      s, [&](const ir::For& inner) { own.insert(inner.var.get()); },
      [&](const ir::LetStmt& let) { own.insert(let.var.get()); },
      [&](const ir::Let& let) { own.insert(let.var.get()); },
      [&](const ir::Store& store) { (is_kept(*store.buffer) ? stores : other) = true; },
      [&](const ir::Load& load) {
        other |= load.buffer->role != ir::Role::weight || load.buffer->scope == ir::Scope::local;
      },
      [&](const ir::Alloc&) { other = true; }, [&](const ir::Barrier&) { other = true; });
  ir::visit_with(s, [&](const ir::Var& var) { other |= !own.contains(&var); });
  return stores && !other;
}

inline ir::Stmt without_fills(const ir::Stmt& s, SplitFills& split, Vector<ir::Stmt>& fills) {
  if (const auto* block = s.as<ir::Block>()) {
    Vector<ir::Stmt> stmts;
    for (const ir::Stmt& child : block->stmts) stmts.push_back(without_fills(child, split, fills));
    return ir::Block::make(stmts);
  }
  if (const auto* let = s.as<ir::LetStmt>(); let && !is_fill(s))
    return ir::LetStmt::make(let->var, let->value, without_fills(let->body, split, fills));
  if (const auto* alloc = s.as<ir::Alloc>()) {
    ir::Stmt body = without_fills(alloc->body, split, fills);
    if (alloc->buffer->role != ir::Role::weight) return ir::Alloc::make(alloc->buffer, body);
    split.registers.push_back(alloc->buffer);
    return body;
  }
  if (!is_fill(s)) return s;
  fills.push_back(s);
  return ir::nothing();
}

}  // namespace detail

/// Of a program's body. Where something else writes what a fill does, nothing is split off.
inline SplitFills split_fills(const ir::Stmt& body) {
  SplitFills split;
  Vector<ir::Stmt> fills;
  split.rest = detail::without_fills(body, split, fills);
  split.fills = ir::Block::make(fills);
  PointerSet written;
  bool again = false;
  ir::add_stored(split.rest, written);
  ir::visit_with(split.fills, [&](const ir::Store& store) { again |= written.contains(store.buffer.id()); });
  if (again) return {{}, ir::nothing(), body};
  return split;
}

}  // namespace cortex::schedule
