// What is known about children in a version of the body is put in: at leaves there are none, so sums over them vanish
// and initial states are zero, and the zeros are propagated through operators and reductions (paper section 4.3, L6).
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/lower/knowledge.hpp"

namespace cortex::lower {

namespace detail {

/// Folds zeros that stand for something absent. Such a zero is told from a zero that the user wrote by its identity: 0
/// * x is only 0 for the former, since an absent child contributes nothing even where a weight is infinite.
class AbsenceFolder {
 public:
  explicit AbsenceFolder(const Knowledge& known) : known_(known) {}

  ir::Expr operator()(const ir::Expr& e) {
    return ir::mutate_with(
        e, [&](auto& self, const ir::UfCall& call) { return structure(self, call); },
        [&](auto& self, const ir::Load& load) { return load_of(self, load); },
        [&](auto& self, const ir::Reduce& reduce) { return reduction(self, reduce); },
        [&](auto& self, const ir::Binary& op) { return arithmetic(op, self(op.a), self(op.b)); },
        [&](auto& self, const ir::Unary& op) { return function(op, self(op.a)); },
        [&](auto& self, const ir::Select& select) -> ir::Expr {
          if (const int known = known_.truth(select.condition); known >= 0)
            return self(known ? select.then_value : select.else_value);
          const ir::Expr condition = self(select.condition);
          if (const auto known = ir::as_int(condition)) return self(*known ? select.then_value : select.else_value);
          return choice(condition, self(select.then_value), self(select.else_value));
        });
  }

  /// Remembers a definition whose value is one constant, so that its reads become that constant.
  bool remember(const Definition& d) {
    if (d.buffer->role != ir::Role::temp || d.guard) return false;
    const bool constant = d.body.as<ir::FloatImm>() || d.body.as<ir::IntImm>();
    if (constant) constants_.insert_or_assign(d.buffer.id(), d.body);
    return constant;
  }

 private:
  bool is_zero(const ir::Expr& e) const { return e.same_as(zero32_) || e.same_as(zero64_); }
  const ir::Expr& zero(DType type) const { return type == DType::f64 ? zero64_ : zero32_; }

  template <class Self>
  ir::Expr structure(Self& self, const ir::UfCall& call) {
    const bool of_node = !call.args.empty() && call.args[0].template as<ir::Var>();
    if (call.uf.kind == ir::UfKind::is_leaf && known_.part() != Part::all && of_node)
      return ir::IntImm::make(known_.part() == Part::leaves, DType::boolean);
    if (call.uf.kind == ir::UfKind::num_children && of_node && known_.is_empty(call.uf.accessor)) return ir::imm(0);
    return self.children(call);
  }

  template <class Self>
  ir::Expr load_of(Self& self, const ir::Load& load) {
    if (const auto known = constants_.find(load.buffer.id()); known != constants_.end()) return known->second;
    if (load.buffer->role == ir::Role::state && known_.is_absent(load.indices[0])) return zero(load.type.dtype);
    return self.children(load);
  }

  template <class Self>
  ir::Expr reduction(Self& self, const ir::Reduce& reduce) {
    const ir::Expr extent = self(reduce.axis.extent);
    if (ir::as_int(extent) == 0) {
      if (reduce.op == ir::ReduceOp::sum) return zero(reduce.type.dtype);
      return ir::constant(ir::identity(reduce.op), reduce.type);
    }
    const ir::Expr body = self(reduce.body);
    // The product, the greatest and the least of zeros are zero too, but of no elements they are not.
    if (is_zero(body) && (reduce.op == ir::ReduceOp::sum || ir::as_int(extent).value_or(0) > 0)) return body;
    return ir::Reduce::make(reduce.op, {reduce.axis.var, reduce.axis.dim, extent}, body);
  }

  /// A choice between what is absent and 0, as beyond the edge of a grid, is absent.
  ir::Expr choice(const ir::Expr& condition, const ir::Expr& a, const ir::Expr& b) const {
    const auto none = [&](const ir::Expr& e) { return is_zero(e) || ir::as_float(e) == 0.0; };
    if (is_zero(a) && none(b)) return a;
    if (is_zero(b) && none(a)) return b;
    return ir::Select::make(condition, a, b);
  }

  ir::Expr arithmetic(const ir::Binary& op, const ir::Expr& a, const ir::Expr& b) const {
    using enum ir::BinaryOp;
    if (op.op == mul && (is_zero(a) || is_zero(b))) return is_zero(a) ? a : b;
    if (op.op == div && is_zero(a) && divides(b)) return a;
    if (op.op == add && is_zero(a)) return b;
    if ((op.op == add || op.op == sub) && is_zero(b)) return a;
    if (op.op == sub && is_zero(a)) return ir::Unary::make(ir::UnaryOp::neg, b);
    if (op.op == logical_and || op.op == logical_or) return logic(op.op, a, b);
    return ir::binary(op.op, a, b);
  }

  /// Whether 0 / `b` is 0: a number that is known, and not 0 itself, such as how many children there are.
  static bool divides(const ir::Expr& b) {
    const auto known = ir::as_float(b);
    return known && *known != 0 && !std::isnan(*known);
  }

  static ir::Expr logic(ir::BinaryOp op, const ir::Expr& a, const ir::Expr& b) {
    const bool absorbing = op == ir::BinaryOp::logical_or;
    for (const auto& [side, other] : {std::pair{a, b}, std::pair{b, a}})
      if (const auto known = ir::as_int(side)) return bool(*known) == absorbing ? side : other;
    return ir::Binary::make(op, a, b);
  }

  ir::Expr function(const ir::Unary& op, const ir::Expr& a) const {
    using enum ir::UnaryOp;
    if (op.op == logical_not)
      if (const auto known = ir::as_int(a)) return ir::IntImm::make(!*known, DType::boolean);
    const bool keeps_zero = op.op == neg || op.op == abs || op.op == tanh || op.op == relu || op.op == sqrt ||
                            op.op == round || op.op == floor || op.op == erf || op.op == sin || op.op == log1p ||
                            op.op == expm1;
    if (is_zero(a) && keeps_zero) return a;
    if (is_zero(a) && op.op == sigmoid) return ir::constant(0.5, op.type);
    if (is_zero(a) && (op.op == exp || op.op == cos)) return ir::constant(1, op.type);
    return ir::Unary::make(op.op, a, op.exact);
  }

  const Knowledge& known_;
  ir::Expr zero32_ = ir::FloatImm::make(0, DType::f32), zero64_ = ir::FloatImm::make(0, DType::f64);
  PointerMap<ir::Expr> constants_;
};

}  // namespace detail

/// Rewrites a version with what is known of its nodes; definitions that become constants vanish.
inline void propagate_absent_children(Version& version, const Knowledge& known) {
  detail::AbsenceFolder fold(known);
  Vector<Definition> kept;
  for (Definition& d : version.definitions) {
    d.body = fold(d.body);
    if (d.guard) d.guard = fold(d.guard);
    if (const auto holds = d.guard ? ir::as_int(d.guard) : std::nullopt) {
      if (!*holds) continue;
      d.guard = {};
    }
    if (!fold.remember(d)) kept.push_back(std::move(d));
  }
  version.definitions = std::move(kept);
}

}  // namespace cortex::lower
