// Operators and functions on the values of a lambda (paper section 3, R3). Arithmetic among integers of the structure
// stays structure, with the division of integers; as soon as data takes part, the result is data.
#pragma once

#include "cortex/dsl/value.hpp"

namespace cortex::dsl {

namespace detail {

template <class... T>
inline constexpr Sort joined_sort = ((is_structure<T> || is_literal<T>)&&...) ? Sort::structure : Sort::data;

template <class... T>
struct JoinedSet {
  using type = NoAccessors;
};
template <class T>
struct JoinedSet<T> {
  using type = SetOf<T>;
};
template <class A, class... Rest>
struct JoinedSet<A, Rest...> {
  using type = Join<SetOf<A>, typename JoinedSet<Rest...>::type>;
};

template <class... T>
using Joined = Value<joined_sort<T...>, typename JoinedSet<T...>::type>;

template <class A, class B>
constexpr bool valid_operands() {
  static_assert(valid_scalar<A>() && valid_scalar<B>());
  static_assert(!(is_structure<A> && std::is_floating_point_v<B>)&&!(is_structure<B> && std::is_floating_point_v<A>),
                "a floating-point number meets an integer of the structure: convert that first, with cast<float>(...) "
                "or cast<double>(...)");
  return true;
}

template <class A, class B>
Joined<A, B> binary(ir::BinaryOp op, const A& a, const B& b) {
  static_assert(valid_operands<A, B>());
  return {arithmetic(op, operand(a), operand(b))};
}

template <class A, class B>
A& assign(A& to, const B& value) {
  static_assert(std::is_same_v<A, B>,
                "the two together are of another type, as they read the node by other accessors or as one is an "
                "integer of the structure: give what they make a name of its own");
  return to = value;
}

template <class A, class B>
Joined<A, B> logic(ir::BinaryOp op, const A& a, const B& b) {
  static_assert(!is_literal<A> && !is_literal<B>, "a condition is made of comparisons, not of numbers");
  const Operand x = operand(a), y = operand(b);
  return {ir::Binary::make(op, condition(x.expr), condition(y.expr))};
}

template <class A>
constexpr bool valid_function_operand() {
  static_assert(valid_scalar<A>());
  static_assert(
      !is_structure<A>,
      "a function of an integer of the structure: convert that first, with cast<float>(...) or cast<double>(...)");
  return true;
}

template <class A>
Data<SetOf<A>> function(ir::UnaryOp op, const A& a) {
  static_assert(valid_function_operand<A>());
  return {ir::Unary::make(op, number(operand(a).expr))};
}

}  // namespace detail

// ---- arithmetic, on data and on integers of the structure ----

template <class A, class B>
requires Symbolic<A, B>
auto operator+(const A& a, const B& b) { return detail::binary(ir::BinaryOp::add, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator-(const A& a, const B& b) { return detail::binary(ir::BinaryOp::sub, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator*(const A& a, const B& b) { return detail::binary(ir::BinaryOp::mul, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator/(const A& a, const B& b) { return detail::binary(ir::BinaryOp::div, a, b); }

/// The remainder of integers of the structure.
template <class A, class B>
requires Symbolic<A, B>
auto operator%(const A& a, const B& b) {
  static_assert(!is_data<A> && !is_data<B>, "a remainder is of integers of the structure, not of computed data");
  return detail::binary(ir::BinaryOp::mod, a, b);
}

// `sum += x` in a lambda's loop over things of C++, such as layers.
template <class A, class B>
requires Symbolic<A> A& operator+=(A& a, const B& b) { return detail::assign(a, a + b); }
template <class A, class B>
requires Symbolic<A> A& operator-=(A& a, const B& b) { return detail::assign(a, a - b); }
template <class A, class B>
requires Symbolic<A> A& operator*=(A& a, const B& b) { return detail::assign(a, a * b); }
template <class A, class B>
requires Symbolic<A> A& operator/=(A& a, const B& b) { return detail::assign(a, a / b); }

template <class A>
requires Symbolic<A> detail::Joined<A>
operator-(const A& a) {
  const Operand x = operand(a);
  return {is_float(number(x.expr).dtype()) ? ir::Unary::make(ir::UnaryOp::neg, x.expr)
                                           : ir::constant(0, x.expr.type()) - x.expr};
}

// ---- comparisons and conditions ----

template <class A, class B>
requires Symbolic<A, B>
auto operator==(const A& a, const B& b) { return detail::binary(ir::BinaryOp::eq, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator!=(const A& a, const B& b) { return detail::binary(ir::BinaryOp::ne, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator<(const A& a, const B& b) { return detail::binary(ir::BinaryOp::lt, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator<=(const A& a, const B& b) { return detail::binary(ir::BinaryOp::le, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator>(const A& a, const B& b) { return detail::binary(ir::BinaryOp::gt, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator>=(const A& a, const B& b) { return detail::binary(ir::BinaryOp::ge, a, b); }

/// An integer of the structure beside an enumerator, such as a kind of the node: `kind(n) == Kind::join`.
template <class A, class E>
requires(is_structure<A>&& std::is_enum_v<E>) auto operator==(const A& a, E e) { return a == std::int64_t(e); }
template <class A, class E>
requires(is_structure<A>&& std::is_enum_v<E>) auto operator==(E e, const A& a) { return a == std::int64_t(e); }
template <class A, class E>
requires(is_structure<A>&& std::is_enum_v<E>) auto operator!=(const A& a, E e) { return a != std::int64_t(e); }
template <class A, class E>
requires(is_structure<A>&& std::is_enum_v<E>) auto operator!=(E e, const A& a) { return a != std::int64_t(e); }

/// Both sides are evaluated: there is no control flow inside an operator.
template <class A, class B>
requires Symbolic<A, B>
auto operator&&(const A& a, const B& b) { return detail::logic(ir::BinaryOp::logical_and, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto operator||(const A& a, const B& b) { return detail::logic(ir::BinaryOp::logical_or, a, b); }
template <class A>
requires Symbolic<A> detail::Joined<A>
operator!(const A& a) { return {ir::Unary::make(ir::UnaryOp::logical_not, condition(operand(a).expr))}; }

/// `x` as f32 (`cast<float>`) or f64 (`cast<double>`) data; `x` is data, an integer or a condition of the structure
/// (1 or 0), or a number. The only conversion between f32 and f64.
template <class T, class X>
requires(is_symbol<X> || is_literal<X>) Data<SetOf<X>> cast(const X& x) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "cast<float> and cast<double> are the conversions that there are");
  return {converted(operand(x), dtype_of<T>)};
}

/// `a` where `c` holds, else `b`, both evaluated. `c` may be data or structure: this is no control flow. Integers of
/// the structure under a condition on the structure give an integer of the structure; two numbers of C++'s `float` are
/// data of f32.
template <class C, class A, class B>
requires(Symbolic<C, A, B>&& std::is_same_v<A, float>&& std::is_same_v<B, float>) auto select(const C& c, const A& a,
                                                                                              const B& b) {
  return select(c, cast<float>(a), cast<float>(b));
}
template <class C, class A, class B>
requires Symbolic<C, A, B> detail::Joined<C, A, B> select(const C& c, const A& a, const B& b) {
  static_assert(!is_literal<C>, "the condition of select is a comparison, is_leaf or a field, not a number");
  constexpr bool of_data = is_data<A> || is_data<B>,
                 with_point = std::is_floating_point_v<A> || std::is_floating_point_v<B>;
  static_assert(
      of_data || !(is_data<C> || with_point) || is_structure<A> || is_structure<B>,
      "select between two numbers does not say of which type: write 1.0f of f32, or cast<double>(...) around one");
  static_assert(of_data || !is_data<C> || !(is_structure<A> || is_structure<B>),
                "a condition made of computed data chooses between data: convert an integer of the structure with "
                "cast<float>(...)");
  static_assert(detail::valid_operands<A, B>());
  return {choice(operand(c), operand(a), operand(b))};
}

// ---- functions of data, element by element ----

template <class A>
requires Symbolic<A>
auto exp(const A& a) { return detail::function(ir::UnaryOp::exp, a); }
/// exp(a) - 1, precise near 0.
template <class A>
requires Symbolic<A>
auto expm1(const A& a) { return detail::function(ir::UnaryOp::expm1, a); }
template <class A>
requires Symbolic<A>
auto log(const A& a) { return detail::function(ir::UnaryOp::log, a); }
/// log(1 + a), precise near 0.
template <class A>
requires Symbolic<A>
auto log1p(const A& a) { return detail::function(ir::UnaryOp::log1p, a); }
template <class A>
requires Symbolic<A>
auto sqrt(const A& a) { return detail::function(ir::UnaryOp::sqrt, a); }
template <class A>
requires Symbolic<A>
auto tanh(const A& a) { return detail::function(ir::UnaryOp::tanh, a); }
/// The error function.
template <class A>
requires Symbolic<A>
auto erf(const A& a) { return detail::function(ir::UnaryOp::erf, a); }
/// The sine of an angle in radians. In f32 it is an approximation for |a| up to 131072 = 2^17: beyond, where floats are
/// too far apart to be angles, it is some number in [-1, 1], unless the schedule asks for exact functions.
template <class A>
requires Symbolic<A>
auto sin(const A& a) { return detail::function(ir::UnaryOp::sin, a); }
/// The cosine, as `sin`.
template <class A>
requires Symbolic<A>
auto cos(const A& a) { return detail::function(ir::UnaryOp::cos, a); }
/// The greatest whole number that is not above a.
template <class A>
requires Symbolic<A>
auto floor(const A& a) { return detail::function(ir::UnaryOp::floor, a); }
/// 1 / (1 + exp(-a)).
template <class A>
requires Symbolic<A>
auto sigmoid(const A& a) { return detail::function(ir::UnaryOp::sigmoid, a); }
/// max(a, 0); NaN stays NaN.
template <class A>
requires Symbolic<A>
auto relu(const A& a) { return detail::function(ir::UnaryOp::relu, a); }
template <class A>
requires Symbolic<A>
auto abs(const A& a) { return detail::function(ir::UnaryOp::abs, a); }

/// The greater and the lesser, of data and of integers of the structure; NaN if either side is NaN. The overloads of
/// one type are there for lambdas under `using namespace std`, whose templates they outrank.
template <class A, class B>
requires Symbolic<A, B>
auto max(const A& a, const B& b) { return detail::binary(ir::BinaryOp::max, a, b); }
template <class A, class B>
requires Symbolic<A, B>
auto min(const A& a, const B& b) { return detail::binary(ir::BinaryOp::min, a, b); }
template <class A>
requires Symbolic<A>
auto max(const A& a, const A& b) { return detail::binary(ir::BinaryOp::max, a, b); }
template <class A>
requires Symbolic<A>
auto min(const A& a, const A& b) { return detail::binary(ir::BinaryOp::min, a, b); }

}  // namespace cortex::dsl

namespace cortex {
using dsl::abs, dsl::cast, dsl::cos, dsl::erf, dsl::exp, dsl::expm1, dsl::floor, dsl::log, dsl::log1p, dsl::max,
    dsl::min, dsl::relu, dsl::select, dsl::sigmoid, dsl::sin, dsl::sqrt, dsl::tanh;
}  // namespace cortex
