// Keeps in a variable what a nest stores and reads again in the same iteration, so that a temporary used only there
// never reaches memory.
//
//   ti[n,i] = a; h[n,i] = tanh(ti[n,i])     ->     t = a; ti[n,i] = t; h[n,i] = tanh(t)
//
// A value is not carried over a later store to the same buffer. Runs after nests are fused; `remove_dead` then takes
// away the stores that nothing else reads.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

/// Whether `stmt` reads `buffer` at `indices`.
inline bool reads_at(const ir::Stmt& stmt, const ir::Store& stored) {
  bool found = false;
  ir::visit_with(stmt, [&](const ir::Load& load) {
    if (!(load.buffer == stored.buffer) || load.indices.size() != stored.indices.size()) return;
    bool same = true;
    for (std::size_t i = 0; i < load.indices.size(); ++i) same &= ir::equal(load.indices[i], stored.indices[i]);
    found |= same;
  });
  return found;
}

inline ir::Stmt replace_reads(const ir::Stmt& stmt, const ir::Store& stored, const ir::Expr& value) {
  return ir::mutate_with(stmt, [&](auto& self, const ir::Load& load) -> ir::Expr {
    if (!(load.buffer == stored.buffer) || load.indices.size() != stored.indices.size()) return self.children(load);
    for (std::size_t i = 0; i < load.indices.size(); ++i)
      if (!ir::equal(load.indices[i], stored.indices[i])) return self.children(load);
    return value;
  });
}

}  // namespace detail

inline ir::Stmt forward_stores(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::Block& block) -> ir::Stmt {
    for (std::size_t s = 0; s < block.stmts.size(); ++s) {
      const auto* store = block.stmts[s].as<ir::Store>();
      if (!store || store->buffer->scope == ir::Scope::local) continue;
      const Vector<ir::Stmt> rest(block.stmts.begin() + std::ptrdiff_t(s) + 1, block.stmts.end());
      const ir::Stmt after = ir::Block::make(rest);
      if (rest.empty() || !detail::reads_at(after, *store) || ir::stores_to(after, store->buffer)) continue;
      const ir::Expr value = ir::Var::make(store->buffer->name, store->value.type());
      const ir::Stmt forwarded = detail::replace_reads(after, *store, value);
      Vector<ir::Stmt> stmts(block.stmts.begin(), block.stmts.begin() + std::ptrdiff_t(s));
      const ir::Stmt keep = ir::Store::make(store->buffer, store->indices, value);
      stmts.push_back(ir::LetStmt::make(value, store->value, self(ir::Block::make({keep, forwarded}))));
      return ir::Block::make(stmts);
    }
    return self.children(block);
  });
}

}  // namespace cortex::pass
