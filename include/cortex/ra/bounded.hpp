// The numbers that the interpreter of the operator graph computes with: plain doubles, or values with a running error
// bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "cortex/ir/build.hpp"

namespace cortex::ra {

/// A condition. With bounded numbers it may be undecided: `value` is then what the values say, and either may be true.
struct Truth {
  bool value = false;
  bool certain = true;

  friend Truth operator!(Truth a) { return {!a.value, a.certain}; }
  friend Truth operator&&(Truth a, Truth b) {
    return {a.value && b.value, (a.certain && b.certain) || (a.certain && !a.value) || (b.certain && !b.value)};
  }
  friend Truth operator||(Truth a, Truth b) { return !(!a && !b); }
};

/// What `T` computes with: one specialisation for each number type, with the same members.
template <class T>
struct Arithmetic;

/// The reference: exact up to the rounding of doubles.
template <>
struct Arithmetic<double> {
  static double exact(double value) { return value; }
  static double within(double value, double /*share*/) { return value; }
  static double constant(double value, DType) { return value; }
  static double integer(std::int64_t value, DType) { return double(value); }
  static double cast(double a, DType, DType) { return a; }
  static double fma(double a, double b, double c, DType) { return std::fma(a, b, c); }
  static double select(Truth condition, double a, double b) { return condition.value ? a : b; }

  static double unary(ir::UnaryOp op, double a, DType) {
    switch (op) {
      case ir::UnaryOp::neg: return -a;
      case ir::UnaryOp::abs: return std::abs(a);
      case ir::UnaryOp::exp: return std::exp(a);
      case ir::UnaryOp::log: return std::log(a);
      case ir::UnaryOp::sqrt: return std::sqrt(a);
      case ir::UnaryOp::tanh: return std::tanh(a);
      case ir::UnaryOp::sigmoid: return 1 / (1 + std::exp(-a));
      case ir::UnaryOp::relu: return a < 0 ? 0 : a;  // NaN stays
      case ir::UnaryOp::round: return std::nearbyint(a);
      case ir::UnaryOp::floor: return std::floor(a);
      case ir::UnaryOp::erf: return std::erf(a);
      case ir::UnaryOp::sin: return std::sin(a);
      case ir::UnaryOp::cos: return std::cos(a);
      case ir::UnaryOp::log1p: return std::log1p(a);
      case ir::UnaryOp::expm1: return std::expm1(a);
      case ir::UnaryOp::exponent:
      case ir::UnaryOp::significand: throw Error(Code::internal, "an operator of the compiler's own in a graph");
      case ir::UnaryOp::logical_not: break;
    }
    throw Error(Code::internal, "a number is negated like a condition");
  }

  static double binary(ir::BinaryOp op, double a, double b, DType) {
    switch (op) {
      case ir::BinaryOp::add: return a + b;
      case ir::BinaryOp::sub: return a - b;
      case ir::BinaryOp::mul: return a * b;
      case ir::BinaryOp::div: return a / b;
      case ir::BinaryOp::mod: return std::fmod(a, b);
      case ir::BinaryOp::min: return std::isnan(a) || b > a ? a : b;  // NaN if either is
      case ir::BinaryOp::max: return std::isnan(a) || b < a ? a : b;
      case ir::BinaryOp::ldexp: return a * std::exp2(b);
      case ir::BinaryOp::pow: return std::pow(a, b);
      default: throw Error(Code::internal, "a binary operator that does not give a number");
    }
  }

  static Truth compare(ir::BinaryOp op, double a, double b) {
    switch (op) {
      case ir::BinaryOp::eq: return {a == b};
      case ir::BinaryOp::ne: return {a != b};
      case ir::BinaryOp::lt: return {a < b};
      case ir::BinaryOp::le: return {a <= b};
      case ir::BinaryOp::gt: return {a > b};
      default: return {a >= b};
    }
  }

