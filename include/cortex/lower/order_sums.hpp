// Sums of products over several axes, with what does not depend on one of them outside of the sum over that one, where
// that is a product with a matrix: of the sum of the children and not of each, or of a vector and not of each of its
// elements.
//
//   sum(k, sum(j, U[i,j] * h[k,j]))               ->   sum(j, U[i,j] * sum(k, h[k,j]))
//   sum(k, sum(j, sum(f, x[k,f] * W[f,i,j]) * h[k,j]))
//                                                 ->   sum(j, sum(f, W[f,i,j] * sum(k, x[k,f] * h[k,j])))
//   sum(a, sum(b, l[a] * W[i,a,b] * r[b]))        ->   sum(a, l[a] * sum(b, W[i,a,b] * r[b]))
//
// While reductions are split (`split_reductions`).
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower::detail {

/// Orders one sum. `outputs`: the variables for each value of which it is computed; `for_each_child`: inside of another
/// sum over children; `in_tiles`: every sum is to be a product with a weight, as on tensor cores.
class SumOrderer {
 public:
  SumOrderer(const Vector<ir::Expr>& outputs, bool for_each_child, bool in_tiles)
      : outputs_(outputs), for_each_child_(for_each_child), in_tiles_(in_tiles) {}

  /// The sum the cheaper way round; empty: it is no such sum.
  ir::Expr run(const ir::Reduce& reduce) const {
    const bool of_children = reduce.axis.dim.kind() == DimKind::child;
    const bool sums = reduce.op == ir::ReduceOp::sum && is_float(reduce.type.dtype);
    if (!sums || (!of_children && reduce.axis.dim.kind() != DimKind::dense)) return {};
    SumOfProducts sum;
    sum.axes.push_back(reduce.axis);
    Vector<ir::Expr> places = outputs_;
    if (!of_children) places.push_back(reduce.axis.var);
    open(reduce.body, reduce.axis.var, places, sum);
    if (sum.axes.size() < 2 || is_used_twice(sum)) return {};
    return of_children ? of_sum_of_children(sum) : of_vector(sum);
  }

 private:
  struct SumOfProducts {
    Vector<ir::ReduceAxis> axes;  // from the outermost on
    Vector<ir::Expr> factors;
  };
  /// Adds the factors of `e` to `sum`, and the axes of sums among them that are products with a matrix, by `places` and
  /// what they sum up over: but those of weights alone, which are one matrix, and of so many terms as `var` says.
  static void open(const ir::Expr& e, const ir::Expr& var, const Vector<ir::Expr>& places, SumOfProducts& sum) {
    const auto* product = e.as<ir::Binary>();
    const auto* nested = e.as<ir::Reduce>();
    if (product && product->op == ir::BinaryOp::mul) {
      open(product->a, var, places, sum);
      return open(product->b, var, places, sum);
    }
    const bool opens = nested && nested->op == ir::ReduceOp::sum && nested->axis.dim.kind() == DimKind::dense &&
                       has_matrix(nested->body, places, {nested->axis.var}) && is_of_nodes(e) &&
                       !ir::uses(nested->axis.extent, var);
    if (!opens) return sum.factors.push_back(e);
    sum.axes.push_back(nested->axis);
    open(nested->body, var, places, sum);
  }
  /// Whether a sum among the factors is one that was opened: x * sigmoid(x) has its value twice.
  static bool is_used_twice(const SumOfProducts& sum) {
    PointerSet vars;
    bool twice = false;
    for (const ir::ReduceAxis& axis : sum.axes) twice |= !vars.insert(axis.var.get());
    for (const ir::Expr& factor : sum.factors)
      ir::visit_with(factor, [&](const ir::Reduce& own) { twice |= vars.contains(own.axis.var.get()); });
    return twice;
  }

  ir::Expr of_sum_of_children(const SumOfProducts& sum) const {
    Vector<ir::Expr> dense;
    for (std::size_t a = 1; a < sum.axes.size(); ++a) dense.push_back(sum.axes[a].var);
    const Sides sides = sides_of(sum, sum.axes[0].var);
    const bool matrix =
        any_of(sides.others, [&](const ir::Expr& e) { return is_matrix(e, outputs_, dense) && uses_all(e, dense); });
    if (!matrix || !sides.summed || for_each_child_) return {};
    if (!ir::uses_any(sides.summed, dense) || uses_all(sides.summed, outputs_)) return {};
    ir::Expr result = product_of(sides.others) * ir::Reduce::make(ir::ReduceOp::sum, sum.axes[0], sides.summed);
    for (std::size_t a = sum.axes.size(); a-- > 1;) result = ir::Reduce::make(ir::ReduceOp::sum, sum.axes[a], result);
    return result;
  }

  /// Of the two ways round, the one that keeps fewer sums: those that are the same for all outputs, else the shorter
  /// row of them for each; as it is written where that is alike.
  ir::Expr of_vector(const SumOfProducts& sum) const {
    if (sum.axes.size() != 2 || in_tiles_) return {};
    Sides sides[2];
    bool possible[2], keeps[2];
    for (std::size_t inner = 0; inner < 2; ++inner) {
      sides[inner] = sides_of(sum, sum.axes[inner].var);
      const auto multiplies = [&](const ir::Expr& factor) {
        return is_matrix(factor, {sum.axes[1 - inner].var}, {sum.axes[inner].var});
      };
      possible[inner] = any_of(sum.factors, multiplies) && !sides[inner].others.empty();
      keeps[inner] = sides[inner].summed && ir::uses_any(sides[inner].summed, outputs_);
    }
    const bool shorter = keeps[0] && sum.axes[0].dim.extent() > sum.axes[1].dim.extent();
    const std::size_t inner = possible[0] && (!possible[1] || (keeps[1] && (!keeps[0] || shorter))) ? 0 : 1;
    if (!possible[inner]) return {};
    const ir::Expr product = ir::Reduce::make(ir::ReduceOp::sum, sum.axes[inner], sides[inner].summed);
    return ir::Reduce::make(ir::ReduceOp::sum, sum.axes[1 - inner], product_of(sides[inner].others) * product);
  }

  /// The product of the factors that depend on `var`, which is empty where there are none, and the others.
  struct Sides {
    ir::Expr summed;
    Vector<ir::Expr> others;
  };
  static Sides sides_of(const SumOfProducts& sum, const ir::Expr& var) {
    Vector<ir::Expr> summed, others;
    for (const ir::Expr& factor : sum.factors) (ir::uses(factor, var) ? summed : others).push_back(factor);
    return {product_of(summed), std::move(others)};
  }
  static ir::Expr product_of(const Vector<ir::Expr>& factors) {
    ir::Expr product;
    for (const ir::Expr& factor : factors) product = product ? product * factor : factor;
    return product;
  }

  const Vector<ir::Expr>& outputs_;
  const bool for_each_child_, in_tiles_;
};

}  // namespace cortex::lower::detail
