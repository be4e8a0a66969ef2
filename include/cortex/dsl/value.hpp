// What a lambda computes with: values whose type says whether they are data or structure and which accessors they
// read, and whose content is a handle to an expression. Everything that does not depend on the type is in plain
// functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "cortex/base/half.hpp"
#include "cortex/base/usual_arithmetic.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/structure/accessor_set.hpp"

namespace cortex::dsl {

/// Whether a value depends on the structure alone, and may steer control flow and indices (P.1), or on tensors.
enum class Sort : std::uint8_t { structure, data };

template <class A, class B>
using Join = structure::Union<A, B>;
using NoAccessors = structure::Accessors<>;

/// A scalar in the body of an operator. `AccessorSet` is the flat `structure::Accessors<...>` that it depends on.
template <Sort S, class AccessorSet>
struct Value {
  static constexpr Sort sort = S;
  using Set = AccessorSet;
  ir::Expr expr;

  /// A value of these accessors and others: what a C++ variable of that type may be given.
  template <class More>
  operator Value<S, More>() const {
    static_assert(structure::includes<More, AccessorSet>,
                  "a C++ variable keeps the type that it began with, which names the fields and children that its "
                  "value reads, and the value given to it now reads others: name it by an auto of its own");
    return {expr};
  }

  /// Refused, because a lambda is called once, when the model is built, and no value is known then.
  explicit operator bool() const {
    static_assert(sizeof(AccessorSet) == 0,
                  "(P.1) control flow depends on the structure alone: C++'s if, ?: and loops cannot look at a value; "
                  "use select(condition, a, b), or the model's "
                  "if_then_else for a condition on the structure");
    return false;
  }
};

template <class Set = NoAccessors>
using Structural = Value<Sort::structure, Set>;
template <class Set = NoAccessors>
using Data = Value<Sort::data, Set>;

// ---- what kind of thing a type is ----

template <class T>
inline constexpr bool is_value = false;
template <Sort S, class Set>
inline constexpr bool is_value<Value<S, Set>> = true;

/// Numbers of C++ that combine with values; `bool` is none, a condition is never constant.
template <class T>
inline constexpr bool is_literal = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Tensors by name: `tanh(lh)` and `lh + rh` are refused with a sentence. Specialised in handles.hpp.
template <class T>
inline constexpr bool is_tensor = false;
/// Node handles and containers of children. Specialised in node.hpp.
template <class T>
inline constexpr bool is_node = false;
template <class T>
inline constexpr bool is_children = false;
/// Integer fields that are arrays. Specialised in node.hpp.
template <class T>
inline constexpr bool is_components = false;

template <class T>
inline constexpr bool is_symbol = is_value<T> || is_tensor<T> || is_node<T> || is_children<T> || is_components<T>;

/// The arguments of operators and functions on values: at least one comes from this library.
template <class... T>
concept Symbolic = (is_symbol<T> || ...) && ((is_symbol<T> || is_literal<T>)&&...);

template <class T>
inline constexpr bool is_data = false;
template <class Set>
inline constexpr bool is_data<Value<Sort::data, Set>> = true;
template <class T>
inline constexpr bool is_structure = false;
template <class Set>
inline constexpr bool is_structure<Value<Sort::structure, Set>> = true;

namespace detail {
template <class T>
struct AccessorsRead {
  using type = NoAccessors;
};
template <Sort S, class Set>
struct AccessorsRead<Value<S, Set>> {
  using type = Set;
};
}  // namespace detail

/// The accessors that a value reads; none for a literal.
template <class T>
using SetOf = typename detail::AccessorsRead<T>::type;

/// Refuses what is no scalar, in words.
template <class T>
constexpr bool valid_scalar() {
  static_assert(
      !is_tensor<T>,
      "an operator is read at a node and one index per dimension, as in op(n, i), before it is computed with");
  static_assert(!is_components<T>, "a field that is an array is read by component, as in ids(n)[0]");
  static_assert(!is_node<T>, "a node is no number: read a field of it, or a placeholder or an operator at it");
  static_assert(
      !is_children<T>,
      "a container of children is no number: use num_children, or a reduction over it such as sum(kids(n), ...)");
  return true;
}

// ---- operands, without their types ----

/// An expression or a literal that takes the type of what it meets.
struct Operand {
  ir::Expr expr;  // empty: a literal
  double number = 0;
  std::int64_t integer = 0;
  bool whole = false;  // the literal is an integer
};

[[noreturn]] inline void fail(const std::string& what) { throw Error(Code::invalid_model, what); }

/// The expression of a value, which has one unless it was moved from or never given one.
inline const ir::Expr& present(const ir::Expr& e) {
  if (!e) fail("a value is used after it was moved from, or without having been given one");
  return e;
}

template <class T>
Operand operand(const T& x) {
  static_assert(valid_scalar<T>());
  if constexpr (is_value<T>)
    return Operand{present(x.expr)};
  else if constexpr (std::is_integral_v<T>)
    return {{}, double(x), std::int64_t(x), true};
  else if constexpr (is_literal<T>)
    return {{}, double(x), 0, false};
  else
    return {};
}

/// `e` for a message: the tensor's name where it is one.
inline std::string described(const ir::Expr& e) {
  const std::string type(to_string(e.dtype()));
  if (const auto* load = e.as<ir::Load>()) return "'" + load->buffer->name + "' (" + type + ")";
  return (e.dtype() == DType::i32 ? "an " : "a ") + (is_float(e.dtype()) ? "value of type " + type : type);
}

/// The literal as a constant of `type`. A number in f32 is rounded to f32, so that each target computes with the same.
inline ir::Expr literal(const Operand& x, DType type) {
  if (type == DType::f32) {
    const float rounded = nearest_float(x.number);
    if (!is_finite(rounded) && is_finite(x.number))
      fail("the number " + std::to_string(x.number) + " does not fit f32");
    return ir::FloatImm::make(double(rounded), type);
  }
  if (type == DType::f64) return ir::FloatImm::make(x.number, type);
  if (type == DType::boolean)
    fail("a condition meets the number " + std::to_string(x.number) +
         "; conditions combine with &&, || and !, and choose values with select");
  if (!x.whole)
    fail("the number " + std::to_string(x.number) +
         " meets an integer of the structure; convert that with cast<float>(...)");
  if (x.number > 0 && x.integer < 0)  // an unsigned number of 64 bits, which -1 is not
    fail("the integer " + std::to_string(std::uint64_t(x.integer)) + " does not fit 32 bits");
  if (x.integer != std::int32_t(x.integer)) fail("the integer " + std::to_string(x.integer) + " does not fit 32 bits");
  return ir::IntImm::make(x.integer, type);
}

/// `x` converted to the type of the expression that it meets, if the rules allow it: integers of the structure become
/// data; f32 and f64 do not mix.
inline ir::Expr fitted(const Operand& x, DType type) {
  if (!x.expr) return literal(x, type);
  const DType own = x.expr.dtype();
  if (own == type) return x.expr;
  if (is_int(own) && is_float(type)) return ir::Cast::make(type, x.expr);
  return {};
}

struct Pair {
  ir::Expr a, b;
};

/// Both operands in one type. At most one of them is a literal.
inline Pair unified(const Operand& a, const Operand& b) {
  const auto type_of = [](const Operand& x, const Operand& other) {
    return x.expr ? x.expr.dtype() : other.expr.dtype();
  };
  const DType ta = type_of(a, b), tb = type_of(b, a);
  const DType type = is_float(ta) ? ta : tb;
  Pair result{fitted(a, type), fitted(b, type)};
  if (result.a && result.b) return result;
  const std::string both = described(a.expr) + " meets " + described(b.expr);
  if (is_float(ta) && is_float(tb))
    fail(both + ": f32 and f64 do not mix; convert one side with cast<float>(...) or cast<double>(...)");
  fail(both + ": choose values by a condition with select(condition, a, b)");
}

/// `e`, which must not be a condition.
inline const ir::Expr& number(const ir::Expr& e) {
  if (present(e).dtype() == DType::boolean)
    fail("a condition stands where a number is expected; choose values with select(condition, a, b)");
  return e;
}

inline ir::Expr arithmetic(ir::BinaryOp op, const Operand& a, const Operand& b) {
  const Pair both = unified(a, b);
  if (op != ir::BinaryOp::eq && op != ir::BinaryOp::ne) number(both.a);
  const ir::Expr result = ir::binary(op, both.a, both.b);
  // A variable is an index of its own dimension alone, and i + 0 a number, as i + H is: so the first of gates that lie
  // one after the other are read as all others are.
  const bool is_variable = result.as<ir::Var>() && is_int(result.dtype());
  return is_variable ? ir::Binary::make(op, both.a, both.b) : result;
}

/// `e` as a condition: an integer field is true where it is not 0.
inline ir::Expr condition(const ir::Expr& e) {
  if (present(e).dtype() == DType::boolean) return e;
  if (is_int(e.dtype())) return ir::binary(ir::BinaryOp::ne, e, ir::constant(0, e.type()));
  fail("a floating-point value stands for a condition; compare it, as in x > 0");
}

inline ir::Expr choice(const Operand& c, const Operand& a, const Operand& b) {
  if (!a.expr && !b.expr) {  // two literals under a structural condition: integers
    return ir::Select::make(condition(c.expr), literal(a, DType::i32), literal(b, DType::i32));
  }
  const Pair both = unified(a, b);
  return ir::Select::make(condition(c.expr), both.a, both.b);
}

/// The conversion that `cast` asks for; a condition becomes 1 or 0.
inline ir::Expr converted(const Operand& x, DType type) {
  if (!x.expr) return literal(x, type);
  if (x.expr.dtype() == DType::boolean)
    return ir::Select::make(x.expr, ir::constant(1, {type, 1}), ir::constant(0, {type, 1}));
  return ir::Cast::make(type, x.expr);
}

}  // namespace cortex::dsl