  /// The sum of a reduction.
  struct Sum {
    double total = 0;
    void add(double term) { total += term; }
    double result() const { return total; }
  };
  static Sum sum(DType) { return {}; }
};

/// A value and how far an evaluation in the operators' own types, done right, may lie from it. The value itself is
/// computed in double, and the bound covers the rounding of that too.
struct Bounded {
  double value = 0;
  double error = 0;

  /// Whether `x` may be the result of a right evaluation.
  bool covers(double x) const {
    if (std::isinf(error)) return true;
    if (std::isnan(value)) return std::isnan(x);
    return x == value || std::abs(x - value) <= error;
  }
};

/// What rounding errors an evaluation may make: the standard model |fl(a op b) - (a op b)| <= u |a op b|.
struct Rounding {
  double f32 = 0x1p-24, f64 = 0x1p-53;  // unit roundoff u of each type
  double function_ulps = 4;             // the error of exp, log, tanh, sigmoid and their like
  double sine_limit = 0x1p17;           // beyond which sin and cos are no more than numbers in [-1, 1]
  bool any_order = false;  // reductions may be in any order, not only one after the other: a looser bound, by about the
                           // root of their length
};

/// Error bounds by interval arithmetic about the value: every operation adds what it makes of its operands' errors and
/// its own rounding. A product that is added counts two roundings, which covers the fused multiply-add with its one.
template <>
struct Arithmetic<Bounded> {
  Rounding rounding;

  Arithmetic() = default;
  explicit Arithmetic(const Rounding& r) : rounding(r) {}

  static Bounded exact(double value) { return {value, 0}; }
  /// A value that is right up to a share of itself.
  static Bounded within(double value, double share) {
    return {value, std::isfinite(value) ? share * std::abs(value) : 0};
  }
  static Bounded constant(double value, DType type) {
    return {value, type == DType::f32 && std::isfinite(value) ? std::abs(double(float(value)) - value) : 0};
  }
  Bounded integer(std::int64_t value, DType type) const {
    const bool fits = std::abs(double(value)) <= (type == DType::f32 ? 0x1p24 : 0x1p53);
    return fits ? exact(double(value)) : rounded(double(value), 0, 1, type);
  }
  Bounded cast(Bounded a, DType from, DType to) const {
    return from == DType::f64 && to == DType::f32 ? (usual({a}) ? rounded(a.value, a.error, 1, to) : a) : a;
  }

  Bounded add(Bounded a, Bounded b, DType type) const {
    if (!usual({a, b})) return special(a.value + b.value, {a, b});
    if (is_zero(a)) return b;
    if (is_zero(b)) return a;
    return rounded(a.value + b.value, a.error + b.error, 1, type);
  }

  Bounded mul(Bounded a, Bounded b, DType type) const {
    if (!usual({a, b})) return special(a.value * b.value, {a, b});
    if (is_zero(a) || is_zero(b)) return exact(a.value * b.value);
    const double carried = std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
    return rounded(a.value * b.value, carried + tiny(type), 1, type);
  }

  Bounded fma(Bounded a, Bounded b, Bounded c, DType type) const { return add(mul(a, b, type), c, type); }

  Bounded unary(ir::UnaryOp op, Bounded a, DType type) const {
    using enum ir::UnaryOp;
    const auto f = [op, type](double x) { return Arithmetic<double>::unary(op, x, type); };
    if (!usual({a})) return op == neg || op == abs ? Bounded{f(a.value), a.error} : special(f(a.value), {a});
    switch (op) {
      case neg: return {-a.value, a.error};
      case abs: return {std::abs(a.value), a.error};
      case relu:
      case floor:
      case round: return monotone(f, a, 0, type);
      case sqrt: return is_zero(a) ? a : a.value < a.error ? undefined(f(a.value), a) : monotone(f, a, 1, type);
      case log: return a.value <= a.error ? undefined(f(a.value), a) : monotone(f, a, 2 * rounding.function_ulps, type);
      case log1p:
        return a.value <= a.error - 1 ? undefined(f(a.value), a) : monotone(f, a, 2 * rounding.function_ulps, type);
      case sin:
      case cos: return sine(f(a.value), a, type);
      default: return monotone(f, a, 2 * rounding.function_ulps, type);  // an ULP is at most two unit roundoffs
    }
  }

