// What approximations of functions are made of: names for values, clamps that say what becomes of NaN, polynomials.
#pragma once

#include <initializer_list>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"

namespace cortex::pass {

namespace detail {

/// Gives names to values that are read more than once, so that each is evaluated once.
class Steps {
 public:
  /// A variable that stands for `value`; a variable stands for itself.
  ir::Expr keep(const char* name, ir::Expr value) {
    if (value.as<ir::Var>()) return value;
    const ir::Expr var = ir::Var::make(name, value.type());
    kept_.emplace_back(var, std::move(value));
    return var;
  }

  /// `result` inside the lets of what was kept.
  ir::Expr in_lets(ir::Expr result) const {
    for (const auto& it : reversed(kept_)) result = ir::Let::make(it.first, it.second, result);
    return result;
  }

 private:
  Vector<std::pair<ir::Expr, ir::Expr>> kept_;
};

inline ir::Expr less(const ir::Expr& a, const ir::Expr& b) { return ir::binary(ir::BinaryOp::lt, a, b); }

/// The lesser of `x` and `limit`; for NaN, the NaN. Here and below the order of the operands is that of x86's minps and
/// maxps, which a select becomes: one instruction, where ir's min and max take several.
inline ir::Expr at_most(const ir::Expr& x, float limit) {
  const ir::Expr c = ir::constant(double(limit), x.type());
  return ir::Select::make(less(c, x), c, x);
}

/// The greater of `x` and `limit`; for NaN, the NaN.
inline ir::Expr at_least(const ir::Expr& x, float limit) {
  const ir::Expr c = ir::constant(double(limit), x.type());
  return ir::Select::make(less(x, c), c, x);
}

/// The lesser of `x` and `limit`; for NaN, `limit`.
inline ir::Expr number_at_most(const ir::Expr& x, float limit) {
  const ir::Expr c = ir::constant(double(limit), x.type());
  return ir::Select::make(less(x, c), x, c);
}

/// `y`, or where `x` is 0, that zero with its sign.
inline ir::Expr or_zero(const ir::Expr& x, const ir::Expr& y) {
  return ir::Select::make(ir::binary(ir::BinaryOp::eq, x, ir::constant(0, x.type())), x, y);
}

/// A polynomial of `x`, the coefficient of the highest power first.
inline ir::Expr polynomial(const ir::Expr& x, std::initializer_list<float> coefficients) {
  ir::Expr sum;
  for (const float coefficient : coefficients) {
    const ir::Expr c = ir::constant(double(coefficient), x.type());
    sum = sum ? ir::Fma::make(sum, x, c) : c;
  }
  return sum;
}

inline void require_f32(const ir::Expr& x) {
  ir::require(x && x.dtype() == DType::f32, "an approximate function of another type than f32");
}

inline constexpr float log2_e = 1.44269502f;
// ln 2 in two parts, the first so short that its product with any exponent is exact.
inline constexpr float ln_2_high = 0.693145752f, ln_2_low = 1.42860677e-06f;

inline constexpr float one_over_pi = 0.318309873f;
// Pi in three parts, the nearest float and what is left of it, twice.
inline constexpr float pi_1 = 3.14159274f, pi_2 = -8.74227766e-08f, pi_3 = -3.43024902e-15f;

}  // namespace detail

}  // namespace cortex::pass
