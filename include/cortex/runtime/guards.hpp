// Index checks that the linearizer cannot make while it reads a field: made before the kernel runs, by bounds of the
// call's fields or, where these do not decide, by evaluation at every node.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/runtime/index_bounds.hpp"
#include "cortex/runtime/plan.hpp"
#include "cortex/runtime/weights.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::runtime {

/// Evaluates integers and conditions of the operator graph over a call's arrays. Slow, and rarely needed.
class StructureEvaluator {
 public:
  StructureEvaluator(const AccessorOrder& order, const structure::Arrays& arrays) : order_(order), in_(arrays) {}

  /// Gives `var` a value until the matching `pop`.
  void push(const ir::Expr& var, std::int64_t start) {
    if (depth_ >= few_.size() + more_.size()) more_.push_back({});
    bound(depth_++) = {var.get(), start};
  }
  /// Whether a value since the last question was too large for 32 bits.
  bool overflowed() { return std::exchange(overflows_, false); }

  /// Gives the variable pushed last another value.
  void set(std::int64_t next) { bound(depth_ - 1).value = next; }
  void pop() { --depth_; }

  /// The value of `e`; conditions are 0 or 1. Throws `Error{internal}` for what is no expression of the structure.
  std::int64_t value(const ir::Expr& e) const {
    switch (e->kind) {
      case ir::ExprKind::int_imm: return e.as<ir::IntImm>()->value;
      case ir::ExprKind::var: return lookup(e);
      case ir::ExprKind::cast: return value(e.as<ir::Cast>()->a);
      case ir::ExprKind::unary: return unary(*e.as<ir::Unary>());
      case ir::ExprKind::binary: return binary(*e.as<ir::Binary>());
      case ir::ExprKind::select:
        return value(value(e.as<ir::Select>()->condition) ? e.as<ir::Select>()->then_value
                                                          : e.as<ir::Select>()->else_value);
      case ir::ExprKind::uf_call: return call(*e.as<ir::UfCall>());
      default: refuse();
    }
  }

 private:
  [[noreturn]] static void refuse() {
    throw Error(Code::internal, "an index check holds an expression that is not of the structure");
  }

  std::int64_t lookup(const ir::Expr& var) const {
    for (std::size_t i = depth_; i-- > 0;)
      if (const Bound& at = bound(i); at.var == var.get()) return at.value;
    refuse();
  }

  std::int64_t unary(const ir::Unary& n) const {
    const std::int64_t a = value(n.a);
    switch (n.op) {
      case ir::UnaryOp::neg: return in_32_bits(-a);
      case ir::UnaryOp::abs: return in_32_bits(a < 0 ? -a : a);
      case ir::UnaryOp::logical_not: return !a;
      default: refuse();
    }
  }

  /// Both sides in any case, as generated code does it, which divides by 1 where it would divide by 0.
  std::int64_t binary(const ir::Binary& n) const {
    const std::int64_t a = value(n.a), b = value(n.b);
    switch (n.op) {
      case ir::BinaryOp::logical_and: return a && b;
      case ir::BinaryOp::logical_or: return a || b;
      case ir::BinaryOp::div: return b == 0 ? a : in_32_bits(a / b);
      case ir::BinaryOp::mod: return b == 0 ? 0 : a % b;
      case ir::BinaryOp::ldexp:
      case ir::BinaryOp::ratio:
      case ir::BinaryOp::pow: refuse();
      default: return in_32_bits(ir::fold(n.op, a, b));  // of numbers of 32 bits: it does not overflow 64
    }
  }

  /// Generated code computes with 32 bits: what exceeds them there, even where a minimum or a remainder of it would
  /// not, is noted.
  std::int64_t in_32_bits(std::int64_t result) const {
    if (result == std::int32_t(result)) return result;
    overflows_ = true;
    return result < 0 ? INT32_MIN : INT32_MAX;
  }

