// Where conditions on an element change, and what an expression is on one side of such a place.
//
//   select(i < 64,a[min(i,63)],b[max(i - 64,0)])   changes at 64: a[i] before it, b[i - 64] from it on
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::ir {

namespace detail {

/// The shift, if `e` is `var + shift` and does not leave 32 bits.
inline std::optional<std::int64_t> shift_of(const Expr& e, const Expr& var) {
  if (e.same_as(var)) return 0;
  const auto* sum = e.as<Binary>();
  if (!sum || !(sum->op == BinaryOp::add || sum->op == BinaryOp::sub) || !sum->a.same_as(var)) return {};
  constexpr std::int64_t most = std::int64_t(1) << 30;  // dimensions have fewer elements
  const auto by = as_int(sum->b);
  if (!by || *by > most || *by < -most) return {};
  return sum->op == BinaryOp::sub ? -*by : *by;
}

/// A comparison of an index with a constant: `before` for all values below `at`, the opposite from there on.
struct Threshold {
  bool found = false;  // it is such a comparison
  std::int64_t at = 0;
  bool before = false;
};
inline Threshold threshold_of(const Binary& n, const Expr& var) {
  using enum BinaryOp;
  const auto turned = [](BinaryOp op) { return op == lt ? gt : op == le ? ge : op == gt ? lt : op == ge ? le : op; };
  const bool swapped = as_int(n.a).has_value();
  const auto shift = shift_of(swapped ? n.b : n.a, var), bound = as_int(swapped ? n.a : n.b);
  if (!shift || !bound) return {};
  switch (swapped ? turned(n.op) : n.op) {
    case lt: return {true, *bound - *shift, true};
    case le: return {true, *bound - *shift + 1, true};
    case ge: return {true, *bound - *shift, false};
    case gt: return {true, *bound - *shift + 1, false};
    default: return {};
  }
}

/// Expressions where an index is in [begin, end).
class Between {
 public:
  Between(const Expr& var, std::int64_t begin, std::int64_t end) : var_(var), begin_(begin), end_(end) {}

  Expr select(Mutator& self, const Select& n) const {
    const int known = truth(n.condition);
    if (known >= 0) return self(known ? n.then_value : n.else_value);
    return Select::make(self(rest_of(n.condition)), self(n.then_value), self(n.else_value));
  }

  Expr binary(Mutator& self, const Binary& n) const {
    const Expr a = self(n.a), b = self(n.b);
    const Expr &side = as_int(a) ? b : a, &other = as_int(a) ? a : b;
    const auto shift = shift_of(side, var_), bound = as_int(other);
    const bool minimum = n.op == BinaryOp::min;
    if (shift && bound && (minimum || n.op == BinaryOp::max)) {
      if (end_ - 1 + *shift <= *bound) return minimum ? side : other;
      if (begin_ + *shift >= *bound) return minimum ? other : side;
    }
    return a.same_as(n.a) && b.same_as(n.b) ? handle_of(n) : Binary::make(n.op, a, b);
  }

 private:
  /// A condition that is not known, without those of its parts that are.
  Expr rest_of(const Expr& condition) const {
    const auto* n = condition.as<Binary>();
    if (!n || (n->op != BinaryOp::logical_and && n->op != BinaryOp::logical_or)) return condition;
    if (truth(n->a) >= 0) return rest_of(n->b);
    if (truth(n->b) >= 0) return rest_of(n->a);
    return Binary::make(n->op, rest_of(n->a), rest_of(n->b));
  }
  /// 1 or 0 if a condition has that value on the whole piece, else -1.
  int truth(const Expr& condition) const {
    if (const auto* n = condition.as<Unary>(); n && n->op == UnaryOp::logical_not) {
      const int a = truth(n->a);
      return a < 0 ? a : !a;
    }
    const auto* n = condition.as<Binary>();
    if (!n) return -1;
    if (n->op == BinaryOp::logical_and || n->op == BinaryOp::logical_or) {
      const int decides = n->op == BinaryOp::logical_or, a = truth(n->a), b = truth(n->b);
      if (a == decides || b == decides) return decides;
      return a < 0 || b < 0 ? -1 : !decides;
    }
    const Threshold threshold = threshold_of(*n, var_);
    if (threshold.found && end_ <= threshold.at) return threshold.before;
    if (threshold.found && begin_ >= threshold.at) return !threshold.before;
    return -1;
  }

  const Expr& var_;
  const std::int64_t begin_, end_;
};

/// Adds the thresholds of `var` in a condition that lie between the first two of `cuts`.
inline void add_cuts(const Expr& condition, const Expr& var, Vector<std::int64_t>& cuts) {
  visit_with(condition, [&](const Binary& n) {
    const Threshold threshold = threshold_of(n, var);
    if (threshold.found && threshold.at > cuts[0] && threshold.at < cuts[1] && !contains(cuts, threshold.at))
      cuts.push_back(threshold.at);
  });
}

}  // namespace detail

/// The places between 0 and `extent`, in order and with these two, at which comparisons of `var` with constants in
/// selects of an expression or a statement change; {0, extent} if there are none.
template <class Handle>
Vector<std::int64_t> cuts_of(const Handle& body, const Expr& var, std::int64_t extent) {
  Vector<std::int64_t> cuts{0, extent};
  visit_with(body, [&](const Select& select) { detail::add_cuts(select.condition, var, cuts); });
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

/// The dimension of a piece: one of its own, since what has that piece alone may be read there.
inline Dim piece_of(const Dim& dim, std::int64_t begin, std::int64_t end) {
  return Dim(dim.name() + "_" + std::to_string(begin), end - begin);
}

/// `body`, an expression or a statement, where `var` goes from `begin` to `end`, as `from` + `begin`: without what is
/// known there.
template <class Handle>
Handle between(const Handle& body, const Expr& var, const Expr& from, std::int64_t begin, std::int64_t end) {
  const detail::Between rules(var, begin, end);
  const Handle piece = mutate_with(
      body, [&](auto& self, const Select& n) { return rules.select(self, n); },
      [&](auto& self, const Binary& n) { return rules.binary(self, n); });
  return substitute(piece, {{var.get(), from + begin}});
}

}  // namespace cortex::ir
