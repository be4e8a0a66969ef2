// Removes the conditions that are known where they stand: of guards around the last tile, of branches, of selects.
//
//   for o = 0:4: for i = 0:16: if o * 16 + i < 64: y[o * 16 + i] = 0    ->   for o = 0:4: for i = 0:16: y[..] = 0
//   for o = 0:n/16: for i = 0:16: if o * 16 + i < n: ...                ->   the same without the `if`
//   for o = 0:(n+15)/16: for i = 0:16: if o * 16 + i < n: ...           ->   unchanged: the last tile needs it
//   select(node < num_nodes,x,y)                                        ->   x, inside a loop over nodes
//
// Runs on any level above `device`, after what makes guards (splits) and before loops are vectorized, because a
// condition must not differ by lane. What is not proved stays. Paper section 5.1 and appendix A (I6, I11).
#pragma once

#include <utility>

#include "cortex/ir/mutate.hpp"
#include "cortex/pass/prove.hpp"

namespace cortex::pass {

namespace detail {

class GuardSimplifier {
 public:
  GuardSimplifier(KnownNodes known, ProofCounts& counts) : prover_(std::move(known)), counts_(counts) {}

  ir::Stmt run(const ir::Stmt& body) {
    return ir::mutate_with(
        body, [&](auto& self, const ir::For& n) { return loop(self, n); },
        [&](auto& self, const ir::LetStmt& n) -> ir::Stmt {
          const ir::Expr value = self(n.value);
          ir::Stmt inner;
          scope().within([&] {
            scope().enter_let(n.var, n.value);
            inner = self(n.body);
          });
          if (value.same_as(n.value) && inner.same_as(n.body)) return handle_of(n);
          return ir::is_nothing(inner) ? inner : ir::LetStmt::make(n.var, value, inner);
        },
        [&](auto& self, const ir::Let& n) -> ir::Expr {
          const ir::Expr value = self(n.value);
          ir::Expr inner;
          scope().within([&] {
            scope().enter_let(n.var, n.value);
            inner = self(n.body);
          });
          if (value.same_as(n.value) && inner.same_as(n.body)) return handle_of(n);
          return ir::Let::make(n.var, value, inner);
        },
        [&](auto& self, const ir::If& n) { return branch(self, n); },
        [&](auto& self, const ir::Alloc& n) -> ir::Stmt {
          const ir::Stmt inner = self(n.body);
          if (inner.same_as(n.body)) return handle_of(n);
          return ir::is_nothing(inner) ? inner : ir::Alloc::make(n.buffer, inner);
        },
        // Both arms of a select are evaluated, so its condition says nothing of what they read.
        [&](auto& self, const ir::Select& n) -> ir::Expr {
          const ir::Expr condition = simplified(n.condition);
          if (const auto known = ir::as_int(condition)) return self(*known ? n.then_value : n.else_value);
          const ir::Expr a = self(n.then_value), b = self(n.else_value), c = self(condition);
          if (a.same_as(n.then_value) && b.same_as(n.else_value) && c.same_as(n.condition)) return handle_of(n);
          return ir::Select::make(c, a, b);
        });
  }

 private:
  Scope& scope() { return prover_.scope(); }

  static ir::Expr truth(bool value) { return ir::IntImm::make(value, DType::boolean); }

  ir::Stmt loop(ir::Mutator& self, const ir::For& n) {
    const Proof never_runs = empties(n.extent);
    if (never_runs != Proof::no) return counts_.add(never_runs), ir::nothing();
    const ir::Expr extent = self(n.extent);
    ir::Stmt inner;
    scope().within([&] {
      scope().enter_loop(n.var, n.extent);
      inner = self(n.body);
    });
    if (extent.same_as(n.extent) && inner.same_as(n.body)) return handle_of(n);
    return ir::is_nothing(inner) ? inner : ir::For::make(n.var, n.dim, extent, n.loop, inner, n.piece);
  }

  /// By what a loop of that extent never runs.
  Proof empties(const ir::Expr& extent) {
    Proof proof = Proof::no;
    scope().within([&] { proof = prover_.never_negative(Linear() - scope().linear(extent)); });
    return proof;
  }

  ir::Stmt branch(ir::Mutator& self, const ir::If& n) {
    const ir::Expr condition = simplified(n.condition);
    if (const auto known = ir::as_int(condition)) {
      if (*known) return self(n.then_body);
      return n.else_body ? self(n.else_body) : ir::nothing();
    }
    const auto side = [&](const ir::Stmt& body, bool holds) {
      ir::Stmt inner;
      scope().within([&] {
        scope().assume(n.condition, holds);
        inner = self(body);
      });
      return inner;
    };
    const ir::Expr rest = self(condition);
    ir::Stmt then_body = side(n.then_body, true), else_body = n.else_body ? side(n.else_body, false) : ir::Stmt();
    if (rest.same_as(n.condition) && then_body.same_as(n.then_body) && else_body.same_as(n.else_body))
      return handle_of(n);
    if (else_body && ir::is_nothing(else_body)) else_body = {};
    if (ir::is_nothing(then_body) && !else_body) return then_body;
    return ir::If::make(rest, then_body, else_body);
  }

  /// `condition`, or the part of it that is not known; a constant if all of it is.
  ir::Expr simplified(const ir::Expr& condition) {
    if (condition.lanes() > 1 || ir::as_int(condition)) return condition;
    if (const ir::Expr known = decided(condition)) return known;
    const auto* n = condition.as<ir::Binary>();
    if (!n || (n->op != ir::BinaryOp::logical_and && n->op != ir::BinaryOp::logical_or)) return condition;
    for (const auto& [part, other] : {std::pair{n->a, n->b}, std::pair{n->b, n->a}})
      if (ir::as_int(part) || decided(part)) return simplified(other);  // a part that decides the whole has done so
    return condition;
  }

  ir::Expr decided(const ir::Expr& condition) {
    for (const bool wanted : {true, false}) {
      const Proof proof = prover_.prove(condition, wanted);
      if (proof == Proof::no) continue;
      counts_.add(proof);
      return truth(wanted);
    }
    return {};
  }

  Prover prover_;
  ProofCounts& counts_;
};

}  // namespace detail

/// `body` without the conditions that are proved; `counts` gets how many went, by what proved them.
inline ir::Stmt simplify_guards(const ir::Stmt& body, const KnownNodes& known = {}, ProofCounts* counts = nullptr) {
  ProofCounts own;
  return detail::GuardSimplifier(known, counts ? *counts : own).run(body);
}

}  // namespace cortex::pass
