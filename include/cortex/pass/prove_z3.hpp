// Asks Z3 for what sums of facts do not prove, such as conditions that hold together or in cases, and remainders. The
// only file that includes Z3's headers, and only where the build has Z3 (CORTEX_Z3=1).
//
//   x % 4 == 2, x > y, y >= 2 * z, z > 1   ->   x >= 6
//
// Z3 gets a number of steps (`rlimit`) and no time limit: it proves the same on a machine that is slow or busy, and the
// code that comes out is the same each time. One context serves a whole compilation; each question is a solver of its
// own, so that answers do not depend on the questions before; one that was asked already is not asked again. Paper
// section 5.1 and appendix A.
#pragma once

#include <z3.h>

#include <cstdint>
#include <map>
#include <vector>

#include "cortex/base/vector.hpp"
#include "cortex/pass/scope.hpp"

namespace cortex::pass {

class Z3Prover {
 public:
  Z3Prover() {
    const Z3_config config = Z3_mk_config();
    context_ = Z3_mk_context(config);
    Z3_del_config(config);
    Z3_set_error_handler(context_, [](Z3_context, Z3_error_code) {});  // an error is no proof
    integers_ = Z3_mk_int_sort(context_);
  }
  ~Z3Prover() { Z3_del_context(context_); }
  Z3Prover(const Z3Prover&) = delete;
  Z3Prover& operator=(const Z3Prover&) = delete;

  /// Whether `form` is never negative at `scope`.
  bool never_negative(Scope& scope, const Linear& form) {
    start(scope);
    const Z3_ast negation = Z3_mk_lt(context_, sum(form), constant(0));
    return unsatisfiable(negation);
  }

  /// Whether `condition` is `wanted` at `scope`.
  bool entails(Scope& scope, const ir::Expr& condition, bool wanted) {
    start(scope);
    const Z3_ast holds = formula(condition);
    return holds && unsatisfiable(wanted ? Z3_mk_not(context_, holds) : holds);
  }

 private:
  static constexpr unsigned step_limit = 60000;
  static constexpr std::size_t most_atoms = 300;  // a question about more is too large to be answered in so few steps

  void start(Scope& scope) {
    scope_ = &scope;
    numbers_.clear();
    pending_.clear();
    asserted_.clear();
  }

  /// Whether nothing that is known of the scope allows `negation`.
  bool unsatisfiable(Z3_ast negation) {
    asserted_.push_back(negation);
    for (const Linear& fact : scope_->facts()) know(fact);
    for (const Scope::Assumption& assumption : scope_->assumptions())
      if (const Z3_ast holds = formula(assumption.condition))
        asserted_.push_back(assumption.holds ? holds : Z3_mk_not(context_, holds));
    while (!pending_.empty() && numbers_.size() < most_atoms) {
      const int atom = pending_.back();
      pending_.pop_back();
      define(atom);
    }
    const auto [known, is_new] = answers_.try_emplace(std::vector<Z3_ast>(asserted_.begin(), asserted_.end()));
    if (is_new) known->second = solve();
    return known->second;
  }

  /// Whether nothing is as `asserted_` says.
  bool solve() {
    const Z3_solver solver = Z3_mk_simple_solver(context_);
    Z3_solver_inc_ref(context_, solver);
    const Z3_params params = Z3_mk_params(context_);
    Z3_params_inc_ref(context_, params);
    Z3_params_set_uint(context_, params, Z3_mk_string_symbol(context_, "rlimit"), step_limit);
    Z3_solver_set_params(context_, solver, params);
    for (const Z3_ast fact : asserted_) Z3_solver_assert(context_, solver, fact);
    const bool result = Z3_solver_check(context_, solver) == Z3_L_FALSE;
    Z3_params_dec_ref(context_, params);
    Z3_solver_dec_ref(context_, solver);
    return result && Z3_get_error_code(context_) == Z3_OK;
  }

  void know(const Linear& fact) {
    if (!fact.lost) asserted_.push_back(Z3_mk_ge(context_, sum(fact), constant(0)));
  }

  // ---- terms ----

  Z3_ast constant(std::int64_t value) { return Z3_mk_int64(context_, value, integers_); }
  Z3_ast add(Z3_ast a, Z3_ast b) {
    const Z3_ast both[] = {a, b};
    return Z3_mk_add(context_, 2, both);
  }
  Z3_ast multiply(Z3_ast a, Z3_ast b) {
    const Z3_ast both[] = {a, b};
    return Z3_mk_mul(context_, 2, both);
  }
  Z3_ast greater(Z3_ast a, Z3_ast b) { return Z3_mk_ge(context_, a, b); }

