// Reads an element once where the statements of a loop's body read it several times.
//
//   for j: {a += w[0,j] * x[j]; b += w[1,j] * x[j]}     ->     for j: {t = x[j]; a += w[0,j] * t; b += w[1,j] * t}
//
// Runs on tiles, whose bodies repeat each weight once a row and each state once a vector: LLVM would find the same, but
// text that is several times longer takes it several times as long.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::pass {

namespace detail {

struct RepeatedLoad {
  ir::Expr load;
  int count = 0;
};

/// The loads in `block` of buffers that it does not store to, with how often each occurs. Only straight-line stores
/// qualify.
inline Vector<RepeatedLoad> repeated_loads(const ir::Block& block) {
  Vector<RepeatedLoad> found;
  for (const ir::Stmt& s : block.stmts)
    if (!s.as<ir::Store>()) return {};
  for (const ir::Stmt& s : block.stmts) {
    ir::visit_with(s.as<ir::Store>()->value, [&](const ir::Load& load) {
      if (load.buffer->scope == ir::Scope::local) return false;
      for (const ir::Stmt& other : block.stmts)
        if (other.as<ir::Store>()->buffer == load.buffer) return false;
      const ir::Expr e = ir::handle_of(load);
      for (RepeatedLoad& known : found)
        if (ir::equal(known.load, e)) return ++known.count, false;
      found.push_back({e, 1});
      return false;
    });
  }
  erase_where(found, [](const RepeatedLoad& f) { return f.count < 2; });
  return found;
}

}  // namespace detail

inline ir::Stmt share_loads(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& loop) -> ir::Stmt {
    const auto* block = loop.body.as<ir::Block>();
    const auto repeated = block ? detail::repeated_loads(*block) : Vector<detail::RepeatedLoad>{};
    if (repeated.empty()) return self.children(loop);
    Vector<std::pair<ir::Expr, ir::Expr>> lets;
    for (const detail::RepeatedLoad& r : repeated)
      lets.emplace_back(ir::Var::make(r.load.as<ir::Load>()->buffer->name, r.load.type()), r.load);
    ir::Stmt shared = ir::mutate_with(loop.body, [&](auto& inner, const ir::Load& load) -> ir::Expr {
      for (const auto& [var, value] : lets)
        if (ir::equal(value, ir::handle_of(load))) return var;
      return inner.children(load);
    });
    for (const auto& let : reversed(lets)) shared = ir::LetStmt::make(let.first, let.second, shared);
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, shared, loop.piece);
  });
}

}  // namespace cortex::pass
