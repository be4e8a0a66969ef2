// Products with matrices by which nodes are worked on together: with one that the node chooses by a number of its own,
// and of the states of a child that a fold goes through, which the child can make itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::ra {

/// The number by which nodes choose among so many matrices.
struct MatrixKey {
  ir::Expr number;  // empty: there is none
  std::int64_t matrices = 0;
};

/// Whether index `d` of `load` is that number. Where it is an index among more or fewer it says something else.
inline bool chooses(const ir::Load& load, std::size_t d, const MatrixKey& key) {
  return load.buffer->role == ir::Role::weight && load.buffer->dims[d].extent() == key.matrices &&
         ir::equal(load.indices[d], key.number);
}

/// How many elements of weights a node multiplies with in a sum that it chooses by `key`, and that the sum goes over.
inline std::int64_t elements_chosen(const ir::Reduce& sum, const MatrixKey& key) {
  std::int64_t elements = 0;
  if (sum.axis.dim.kind() != DimKind::dense) return elements;
  ir::visit_with(sum.body, [&](const ir::Load& load) {
    if (load.indices.size() < 3) return;
    bool summed = false, chosen = false;
    std::int64_t size = 1;
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      summed |= load.indices[d].same_as(sum.axis.var);
      if (chooses(load, d, key))
        chosen = true;
      else
        size *= std::max<std::int64_t>(load.buffer->dims[d].extent(), 1);
    }
    if (summed && chosen) elements += size;
  });
  return elements;
}

/// An output index, or what a sum goes over.
struct IndexVar {
  ir::Expr var;
  Dim dim;
};

/// A sum of products of one child's states with weights, for each of some outputs. It asks nothing of the node, and of
/// the child at most by which number it chooses all matrices of which it chooses one: what else that says of itself may
/// mean nothing to the nodes that are no such child.
struct ChildProduct {
  ir::Expr step;              // to the child
  ir::Expr sum;               // over the child
  MatrixKey key;              // over the child
  std::int64_t elements = 0;  // of the matrices; 0: it is no such product
  bool added_up = false;      // the fold adds up such sums, and nothing else
};

namespace detail {

/// `e` over `child` in place of the one step from `node` to a child that a fold goes through; empty: it is made of
/// something else of the node, or of none or several children, or of a child's position.
inline ir::Expr over_child(const ir::Expr& e, const ir::Expr& node, const ir::Expr& child, ir::Expr& step) {
  bool several = false;
  const ir::Expr result = ir::mutate_with(e, [&](auto& self, const ir::UfCall& call) -> ir::Expr {
    if (call.uf.kind != ir::UfKind::kth_child || !call.args[0].same_as(node)) return self.children(call);
    const ir::Expr found = ir::handle_of(call);
    several |= step && !ir::equal(step, found);
    step = found;
    return child;
  });
  if (!step || several) return {};
  const ir::Expr& k = step.as<ir::UfCall>()->args[1];
  return k.as<ir::Var>() && !ir::uses_any(result, {node, k}) ? result : ir::Expr();
}

/// What one load contributes to a product over `child`.
class ChildProductReader {
 public:
  ChildProductReader(const ir::Expr& child, const Vector<IndexVar>& outputs,
                     FunctionRef<bool(const ir::Buffer&)> is_state)
      : child_(child), outputs_(outputs), is_state_(is_state) {}

  ChildProduct read(const ir::Expr& step, const ir::Expr& sum) {
    const ir::Expr& summed = sum.as<ir::Reduce>()->axis.var;
    const ir::Expr rest = ir::mutate_with(sum, [&](auto& self, const ir::Load& load) -> ir::Expr {
      if (load.buffer->role == ir::Role::weight) return weight(load, summed);
      const bool is_of_child = is_state_(load.buffer) && load.indices[0].same_as(child_);
      (is_of_child ? states_ : others_) = true;
      return self.children(load);
    });
    ir::visit_with(
        rest, [&](const ir::UfCall&) { others_ = true; },
        [&](const ir::Reduce& r) { others_ |= r.axis.dim.kind() != DimKind::dense; });
    if (!states_ || others_) elements_ = 0;
    return {step, sum, key_, elements_, false};
  }