  Bounded binary(ir::BinaryOp op, Bounded a, Bounded b, DType type) const {
    if (op == ir::BinaryOp::add) return add(a, b, type);
    if (op == ir::BinaryOp::mul) return mul(a, b, type);
    if (op == ir::BinaryOp::sub) return add(a, {-b.value, b.error}, type);
    const double value = Arithmetic<double>::binary(op, a.value, b.value, type);
    if (!usual({a, b})) return special(value, {a, b});
    switch (op) {
      case ir::BinaryOp::div: return quotient(value, a, b, type);
      case ir::BinaryOp::mod:
        return {value, a.error + b.error == 0 ? 0 : std::abs(b.value) + b.error + std::abs(value)};
      case ir::BinaryOp::min:
        return between(std::min(a.value - a.error, b.value - b.error), value,
                       std::min(a.value + a.error, b.value + b.error));
      case ir::BinaryOp::max:
        return between(std::max(a.value - a.error, b.value - b.error), value,
                       std::max(a.value + a.error, b.value + b.error));
      case ir::BinaryOp::ldexp:
        return b.error == 0 ? rounded(value, std::ldexp(a.error, int(b.value)) + tiny(type), 0, type)
                            : undefined(value, b);
      case ir::BinaryOp::pow: return power(value, a, b, type);
      default: throw Error(Code::internal, "a binary operator that does not give a number");
    }
  }

  static Truth compare(ir::BinaryOp op, Bounded a, Bounded b) {
    const bool value = Arithmetic<double>::compare(op, a.value, b.value).value;
    const double reach = a.error + b.error;
    return {value, reach == 0 || std::abs(a.value - b.value) > reach};
  }

  /// Where the condition is undecided, either side.
  static Bounded select(Truth condition, Bounded a, Bounded b) {
    const Bounded &taken = condition.value ? a : b, &other = condition.value ? b : a;
    if (condition.certain) return taken;
    const double apart = std::abs(taken.value - other.value) + other.error;
    return {taken.value, std::isnan(apart) ? infinity : std::max(taken.error, apart)};
  }

  /// The sum of a reduction, term after term into one accumulator, or in any order.
  struct Sum {
    const Arithmetic* arithmetic;
    DType type;
    Bounded total;
    double size = 0, carried = 0;  // sum of the terms' magnitudes, and of their errors
    int terms = 0;

