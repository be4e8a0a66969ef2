// Replaces tanh, sigmoid and exp of f32 by a few fused multiply-adds and at most one division, in vectors or scalars.
//
//   h[n,i] = tanh(a)     ->     h[n,i] = (let x = clamp(a) in (let z = x * x in (let p = P(z) in x * p / (p + z * S(z)))))
//
// Functions marked exact and those of f64 stay. May run as soon as the arithmetic is final, and before `vectorize`
// widens it, though it takes vectors too; it runs late because the passes before it look for `tanh(...)`, one node, and
// would have to look through what comes of it. Paper: the appendix, rational approximations of tanh and sigmoid.
//
// What each costs counts machine operations: `select(x < c, x, c)` is one minimum of x86, and unlike BinaryOp::min it
// lets the side that a NaN takes be chosen. Bounds are of the units in the last place (ULP) of the result, over all
// 2^32 floats, rounding included. The coefficients are minimax ones, rounded to floats by a search for the least error.
#pragma once

#include <initializer_list>
#include <utility>

#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::pass {

namespace detail {

/// `body` of a variable that stands for `value`, so that however often it reads it, it is evaluated once.
template <class Body>
ir::Expr with_value(const char* name, ir::Expr value, Body body) {
  if (value.as<ir::Var>()) return body(value);
  const ir::Expr var = ir::Var::make(name, value.type());
  return ir::Let::make(var, std::move(value), body(var));
}

/// The lesser of `x` and `limit`; for NaN, the NaN.
inline ir::Expr at_most(const ir::Expr& x, float limit) {
  const ir::Expr c = ir::constant(limit, x.type());
  return ir::Select::make(ir::binary(ir::BinaryOp::lt, c, x), c, x);
}

/// The greater of `x` and `limit`; for NaN, the NaN.
inline ir::Expr at_least(const ir::Expr& x, float limit) {
  const ir::Expr c = ir::constant(limit, x.type());
  return ir::Select::make(ir::binary(ir::BinaryOp::lt, x, c), c, x);
}

/// The lesser of `x` and `limit`; for NaN, `limit`.
inline ir::Expr number_at_most(const ir::Expr& x, float limit) {
  const ir::Expr c = ir::constant(limit, x.type());
  return ir::Select::make(ir::binary(ir::BinaryOp::lt, x, c), x, c);
}

/// A polynomial of `x`, the coefficient of the highest power first.
inline ir::Expr polynomial(const ir::Expr& x, std::initializer_list<float> coefficients) {
  ir::Expr sum;
  for (const float c : coefficients) {
    const ir::Expr next = ir::constant(c, x.type());
    sum = sum ? ir::Fma::make(std::move(sum), x, next) : next;
  }
  return sum;
}

inline constexpr float log2_e = 1.44269504f;
// ln 2 in two parts, the first so short that its product with an exponent is exact.
inline constexpr float ln_2_high = 0x1.62e4p-1f, ln_2_low = 1.42860677e-6f;

}  // namespace detail

/// tanh(x), an odd rational function: 13 operations, one of them a division.
/// At most TANH_ULP ULP off. Never beyond 1 in magnitude, 1 from 8.1097 on; x itself for |x| < 2^-12, -0 included; NaN for NaN.
inline ir::Expr approximate_tanh(ir::Expr a) {
  using namespace detail;
  constexpr float one_from = 8.10969067f;  // the first x where the quotient is 1: before it none is greater
  ir::require(a.dtype() == DType::f32, "an approximate tanh of another type than f32");
  return with_value("a", std::move(a), [](const ir::Expr& a) {
    return with_value("b", at_most(a, one_from), [](const ir::Expr& b) {
      return with_value("x", at_least(b, -one_from), [](const ir::Expr& x) {
        return with_value("z", x * x, [&](const ir::Expr& z) {
          // P / (P + z S) and not P / Q: an error of P nearly cancels where x is small, and halves it up to 2.
          return with_value("p", polynomial(z, {1.46481991e-08f, 2.15084347e-05f, 0.00354916556f, 0.134258673f, 1.0f}), [&](const ir::Expr& p) {
            const ir::Expr s = polynomial(z, {8.14858936e-07f, 0.000315886107f, 0.0225307662f, 0.333333284f});
            return x * p / ir::Fma::make(z, s, p);
          });
        });
      });
    });
  });
}

