// Weights rounded by hand, as a type stores them, and what error that leaves, derived from a model's equations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cortex/ra/interpret.hpp"
#include "models/check.hpp"

namespace cortex::test {

/// The nearest number of `bits` significant bits that is a multiple of `least`, ties to even.
inline double nearest(double x, int bits, double least) {
  int exponent = 0;
  std::frexp(x, &exponent);
  const double step = std::max(std::ldexp(1.0, exponent - bits), least);
  return std::nearbyint(x / step) * step;
}

/// The step of whole numbers up to 127 that stand for a channel: a power of two with which all are exact, if there is
/// one, else what makes 127 of the largest.
inline double step_of(const Numbers& channel) {
  double largest = 0;
  for (const double x : channel) largest = std::max(largest, std::abs(x));
  if (largest == 0) return 1;
  const double power = std::exp2(std::ceil(std::log2(largest / 127)));
  const bool exact =
      std::all_of(channel.begin(), channel.end(), [&](double x) { return x / power == std::nearbyint(x / power); });
  return std::max(exact ? power : double(float(largest) / 127), 0x1p-126);
}

/// The weight as `type` stores it. A channel of `row` elements, over which sums run, has one step.
inline Numbers as_stored(DType type, Numbers values, std::size_t row) {
  for (std::size_t begin = 0; begin < values.size(); begin += row) {
    const auto channel = values.begin() + std::ptrdiff_t(begin);
    const double step = type == DType::i8 ? step_of(Numbers(channel, channel + std::ptrdiff_t(row))) : 0;
    std::for_each(channel, channel + std::ptrdiff_t(row), [&](double& x) {
      x = type == DType::bf16  ? nearest(x, 8, 0x1p-133)
          : type == DType::f16 ? nearest(x, 11, 0x1p-24)
          : type == DType::i8  ? std::nearbyint(x / step) * step
                               : x;
    });
  }
  return values;
}

/// A value, and the root mean square of its error where weights are rounded, each by itself.
struct Spread {
  double value = 0, rms = 0;
};

}  // namespace cortex::test

namespace cortex::ra {

/// The error that rounded weights are expected to leave, to the first order. What sums of products add up over their
/// axis has errors of its own: roundings of other weights, and elements made of other rows; so their squares add up.
/// All else that is joined goes back to the same weights (gates of one node, children, a product's two factors), so
/// that errors themselves add up, in the worst case: the only place where this is more than what is expected, by a
/// factor of up to the root of how many there are.
template <>
struct Arithmetic<test::Spread> {
  using S = test::Spread;
  static constexpr int most_children = 5;

  static S exact(double value) { return {value, 0}; }
  /// A weight: an error that is a share of it, or, if negative, a number of itself.
  static S within(double value, double share) { return {value, share < 0 ? -share : share * std::abs(value)}; }
  static S constant(double value, DType) { return {value, 0}; }
  static S integer(std::int64_t value, DType) { return {double(value), 0}; }
  static S cast(S a, DType, DType) { return a; }
  static S add(S a, S b, DType) { return {a.value + b.value, a.rms + b.rms}; }
  static S mul(S a, S b, DType) { return {a.value * b.value, std::abs(a.value) * b.rms + std::abs(b.value) * a.rms}; }
  static S fma(S a, S b, S c, DType type) { return add(mul(a, b, type), c, type); }
  static S select(Truth condition, S a, S b) { return condition.value ? a : b; }
  static Truth compare(ir::BinaryOp op, S a, S b) { return Arithmetic<double>::compare(op, a.value, b.value); }
  /// An increasing function, or a linear one.
  static S unary(ir::UnaryOp op, S a, DType type) {
    const auto f = [&](double x) { return Arithmetic<double>::unary(op, x, type); };
    const double at = f(a.value);
    return {at, std::max(std::abs(f(a.value + a.rms) - at), std::abs(f(a.value - a.rms) - at))};
  }
  static S binary(ir::BinaryOp op, S a, S b, DType type) {
    if (op == ir::BinaryOp::sub) return {a.value - b.value, a.rms + b.rms};
    if (op == ir::BinaryOp::add) return add(a, b, type);
    if (op == ir::BinaryOp::mul) return mul(a, b, type);
    throw Error(Code::internal, "no model of the zoo has this operator");
  }

  struct Sum {
    S total;
    double squares = 0;
    int terms = 0;

    void add(S term) {
      total.value += term.value, total.rms += term.rms;
      squares += term.rms * term.rms;
      ++terms;
    }
    S result() const { return terms > most_children ? S{total.value, std::sqrt(squares)} : total; }
  };
  static Sum sum(DType) { return {}; }
};

}  // namespace cortex::ra

namespace cortex::test {

/// The nodes that roots reach, as the interpreter of a model's equations asks for them.
class ItemsView final : public ra::NodeView {
 public:
  ItemsView(const Items& items, const ra::Graph& graph) : graph_(graph) {
    for (const Item* root : items.roots) visit(root);
    for (std::size_t at = 0; at < nodes.size(); ++at)
      for (const Item* kid : nodes[at]->kids) visit(kid);
  }

  std::vector<const Item*> nodes;

  int num_nodes() const override { return int(nodes.size()); }
  int child(int accessor, int node) const override {
    const std::string& name = graph_.children_named[std::size_t(accessor)].name;
    const Item& n = *nodes[std::size_t(node)];
    const Item* const kid = name == "left" ? n.left : name == "right" ? n.right : n.before;
    return kid ? number_.at(kid) : -1;
  }
  std::vector<int> children(int, int node) const override {
    std::vector<int> result;
    for (const Item* kid : nodes[std::size_t(node)]->kids) result.push_back(number_.at(kid));
    return result;
  }
  double field(int, int node, int) const override { return nodes[std::size_t(node)]->word; }
  bool is_leaf(int node) const override { return nodes[std::size_t(node)]->kids.empty(); }

 private:
  void visit(const Item* n) {
    if (number_.emplace(n, int(nodes.size())).second) nodes.push_back(n);
  }

  const ra::Graph& graph_;
  std::map<const Item*, int> number_;
};

}  // namespace cortex::test
