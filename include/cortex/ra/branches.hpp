// Which branches are worth a version of the body for each side, beside those on leaves and switches: where nodes read
// the weights of a side each for itself, if the branch is decided at each node, and sides have more to multiply than
// what is computed on either way, which each version then reads for itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ra/recursions.hpp"

namespace cortex::ra {

namespace detail {

/// What the operators of one recursion multiply with weights in the loop over its nodes.
class Products {
 public:
  Products(const Graph& graph, int recursion)
      : graph_(graph),
        recursion_(recursion),
        needed_(operators_of(graph, recursion)),
        direction_(direction_of(graph, recursion)) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      const Op& op = graph.ops[i];
      if (op.kind == OpKind::if_then_else)
        recurrent_.push_back(recurrent_[std::size_t(op.then_op)] || recurrent_[std::size_t(op.else_op)]);
      else
        recurrent_.push_back(op.kind == OpKind::compute && is_recurrent(op.body));
      elements_.push_back(needed_[i] && op.kind == OpKind::compute ? elements_of(op) : 0);
    }
  }

  /// Whether the two sides of branch `i` differ in products that are worth it.
  bool differ_at(int i) const {
    const Op& branch = graph_.ops[std::size_t(i)];
    if (!needed_[std::size_t(i)] || direction_ == Direction::roots) return false;
    const Vector<bool> then = read_by(branch.then_op), otherwise = read_by(branch.else_op);
    std::int64_t of_then = 0, of_else = 0, common = 0;
    for (std::size_t o = 0; o < elements_.size(); ++o)
      (then[o] == otherwise[o] ? common : then[o] ? of_then : of_else) += elements_[o];
    return std::max(of_then, of_else) >= least_elements && of_then + of_else >= common;
  }

 private:
  /// Of fewer a level takes as long in parts, or longer (`docs/measurements.md`).
  static constexpr std::int64_t least_elements = 64 * 64;

  /// Whether a value follows from states of other nodes. All else can be made ahead of a recursion.
  bool is_recurrent(const ir::Expr& e) const {
    bool recurrent = direction_ == Direction::none;
    ir::visit_with(e, [&](const ir::Load& load) {
      const int read = graph_.find(load.buffer);
      if (read < 0) return;
      const bool state = graph_.ops[std::size_t(read)].kind == OpKind::placeholder;
      recurrent |= state ? bool(load.indices[0].as<ir::UfCall>()) : recurrent_[std::size_t(read)];
    });
    return recurrent;
  }

  std::int64_t elements_of(const Op& op) const {
    std::int64_t elements = 0;
    ir::visit_with(op.body, [&](const ir::Reduce& sum) {
      if (sum.axis.dim.kind() != DimKind::dense || !is_recurrent(sum.body)) return;
      ir::visit_with(sum.body, [&](const ir::Load& load) {
        if (load.buffer->role != ir::Role::weight || load.indices.size() < 2) return;
        std::int64_t size = 1;
        bool summed = false;
        for (std::size_t d = 0; d < load.indices.size(); ++d) {
          summed |= load.indices[d].same_as(sum.axis.var);
          const bool of_node = ir::uses(load.indices[d], op.node);
          size *= of_node ? 1 : std::max<std::int64_t>(load.buffer->dims[d].extent(), 1);
        }
        elements += summed ? size : 0;
      });
    });
    return elements;
  }

  /// The operators that `op` is made of, and itself.
  Vector<bool> read_by(int op) const {
    Vector<bool> read(graph_.ops.size());
    read[std::size_t(op)] = true;
    add_read(graph_, read, recursion_);
    return read;
  }

  const Graph& graph_;
  const int recursion_;
  const Vector<bool> needed_;
  const Direction direction_;
  Vector<bool> recurrent_;
  Vector<std::int64_t> elements_;  // of weights, per operator
};

}  // namespace detail

/// By number of the operator: the branches that are worth it; none of a switch.
inline Vector<bool> branches_that_multiply(const Graph& graph) {
  Vector<bool> result(graph.ops.size());
  for (int r = 0; r < num_recursions(graph); ++r) {
    const detail::Products products(graph, r);
    for (std::size_t i = 0; i < graph.ops.size(); ++i)
      if (graph.ops[i].kind == OpKind::if_then_else && graph.ops[i].case_number < 0 && products.differ_at(int(i)))
        result[i] = true;
  }
  return result;
}

}  // namespace cortex::ra
