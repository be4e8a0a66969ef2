// Values that an operator's lambda uses again and again, as in e = e * sigmoid(e), as operators of their own. A lambda
// makes a graph of expressions; whatever reads it, people and passes, reads it written out, where each use is a copy:
// of n steps like that one, 2^n.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ra/graph.hpp"

namespace cortex::ra {

/// How many operations an expression may have when it is written out: an operator's body, and what decides a branch.
inline constexpr double max_operations = 50'000, max_operations_of_condition = 2'000;

namespace detail {

/// Takes the values out of one operator that stand in its body more than once.
class SharedValues {
 public:
  explicit SharedValues(Op& op) : op_(op) {}

  Vector<Op> run() {
    for (const ir::Expr& decides : {op_.condition, op_.key}) {
      if (!decides) continue;
      measure(decides);
      require_size(of(decides).size, max_operations_of_condition);
    }
    if (!op_.body) return {};
    measure(op_.body);
    if (of(op_.body).size <= worth_a_look || of(op_.body).size < 2 * double(values_.size())) return {};
    op_.body = rewritten(op_.body);
    require_size(of(op_.body).size);
    return std::move(parts_);
  }

 private:
  /// Below it, copies cost less than names.
  static constexpr double worth_a_look = 200;

  struct Value {
    ir::Expr expr;  // kept, so that no other comes to have its address
    int uses = 1;
    double size = 1;        // written out
    Vector<ir::Expr> vars;  // those that it depends on but for the node's
  };

  Value& of(const ir::Expr& e) { return values_.find(e.get())->second; }

  /// Notes what `e` is, and that it is used once more. As deep as the expression, and no longer than it has nodes.
  void measure(const ir::Expr& e) {
    if (auto* known = values_.find(e.get())) return void(++known->second.uses);
    Value value{e, 1, 1, {}};
    ir::each_child(*e.get(), [&](const ir::Expr& part) {
      measure(part);
      const Value& inner = of(part);
      value.size = std::min(value.size + inner.size, 1e18);
      for (const ir::Expr& var : inner.vars) add(value.vars, var);
    });
    if (e.as<ir::Var>() && !e.same_as(op_.node)) value.vars.push_back(e);
    if (const auto* reduce = e.as<ir::Reduce>()) {
      axes_.emplace(reduce->axis.var.get(), reduce->axis.dim);
      Vector<ir::Expr> outside;
      for (const ir::Expr& var : value.vars)
        if (!var.same_as(reduce->axis.var)) outside.push_back(var);
      value.vars = std::move(outside);
    }
    values_.emplace(e.get(), std::move(value));
  }

  static bool contains(const Vector<ir::Expr>& vars, const ir::Expr& var) {
    return any_of(vars, [&](const ir::Expr& v) { return v.same_as(var); });
  }
  static void add(Vector<ir::Expr>& vars, const ir::Expr& var) {
    if (!contains(vars, var)) vars.push_back(var);
  }

  /// `e` with reads of new operators in place of values that are used more than once.
  ir::Expr rewritten(const ir::Expr& e) {
    if (const auto* known = rewritten_.find(e.get())) return known->second;
    ir::Expr result = ir::rebuild(*e.get(), [&](const ir::Expr& part) { return rewritten(part); });
    if (!e.same_as(op_.body) && of(e).uses > 1 && is_computed(e) && has_dims(of(e).vars))
      result = named(result, of(e).vars);
    if (!values_.contains(result.get())) measure(result);
    rewritten_.emplace(e.get(), result);
    return result;
  }

  static bool is_computed(const ir::Expr& e) {
    return is_float(e.dtype()) && (e.as<ir::Unary>() || e.as<ir::Binary>() || e.as<ir::Select>() || e.as<ir::Reduce>());
  }

  /// Whether an operator has a dimension for each of `vars`: indices of this one, or of a dense axis. Of both it would
  /// be as large as what is summed over it, for each of this one's elements.
  bool has_dims(const Vector<ir::Expr>& vars) const {
    const auto is_index = [&](const ir::Expr& var) { return contains(op_.index_vars, var); };
    const auto is_axis = [&](const ir::Expr& var) {
      const auto* axis = axes_.find(var.get());
      return axis && axis->second.kind() == DimKind::dense;
    };
    return all_of(vars, is_index) || all_of(vars, is_axis);
  }

  /// A read of a new operator that computes `value`, which depends on `vars`.
  ir::Expr named(const ir::Expr& value, const Vector<ir::Expr>& vars) {
    if (!values_.contains(value.get())) measure(value);
    require_size(of(value).size);
    Op part;
    part.node = ir::Var::make(op_.node.as<ir::Var>()->name);
    part.at_roots = op_.at_roots;
    ir::Substitution fresh{{op_.node.get(), part.node}};
    ir::BufferInfo info = *op_.buffer;
    info.name = op_.name() + ".value" + std::to_string(parts_.size() + 1);
    info.dims = {dims::node};
    Vector<ir::Expr> indices{op_.node};
    const auto index = [&](const ir::Expr& var, const Dim& dim) {
      part.dims.push_back(dim);
      part.index_vars.push_back(ir::Var::make(var.as<ir::Var>()->name));
      fresh.emplace(var.get(), part.index_vars.back());
      info.dims.push_back(dim);
      indices.push_back(var);
    };
    for (std::size_t d = 0; d < op_.dims.size(); ++d)
      if (contains(vars, op_.index_vars[d])) index(op_.index_vars[d], op_.dims[d]);
    for (const ir::Expr& var : vars)
      if (const auto* axis = axes_.find(var.get())) index(var, axis->second);
    info.dtype = value.dtype();
    part.buffer = ir::Buffer(std::move(info));
    part.body = ir::substitute(value, fresh);
    parts_.push_back(part);
    return ir::Load::make(part.buffer, std::move(indices));
  }

  void require_size(double size, double most = max_operations) const {
    if (size <= most) return;
    throw Error(Code::invalid_model, "operator '" + op_.name() + "' has more than " +
                                         std::to_string(std::int64_t(most)) +
                                         " operations when every value stands written out where it is used; give those "
                                         "that are used again names with compute");
  }

  Op& op_;
  PointerMap<Value> values_;
  PointerMap<ir::Expr> rewritten_;
  PointerMap<Dim> axes_;  // by the variables of reductions
  Vector<Op> parts_;
};

}  // namespace detail

/// The values that `op` uses more than once where it computes, as operators to stand before it; its body then reads
/// them. None where copies are few, and none for a value of each child or of each product of a sum: the graph has no
/// operators of these. Throws `Error{invalid_model}` if more than `max_operations` remain in one body, or if
/// a condition has more than `max_operations_of_condition`.
inline Vector<Op> take_out_shared_values(Op& op) { return detail::SharedValues(op).run(); }

}  // namespace cortex::ra
