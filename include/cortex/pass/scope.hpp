// What is known at one place of a program: the forms of its variables, and the conditions that hold there.
//
//   for o = 0:(n+15)/16: for i = 0:16: if o * 16 + i < n: y[o * 16 + i]    # in the innermost place:
//     o >= 0, (n+15)/16 - 1 - o >= 0, 15 - i >= 0, n - 1 - 16 o - i >= 0
//
// Walks go down a program with `within`, `enter_loop`, `enter_let` and `assume`, on any level above `device`. Programs
// compute in 32 bits: an expression that might wrap is a number of which nothing is known. Paper section 5.1: bounds
// inference over loops with variable bounds and uninterpreted functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/pass/intervals.hpp"

namespace cortex::pass {

/// A place in a program: what is bound, known and assumed there.
class Scope final : public Bounds {
 public:
  explicit Scope(KnownNodes known = {}) : Bounds(std::move(known)) {}

  /// A condition that holds here, or does not.
  struct Assumption {
    ir::Expr condition;
    bool holds;
  };

  // ---- places ----

  /// Runs `inside` where what it enters and assumes is forgotten afterwards, and its atoms too unless they are kept.
  template <class F>
  void within(F inside, bool keep_atoms = false) {
    const int atoms = atoms_.size();
    const std::size_t facts = facts_.size(), bound = bound_.size(), assumptions = assumptions_.size();
    inside();
    bound_.erase(bound_.begin() + std::ptrdiff_t(bound), bound_.end());
    forget_facts(facts);
    assumptions_.erase(assumptions_.begin() + std::ptrdiff_t(assumptions), assumptions_.end());
    if (!keep_atoms) atoms_.shrink(atoms);
  }

  /// `var` in [0, extent).
  void enter_loop(const ir::Expr& var, const ir::Expr& extent) {
    const Linear count = linear(extent);
    Atom atom{Symbol::variable, -1, var, {}, 0, std::clamp<std::int64_t>(interval(count).high - 1, 0, INT32_MAX)};
    const Linear self = Linear::of(atoms_.number_of(std::move(atom)));
    bound_.push_back({var, self, {}});
    know(self);
    know(count - 1 - self);
  }

  void enter_let(const ir::Expr& var, const ir::Expr& value) {
    if (is_int(var.dtype()) && var.lanes() == 1) {
      const Linear form = unchecked(value);
      know_even_split(form);
      bound_.push_back({var, fits(form, var.dtype()) ? form : unknown(var.dtype()), {}});
    } else if (var.dtype() == DType::boolean) {
      bound_.push_back({var, {}, value});
    }
  }

  void assume(const ir::Expr& condition, bool holds) {
    if (is_pure(condition)) assumptions_.push_back({condition, holds});
    assume_forms(condition, holds);
  }

  // ---- expressions ----

  /// The form of a scalar integer expression; an atom of its own for what has no form, or may wrap.
  Linear linear(const ir::Expr& e) {
    const Linear form = unchecked(e);
    return fits(form, e.dtype()) ? form : unknown(e.dtype());
  }

  /// The same for an expression whose value is about to be held against bounds that fit its type: sums that wrap on the
  /// way do no harm.
  Linear unchecked(const ir::Expr& e) {
    if (e.lanes() > 1) return unknown(e.dtype());
    switch (e->kind) {
      case ir::ExprKind::int_imm: return e.as<ir::IntImm>()->value;
      case ir::ExprKind::var: return variable(e);
      case ir::ExprKind::unary: return unary(*e.as<ir::Unary>());
      case ir::ExprKind::binary: return binary(*e.as<ir::Binary>());
      case ir::ExprKind::select: return select(*e.as<ir::Select>());
      case ir::ExprKind::cast: return cast(*e.as<ir::Cast>());
      case ir::ExprKind::load: return array(*e.as<ir::Load>());
      case ir::ExprKind::uf_call: return call(*e.as<ir::UfCall>());
      case ir::ExprKind::let: {
        const auto& n = *e.as<ir::Let>();
        enter_let(n.var, n.value);
        return unchecked(n.body);
      }
      default: return unknown(e.dtype());
    }
  }

  using Bounds::interval;
  Interval interval(const ir::Expr& e) { return interval(linear(e)); }

  // ---- conditions ----

  /// Whether `condition` is `wanted` here.
  bool entails(const ir::Expr& condition, bool wanted, bool structural) {
    const Structural scope(*this, structural);
    return entails_here(condition, wanted);
  }

  const Vector<Assumption>& assumptions() const { return assumptions_; }
  /// What boolean `var` stands for, or nothing.
  ir::Expr condition_of(const ir::Expr& var) const {
    const Bound* found = find(var);
    return found ? found->condition : ir::Expr();
  }

  /// Whether the value of `e` is the same each time that it is evaluated at this place: it reads no tensor.
  static bool is_pure(const ir::Expr& e) {
    bool pure = true;
    ir::visit_with(e, [&](const ir::Load& load) { pure &= load.buffer->role == ir::Role::index; });
    return pure;
  }