  /// The number that stands for an atom; what is known of it is said once, later.
  Z3_ast number(int atom) {
    for (const Number& known : numbers_)
      if (known.atom == atom) return known.term;
    const Z3_ast term = Z3_mk_const(context_, Z3_mk_int_symbol(context_, atom), integers_);
    numbers_.push_back({atom, term});
    pending_.push_back(atom);
    return term;
  }

  Z3_ast sum(const Linear& form) {
    Z3_ast total = constant(form.constant);
    for (const Linear::Term& term : form.terms) total = add(total, multiply(constant(term.by), number(term.atom)));
    return total;
  }

  /// Asserts what is known of an atom. Products of atoms stay numbers with facts: of arithmetic that is not linear, Z3
  /// mostly uses up its steps.
  void define(int atom) {
    for (const Linear& fact : scope_->facts_of(atom, true)) know(fact);
    const Atom& known = scope_->atoms()[atom];
    const Z3_ast self = number(atom);
    const auto arg = [&](std::size_t i) { return sum(known.args[i]); };
    switch (known.symbol) {
      case Symbol::quotient:
      case Symbol::remainder: {
        if (!known.args[1].is_constant()) return;
        const Z3_ast a = arg(0), b = arg(1);
        const bool quotient = known.symbol == Symbol::quotient;
        const Z3_ast value = quotient ? Z3_mk_div(context_, a, b) : Z3_mk_mod(context_, a, b);
        return asserted_.push_back(Z3_mk_eq(context_, self, value));
      }
      case Symbol::minimum:
      case Symbol::maximum: {
        const Z3_ast a = arg(0), b = arg(1);
        const bool least = known.symbol == Symbol::minimum;
        return asserted_.push_back(
            Z3_mk_eq(context_, self, Z3_mk_ite(context_, least ? greater(b, a) : greater(a, b), a, b)));
      }
      case Symbol::choice: {
        const Z3_ast a = arg(0), b = arg(1), holds = known.expr ? formula(known.expr) : nullptr;
        if (holds) return asserted_.push_back(Z3_mk_eq(context_, self, Z3_mk_ite(context_, holds, a, b)));
        const Z3_ast either[] = {Z3_mk_eq(context_, self, a), Z3_mk_eq(context_, self, b)};
        return asserted_.push_back(Z3_mk_or(context_, 2, either));
      }
      default: return;
    }
  }

  // ---- conditions ----

  /// The condition as Z3 takes it; null for what it is not told.
  Z3_ast formula(const ir::Expr& e) {
    if (e.lanes() > 1) return nullptr;
    if (const auto known = ir::as_int(e)) return *known ? Z3_mk_true(context_) : Z3_mk_false(context_);
    if (const ir::Expr bound = e.as<ir::Var>() ? scope_->condition_of(e) : ir::Expr()) return formula(bound);
    if (const auto* n = e.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not) {
      const Z3_ast a = formula(n->a);
      return a ? Z3_mk_not(context_, a) : nullptr;
    }
    if (const auto* call = e.as<ir::UfCall>(); call && call->uf.kind == ir::UfKind::is_leaf)
      return greater(sum(scope_->linear(call->args[0])), sum(scope_->atoms().form(Symbol::num_internal)));
    const auto* n = e.as<ir::Binary>();
    if (!n) return nullptr;
    if (n->op == ir::BinaryOp::logical_and || n->op == ir::BinaryOp::logical_or) {
      const Z3_ast both[] = {formula(n->a), formula(n->b)};
      if (!both[0] || !both[1]) return nullptr;
      return n->op == ir::BinaryOp::logical_and ? Z3_mk_and(context_, 2, both) : Z3_mk_or(context_, 2, both);
    }
    if (!ir::is_comparison(n->op) || !is_int(n->a.dtype())) return nullptr;
    const Z3_ast a = sum(scope_->linear(n->a)), b = sum(scope_->linear(n->b));
    switch (n->op) {
      case ir::BinaryOp::lt: return Z3_mk_lt(context_, a, b);
      case ir::BinaryOp::le: return Z3_mk_le(context_, a, b);
      case ir::BinaryOp::gt: return Z3_mk_gt(context_, a, b);
      case ir::BinaryOp::ge: return Z3_mk_ge(context_, a, b);
      case ir::BinaryOp::eq: return Z3_mk_eq(context_, a, b);
      default: return Z3_mk_not(context_, Z3_mk_eq(context_, a, b));
    }
  }

  struct Number {
    int atom;
    Z3_ast term;
  };

  Z3_context context_;
  Z3_sort integers_;
  Scope* scope_ = nullptr;
  Vector<Number> numbers_;
  Vector<int> pending_;  // atoms of which nothing has been said
  Vector<Z3_ast> asserted_;
  // What was asked, and the answer: equal expressions of a context are one.
  std::map<std::vector<Z3_ast>, bool> answers_;
};

}  // namespace cortex::pass