  std::int64_t call(const ir::UfCall& n) const {
    const std::int64_t first = n.args.empty() ? 0 : value(n.args[0]);
    const auto position = [&](const Vector<int>& positions) {
      return std::size_t(positions.at(std::size_t(n.uf.accessor)));
    };
    const bool absent = first < 0 || first >= in_.num_nodes;  // below an absent child there is nothing
    switch (n.uf.kind) {
      case ir::UfKind::child: return absent ? in_.num_nodes : in_.child[position(order_.child)][first];
      case ir::UfKind::kth_child: {
        const structure::Csr& csr = in_.children[position(order_.children)];
        const std::int64_t k = value(n.args[1]);
        return absent || k < 0 || k >= csr.begin[first + 1] - csr.begin[first] ? in_.num_nodes
                                                                               : csr.child[csr.begin[first] + k];
      }
      case ir::UfKind::num_children: {
        const structure::Csr& csr = in_.children[position(order_.children)];
        return absent ? 0 : csr.begin[first + 1] - csr.begin[first];
      }
      case ir::UfKind::field: {
        const structure::FieldArray& field = in_.field[position(order_.field)];
        const std::int64_t k = n.args.size() > 1 ? value(n.args[1]) : 0;
        return absent || k < 0 || k >= field.stride
                   ? 0
                   : static_cast<const std::int32_t*>(field.data)[first * field.stride + k];
      }
      case ir::UfKind::is_leaf: return first >= in_.num_internal;
      case ir::UfKind::num_nodes: return in_.num_nodes;
      default: refuse();
    }
  }

  const AccessorOrder& order_;
  const structure::Arrays& in_;
  struct Bound {
    const ir::ExprNode* var = nullptr;
    std::int64_t value = 0;
  };
  const Bound& bound(std::size_t i) const { return i < few_.size() ? few_[i] : more_[i - few_.size()]; }
  Bound& bound(std::size_t i) { return const_cast<Bound&>(std::as_const(*this).bound(i)); }

  std::array<Bound, 16> few_;  // as many as indices have, without memory of a call's own
  Vector<Bound> more_;
  std::size_t depth_ = 0;
  mutable bool overflows_ = false;
};

namespace detail {

/// What is known of the nodes of one call.
class NodesOfCall {
 public:
  NodesOfCall(const Plan& plan, const structure::Arrays& arrays) : plan_(plan), in_(arrays) {}

  Interval field(int accessor, bool own) {
    for (std::size_t i = 0; i < num_seen_; ++i)
      if (seen_[i].accessor == accessor && seen_[i].own == own) return seen_[i].values;
    const Interval values = read(accessor, own);
    if (num_seen_ < seen_.size()) seen_[num_seen_++] = {accessor, own, values};
    return values;
  }

  Interval num_children(int accessor) const {
    const structure::Csr& csr = in_.children[std::size_t(plan_.order.children[std::size_t(accessor)])];
    std::int32_t most = 0;
    for (std::int32_t n = 0; n < in_.num_nodes; ++n) most = std::max(most, csr.begin[n + 1] - csr.begin[n]);
    return {0, most};
  }

  Interval is_leaf(bool) const { return {0, 1}; }

 private:
  /// Of the nodes at which it is read; where there is no node a field is 0, and so is what fills up a row.
  Interval read(int accessor, bool own) const {
    const structure::FieldArray& field = in_.field[std::size_t(plan_.order.field[std::size_t(accessor)])];
    const auto where = unsigned(plan_.executable->fields[std::size_t(accessor)].where);
    const std::size_t begin = (where & ra::internal_nodes) ? 0 : std::size_t(in_.num_internal),
                      end = std::size_t((where & ra::leaf_nodes) ? in_.num_nodes : in_.num_internal),
                      stride = std::size_t(field.stride);
    if (begin >= end) return {0, 0};
    Interval values = bounds_of(static_cast<const std::int32_t*>(field.data) + begin * stride, (end - begin) * stride);
    if (!own) values.lo = std::min<std::int64_t>(values.lo, 0), values.hi = std::max<std::int64_t>(values.hi, 0);
    return values;
  }

