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

/// `var + shift`, if `e` is that.
inline std::optional<std::int64_t> shift_of(const Expr& e, const Expr& var) {
  if (e.same_as(var)) return 0;
  const auto* sum = e.as<Binary>();
  if (!sum || !(sum->op == BinaryOp::add || sum->op == BinaryOp::sub) || !sum->a.same_as(var)) return {};
  const auto by = as_int(sum->b);
  return by && sum->op == BinaryOp::sub ? -*by : by;
}

/// A comparison of an index with a constant: `before` for all values below `at`, the opposite from there on.
struct Threshold {
  std::int64_t at;
  bool before;
};
inline std::optional<Threshold> threshold_of(const Binary& n, const Expr& var) {
  using enum BinaryOp;
  const auto turned = [](BinaryOp op) { return op == lt ? gt : op == le ? ge : op == gt ? lt : op == ge ? le : op; };
  const bool swapped = as_int(n.a).has_value();
  const auto shift = shift_of(swapped ? n.b : n.a, var), bound = as_int(swapped ? n.a : n.b);
  if (!shift || !bound) return {};
  switch (swapped ? turned(n.op) : n.op) {
    case lt: return Threshold{*bound - *shift, true};
    case le: return Threshold{*bound - *shift + 1, true};
    case ge: return Threshold{*bound - *shift, false};
    case gt: return Threshold{*bound - *shift + 1, false};
    default: return {};
  }
}

/// An expression or a statement where an index is in [begin, end).
class Between {
 public:
  Between(const Expr& var, std::int64_t begin, std::int64_t end) : var_(var), begin_(begin), end_(end) {}

  template <class Handle>
  Handle operator()(const Handle& body) const {
    return mutate_with(
        body,
        [&](auto& self, const Select& n) -> Expr {
          if (const auto known = truth(n.condition)) return self(*known ? n.then_value : n.else_value);
          return self.children(n);
        },
        [&](auto& self, const Binary& n) -> Expr {
          const Expr a = self(n.a), b = self(n.b);
          const Expr &side = as_int(a) ? b : a, &other = as_int(a) ? a : b;
          const auto shift = shift_of(side, var_), bound = as_int(other);
          const bool minimum = n.op == BinaryOp::min;
          if (shift && bound && (minimum || n.op == BinaryOp::max)) {
            if (end_ - 1 + *shift <= *bound) return minimum ? side : other;
            if (begin_ + *shift >= *bound) return minimum ? other : side;
          }
          return a.same_as(n.a) && b.same_as(n.b) ? handle_of(n) : Binary::make(n.op, a, b);
        });
  }

 private:
  std::optional<bool> truth(const Expr& condition) const {
    if (const auto* n = condition.as<Unary>(); n && n->op == UnaryOp::logical_not) {
      const auto a = truth(n->a);
      return a ? std::optional<bool>(!*a) : a;
    }
    const auto* n = condition.as<Binary>();
    if (!n) return {};
    if (n->op == BinaryOp::logical_and || n->op == BinaryOp::logical_or) {
      const bool decides = n->op == BinaryOp::logical_or;
      const auto a = truth(n->a), b = truth(n->b);
      if (a == decides || b == decides) return decides;
      return a && b ? std::optional<bool>(!decides) : std::nullopt;
    }
    const auto threshold = threshold_of(*n, var_);
    if (threshold && end_ <= threshold->at) return threshold->before;
    if (threshold && begin_ >= threshold->at) return !threshold->before;
    return {};
  }

  const Expr& var_;
  const std::int64_t begin_, end_;
};

}  // namespace detail

/// The places between 0 and `extent`, in order and with these two, at which comparisons of `var` with constants in
/// selects of an expression or a statement change; {0, extent} if there are none.
template <class Handle>
Vector<std::int64_t> cuts_of(const Handle& body, const Expr& var, std::int64_t extent) {
  Vector<std::int64_t> cuts{0, extent};
  visit_with(body, [&](const Select& select) {
    visit_with(select.condition, [&](const Binary& n) {
      const auto threshold = detail::threshold_of(n, var);
      if (threshold && threshold->at > 0 && threshold->at < extent && !contains(cuts, threshold->at))
        cuts.push_back(threshold->at);
    });
  });
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
  return substitute(detail::Between(var, begin, end)(body), {{var.get(), from + begin}});
}

}  // namespace cortex::ir