    void add(Bounded term) {
      total = arithmetic->add(total, term, type);
      size += std::abs(term.value) + term.error;
      carried += term.error;
      ++terms;
    }
    Bounded result() const {
      if (!arithmetic->rounding.any_order || terms < 3 || !usual({total})) return total;
      const double growth = arithmetic->unit(type) * terms;
      return growth < 0.5 ? arithmetic->rounded(total.value, carried + growth / (1 - growth) * size, 0, type)
                          : Bounded{total.value, infinity};
    }
  };
  Sum sum(DType type) const { return {this, type, {}}; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  static bool is_zero(Bounded a) { return a.value == 0 && a.error == 0; }

  /// Whether all are finite, with finite bounds.
  static bool usual(std::initializer_list<Bounded> operands) {
    for (const Bounded& a : operands)
      if (!std::isfinite(a.value) || !std::isfinite(a.error)) return false;
    return true;
  }

  /// Infinities and NaNs that are there for certain give certain ones; what may or may not be one gives no bound.
  static Bounded special(double value, std::initializer_list<Bounded> operands) {
    bool certain = true;
    for (const Bounded& a : operands) {
      if (std::isnan(a.value) && a.error == 0) return a;
      certain &= a.error == 0;
    }
    return {value, certain ? std::isfinite(value) ? 0x1p-20 * std::abs(value) : 0 : infinity};
  }

  /// A function at the end of where it is defined: certain only where its operand is.
  static Bounded undefined(double value, Bounded a) { return {value, a.error == 0 ? 0 : infinity}; }

  /// One rounding, of the evaluation and of the value itself.
  double unit(DType type) const { return (type == DType::f32 ? rounding.f32 : rounding.f64) + 0x1p-53; }

  /// What underflow may lose, also where small results become zero.
  static double tiny(DType type) { return type == DType::f32 ? 0x1p-124 : 0x1p-1020; }

  /// `value` with the error `carried` over from the operands and so many rounding units more. The last factor covers
  /// the rounding of the bound's own arithmetic.
  Bounded rounded(double value, double carried, double units, DType type) const {
    const double error = (carried + units * unit(type) * (std::abs(value) + carried)) * (1 + 0x1p-48);
    const double greatest =
        type == DType::f32 ? double(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max();
    return {value, std::abs(value) + error <= greatest ? error : infinity};
  }

  static Bounded between(double lo, double value, double hi) {
    return {value, std::max(hi - value, value - lo) * (1 + 0x1p-48)};
  }

  /// An increasing function: its values at the ends of the operand's interval, computed in double to a few units of
  /// that.
  template <class F>
  Bounded monotone(F f, Bounded a, double units, DType type) const {
    const double value = f(a.value), lo = f(a.value - a.error), hi = f(a.value + a.error);
    if (units == 0 && lo == hi) return {value, 0};
    const double own = units == 0 ? 0 : 0x1p-50 * std::max(std::abs(lo), std::abs(hi)) + tiny(type);
    const double carried = a.error == 0 ? 0 : std::max(hi - value, value - lo);
    return rounded(value, std::isfinite(hi) ? carried + own : infinity, units, type);
  }

  /// A function in [-1, 1] whose slope is too.
  Bounded sine(double value, Bounded a, DType type) const {
    const bool wild = type == DType::f32 && std::abs(a.value) + a.error > rounding.sine_limit;
    if (wild || a.error > 2) return {value, 1 + std::abs(value)};
    return rounded(value, a.error + tiny(type), 2 * rounding.function_ulps, type);
  }

  Bounded quotient(double value, Bounded a, Bounded b, DType type) const {
    if (std::abs(b.value) <= b.error) return {value, a.error == 0 && b.error == 0 ? 0 : infinity};
    if (is_zero(a)) return exact(value);
    const double carried = (a.error + std::abs(value) * b.error) / (std::abs(b.value) - b.error);
    return rounded(value, carried + tiny(type), 1, type);
  }

  /// Of a positive base, monotone in each of both: the greatest and the least are at corners.
  Bounded power(double value, Bounded a, Bounded b, DType type) const {
    const double units = 2 * rounding.function_ulps;
    if (a.error == 0 && b.error == 0) return rounded(value, tiny(type), units, type);
    if (a.value < 0 && b.error == 0 && b.value == std::floor(b.value) && -a.value > a.error)  // of one sign
      return {value, power(std::abs(value), {-a.value, a.error}, b, type).error};
    if (a.value <= a.error) return undefined(value, {value, infinity});
    double lo = value, hi = value;
    for (const double x : {a.value - a.error, a.value + a.error})
      for (const double y : {b.value - b.error, b.value + b.error})
        lo = std::min(lo, std::pow(x, y)), hi = std::max(hi, std::pow(x, y));
    const double carried = std::max(hi - value, value - lo) + 0x1p-50 * hi + tiny(type);
    return rounded(value, std::isfinite(hi) ? carried : infinity, units, type);
  }
};

}  // namespace cortex::ra