 private:
  struct Bound {
    ir::Expr var;
    Linear form;         // of an integer
    ir::Expr condition;  // of a boolean
  };

  const Bound* find(const ir::Expr& var) const {
    for (std::size_t i = bound_.size(); i-- > 0;)
      if (bound_[i].var.same_as(var)) return &bound_[i];
    return nullptr;
  }

  void assume_choice(const ir::Expr& condition, bool holds) override { assume_forms(condition, holds); }

  // ---- forms ----

  Linear unknown(DType type) {
    const bool narrow = type == DType::i32, truth = type == DType::boolean;
    return Linear::of(atoms_.number_of({Symbol::unknown,
                                        -1,
                                        {},
                                        {},
                                        truth    ? 0
                                        : narrow ? INT32_MIN
                                                 : -Interval::endless,
                                        truth    ? 1
                                        : narrow ? INT32_MAX
                                                 : Interval::endless}));
  }

  Linear variable(const ir::Expr& e) {
    if (const Bound* found = find(e); found && !found->condition) return found->form;
    if (!is_int(e.dtype())) return unknown(e.dtype());
    const bool narrow = e.dtype() == DType::i32;
    return Linear::of(atoms_.number_of({Symbol::variable,
                                        -1,
                                        e,
                                        {},
                                        narrow ? INT32_MIN : -Interval::endless,
                                        narrow ? INT32_MAX : Interval::endless}));
  }

  Linear unary(const ir::Unary& n) {
    if (!is_int(n.type.dtype)) return unknown(n.type.dtype);
    switch (n.op) {
      case ir::UnaryOp::neg: return Linear() - unchecked(n.a);
      case ir::UnaryOp::abs: {
        const Linear a = linear(n.a);
        return greater(a, Linear() - a);
      }
      case ir::UnaryOp::relu: return greater(linear(n.a), 0);
      default: return unknown(n.type.dtype);
    }
  }

  Linear binary(const ir::Binary& n) {
    if (!is_int(n.type.dtype)) return unknown(n.type.dtype);
    switch (n.op) {
      case ir::BinaryOp::add: return unchecked(n.a) + unchecked(n.b);
      case ir::BinaryOp::sub: return unchecked(n.a) - unchecked(n.b);
      case ir::BinaryOp::mul: {
        const Linear a = unchecked(n.a), b = unchecked(n.b);
        return atoms_.multiply(a, b);
      }
      case ir::BinaryOp::div:
      case ir::BinaryOp::mod: {
        const Linear a = linear(n.a), b = linear(n.b);
        return divided(n.op == ir::BinaryOp::div, a, b, n.type.dtype);
      }
      case ir::BinaryOp::min: {
        const Linear a = linear(n.a), b = linear(n.b);
        return less(a, b);
      }
      case ir::BinaryOp::max: {
        const Linear a = linear(n.a), b = linear(n.b);
        return greater(a, b);
      }
      default: return unknown(n.type.dtype);
    }
  }

  /// Division and remainder have a meaning for numbers that are not negative alone.
  Linear divided(bool quotient, const Linear& a, const Linear& b, DType type) {
    if (!never_negative(a, true) || !never_negative(b - 1, true)) return unknown(type);
    if (!b.is_constant()) return atoms_.form(quotient ? Symbol::quotient : Symbol::remainder, {a, b});
    // What the divisor divides comes out: (8 x + 11) / 4 is 2 x + (0 x + 11) / 4.
    Linear whole, rest(a.constant % b.constant);
    whole.constant = a.constant / b.constant;
    if (rest.constant < 0) rest.constant += b.constant, --whole.constant;
    for (const Linear::Term& term : a.terms) {
      const bool divides = term.by % b.constant == 0;
      if (divides)
        whole.terms.push_back({term.atom, term.by / b.constant});
      else
        rest.terms.push_back(term);
    }
    if (!rest.is_constant() && !(rest == a)) {  // the rest alone may be negative
      if (interval(rest).low < 0) whole = 0, rest = a;
    }
    const Interval all = interval(rest);
    if (all.low >= 0 && all.high < b.constant) return quotient ? whole : rest;
    return quotient ? whole + atoms_.form(Symbol::quotient, {rest, b}) : atoms_.form(Symbol::remainder, {rest, b});
  }

  Linear select(const ir::Select& n) {
    if (!is_int(n.type.dtype)) return unknown(n.type.dtype);
    if (const auto known = ir::as_int(n.condition)) return linear(*known ? n.then_value : n.else_value);
    const Linear a = linear(n.then_value), b = linear(n.else_value);
    if (a == b) return a;
    if (!is_pure(n.condition)) return Linear::of(atoms_.number_of({Symbol::choice, atoms_.size(), {}, {a, b}}));
    return Linear::of(atoms_.number_of({Symbol::choice, -1, n.condition, {a, b}}));
  }

  Linear cast(const ir::Cast& n) {
    if (is_int(n.a.dtype())) return linear(n.a);
    return unknown(n.a.dtype() == DType::boolean ? DType::boolean : n.type.dtype);
  }

