// log, log1p, expm1, erf, sin and cos of f32 in fused multiply-adds, without a division, in scalars or vectors. Used by
// `approximate_activations`, which says when; errors are given as there, the largest over all floats.
#pragma once

#include <limits>

#include "cortex/pass/approximation.hpp"

namespace cortex::pass {

namespace detail {

/// x = 2^n (1 + f) for a positive, finite x, of denormal floats too.
struct TakenApart {
  ir::Expr n, f;
};
inline TakenApart taken_apart(Steps& steps, const ir::Expr& x) {
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  const ir::Expr tiny = steps.keep("tiny", less(x, c(std::numeric_limits<float>::min())));
  const ir::Expr normal = steps.keep("x", ir::Select::make(tiny, x * c(8388608.0f), x));
  const ir::Expr n =
      steps.keep("n", ir::Unary::make(ir::UnaryOp::exponent, normal) + ir::Select::make(tiny, c(-23.0f), c(0.0f)));
  return {n, steps.keep("f", ir::Unary::make(ir::UnaryOp::significand, normal) + c(-1.0f))};
}

/// n ln 2 + log(1 + f), f in [-1/3, 1/3] or a rounding beyond.
inline ir::Expr logarithm_of(Steps& steps, const ir::Expr& n, const ir::Expr& f) {
  const auto c = [&](float value) { return ir::constant(double(value), f.type()); };
  const ir::Expr z = steps.keep("z", f * f);
  const ir::Expr p = polynomial(f, {-0.128916875f, 0.139844358f, -0.121842608f, 0.140058696f, -0.16680488f,
                                    0.200104058f, -0.249997973f, 0.333332151f});
  const ir::Expr low = ir::Fma::make(n, c(ln_2_low), f * z * p);
  return ir::Fma::make(n, c(ln_2_high), f + ir::Fma::make(z, c(-0.5f), low));
}

/// `y`, the logarithm of a number that is 0 where `x` is `at`: minus infinity there, NaN below, infinity for infinity.
inline ir::Expr logarithm_or_limit(const ir::Expr& x, float at, const ir::Expr& y) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  const ir::Expr finite = ir::Select::make(less(x, c(inf)), y, x);
  const ir::Expr edge = ir::Select::make(ir::binary(ir::BinaryOp::eq, x, c(at)), c(-inf), c(nan));
  return ir::Select::make(less(c(at), x), finite, edge);
}

/// e^x - 1 = 2^n (e^r - 1) + (2^n - 1), x = n ln 2 + r; +0 for both zeros.
inline ir::Expr exponential_minus_1(Steps& steps, ir::Expr x) {
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  x = steps.keep("x", at_least(steps.keep("x", x), -25.0f));  // -1 from -17.4 down
  // Half of the result is computed, so that 2^(n - 1) is normal as long as the result is finite. Above, r grows until
  // it overflows. A NaN reaches the result by r.
  const ir::Expr rounded = ir::Unary::make(ir::UnaryOp::round, x * c(log2_e));
  const ir::Expr n = steps.keep("n", number_at_most(steps.keep("n", rounded), 128.0f));
  const ir::Expr r = steps.keep("r", ir::Fma::make(n, c(-ln_2_low), ir::Fma::make(n, c(-ln_2_high), x)));
  const ir::Expr p = polynomial(r, {0.000199628121f, 0.0013943495f, 0.00833321922f, 0.0416663252f, 0.166666672f, 0.5f});
  const ir::Expr power = steps.keep("p", ir::binary(ir::BinaryOp::ldexp, c(1.0f), n + c(-1.0f)));
  const ir::Expr half = steps.keep("h", ir::Fma::make(ir::Fma::make(r * r, p, r), power, power + c(-0.5f)));
  return half + half;
}

/// sin(r) for |r| up to a little more than pi / 2, with its sign changed where `n` is odd.
inline ir::Expr sine_of_turns(Steps& steps, ir::Expr r, const ir::Expr& n) {
  const auto c = [&](float value) { return ir::constant(double(value), r.type()); };
  constexpr float reach = 1.6f;  // pi / 2, and what the rounding of n adds; beyond, the argument is too large
  r = steps.keep("r", at_most(steps.keep("r", r), reach));
  r = steps.keep("r", at_least(r, -reach));
  const ir::Expr z = steps.keep("z", r * r);
  const ir::Expr p = polynomial(z, {2.5966151e-06f, -0.00019805615f, 0.00833299849f, -0.166666538f});
  const ir::Expr y = steps.keep("y", ir::Fma::make(r * z, p, r));
  const ir::Expr pairs = ir::Unary::make(ir::UnaryOp::round, n * c(0.5f));
  const ir::Expr odd = ir::Fma::make(pairs, c(-2.0f), n);  // 0, or one way or the other of it
  return ir::Select::make(ir::binary(ir::BinaryOp::eq, odd, c(0.0f)), y, ir::Unary::make(ir::UnaryOp::neg, y));
}

/// x - n pi. Each product is exact in its sum, and the first two sums are exact where they are small.
inline ir::Expr less_turns(const ir::Expr& x, const ir::Expr& n) {
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  return ir::Fma::make(n, c(-pi_3), ir::Fma::make(n, c(-pi_2), ir::Fma::make(n, c(-pi_1), x)));
}

}  // namespace detail