/// exp(x) = 2^n p(r) with x = n ln 2 + r and r in [0, ln 2): 15 operations, no division.
/// At most EXP_ULP ULP off. 1 for 0; 0 where e^x is below the smallest normal float (x < -87.3365), -infinity included;
/// infinity where it is above the largest; NaN for NaN.
inline ir::Expr approximate_exp(ir::Expr a) {
  using namespace detail;
  using ir::BinaryOp;
  constexpr float normal_from = -87.3365402f;
  ir::require(a.dtype() == DType::f32, "an approximate exp of another type than f32");
  return with_value("x", std::move(a), [](const ir::Expr& x) {
    const auto c = [&](float value) { return ir::constant(value, x.type()); };
    // Exponents stay normal: above, r and with it p grows until the product overflows; below, the result is not used.
    const ir::Expr floor = ir::Unary::make(ir::UnaryOp::round, ir::Fma::make(x, c(log2_e), c(-0.5f)));
    return with_value("k", floor, [&](const ir::Expr& k) {
      return with_value("m", number_at_most(k, 127.0f), [&](const ir::Expr& m) {
        return with_value("n", at_least(m, -126.0f), [&](const ir::Expr& n) {
          return with_value("r", ir::Fma::make(n, c(-ln_2_low), ir::Fma::make(n, c(-ln_2_high), x)), [&](const ir::Expr& r) {
            const ir::Expr p =
                polynomial(r, {0.00196520216f, 0.00775910355f, 0.0419403575f, 0.166601047f, 0.500007331f, 0.999999702f, 1.0f});
            const ir::Expr power = ir::binary(BinaryOp::ldexp, p, n);
            return ir::Select::make(ir::binary(BinaryOp::lt, x, c(normal_from)), c(0.0f), power);
          });
        });
      });
    });
  });
}

/// 1 / (1 + exp(-x)), the exponential as above but with a polynomial one degree lower: 14 operations, one of them a
/// division. At most SIG_ULP ULP off where the result is a normal float (x > -87.3365), so relative precision holds far out on
/// the negative side too; in [0, 1]; 0 from -88.73 down; NaN for NaN.
inline ir::Expr approximate_sigmoid(ir::Expr a) {
  using namespace detail;
  constexpr float one_from = 32.0f;  // anything from 17.4 on does: adding exp(-x) to 1 gives 1
  ir::require(a.dtype() == DType::f32, "an approximate sigmoid of another type than f32");
  return with_value("a", std::move(a), [](const ir::Expr& a) {
    return with_value("x", at_most(a, one_from), [](const ir::Expr& x) {
      const auto c = [&](float value) { return ir::constant(value, x.type()); };
      const ir::Expr floor = ir::Unary::make(ir::UnaryOp::round, ir::Fma::make(x, c(-log2_e), c(-0.5f)));
      return with_value("k", floor, [&](const ir::Expr& k) {
        return with_value("n", number_at_most(k, 127.0f), [&](const ir::Expr& n) {
          // -r of the exponential, which spares negating x; so odd coefficients change their sign.
          return with_value("s", ir::Fma::make(n, c(ln_2_low), ir::Fma::make(n, c(ln_2_high), x)), [&](const ir::Expr& s) {
            const ir::Expr p = polynomial(s, {-0.0116694262f, 0.039062647f, -0.16755496f, 0.499871045f, -1.00000572f, 1.0f});
            return c(1.0f) / (c(1.0f) + ir::binary(ir::BinaryOp::ldexp, p, n));
          });
        });
      });
    });
  });
}

/// `stmt` with every tanh, sigmoid and exp of f32 that is not marked exact approximated.
inline ir::Stmt approximate_activations(const ir::Stmt& stmt) {
  return ir::mutate_with(stmt, [](auto& self, const ir::Unary& n) -> ir::Expr {
    if (n.exact || n.type.dtype != DType::f32) return self.children(n);
    switch (n.op) {
      case ir::UnaryOp::tanh: return approximate_tanh(self(n.a));
      case ir::UnaryOp::sigmoid: return approximate_sigmoid(self(n.a));
      case ir::UnaryOp::exp: return approximate_exp(self(n.a));
      default: return self.children(n);
    }
  });
}

}  // namespace cortex::pass
