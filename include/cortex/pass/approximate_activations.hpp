// Replaces tanh, sigmoid, exp, the functions of `approximate_functions.hpp` and powers in f32 by fused multiply-adds
// and at most one division, in scalars or vectors.
//
//   h[n,i] = tanh(a)
//     ->
//   h[n,i] = (let x = clamp(a) in (let z = x * x in (let p = P(z) in (let t = x * p in (let b = p + z * S(z) in
//             t * b / (b * b + t * t / 4))))))
//
// Functions marked exact, and those of f64, stay. Runs after all passes that look at operators, for which tanh is one
// node and not these; before `vectorize`, which then widens plain arithmetic, though vectors are taken too. Paper:
// the appendix, rational approximations of tanh and sigmoid.
//
// Errors are in units in the last place (ULP) of the true result, the largest over all 2^32 floats, rounding included.
// The coefficients are minimax ones, then searched for the floats near them that round least. A select of a comparison
// counts as one operation, which it is on x86.
#pragma once

#include "cortex/ir/mutate.hpp"
#include "cortex/pass/approximate_functions.hpp"
#include "cortex/pass/approximate_pow.hpp"

namespace cortex::pass {

/// tanh(x) = 2 h / (1 + h^2), where h = tanh(x / 2) is an odd rational function (x / 2) P / (P + z S) of z = x^2: 14
/// operations, one of them a division. Off by at most 3.9 ULP, and 2.9 where |x| > 0.55. Never beyond 1 in magnitude,
/// and 1 from 8.508 on; x itself, -0 included, for |x| < 2^-12; NaN for NaN.
/// A rational function of x itself takes one operation less, but is off by 5 ULP: its roundings count in full where
/// tanh is near 1. There the slope of 2 h / (1 + h^2) vanishes, and with it what is wrong with h.
inline ir::Expr approximate_tanh(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  constexpr float one_from = 8.5075531f;  // the first x where the quotient is 1; before it, none is greater
  Steps steps;
  x = steps.keep("x", at_most(steps.keep("x", x), one_from));
  x = steps.keep("x", at_least(x, -one_from));
  const ir::Expr z = steps.keep("z", x * x);
  const ir::Expr p = steps.keep("p", polynomial(z, {0.000115082272f, 0.0298113171f, 1.0f}));
  const ir::Expr s = polynomial(z, {1.24695214e-06f, 0.00109541777f, 0.083333306f});
  const ir::Expr t = steps.keep("t", x * p);
  const ir::Expr b = steps.keep("b", ir::Fma::make(z, s, p));
  const ir::Expr quarter = ir::constant(0.25, x.type());
  return steps.in_lets(ir::binary(ir::BinaryOp::ratio, t * b, ir::Fma::make(b, b, t * (t * quarter))));
}

/// exp(x) = 2^n p(r), where x = n ln 2 + r with r in [0, ln 2): 14 operations, no division. Off by at most 1.5 ULP. 1
/// for 0; infinity where e^x is above the largest float; 0 where it is below the smallest normal one, x < -87.3365; NaN
/// for NaN.
inline ir::Expr approximate_exp(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  constexpr float normal_from = -87.3365402f;
  Steps steps;
  x = steps.keep("x", x);
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  // Rounding x / ln 2 - 1/2 rounds down. The exponent stays normal: above, r grows instead until the product overflows;
  // below, the product is not used. A NaN reaches the result by r.
  ir::Expr n = ir::Unary::make(ir::UnaryOp::round, ir::Fma::make(x, c(log2_e), c(-0.5f)));
  n = steps.keep("n", number_at_most(steps.keep("n", n), 127.0f));
  n = steps.keep("n", at_least(n, -126.0f));
  const ir::Expr r = steps.keep("r", ir::Fma::make(n, c(-ln_2_low), ir::Fma::make(n, c(-ln_2_high), x)));
  const ir::Expr p =
      polynomial(r, {0.00196520216f, 0.00775910355f, 0.0419403575f, 0.166601047f, 0.500007331f, 0.999999702f, 1.0f});
  const ir::Expr power = ir::binary(ir::BinaryOp::ldexp, p, n);
  return steps.in_lets(ir::Select::make(less(x, c(normal_from)), c(0.0f), power));
}

/// sigmoid(x) = 1 / (1 + exp(-x)), with the exponential of above but for a polynomial one degree lower: 14 operations,
/// one of them a division. Off by at most 3.8 ULP where the result is a normal float (x > -87.3365), so it stays
/// precise far out on the negative side, and by 1.6 where x > 0. Within [0, 1]; 0 from -88.73 down; NaN for NaN.
inline ir::Expr approximate_sigmoid(ir::Expr x) {
  using namespace detail;
  require_f32(x);
  constexpr float one_from = 32.0f;  // from 17.4 on any does: exp(-x) + 1 is 1
  Steps steps;
  x = steps.keep("x", at_most(steps.keep("x", x), one_from));
  const auto c = [&](float value) { return ir::constant(double(value), x.type()); };
  ir::Expr n = ir::Unary::make(ir::UnaryOp::round, ir::Fma::make(x, c(-log2_e), c(-0.5f)));
  n = steps.keep("n", number_at_most(steps.keep("n", n), 127.0f));
  // The -r of the exponential, which spares negating x: odd coefficients change their sign.
  const ir::Expr s = steps.keep("s", ir::Fma::make(n, c(ln_2_low), ir::Fma::make(n, c(ln_2_high), x)));
  const ir::Expr p = polynomial(s, {-0.0116260564f, 0.0391404852f, -0.167507514f, 0.499881953f, -1.00000513f, 1.0f});
  return steps.in_lets(ir::binary(ir::BinaryOp::ratio, c(1.0f), c(1.0f) + ir::binary(ir::BinaryOp::ldexp, p, n)));
}

/// `stmt` with each function of f32 that is not marked exact approximated.
inline ir::Stmt approximate_activations(const ir::Stmt& stmt) {
  const auto function = [](auto& self, const ir::Unary& n) -> ir::Expr {
    if (n.exact || n.type.dtype != DType::f32) return self.children(n);
    switch (n.op) {
      case ir::UnaryOp::tanh: return approximate_tanh(self(n.a));
      case ir::UnaryOp::sigmoid: return approximate_sigmoid(self(n.a));
      case ir::UnaryOp::exp: return approximate_exp(self(n.a));
      case ir::UnaryOp::log: return approximate_log(self(n.a));
      case ir::UnaryOp::log1p: return approximate_log1p(self(n.a));
      case ir::UnaryOp::expm1: return approximate_expm1(self(n.a));
      case ir::UnaryOp::erf: return approximate_erf(self(n.a));
      case ir::UnaryOp::sin: return approximate_sin(self(n.a));
      case ir::UnaryOp::cos: return approximate_cos(self(n.a));
      default: return self.children(n);
    }
  };
  const auto power = [](auto& self, const ir::Binary& n) -> ir::Expr {
    const bool of_floats = n.op == ir::BinaryOp::pow && n.type.dtype == DType::f32;
    return of_floats ? approximate_pow(self(n.a), self(n.b)) : self.children(n);
  };
  return ir::mutate_with(stmt, function, power);
}

}  // namespace cortex::pass