  /// Many at a time, as compilers make vectors of.
  static Interval bounds_of(const std::int32_t* values, std::size_t count) {
    constexpr std::size_t lanes = 16;
    std::int32_t least[lanes], most[lanes];
    for (std::size_t i = 0; i < lanes; ++i) least[i] = most[i] = values[0];
    const auto add = [&](std::size_t i, std::int32_t value) {
      least[i] = std::min(least[i], value);
      most[i] = std::max(most[i], value);
    };
    std::size_t n = 0;
    for (; n + lanes <= count; n += lanes)
      for (std::size_t i = 0; i < lanes; ++i) add(i, values[n + i]);
    for (; n < count; ++n) add(0, values[n]);
    for (std::size_t i = 1; i < lanes; ++i) add(0, least[i]), add(0, most[i]);
    return {least[0], most[0]};
  }

  struct Seen {
    int accessor;
    bool own;
    Interval values;
  };
  const Plan& plan_;
  const structure::Arrays& in_;
  std::array<Seen, 8> seen_;
  std::size_t num_seen_ = 0;
};

/// The fields that an index is made of, and the node that they are of: the one at which the index is read, a child of
/// it, or, where they are of several nodes, the one at which it is read.
struct IndexSource {
  std::int32_t node;
  std::string fields;  // "field 'word' of node 3 (12)"; empty: it is made of none

  /// What is to be corrected.
  std::string what() const { return fields.empty() ? "what the index is made of" : fields; }
};

/// The guarded checks on the arrays of one call.
class GuardChecker {
 public:
  GuardChecker(const Plan& plan, const structure::Workspace& nodes)
      : executable_(*plan.executable), nodes_(nodes), evaluator_(plan.order, nodes.arrays()) {}

  /// Makes `check` at every node, or root, for an index of `extent` values.
  void run(const GuardedCheck& check, std::int64_t extent) {
    const structure::Arrays& in = nodes_.arrays();
    for (std::int32_t n = 0; n < (check.at_roots ? in.num_roots : in.num_nodes); ++n) {
      const std::int32_t node = check.at_roots ? in.root[n] : n;
      const Place at{check, extent, node};
      evaluator_.push(check.node, node);
      const bool reads = !check.guard || evaluator_.value(check.guard);
      if (evaluator_.overflowed()) refuse_overflow(at);
      if (reads && !is_inside(at, Values::ends)) is_inside(at, Values::all);  // throws
      evaluator_.pop();
    }
  }

 private:
  struct Place {
    const GuardedCheck& check;
    std::int64_t extent;
    std::int32_t node;
  };

  /// Which values of the ranges' variables are tried: where the ends decide the ends alone, or all, of which the first
  /// that is refused throws.
  enum class Values : std::uint8_t { ends, all };

  /// Whether the index is inside for the values from range `r` on.
  bool is_inside(const Place& at, Values values, std::size_t r = 0) {
    const GuardedCheck& check = at.check;
    if (r < check.ranges.size()) {
      const GuardedCheck::Range& range = check.ranges[r];
      const std::int64_t end = evaluator_.value(range.extent);
      const std::int64_t step = values == Values::ends && range.ends_decide && end > 2 ? end - 1 : 1;
      evaluator_.push(range.var, 0);
      bool inside = true;
      for (std::int64_t i = 0; inside && i < end; i += step) {
        evaluator_.set(i);
        inside = is_inside(at, values, r + 1);
      }
      evaluator_.pop();
      return inside;
    }
    const std::int64_t index = evaluator_.value(check.index);
    const bool overflowed = evaluator_.overflowed(), outside = index < 0 || index >= at.extent;
    if (values == Values::all && overflowed) refuse_overflow(at);
    if (values == Values::all && outside) refuse_index(at, index);
    return !overflowed && !outside;
  }

