// a^b of f32 in fused multiply-adds and one division, in scalars or vectors. Used by `approximate_activations`.
//
//   |a|^b = e^(b log|a|)
//
// The logarithm and its product with b are two floats each: what the exponent is off by is a relative error of the
// power, and where that is near the largest float, half a unit in the last place of the exponent, 88, is 64 of the
// power.
#pragma once

#include <limits>

#include "cortex/pass/approximate_functions.hpp"

namespace cortex::pass {

namespace detail {

/// A number in two floats, the second less than half a unit in the last place of the first.
struct TwoFloats {
  ir::Expr high, low;
};

/// a + b and the rounding of that, where |a| >= |b| or a is 0.
inline TwoFloats sum_exactly(Steps& steps, ir::Expr a, ir::Expr b) {
  a = steps.keep("a", a), b = steps.keep("b", b);
  const ir::Expr sum = steps.keep("s", a + b);
  return {sum, (a - sum) + b};
}

/// log(1 + f), f in [-1/3, 1/3] or a rounding beyond: f - f^2 / 2 + f^3 (1/3 - f / 4) in two floats, and f^5 P(f).
inline TwoFloats logarithm_in_two(Steps& steps, const ir::Expr& f) {
  const auto c = [&](float value) { return ir::constant(double(value), f.type()); };
  const auto product_low = [](const ir::Expr& a, const ir::Expr& b, const ir::Expr& high) {
    return ir::Fma::make(a, b, ir::Unary::make(ir::UnaryOp::neg, high));
  };
  constexpr float third = 0.333333343f, third_low = -9.93410776e-09f;
  const ir::Expr square = steps.keep("z", f * f), square_low = steps.keep("z", product_low(f, f, square));
  const ir::Expr cube = steps.keep("t", square * f);
  const ir::Expr cube_low = ir::Fma::make(square_low, f, product_low(square, f, cube));
  const ir::Expr q = steps.keep("q", ir::Fma::make(f, c(-0.25f), c(third)));
  const ir::Expr q_low = ir::Fma::make(f, c(-0.25f), c(third) - q) + c(third_low);
  const ir::Expr u = steps.keep("u", q * cube);
  const ir::Expr u_low = product_low(q, cube, u) + ir::Fma::make(q, cube_low, q_low * cube);
  const ir::Expr p = polynomial(f, {-0.110943072f, 0.118433654f, -0.0966049582f, 0.10800872f, -0.12517263f,
                                    0.142998114f, -0.166663587f, 0.199997842f});
  const ir::Expr rest = square * cube * p;
  const TwoFloats first = sum_exactly(steps, f, square * c(-0.5f));
  const TwoFloats sum = sum_exactly(steps, first.high, u);
  const ir::Expr low = ir::Fma::make(square_low, c(-0.5f), first.low) + (sum.low + (u_low + rest));
  return {sum.high, steps.keep("l", low)};
}

/// log(a) for a positive, finite a, of denormal floats too.
inline TwoFloats logarithm_of_positive(Steps& steps, const ir::Expr& a) {
  const auto c = [&](float value) { return ir::constant(double(value), a.type()); };
  const auto [n, f] = taken_apart(steps, a);
  const TwoFloats part = logarithm_in_two(steps, f);
  const TwoFloats sum = sum_exactly(steps, n * c(ln_2_high), part.high);
  const ir::Expr low = steps.keep("l", sum.low + ir::Fma::make(n, c(ln_2_low), part.low));
  const TwoFloats result = sum_exactly(steps, sum.high, low);
  return {result.high, steps.keep("l", result.low)};
}

/// e^(x + low), as `approximate_exp`; 0 where that is well below the smallest normal float.
inline ir::Expr exponential_of_two(Steps& steps, const ir::Expr& x, const ir::Expr& low) {
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  constexpr float zero_below = -87.4f;
  ir::Expr n = ir::Unary::make(ir::UnaryOp::round, ir::Fma::make(x, c(log2_e), c(-0.5f)));
  n = steps.keep("n", number_at_most(steps.keep("n", n), 127.0f));
  n = steps.keep("n", at_least(n, -126.0f));
  const ir::Expr r = steps.keep("r", ir::Fma::make(n, c(-ln_2_low), ir::Fma::make(n, c(-ln_2_high), x)) + low);
  const ir::Expr p =
      polynomial(r, {0.00194877945f, 0.00779225538f, 0.0419150032f, 0.166610122f, 0.500005841f, 0.999999821f, 1.0f});
  return ir::Select::make(less(x, c(zero_below)), c(0.0f), ir::binary(ir::BinaryOp::ldexp, p, n));
}

/// The power of a magnitude: of 0, 1, infinity and NaN too.
inline ir::Expr power_of_magnitude(Steps& steps, const ir::Expr& a, const ir::Expr& b) {
  const auto c = [&](float value) { return ir::constant(double(value), a.type()); };
  const auto is = [&](const ir::Expr& x, float value) { return ir::binary(ir::BinaryOp::eq, x, c(value)); };
  const TwoFloats log = logarithm_of_positive(steps, a);
  const ir::Expr high = steps.keep("h", logarithm_or_limit(a, 0.0f, log.high));
  const ir::Expr x = steps.keep("x", b * high);
  const ir::Expr low = ir::Fma::make(b, high, ir::Unary::make(ir::UnaryOp::neg, x)) + b * log.low;
  // Beyond the range of e^x the second float is of no account, and may be a NaN.
  const ir::Expr in_range = less(ir::Unary::make(ir::UnaryOp::abs, x), c(128.0f));
  const ir::Expr power = exponential_of_two(steps, x, ir::Select::make(in_range, low, c(0.0f)));
  return ir::Select::make(is(a, 1.0f), c(1.0f), power);
}

}  // namespace detail

/// a^b as C's powf: off by at most 3.6 ULP where the result is a normal float; 0 where it would be below e^-87.4.
inline ir::Expr approximate_pow(ir::Expr a, ir::Expr b) {
  using namespace detail;
  require_f32(a);
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto c = [&](float value) { return ir::constant(double(value), a.type()); };
  const auto is = [](const ir::Expr& x, const ir::Expr& y) { return ir::binary(ir::BinaryOp::eq, x, y); };
  const auto floor = [](const ir::Expr& x) { return ir::Unary::make(ir::UnaryOp::floor, x); };
  Steps steps;
  a = steps.keep("a", a);
  b = steps.keep("b", b);
  const ir::Expr magnitude = steps.keep("a", ir::Unary::make(ir::UnaryOp::abs, a));
  const ir::Expr power = steps.keep("p", power_of_magnitude(steps, magnitude, b));
  // The sign of an odd power is a's, and 1 / a tells the zeros apart. The half of the least float above 0 is 0, so that
  // b alone says whether it is whole.
  const ir::Expr whole = steps.keep("whole", is(floor(b), b)), half = steps.keep("half", b * c(0.5f));
  const ir::Expr sign = ir::Select::make(less(a, c(0.0f)), c(-1.0f), c(1.0f) / a);
  const ir::Expr odd = ir::Select::make(less(sign, c(0.0f)), ir::Unary::make(ir::UnaryOp::neg, power), power);
  const ir::Expr of_whole = ir::Select::make(is(floor(half), half), power, odd);
  const ir::Expr finite_below = ir::Select::make(less(c(-inf), a), c(nan), power);
  const ir::Expr of_rest = ir::Select::make(less(a, c(0.0f)), finite_below, power);
  const ir::Expr result = ir::Select::make(whole, of_whole, of_rest);
  return steps.in_lets(ir::Select::make(is(b, c(0.0f)), c(1.0f), ir::Select::make(is(a, c(1.0f)), c(1.0f), result)));
}

}  // namespace cortex::pass
