// Products that a contraction sums up lose the factors that are the same for all that is summed, and have what is of
// weights alone as one factor: whichever way a model writes a product with a matrix, it is a product with a matrix.
//
//   sum(j, z[n,i] * W[i,j] * s[n,j] * mask[i,j])      ->   z[n,i] * sum(j, W[i,j] * mask[i,j] * s[n,j])
//   sum(j, sum(k, P[i,j] * s[k,j]))                   ->   sum(j, P[i,j] * sum(k, s[k,j]))
//
// A choice by indices between such products and 0, as at the edges of a grid, becomes one of what is multiplied:
//
//   sum(d, select(x + d >= 1, W[i,d] * h[n,x + d - 1], 0))
//     ->
//   sum(d, W[i,d] * select(x + d >= 1, h[n,x + d - 1], 0))
//
// Factors that are the same for all outputs, such as a child's weight, stay with what is multiplied, and a sum that is
// all of another one is left to `split_reductions`. Before sums are divided and reductions split; what is of weights
// alone is then computed once (`hoist`).
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower {

namespace detail {

/// Rewrites the contractions in one definition's body.
class SumFactorer {
 public:
  explicit SumFactorer(const Vector<ir::Expr>& outputs) : outputs_(outputs) {}

  ir::Expr run(const ir::Expr& e) {
    return ir::mutate_with(e, [&](auto& self, const ir::Reduce& sum) -> ir::Expr {
      if (sum.op != ir::ReduceOp::sum || !is_float(sum.type.dtype)) return self.children(sum);
      if (sum.axis.dim.kind() != DimKind::dense) {
        const ir::Expr inside = self.children(sum);
        return without_matrix(*inside.as<ir::Reduce>());
      }
      const bool alone = &sum == body_.get();
      body_ = sum.body;
      around_.push_back(sum.axis.var);
      const ir::Expr body = with_chosen_factors(self(sum.body));
      around_.pop_back();
      const ir::Expr product = factored(sum.axis, body, alone);
      if (product) return product;
      return body.same_as(sum.body) ? ir::handle_of(sum) : ir::Reduce::make(sum.op, sum.axis, body);
    });
  }

 private:
  struct Factor {
    ir::Expr e;
    bool divides = false;
  };

  /// The sum over `axis` of the product `body`, times what leaves it; empty: nothing changes. `alone`: it is all that
  /// another one sums up.
  ir::Expr factored(const ir::ReduceAxis& axis, const ir::Expr& body, bool alone) const {
    Vector<Factor> factors, out, of_weights, rest, staying;
    collect(body, false, factors);
    if (!any_of(factors, [&](const Factor& f) { return has_matrix(f.e, outputs_, {axis.var}); })) return {};
    for (const Factor& f : factors) {
      const bool differs = ir::uses_any(f.e, around_);
      const bool leaves = !ir::uses(f.e, axis.var) && !(alone && differs) && (differs || ir::uses_any(f.e, outputs_));
      (leaves ? out : is_of_weights(f.e) ? of_weights : rest).push_back(f);
      if (!leaves) staying.push_back(f);
    }
    if (out.empty() && (of_weights.size() < 2 || rest.empty())) return {};
    const bool apart = of_weights.size() > 1 && !rest.empty();  // else what stays keeps its order
    const ir::Expr product = apart ? product_of({}, of_weights) * product_of({}, rest) : product_of({}, staying);
    return product_of(ir::Reduce::make(ir::ReduceOp::sum, axis, product), out);
  }

  /// A sum over children with the matrix that it multiplies each of them with outside of it, if what is left is not
  /// another sum for each element of the matrix.
  ir::Expr without_matrix(const ir::Reduce& sum) const {
    Vector<Factor> factors, out, rest;
    collect(sum.body, false, factors);
    for (const Factor& f : factors) {
      const bool leaves = !f.divides && !ir::uses(f.e, sum.axis.var) && has_matrix(f.e, outputs_, around_);
      (leaves ? out : rest).push_back(f);
    }
    if (out.empty() || rest.empty()) return ir::handle_of(sum);
    const ir::Expr left = product_of({}, rest);
    const bool of_elements = ir::uses_any(left, around_) && uses_all(left, outputs_);
    if (of_elements) return ir::handle_of(sum);
    return product_of({}, out) * ir::Reduce::make(sum.op, sum.axis, left);
  }

  /// A choice by indices alone between a sum of products and 0 as that sum, with a choice in each product. What weights
  /// have a choice for at each of their elements stays: it is of them that such a choice is.
  ir::Expr with_chosen_factors(const ir::Expr& e) const {
    const auto* either = e.as<ir::Select>();
    if (!either) return e;
    const bool first = ir::as_float(either->else_value) == 0.0, second = ir::as_float(either->then_value) == 0.0;
    const bool of_indices = !is_of_nodes(either->condition) && !is_of_weights(either->condition);
    if (first == second || !of_indices || !ir::uses_any(either->condition, around_)) return e;
    return with_choices(first ? either->then_value : either->else_value, *either, first);
  }
  ir::Expr with_choices(const ir::Expr& e, const ir::Select& either, bool first) const {
    const auto* binary = e.as<ir::Binary>();
    if (const auto* unary = e.as<ir::Unary>(); unary && unary->op == ir::UnaryOp::neg)
      return ir::Unary::make(unary->op, with_choices(unary->a, either, first));
    if (binary && (binary->op == ir::BinaryOp::add || binary->op == ir::BinaryOp::sub)) {
      const ir::Expr a = with_choices(binary->a, either, first);
      return ir::binary(binary->op, a, with_choices(binary->b, either, first));
    }
    Vector<Factor> factors, of_weights, rest;
    collect(e, false, factors);
    for (const Factor& f : factors) {
      const bool is_kernel = !f.divides && is_of_weights(f.e) && ir::uses_any(f.e, around_);
      (is_kernel && !has_all_of(f.e, either.condition) ? of_weights : rest).push_back(f);
    }
    const ir::Expr chosen = rest.empty() || of_weights.empty() ? e : product_of({}, rest);
    const ir::Expr choice =
        ir::Select::make(either.condition, first ? chosen : either.then_value, first ? either.else_value : chosen);
    return chosen.same_as(e) ? choice : ir::binary(ir::BinaryOp::mul, product_of({}, of_weights), choice);
  }
  /// Whether `e` uses all variables that `condition` does.
  bool has_all_of(const ir::Expr& e, const ir::Expr& condition) const {
    const auto has = [&](const ir::Expr& var) { return ir::uses(e, var) || !ir::uses(condition, var); };
    return all_of(outputs_, has) && all_of(around_, has);
  }

  static void collect(const ir::Expr& e, bool divides, Vector<Factor>& factors) {
    const auto* binary = e.as<ir::Binary>();
    if (binary && (binary->op == ir::BinaryOp::mul || (binary->op == ir::BinaryOp::div && !divides))) {
      collect(binary->a, divides, factors);
      collect(binary->b, divides || binary->op == ir::BinaryOp::div, factors);
    } else {
      factors.push_back({e, divides});
    }
  }

  static ir::Expr product_of(ir::Expr result, const Vector<Factor>& factors) {
    for (const Factor& f : factors) {
      const ir::BinaryOp op = f.divides ? ir::BinaryOp::div : ir::BinaryOp::mul;
      if (!result && f.divides) result = ir::constant(1, f.e.type());
      result = result ? ir::binary(op, result, f.e) : f.e;
    }
    return result;
  }

  /// Whether `e` reads tensors, and of weights alone, at no index of a node's.
  static bool is_of_weights(const ir::Expr& e) { return ir::has_loads(e) && !is_of_nodes(e); }

  const Vector<ir::Expr>& outputs_;
  Vector<ir::Expr> around_;  // what the contractions around sum up over
  ir::Expr body_;            // of the innermost of them
};

}  // namespace detail

/// Factors the contractions of every definition.
inline void factor_sums(Vector<Recursion>& recursions) {
  for (Recursion& recursion : recursions)
    for (Version& version : recursion.versions)
      for (Definition& d : version.definitions) {
        const Vector<ir::Expr> outputs = vars_of(d.indices);
        d.body = detail::SumFactorer(outputs).run(d.body);
      }
}

}  // namespace cortex::lower