  Vector<Linear> forms(const Vector<ir::Expr>& from) {
    Vector<Linear> to;
    for (const ir::Expr& e : from) to.push_back(unchecked(e));
    return to;
  }

  Linear array(const ir::Load& n) {
    if (n.buffer->role != ir::Role::index) return unknown(n.type.dtype);
    const Linear form = array_form(atoms_, n.buffer->slot, forms(n.indices));
    return form.lost ? unknown(n.type.dtype) : form;
  }

  Linear call(const ir::UfCall& n) {
    const Structural scope(*this, true);
    const Linear form =
        structure_form(atoms_, n.uf.kind, n.uf.accessor, forms(n.args), [&](const Linear& f) { return holds(f); });
    return form.lost ? unknown(n.type.dtype) : form;
  }

  // ---- conditions ----

  /// `b - a` of a comparison, and what is known of it.
  struct Comparison {
    bool found = false;
    ir::BinaryOp op = ir::BinaryOp::eq;
    Linear apart;
  };

  /// The comparison that `e` is, or `is_leaf(n)` is (n >= num_internal, D4); nothing if it is none of integers.
  Comparison comparison(const ir::Expr& e, bool wanted) {
    using enum ir::BinaryOp;
    if (const auto* call = e.as<ir::UfCall>(); call && call->uf.kind == ir::UfKind::is_leaf)
      return {true, wanted ? le : gt, unchecked(call->args[0]) - atoms_.form(Symbol::num_internal)};
    const auto* n = e.as<ir::Binary>();
    if (!n || !ir::is_comparison(n->op) || !is_int(n->a.dtype()) || n->a.lanes() > 1) return {};
    constexpr ir::BinaryOp opposite[] = {ne, eq, ge, gt, le, lt};
    const Linear a = linear(n->a), b = linear(n->b);
    return {true, wanted ? n->op : opposite[std::size_t(n->op) - std::size_t(eq)], b - a};
  }

  static bool is_logical(const ir::Binary& n) {
    return n.op == ir::BinaryOp::logical_and || n.op == ir::BinaryOp::logical_or;
  }

  bool entails_here(const ir::Expr& e, bool wanted) {
    if (e.lanes() > 1) return false;
    if (const auto known = ir::as_int(e)) return (*known != 0) == wanted;
    if (const ir::Expr bound = e.as<ir::Var>() ? condition_of(e) : ir::Expr()) return entails_here(bound, wanted);
    if (const auto* n = e.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not) return entails_here(n->a, !wanted);
    if (const auto* n = e.as<ir::Binary>(); n && is_logical(*n)) {
      const bool both = (n->op == ir::BinaryOp::logical_and) == wanted, first = entails_here(n->a, wanted);
      if (first != both) return first;
      const std::size_t facts = facts_.size();
      assume_forms(n->a, first == wanted);
      const bool second = entails_here(n->b, wanted);
      forget_facts(facts);
      return second;
    }
    const Comparison c = comparison(e, wanted);
    if (!c.found) return false;
    const Linear back = c.apart.times(-1);
    switch (c.op) {
      case ir::BinaryOp::lt: return holds(c.apart - 1);
      case ir::BinaryOp::le: return holds(c.apart);
      case ir::BinaryOp::gt: return holds(back - 1);
      case ir::BinaryOp::ge: return holds(back);
      case ir::BinaryOp::eq: return holds(c.apart) && holds(back);
      default: return holds(c.apart - 1) || holds(back - 1);
    }
  }

  void assume_forms(const ir::Expr& e, bool holds_here) {
    if (e.lanes() > 1) return;
    if (const ir::Expr bound = e.as<ir::Var>() ? condition_of(e) : ir::Expr()) return assume_forms(bound, holds_here);
    if (const auto* n = e.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not)
      return assume_forms(n->a, !holds_here);
    if (const auto* n = e.as<ir::Binary>(); n && is_logical(*n)) {
      if ((n->op == ir::BinaryOp::logical_and) != holds_here) return;  // one of both, and which is not known
      assume_forms(n->a, holds_here);
      return assume_forms(n->b, holds_here);
    }
    const Comparison c = comparison(e, holds_here);
    if (!c.found) return;
    const Linear back = c.apart.times(-1);
    switch (c.op) {
      case ir::BinaryOp::lt: return know(c.apart - 1);
      case ir::BinaryOp::le: return know(c.apart);
      case ir::BinaryOp::gt: return know(back - 1);
      case ir::BinaryOp::ge: return know(back);
      case ir::BinaryOp::eq: return know(c.apart), know(back);
      default: return unequal(c.apart, back);
    }
  }

  /// Two numbers that differ, of which one is known not to be the less.
  void unequal(const Linear& apart, const Linear& back) {
    if (never_negative(apart, true))
      know(apart - 1);
    else if (never_negative(back, true))
      know(back - 1);
  }

  Vector<Bound> bound_;  // the innermost last
  Vector<Assumption> assumptions_;
};

}  // namespace cortex::pass
