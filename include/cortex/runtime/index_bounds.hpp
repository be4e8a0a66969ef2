// Index checks decided for all nodes at once, by bounds: of what the fields of a call's nodes hold, or of all values
// that the rows of a table stand for.
//
//   Emb(word(n) * 2 + 1, i), words of this call from 3 to 90   ->   7 to 181, inside a table of 200 rows
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cortex/base/vector.hpp"
#include "cortex/ir/expr.hpp"
#include "cortex/ra/integer_range.hpp"
#include "cortex/runtime/executable.hpp"

namespace cortex::runtime {

using ra::Interval;

/// Bounds of integers and conditions of the structure at the nodes that `Known` knows of, which has
///   `field(accessor, own)`     of a field of those nodes, or, where it is not their own, of any node or of none
///   `num_children(accessor)`   of a container
///   `is_leaf(own)`             0 and 1
template <class Known>
class IndexBounds {
 public:
  explicit IndexBounds(Known& known) : known_(known) {}

  /// Whether an index of `extent` values is seen to be inside at all nodes, and nothing that its check asks to leave 32
  /// bits.
  bool are_inside(const GuardedCheck& check, std::int64_t extent) {
    check_ = &check;
    decided_ = true;
    num_ranges_ = 0;
    const bool asked = !check.guard || of(check.guard).hi != 0;
    if (!decided_ || !asked) return decided_;
    for (const GuardedCheck::Range& range : check.ranges) {
      const Interval values = of(range.extent);
      if (!decided_ || values.hi <= 0) return decided_;
      if (num_ranges_ == ranges_.size()) return false;
      ranges_[num_ranges_++] = {0, values.hi - 1};
    }
    const Interval index = of(check.index);
    return decided_ && index.lo >= 0 && index.hi < extent;
  }

 private:
  /// Holds where `decided_` is still true.
  Interval of(const ir::Expr& e) {
    switch (e->kind) {
      case ir::ExprKind::int_imm: return known(ra::interval(true, value_of(e), true, value_of(e)));
      case ir::ExprKind::var: return of_variable(e);
      case ir::ExprKind::cast: return of(e.as<ir::Cast>()->a);
      case ir::ExprKind::unary: return unary(*e.as<ir::Unary>());
      case ir::ExprKind::binary: return binary(*e.as<ir::Binary>());
      case ir::ExprKind::select: {
        const auto& n = *e.as<ir::Select>();
        of(n.condition);
        const Interval a = of(n.then_value), b = of(n.else_value);
        return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
      }
      case ir::ExprKind::uf_call: return call(*e.as<ir::UfCall>());
      default: return undecided();
    }
  }

  static std::int64_t value_of(const ir::Expr& e) { return e.as<ir::IntImm>()->value; }
  Interval undecided() { return decided_ = false, Interval(); }
  Interval known(const Interval& a) { return a.from_below() && a.from_above() && a.fits ? a : undecided(); }

  Interval of_variable(const ir::Expr& var) {
    for (std::size_t i = 0; i < num_ranges_; ++i)
      if (check_->ranges[i].var.same_as(var)) return ranges_[i];
    return undecided();
  }

  Interval unary(const ir::Unary& n) {
    const Interval a = of(n.a);
    if (n.op == ir::UnaryOp::logical_not) return {1 - a.hi, 1 - a.lo};
    const Interval negated = known(ra::combined(ir::BinaryOp::sub, {0, 0}, a));
    if (n.op == ir::UnaryOp::neg) return negated;
    if (n.op != ir::UnaryOp::abs) return undecided();
    if (a.lo >= 0) return a;
    return {a.hi < 0 ? negated.lo : 0, std::max(a.hi, negated.hi)};
  }

  Interval binary(const ir::Binary& n) {
    using enum ir::BinaryOp;
    const Interval a = of(n.a), b = of(n.b);
    switch (n.op) {
      case logical_and: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      case logical_or: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
      case lt: return less(a, b);
      case gt: return less(b, a);
      case ge: return opposite(less(a, b));
      case le: return opposite(less(b, a));
      case eq: return equal(a, b);
      case ne: return opposite(equal(a, b));
      case div:
      case mod:
        if (a.lo < 0 || b.lo < 1) return undecided();
        [[fallthrough]];
      default: return known(ra::combined(n.op, a, b));
    }
  }

  static Interval opposite(const Interval& a) { return {1 - a.hi, 1 - a.lo}; }
  static Interval less(const Interval& a, const Interval& b) { return {a.hi < b.lo, a.lo < b.hi}; }
  static Interval equal(const Interval& a, const Interval& b) {
    return {a.lo == a.hi && b.lo == b.hi && a.lo == b.lo, a.lo <= b.hi && b.lo <= a.hi};
  }

  Interval call(const ir::UfCall& n) {
    const bool own = !n.args.empty() && n.args[0].same_as(check_->node);
    switch (n.uf.kind) {
      case ir::UfKind::field: return known(known_.field(n.uf.accessor, own));
      case ir::UfKind::num_children: return known(known_.num_children(n.uf.accessor));
      case ir::UfKind::is_leaf: return known_.is_leaf(own);
      default: return undecided();
    }
  }

  Known& known_;
  const GuardedCheck* check_ = nullptr;
  std::array<Interval, 8> ranges_;  // of the variables of the check's first ranges; more are rare
  std::size_t num_ranges_ = 0;
  bool decided_ = true;
};

/// The extent that a check's index is held against, under weights of these shapes, [weights][dimensions].
inline std::int64_t extent_of(const GuardedCheck& check, const Vector<Vector<std::int64_t>>& shapes) {
  const Dim& dim = check.of.dim;
  return dim.kind() == DimKind::open ? shapes[std::size_t(check.of.weight)][0] : dim.extent();
}

}  // namespace cortex::runtime
