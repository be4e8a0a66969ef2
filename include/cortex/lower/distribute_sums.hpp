// Products with sums of matrices, and weighed sums of products, become sums of products with one matrix each, which
// are made of the children's weighed sum where that does not matter (`split_reductions`):
//
//   sum(k, sum(j, (a[k] * U[i,j] + b[k] * V[i,j]) * h[k,j]))
//   sum(k, a[k] * sum(j, U[i,j] * h[k,j]) + b[k] * sum(j, V[i,j] * h[k,j]))
//     ->
//   sum(k, sum(j, U[i,j] * (a[k] * h[k,j]))) + sum(k, sum(j, V[i,j] * (b[k] * h[k,j])))
//
// Only where what weighs them is the same for all outputs. Before reductions are split.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower {

namespace detail {

/// Divides one sum. `outputs`: the variables for each value of which it is made.
class SumDivider {
 public:
  explicit SumDivider(const Vector<ir::Expr>& outputs) : outputs_(outputs) {}

  /// The sum of sums with one matrix each; empty: `sum` is no such sum, or one already.
  ir::Expr divide(const ir::Reduce& sum) {
    over_children_ = sum.axis.dim.kind() == DimKind::child;
    const ir::Expr whole = ir::handle_of(sum);
    ir::visit_with(whole, [&](const ir::Reduce& r) {
      if (r.axis.dim.kind() == DimKind::dense) summed_.push_back(r.axis.var);
    });
    collect(whole, {}, {}, false);
    if (!fits_ || !changes_ || matrices_.empty()) return {};
    ir::Expr result;
    for (const Term& term : terms_) {
      ir::Expr nest = term.product;
      for (const ir::ReduceAxis& axis : reversed(term.axes)) nest = ir::Reduce::make(ir::ReduceOp::sum, axis, nest);
      if (!result)
        result = term.negative ? ir::Unary::make(ir::UnaryOp::neg, nest) : nest;
      else
        result = ir::binary(term.negative ? ir::BinaryOp::sub : ir::BinaryOp::add, result, nest);
    }
    return result;
  }

 private:
  struct Term {
    Vector<ir::ReduceAxis> axes;
    ir::Expr product;
    bool negative;
  };

  /// Adds the terms of `e`, times `weight` if there is one, summed over `axes`.
  void collect(const ir::Expr& e, const Vector<ir::ReduceAxis>& axes, const ir::Expr& weight, bool negative) {
    const auto* binary = e.as<ir::Binary>();
    const auto* unary = e.as<ir::Unary>();
    if (const auto* sum = e.as<ir::Reduce>(); sum && sum->op == ir::ReduceOp::sum && can_enter(*sum, axes)) {
      Vector<ir::ReduceAxis> inside = axes;
      inside.push_back(sum->axis);
      changes_ |= bool(weight);
      return collect(sum->body, inside, weight, negative);
    }
    if (binary && (binary->op == ir::BinaryOp::add || binary->op == ir::BinaryOp::sub) && has_matrix(e)) {
      changes_ |= over_children_ || (weight && is_of_nodes(e));
      collect(binary->a, axes, weight, negative);
      return collect(binary->b, axes, weight, negative != (binary->op == ir::BinaryOp::sub));
    }
    if (unary && unary->op == ir::UnaryOp::neg) return collect(unary->a, axes, weight, !negative);
    if (binary && binary->op == ir::BinaryOp::mul && has_matrix(binary->a) != has_matrix(binary->b)) {
      const bool first = has_matrix(binary->a);
      const ir::Expr &other = first ? binary->b : binary->a, &side = first ? binary->a : binary->b;
      return collect(side, axes, weight ? ir::binary(ir::BinaryOp::mul, weight, other) : other, negative);
    }
    add(e, axes, weight, negative);
  }

  /// The sum itself, and of each child one of products.
  bool can_enter(const ir::Reduce& sum, const Vector<ir::ReduceAxis>& axes) const {
    const bool dense = sum.axis.dim.kind() == DimKind::dense;
    return axes.empty() || (over_children_ && axes.size() == 1 && dense && has_matrix(sum.body));
  }

  void add(const ir::Expr& e, const Vector<ir::ReduceAxis>& axes, const ir::Expr& weight, bool negative) {
    if (is_matrix(e, outputs_, summed_)) {
      fits_ &= weight && !ir::uses_any(weight, outputs_) && ir::uses(weight, axes.back().var);
      fits_ &= ir::uses(e, axes.back().var) && !(over_children_ && ir::uses(e, axes[0].var));
      for (const ir::Expr& other : matrices_) fits_ &= !ir::equal(other, e);  // it is read once as it is
      matrices_.push_back(e);
    } else {
      fits_ &= !has_matrix(e) && axes.size() == 1;
    }
    terms_.push_back({axes, weight ? ir::binary(ir::BinaryOp::mul, e, weight) : e, negative});
  }

  bool has_matrix(const ir::Expr& e) const { return lower::has_matrix(e, outputs_, summed_); }

  const Vector<ir::Expr>& outputs_;
  Vector<Term> terms_;
  Vector<ir::Expr> summed_, matrices_;
  bool over_children_ = false, fits_ = true, changes_ = false;
};

}  // namespace detail

/// Divides the sums of every definition.
inline void distribute_sums(Vector<Recursion>& recursions) {
  for (Recursion& recursion : recursions)
    for (Version& version : recursion.versions)
      for (Definition& d : version.definitions) {
        const Vector<ir::Expr> outputs = vars_of(d.indices);
        if (outputs.empty()) continue;
        d.body = ir::mutate_with(d.body, [&](auto& self, const ir::Reduce& sum) -> ir::Expr {
          const bool sums = sum.op == ir::ReduceOp::sum && is_float(sum.type.dtype);
          const ir::Expr divided = sums ? detail::SumDivider(outputs).divide(sum) : ir::Expr();
          return divided ? divided : self.children(sum);
        });
      }
}

}  // namespace cortex::lower