/// The greatest magnitude of an argument whose sine and cosine are within their bounds: 2^17. Beyond, floats are so far
/// apart that the result, some number in [-1, 1], follows from the argument's last bit.
inline constexpr float sine_limit = 131072.0f;

/// The natural logarithm, of denormal floats too: n ln 2 + log(1 + f), where x = 2^n (1 + f). Off by at most 0.9 ULP.
/// Minus infinity for both zeros; NaN below 0 and for NaN; infinity for infinity.
inline ir::Expr approximate_log(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  Steps steps;
  x = steps.keep("x", x);
  const auto [n, f] = taken_apart(steps, x);
  return steps.in_lets(logarithm_or_limit(x, 0.0f, logarithm_of(steps, n, f)));
}

/// log(1 + x), precise near 0 too: as above, of the rounded 1 + x, with what the rounding took added to f. Off by at
/// most 1.6 ULP. Minus infinity for -1; NaN below and for NaN; x itself for zeros and infinity.
inline ir::Expr approximate_log1p(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  Steps steps;
  x = steps.keep("x", x);
  const ir::Expr u = steps.keep("u", x + c(1.0f));
  const ir::Expr v = steps.keep("v", u + c(-1.0f));  // what of u is x's part
  const ir::Expr lost = (c(1.0f) - (u - v)) + (x - v);
  const ir::Expr n = steps.keep("n", ir::Unary::make(ir::UnaryOp::exponent, u));
  // Where the power would not be a normal one, nothing is lost by it: infinity, and numbers below -1.
  const ir::Expr power = at_most(steps.keep("p", c(0.0f) - number_at_most(n, 126.0f)), 126.0f);
  const ir::Expr f = ir::Unary::make(ir::UnaryOp::significand, u) + c(-1.0f);
  const ir::Expr whole = steps.keep("f", f + ir::binary(ir::BinaryOp::ldexp, lost, power));
  return steps.in_lets(or_zero(x, logarithm_or_limit(x, -1.0f, logarithm_of(steps, n, whole))));
}

/// e^x - 1, precise near 0 too. Off by at most 1.5 ULP where the result is normal. -1 from -17.4 down; infinity where
/// e^x is above the largest float; x itself for zeros; NaN for NaN.
inline ir::Expr approximate_expm1(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  Steps steps;
  x = steps.keep("x", x);
  const ir::Expr y = exponential_minus_1(steps, x);
  return steps.in_lets(or_zero(x, y));
}

/// The error function: 1 - e^-u, where u = |x| P(|x|), which holds from 0 to 4 with no seam. Off by at most 3.2 ULP
/// where the result is normal. Never beyond 1 in magnitude, 1 from 3.92 on; x itself for zeros; NaN for NaN.
inline ir::Expr approximate_erf(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  Steps steps;
  x = steps.keep("x", x);
  const ir::Expr t = steps.keep("t", ir::Unary::make(ir::UnaryOp::abs, x));
  const ir::Expr p = polynomial(t, {-9.25625227e-06f, 0.00011764117f, -0.000632836542f, 0.00166702701f, -0.00016039575f,
                                    -0.0191530641f, 0.102777831f, 0.636619389f, 1.12837923f});
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  const ir::Expr inside = exponential_minus_1(steps, ir::Unary::make(ir::UnaryOp::neg, t * p));
  const ir::Expr e = steps.keep("e", ir::Select::make(less(c(4.0f), t), c(-1.0f), inside));  // of the other sign
  return steps.in_lets(or_zero(x, ir::Select::make(less(x, c(0.0f)), e, ir::Unary::make(ir::UnaryOp::neg, e))));
}

/// The sine of an angle in radians: x = n pi + r with |r| <= pi / 2. Off by at most 2.3 ULP for |x| <= `sine_limit`.
/// Within [-1, 1]; x itself for zeros; NaN for infinity and NaN.
inline ir::Expr approximate_sin(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  Steps steps;
  x = steps.keep("x", x);
  const ir::Expr n =
      steps.keep("n", ir::Unary::make(ir::UnaryOp::round, x * ir::constant(double(one_over_pi), x.type())));
  return steps.in_lets(or_zero(x, sine_of_turns(steps, less_turns(x, n), n)));
}

/// The cosine of an angle in radians: minus the sine of r, where x = (n + 1/2) pi + r. Off by at most 2.3 ULP for
/// |x| <= `sine_limit`. Within [-1, 1]; NaN for infinity and NaN.
inline ir::Expr approximate_cos(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  Steps steps;
  x = steps.keep("x", x);
  const ir::Expr n = steps.keep("n", ir::Unary::make(ir::UnaryOp::round, ir::Fma::make(x, c(one_over_pi), c(-0.5f))));
  const ir::Expr turns = steps.keep("m", n + c(0.5f));
  return steps.in_lets(sine_of_turns(steps, less_turns(x, turns), n + c(1.0f)));
}

}  // namespace cortex::pass
