// Computes once what a statement says several times.
//
//   y[i] = tanh(a[i]) * (1 + tanh(a[i]))   ->   t = tanh(a[i]); y[i] = t * (1 + t)
//
// Only work is shared, functions and divisions, and not what both sides of a condition do: one may never be done.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/pass/hoist_invariants.hpp"

namespace cortex::pass {

namespace detail {

/// Whether `f` is true of some function or division in `e`.
inline bool any_work(const ir::Expr& e, FunctionRef<bool(const ir::Expr&)> f) {
  bool found = false;
  const auto ask = [&](const ir::Expr& part) { found |= is_work(part) && f(part); };
  ir::visit_with(
      e, [&](const ir::Unary& u) { ask(ir::handle_of(u)); }, [&](const ir::Binary& b) { ask(ir::handle_of(b)); },
      [](const ir::Let&) { return false; });  // what is bound inside of it is known there alone
  return found;
}

/// Work that `e` does several times, and none inside of it; nothing if there is none.
inline ir::Expr repeated_work(const ir::Expr& e) {
  const auto repeated = [&](const ir::Expr& part) {
    int count = 0;
    any_work(e, [&](const ir::Expr& other) { return count += ir::equal(other, part), false; });
    return count > 1;
  };
  ir::Expr found;
  any_work(e, [&](const ir::Expr& part) {
    const bool innermost =
        !any_work(part, [&](const ir::Expr& inner) { return !inner.same_as(part) && repeated(inner); });
    if (!found && innermost && repeated(part)) found = part;
    return false;
  });
  return found;
}

}  // namespace detail

inline ir::Stmt share_subexpressions(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto&, const ir::Store& store) -> ir::Stmt {
    Vector<std::pair<ir::Expr, ir::Expr>> lets;  // the later ones use the earlier
    ir::Expr value = store.value;
    while (const ir::Expr part = detail::repeated_work(value)) {
      const ir::Expr var = ir::Var::make("t", part.type());
      const auto once = [&](auto& self, const auto& e) -> ir::Expr {
        return ir::equal(ir::handle_of(e), part) ? var : self.children(e);
      };
      value = ir::mutate_with(
          value, [&](auto& self, const ir::Unary& u) -> ir::Expr { return once(self, u); },
          [&](auto& self, const ir::Binary& b) -> ir::Expr { return once(self, b); });
      lets.emplace_back(var, part);
    }
    if (lets.empty()) return handle_of(store);
    return ir::with_lets(lets, ir::Store::make(store.buffer, store.indices, value));
  });
}

}  // namespace cortex::pass
