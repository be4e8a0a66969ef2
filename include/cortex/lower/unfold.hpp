// A fold over few children becomes as many terms as a node may have children, where that makes of it products that all
// nodes of a batch have in common, or values of a child that were of a pair of children.
//
//   sum(k in children(n), sum(j, U[k,i,j] * h[child(n,k),j]))
//     ->                                                       (at most two children)
//   select(0 < num_children(n), sum(j, U[0,i,j] * h[child(n,0),j]), 0)
//     + select(1 < num_children(n), sum(j, U[1,i,j] * h[child(n,1),j]), 0)
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower {

/// Of how many children a fold inside another one may be that reads the nodes of both.
inline constexpr int most_in_pairs = 8;

namespace detail {

class Unfolder {
 public:
  explicit Unfolder(const ra::Graph& graph) : graph_(graph) {}

  ir::Expr operator()(const ir::Expr& e) {
    return ir::mutate_with(e, [&](auto& self, const ir::Reduce& reduce) -> ir::Expr {
      if (reduce.axis.dim.kind() != DimKind::child) return self.children(reduce);
      if (is_worth_it(reduce)) return self(terms_of(reduce));
      around_.push_back(reduce.axis.var);
      const ir::Expr result = self.children(reduce);
      around_.pop_back();
      return result;
    });
  }

 private:
  bool is_worth_it(const ir::Reduce& reduce) const {
    // Of many positions most have no child, and matrices for them are read in vain.
    constexpr int most_matrices = 3;
    const bool matrices = graph_.max_children <= most_matrices && has_matrix_by(reduce.axis.var, reduce.body);
    return is_over_children(reduce) && is_float(reduce.type.dtype) && reads_states_alone(reduce) &&
           (matrices || has_sums_of_pairs(reduce));
  }

  /// Parents and members are folded over too, of which there may be any number.
  bool is_over_children(const ir::Reduce& fold) const {
    const auto* count = fold.axis.extent.as<ir::UfCall>();
    return count && count->uf.kind == ir::UfKind::num_children &&
           graph_.containers[std::size_t(count->uf.accessor)].relation == ra::Relation::children;
  }

  /// Whether `e` holds a product with a matrix that `position` chooses.
  static bool has_matrix_by(const ir::Expr& position, const ir::Expr& e) {
    bool found = false;
    ir::visit_with(e, [&](const ir::Reduce& sum) {
      if (sum.axis.dim.kind() != DimKind::dense) return;
      ir::visit_with(sum.body, [&](const ir::Load& load) {
        bool by_position = false, by_summed = false;
        for (const ir::Expr& index : load.indices) {
          by_position |= ir::uses(index, position);
          by_summed |= ir::uses(index, sum.axis.var);
        }
        found |= load.buffer->role == ir::Role::weight && load.indices.size() > 2 && by_position && by_summed;
      });
    });
    return found;
  }

  /// Whether a reduction in the fold reads its child and that of a fold around it, and is not one nest with this one.
  bool has_sums_of_pairs(const ir::Reduce& fold) const {
    if (const auto* nested = fold.body.as<ir::Reduce>(); nested && nested->op == fold.op) return false;
    bool found = false;
    ir::visit_with(fold.body, [&](const ir::Reduce& sum) {
      const ir::Expr e = ir::handle_of(sum);
      found |= sum.axis.dim.kind() == DimKind::dense && ir::uses(e, fold.axis.var) && ir::uses_any(e, around_);
    });
    return found;
  }

  /// Whether all that is read of a child are its states: these are zero where there is no such child.
  static bool reads_states_alone(const ir::Reduce& fold) {
    const ir::Expr& k = fold.axis.var;
    bool alone = true;
    ir::visit_with(
        fold.body,
        [&](const ir::UfCall& call) {
          const bool of_child = any_of(call.args, [&](const ir::Expr& argument) { return ir::uses(argument, k); });
          const bool child = call.uf.kind == ir::UfKind::kth_child && call.args[1].same_as(k);
          alone &= !of_child || (child && !ir::uses(call.args[0], k));
        },
        [&](const ir::Load& load) {
          const bool of_child =
              !load.indices.empty() && load.indices[0].as<ir::UfCall>() && ir::uses(load.indices[0], k);
          alone &= !of_child || load.buffer->role == ir::Role::state;
        });
    return alone;
  }

  ir::Expr terms_of(const ir::Reduce& fold) const {
    const ir::Expr none = ir::constant(ir::identity(fold.op), fold.type);
    ir::Expr all;
    for (int k = 0; k < graph_.max_children; ++k) {
      const ir::Expr there = ir::binary(ir::BinaryOp::lt, ir::imm(k), fold.axis.extent);
      const ir::Expr term = ir::substitute(fold.body, {{fold.axis.var.get(), ir::imm(k)}});
      const ir::Expr one = ir::Select::make(there, term, none);
      all = all ? ir::combine(fold.op, all, one) : one;
    }
    return all;
  }

  const ra::Graph& graph_;
  Vector<ir::Expr> around_;  // the children of the folds around the place
};

}  // namespace detail

/// Nothing where how many children a node may have is not declared, or are many.
inline void unfold(Vector<Recursion>& recursions, const ra::Graph& graph) {
  if (graph.max_children < 1 || graph.max_children > most_in_pairs) return;
  detail::Unfolder unfolded(graph);
  for (Recursion& recursion : recursions)
    for (Version& version : recursion.versions)
      for (Definition& d : version.definitions) d.body = unfolded(d.body);
}

}  // namespace cortex::lower