 private:
  /// Counts a matrix. Returns what is left of its indices without the number by which it is chosen.
  ir::Expr weight(const ir::Load& load, const ir::Expr& summed) {
    Vector<ir::Expr> rest = load.indices;
    bool of_output = false, of_summed = false, plain = true, chosen = false;
    std::int64_t size = 1;
    for (std::size_t d = 0; d < rest.size(); ++d) {
      const std::int64_t extent = load.buffer->dims[d].extent();
      of_output |= any_of(outputs_, [&](const IndexVar& output) { return ir::uses(rest[d], output.var); });
      of_summed |= rest[d].same_as(summed);
      if (!ir::uses(rest[d], child_)) {
        plain &= bool(rest[d].as<ir::Var>());
        size *= std::max<std::int64_t>(extent, 1);
        continue;
      }
      chosen = true;
      if (!key_.number) key_ = {rest[d], extent};
      others_ |= !chooses(load, d, key_);
      rest[d] = ir::imm(0);
    }
    const bool is_matrix = of_output && of_summed;
    if (is_matrix) elements_ += size;
    others_ |= chosen && !(is_matrix && plain);
    return ir::Load::make(load.buffer, std::move(rest));
  }

  const ir::Expr& child_;
  const Vector<IndexVar>& outputs_;
  FunctionRef<bool(const ir::Buffer&)> is_state_;
  MatrixKey key_;
  std::int64_t elements_ = 0;
  bool states_ = false, others_ = false;
};

}  // namespace detail

/// `e`, a value of `node` for each of the outputs, with what `f` says in place of each product of a child: itself where
/// that is empty. `child`: the variable that the products are over. `is_state`: of the recursion.
inline ir::Expr replace_child_products(const ir::Expr& e, const ir::Expr& node, const ir::Expr& child,
                                       Vector<IndexVar> outputs, FunctionRef<bool(const ir::Buffer&)> is_state,
                                       FunctionRef<ir::Expr(const ChildProduct&, const Vector<IndexVar>& outputs)> f) {
  ir::Expr added_up;
  Vector<ir::ReduceAxis> folds;
  // A step to a child that is there: by the variable of a fold over the same children.
  const auto is_there = [&](const ir::Expr& step) {
    const auto* call = step.as<ir::UfCall>();
    return any_of(folds, [&](const ir::ReduceAxis& fold) {
      const auto* count = fold.extent.template as<ir::UfCall>();
      return fold.var.same_as(call->args[1]) && count && count->uf.kind == ir::UfKind::num_children &&
             count->uf.accessor == call->uf.accessor && count->args[0].same_as(node);
    });
  };
  return ir::mutate_with(e, [&](auto& self, const ir::Reduce& reduce) -> ir::Expr {
    if (reduce.axis.dim.kind() != DimKind::dense) {
      if (reduce.op == ir::ReduceOp::sum) added_up = reduce.body;
      folds.push_back(reduce.axis);
      ir::Expr result = self.children(reduce);
      folds.pop_back();
      return result;
    }
    ir::Expr step;
    if (const ir::Expr sum = detail::over_child(ir::handle_of(reduce), node, child, step); sum && is_there(step)) {
      ChildProduct product = detail::ChildProductReader(child, outputs, is_state).read(step, sum);
      product.added_up = ir::handle_of(reduce).same_as(added_up);
      if (product.elements)
        if (ir::Expr other = f(product, outputs)) return other;
    }
    outputs.push_back({reduce.axis.var, reduce.axis.dim});
    ir::Expr result = self.children(reduce);
    outputs.pop_back();
    return result;
  });
}

}  // namespace cortex::ra
