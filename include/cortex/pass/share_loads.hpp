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
  const ir::BufferInfo* buffer;
  int count = 0;
};

/// The load that `widening` makes an f32 of, if that is how a narrow weight is read: the two are shared as one.
inline const ir::Load* narrow_load(const ir::Cast& widening) {
  const auto* load = widening.a.as<ir::Load>();
  return load && is_narrow(load->buffer->dtype) ? load : nullptr;
}

/// The loads in `block` of buffers that it does not store to, with how often each occurs. Only straight-line stores
/// qualify.
inline Vector<RepeatedLoad> repeated_loads(const ir::Block& block) {
  Vector<RepeatedLoad> found;
  for (const ir::Stmt& s : block.stmts)
    if (!s.as<ir::Store>()) return {};
  const auto count = [&](const ir::Expr& e, const ir::Load& load) {
    if (load.buffer->scope == ir::Scope::local) return;
    for (const ir::Stmt& other : block.stmts)
      if (other.as<ir::Store>()->buffer == load.buffer) return;
    for (RepeatedLoad& known : found)
      if (ir::equal(known.load, e)) return void(++known.count);
    found.push_back({e, &*load.buffer, 1});
  };
  for (const ir::Stmt& s : block.stmts)
    ir::visit_with(
        s.as<ir::Store>()->value, [&](const ir::Load& load) { return count(ir::handle_of(load), load), false; },
        [&](const ir::Select& either) {
          const bool one = ir::is_near_or_far(either);
          if (one) count(ir::handle_of(either), *either.else_value.as<ir::Load>());
          return !one;
        },
        [&](const ir::Cast& cast) {
          const ir::Load* load = narrow_load(cast);
          if (load) count(ir::handle_of(cast), *load);
          return !load;
        });
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
      lets.emplace_back(ir::Var::make(r.buffer->name, r.load.type()), r.load);
    const auto shared_or = [&](auto& inner, const auto& node) -> ir::Expr {
      for (const auto& [var, value] : lets)
        if (ir::equal(value, ir::handle_of(node))) return var;
      return inner.children(node);
    };
    const ir::Stmt shared = ir::mutate_with(
        loop.body, [&](auto& inner, const ir::Load& load) -> ir::Expr { return shared_or(inner, load); },
        [&](auto& inner, const ir::Cast& cast) -> ir::Expr { return shared_or(inner, cast); },
        [&](auto& inner, const ir::Select& either) -> ir::Expr { return shared_or(inner, either); });
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::with_lets(lets, shared), loop.piece);
  });
}

}  // namespace cortex::pass
