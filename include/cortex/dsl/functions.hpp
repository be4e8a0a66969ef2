// Functions of data that are made of others. What they compute is what their formulas say, rounded step by step; in f32
// the functions in them are off by at most 4 ULP each, as `pass/approximate_activations.hpp` says.
#pragma once

#include <cmath>

#include "cortex/dsl/arithmetic.hpp"

namespace cortex::dsl {

namespace detail {

/// `value` in the type of `x`.
inline ir::Expr as(const ir::Expr& x, double value) { return literal({{}, value}, x.dtype()); }

inline ir::Expr of(ir::UnaryOp op, ir::Expr x) { return ir::Unary::make(op, std::move(x)); }

inline ir::Expr less_than_0(const ir::Expr& x) { return ir::binary(ir::BinaryOp::lt, x, as(x, 0)); }

inline ir::Expr square(const ir::Expr& x) { return x * x; }
inline ir::Expr rsqrt(const ir::Expr& x) { return as(x, 1) / of(ir::UnaryOp::sqrt, x); }
inline ir::Expr ceil(const ir::Expr& x) {
  return of(ir::UnaryOp::neg, of(ir::UnaryOp::floor, of(ir::UnaryOp::neg, x)));
}
inline ir::Expr silu(const ir::Expr& x) { return x * of(ir::UnaryOp::sigmoid, x); }
inline ir::Expr gelu(const ir::Expr& x) {
  return x * (as(x, 0.5) * (as(x, 1) + of(ir::UnaryOp::erf, x * as(x, 0.70710678118654752))));
}
inline ir::Expr softplus(const ir::Expr& x) {
  const ir::Expr tail = of(ir::UnaryOp::exp, of(ir::UnaryOp::neg, of(ir::UnaryOp::abs, x)));
  return of(ir::UnaryOp::relu, x) + of(ir::UnaryOp::log1p, tail);
}
inline ir::Expr leaky_relu(const ir::Expr& x, double slope) {
  return ir::Select::make(less_than_0(x), as(x, slope) * x, x);
}
inline ir::Expr elu(const ir::Expr& x, double alpha) {
  return ir::Select::make(less_than_0(x), as(x, alpha) * of(ir::UnaryOp::expm1, x), x);
}

/// x^n for n > 0 by squaring.
inline ir::Expr whole_power(ir::Expr x, int n) {
  ir::Expr product;
  for (;; n /= 2, x = x * x) {
    if (n % 2 == 1) product = product ? product * x : x;
    if (n == 1) return product;
  }
}

/// x^y for a number y.
inline ir::Expr power_by_number(const ir::Expr& x, double y) {
  if (y == 0) return as(x, 1);
  if (y == 0.5) return of(ir::UnaryOp::sqrt, x);
  if (y != std::floor(y) || std::abs(y) > 32) return ir::binary(ir::BinaryOp::pow, x, as(x, y));
  const ir::Expr product = whole_power(x, int(std::abs(y)));
  return y > 0 ? product : as(x, 1) / product;
}

inline ir::Expr power(const Operand& x, const Operand& y) {
  if (!y.expr) return power_by_number(number(x.expr), y.number);
  if (!x.expr) return ir::binary(ir::BinaryOp::pow, as(number(y.expr), x.number), number(y.expr));
  const Pair both = unified(x, y);
  return ir::binary(ir::BinaryOp::pow, number(both.a), number(both.b));
}

template <class A>
Data<SetOf<A>> composed(ir::Expr (*made_of)(const ir::Expr&), const A& a) {
  static_assert(valid_function_operand<A>());
  return {made_of(number(operand(a).expr))};
}

}  // namespace detail

template <class A>
requires Symbolic<A>
auto square(const A& a) { return detail::composed(detail::square, a); }
/// 1 / sqrt(a).
template <class A>
requires Symbolic<A>
auto rsqrt(const A& a) { return detail::composed(detail::rsqrt, a); }
/// The least whole number that is not below a.
template <class A>
requires Symbolic<A>
auto ceil(const A& a) { return detail::composed(detail::ceil, a); }
/// log(1 + exp(a)), as max(a, 0) + log1p(exp(-|a|)), which does not overflow.
template <class A>
requires Symbolic<A>
auto softplus(const A& a) { return detail::composed(detail::softplus, a); }
/// a sigmoid(a), also called swish.
template <class A>
requires Symbolic<A>
auto silu(const A& a) { return detail::composed(detail::silu, a); }
/// a (1 + erf(a / sqrt(2))) / 2: the exact one, as PyTorch's default, not its approximation by tanh.
template <class A>
requires Symbolic<A>
auto gelu(const A& a) { return detail::composed(detail::gelu, a); }
/// a, or below 0 `slope` times a; NaN stays NaN.
template <class A>
requires Symbolic<A> Data<SetOf<A>> leaky_relu(const A& a, double slope = 0.01) {
  static_assert(detail::valid_function_operand<A>());
  return {detail::leaky_relu(number(operand(a).expr), slope)};
}
/// a, or below 0 `alpha` times (exp(a) - 1); NaN stays NaN.
template <class A>
requires Symbolic<A> Data<SetOf<A>> elu(const A& a, double alpha = 1) {
  static_assert(detail::valid_function_operand<A>());
  return {detail::elu(number(operand(a).expr), alpha)};
}

/// `a` to the power `b`, as C's pow. Where `b` is a whole number of C++ up to 32 in magnitude, by multiplications; 0.5
/// is sqrt(a). Either may be a number of C++.
template <class A, class B>
requires Symbolic<A, B> detail::Joined<A, B> pow(const A& a, const B& b) {
  static_assert(detail::valid_function_operand<A>() && detail::valid_function_operand<B>());
  return {detail::power(operand(a), operand(b))};
}

}  // namespace cortex::dsl

namespace cortex {
using dsl::ceil, dsl::elu, dsl::gelu, dsl::leaky_relu, dsl::pow, dsl::rsqrt, dsl::silu, dsl::softplus, dsl::square;
}  // namespace cortex