  IndexSource source_of(const ir::Expr& index, std::int32_t reader) const {
    IndexSource source{reader, {}};
    const auto exists = [&](std::int64_t n) { return n >= 0 && n < nodes_.arrays().num_nodes; };
    ir::visit_with(index, [&](const ir::UfCall& call) {
      const std::int64_t of = call.uf.kind == ir::UfKind::field ? evaluator_.value(call.args[0]) : -1;
      if (!exists(of)) return;
      source.node = source.fields.empty() || of == source.node ? std::int32_t(of) : reader;
      std::string field = "field " + in_quotes(executable_.graph.fields[std::size_t(call.uf.accessor)].name);
      if (call.args.size() > 1) field += "[" + std::to_string(evaluator_.value(call.args[1])) + "]";
      field += " of node " + std::to_string(of) + " (" + std::to_string(evaluator_.value(ir::handle_of(call))) + ")";
      if (source.fields.find(field) == std::string::npos)
        source.fields += (source.fields.empty() ? "" : " and ") + field;
    });
    return source;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_index(const Place& at, std::int64_t index) const {
    const GuardedCheck& check = at.check;
    if (check.of.weight >= 0 && !is_of_nodes(check)) refuse_weight(at, index);
    const IndexSource source = source_of(check.index, at.node);
    const std::string reader = source.node == at.node ? "" : ", read by node " + std::to_string(at.node);
    throw Error(Code::out_of_range,
                node_of_call(source) + reader + ": " + reads_of(check) + " at index " + std::to_string(index) +
                    " of dimension '" + check.of.dim.name() + "', which has " + std::to_string(at.extent) +
                    " elements: valid values are 0 to " + std::to_string(at.extent - 1) + "; correct " + source.what() +
                    ", or keep the index inside with min and max",
                nodes_.node(source.node));
  }

  /// Whether the nodes say what a check asks, in which case one of them is at fault.
  static bool is_of_nodes(const GuardedCheck& check) {
    return check.guard || ir::uses(check.index, check.node) ||
           any_of(check.ranges, [&](const GuardedCheck::Range& range) { return ir::uses(range.extent, check.node); });
  }

  /// Throws that a weight does not have what is read of it, whatever the nodes.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_weight(const Place& at, std::int64_t index) const {
    throw Error(Code::invalid_weights,
                reads_of(at.check) + " at index " + std::to_string(index) + ", whatever the nodes, but " +
                    std::to_string(at.extent) + " elements of dimension '" + at.check.of.dim.name() +
                    "' are bound: bind a weight that has the element, or keep the index inside with min and max");
  }

  /// Throws that what a check asks cannot be computed with 32 bits.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_overflow(const Place& at) const {
    const IndexSource source = source_of(at.check.index, at.node);
    throw Error(Code::out_of_range,
                node_of_call(source) + ": " + reads_of(at.check) +
                    " at an index that does not fit 32 bits on the way to its value; correct " + source.what(),
                nodes_.node(source.node));
  }

  static std::string node_of_call(const IndexSource& source) {
    return "node " + std::to_string(source.node) + " of the call (numbered parents first)";
  }
  std::string reads_of(const GuardedCheck& check) const {
    return "operator '" + check.where + "' of model '" + executable_.graph.name + "' reads '" + check.of.name + "'";
  }

  const Executable& executable_;
  const structure::Workspace& nodes_;
  StructureEvaluator evaluator_;
};

}  // namespace detail

/// Makes the plan's guarded checks on a call's arrays; throws `Error{out_of_range}` that names the operator, the
/// weight, the dimension and the node, or `Error{invalid_weights}` where no node is at fault, but a weight too small.
inline void check_guarded(const Plan& plan, const structure::Workspace& nodes, const WeightSet& weights) {
  const Executable& executable = *plan.executable;
  if (executable.guarded.empty()) return;
  detail::NodesOfCall known(plan, nodes.arrays());
  IndexBounds bounds(known);
  detail::GuardChecker checker(plan, nodes);
  for (const GuardedCheck& check : executable.guarded) {
    const std::int64_t extent = extent_of(check, weights.shapes);
    if (!bounds.are_inside(check, extent)) checker.run(check, extent);
  }
}

}  // namespace cortex::runtime
