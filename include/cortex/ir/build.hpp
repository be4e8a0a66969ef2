// Building expressions with operators. Integer arithmetic on constants is folded and neutral elements vanish, so that
// index expressions stay short; floating-point arithmetic is left as written, because x * 0 is not 0 for infinities.
#pragma once

#include <limits>
#include <optional>

#include "cortex/base/vector.hpp"
#include "cortex/ir/expr.hpp"

namespace cortex::ir {

inline Expr imm(std::int64_t value) { return IntImm::make(value); }

/// The constant `value` in `type`.
inline Expr constant(double value, Type type) {
  Expr e = is_float(type.dtype) ? FloatImm::make(value, type.dtype) : IntImm::make(std::int64_t(value), type.dtype);
  return type.lanes > 1 ? Broadcast::make(e, type.lanes) : e;
}

/// Whether an element is read from where it is: among recent rows on chip, or else in memory. One of the two is loaded,
/// and the other need not have it.
inline bool is_near_or_far(const Select& either) {
  const auto* near = either.then_value.as<Load>();
  return near && has_recent_rows(near->buffer->scope) && either.else_value.as<Load>();
}

inline std::optional<std::int64_t> as_int(const Expr& e) {
  if (const auto* i = e.as<IntImm>()) return i->value;
  return {};
}

/// The value of a floating-point constant, in every lane.
inline std::optional<double> as_float(const Expr& e) {
  if (const auto* f = e.as<FloatImm>()) return f->value;
  if (const auto* b = e.as<Broadcast>()) return as_float(b->value);
  return {};
}

/// What an integer operation gives for constants.
inline std::int64_t fold(BinaryOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
    case BinaryOp::mod: return a % b;
    case BinaryOp::min: return a < b ? a : b;
    case BinaryOp::max: return a < b ? b : a;
    case BinaryOp::eq: return a == b;
    case BinaryOp::ne: return a != b;
    case BinaryOp::lt: return a < b;
    case BinaryOp::le: return a <= b;
    case BinaryOp::gt: return a > b;
    case BinaryOp::ge: return a >= b;
    case BinaryOp::logical_and: return a && b;
    case BinaryOp::logical_or: return a || b;
    case BinaryOp::ldexp:
    case BinaryOp::ratio:
    case BinaryOp::pow: break;
  }
  throw Error(Code::internal, "an integer operation that cannot be folded");
}

namespace detail {

/// The simpler form of an integer operation with a neutral or absorbing constant side, or nothing.
inline Expr neutral(BinaryOp op, const Expr& a, const Expr& b) {
  const auto ca = as_int(a), cb = as_int(b);
  if (op == BinaryOp::add && ca == 0) return b;
  if ((op == BinaryOp::add || op == BinaryOp::sub) && cb == 0) return a;
  if (op == BinaryOp::mul && ca == 1) return b;
  if ((op == BinaryOp::mul || op == BinaryOp::div) && cb == 1) return a;
  if (op == BinaryOp::mul && (ca == 0 || cb == 0)) return constant(0, a.type());
  if (op == BinaryOp::mod && cb == 1) return constant(0, a.type());
  if (op == BinaryOp::sub && a.same_as(b)) return constant(0, a.type());
  return {};
}

}  // namespace detail

inline Expr binary(BinaryOp op, Expr a, Expr b) {
  if (is_int(a.dtype()) && a.type() == b.type() && a.lanes() == 1) {
    const auto ca = as_int(a), cb = as_int(b);
    const bool divides = op == BinaryOp::div || op == BinaryOp::mod;
    if (ca && cb && !(divides && *cb == 0)) {
      const DType type = is_comparison(op) ? DType::boolean : a.dtype();
      return IntImm::make(fold(op, *ca, *cb), type);
    }
    if (Expr simpler = detail::neutral(op, a, b)) return simpler;
    // (x + c1) + c2 and (x + c1) - c2: constants gather at the end of an index.
    const auto* inner = a.as<Binary>();
    if (cb && (op == BinaryOp::add || op == BinaryOp::sub) && inner && inner->op == BinaryOp::add && as_int(inner->b)) {
      const std::int64_t sum = fold(op, *as_int(inner->b), *cb);
      return binary(BinaryOp::add, inner->a, IntImm::make(sum, a.dtype()));
    }
  }
  return Binary::make(op, std::move(a), std::move(b));
}

inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::mul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return binary(BinaryOp::div, std::move(a), std::move(b)); }
inline Expr operator%(Expr a, Expr b) { return binary(BinaryOp::mod, std::move(a), std::move(b)); }
inline Expr operator+(Expr a, std::int64_t b) { return a + IntImm::make(b, a.dtype()); }
inline Expr operator-(Expr a, std::int64_t b) { return a - IntImm::make(b, a.dtype()); }
inline Expr operator*(Expr a, std::int64_t b) { return a * IntImm::make(b, a.dtype()); }
inline Expr operator/(Expr a, std::int64_t b) { return a / IntImm::make(b, a.dtype()); }
inline Expr operator%(Expr a, std::int64_t b) { return a % IntImm::make(b, a.dtype()); }

inline Expr call(UfKind kind, std::string name, Vector<Expr> args = {}, int accessor = -1) {
  return UfCall::make(Uf{kind, std::move(name), accessor}, std::move(args));
}

inline Expr num_nodes() { return call(UfKind::num_nodes, "num_nodes"); }
inline Expr worker() { return call(UfKind::worker, "worker"); }
inline Expr num_workers() { return call(UfKind::num_workers, "num_workers"); }
inline Expr thread() { return call(UfKind::thread, "thread"); }

/// A condition that holds where `condition` does not.
inline Expr negation(const Expr& condition) {
  const auto* negated = condition.as<Unary>();
  return negated && negated->op == UnaryOp::logical_not ? negated->a : Unary::make(UnaryOp::logical_not, condition);
}

/// Whether two conditions hold; an empty one always does.
inline Expr both(const Expr& a, const Expr& b) {
  if (!a) return b;
  if (!b) return a;
  return Binary::make(BinaryOp::logical_and, a, b);
}

/// The identity of a reduction: what it gives over no elements.
inline double identity(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return 0;
    case ReduceOp::prod: return 1;
    case ReduceOp::max: return -std::numeric_limits<double>::infinity();
    case ReduceOp::min: return std::numeric_limits<double>::infinity();
  }
  return 0;
}

/// One step of a reduction. A sum of products is a chain of fused multiply-adds: the rounding belongs to the meaning.
inline Expr combine(ReduceOp op, Expr accumulator, Expr value) {
  switch (op) {
    case ReduceOp::sum:
      if (const auto* product = value.as<Binary>(); product && product->op == BinaryOp::mul && is_float(value.dtype()))
        return Fma::make(product->a, product->b, std::move(accumulator));
      return std::move(accumulator) + std::move(value);
    case ReduceOp::prod: return std::move(accumulator) * std::move(value);
    case ReduceOp::max: return binary(BinaryOp::max, std::move(accumulator), std::move(value));
    case ReduceOp::min: return binary(BinaryOp::min, std::move(accumulator), std::move(value));
  }
  throw Error(Code::internal, "a reduction of an unknown kind");
}

}  // namespace cortex::ir
