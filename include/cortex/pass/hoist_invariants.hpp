// Computes what does not change in a loop once, before it.
//
//   for i = 0:16: y[i] = x[i] * tanh(a[node])   ->   t = tanh(a[node]); for i = 0:16: y[i] = x[i] * t
//
// Of loops that have at least one iteration for certain: what a loop without iterations would read may not be there.
// Only work is taken out: functions and divisions, not what an address or a register costs.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/pass/hoist_conditions.hpp"

namespace cortex::pass {

namespace detail {

/// Whether evaluating `e` takes more than a few cycles.
inline bool is_work(const ir::Expr& e) {
  if (e.lanes() > 1) return false;
  if (const auto* unary = e.as<ir::Unary>())
    return is_float(e.dtype()) && unary->op != ir::UnaryOp::neg && unary->op != ir::UnaryOp::abs &&
           unary->op != ir::UnaryOp::relu;
  const auto* binary = e.as<ir::Binary>();
  if (!binary || !is_float(e.dtype())) return false;
  return binary->op == ir::BinaryOp::div || binary->op == ir::BinaryOp::ratio || is_transcendental(binary->op);
}

/// What one loop can do before it begins.
class InvariantWork {
 public:
  explicit InvariantWork(const ir::For& loop) : loop_(loop) {
    ir::visit_with(
        loop.body, [&](const ir::For& inner) { inside_.insert(inner.var.get()); },
        [&](const ir::LetStmt& let) { inside_.insert(let.var.get()); },
        [&](const ir::Let& let) { inside_.insert(let.var.get()); },
        [&](const ir::Alloc& alloc) { inside_.insert(alloc.buffer.id()); });
  }

  /// The loop with variables in place of its invariant work, and their lets around it; the loop itself if there is
  /// none.
  ir::Stmt run() {
    const ir::Stmt body = ir::mutate_with(
        loop_.body, [&](auto& self, const ir::Unary& e) -> ir::Expr { return take(self, handle_of(e)); },
        [&](auto& self, const ir::Binary& e) -> ir::Expr { return take(self, handle_of(e)); },
        [&](auto& self, const ir::LetStmt& let) -> ir::Stmt {
          const ir::Expr value = self(let.value);
          const ir::Stmt inner = self(let.body);
          if (value.as<ir::Var>() && !value.same_as(let.value)) return ir::substitute(inner, {{let.var.get(), value}});
          return value.same_as(let.value) && inner.same_as(let.body) ? handle_of(let)
                                                                     : ir::LetStmt::make(let.var, value, inner);
        },
        // What stands under a condition may not be possible elsewhere.
        [](auto&, const ir::If& branch) -> ir::Stmt { return handle_of(branch); },
        [&](auto& self, const ir::For& inner) -> ir::Stmt {
          const auto extent = ir::as_int(inner.extent);
          return extent && *extent > 0 ? self.children(inner) : handle_of(inner);
        });
    if (work_.empty()) return ir::handle_of(loop_);
    return ir::with_lets(work_, ir::For::make(loop_.var, loop_.dim, loop_.extent, loop_.loop, body, loop_.piece));
  }

 private:
  template <class Self>
  ir::Expr take(Self& self, const ir::Expr& e) {
    if (!is_work(e) || !stands_outside(e) || !is_invariant_in(e, loop_)) return self.children(*e.get());
    for (const auto& [var, value] : work_)
      if (ir::equal(value, e)) return var;
    return work_.emplace_back(ir::Var::make("t", e.type()), e).first;
  }

  bool stands_outside(const ir::Expr& e) const {
    bool outside = true;
    ir::visit_with(
        e, [&](const ir::Var& v) { outside &= !inside_.contains(&v); },
        [&](const ir::Load& load) { outside &= !inside_.contains(load.buffer.id()); });
    return outside;
  }

  const ir::For& loop_;
  PointerSet inside_;
  Vector<std::pair<ir::Expr, ir::Expr>> work_;
};

}  // namespace detail

inline ir::Stmt hoist_invariants(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& outer) -> ir::Stmt {
    const ir::Stmt inner = self.children(outer);  // the innermost first: what leaves it may leave this one too
    const ir::For& loop = *inner.template as<ir::For>();
    const auto extent = ir::as_int(loop.extent);
    if (!extent || *extent < 1 || loop.loop != ir::ForKind::serial) return inner;
    return detail::InvariantWork(loop).run();
  });
}

}  // namespace cortex::pass
