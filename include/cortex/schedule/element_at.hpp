// Which element of a tensor lies at a place of its memory, and where an element lies.
//
//   W[hidden=32,input=24], with W[i,j] at i / 16 * 384 + j * 16 + i % 16:
//     at place p lies W[p % 16 + p / 384 % 2 * 16, p / 16 % 24]
//
// For copies of whole pieces of memory: they are written over indices, as all accesses are until storage is flat, and
// are places again then, with no arithmetic left of the layout.
#pragma once

#include <cstdint>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"

namespace cortex::schedule {

/// The indices of the element that lies at `place`, of a tensor of known extents with a layout; a vector gives vectors.
/// At padding they are those that would be there if the tensor went on.
inline Vector<ir::Expr> indices_at(const ir::BufferInfo& buffer, const ir::Expr& place) {
  Vector<ir::Expr> indices(buffer.dims.size());
  const auto by = [&](ir::BinaryOp op, const ir::Expr& e, std::int64_t n) {
    return n == 1 && op != ir::BinaryOp::mod ? e : ir::binary(op, e, ir::constant(double(n), e.type()));
  };
  for (const ir::Axis& axis : buffer.layout.axes) {
    const std::int64_t extent = buffer.dims[std::size_t(axis.source)].extent();
    ir::Expr part = by(ir::BinaryOp::div, place, axis.stride);
    part = by(ir::BinaryOp::mod, part, axis.modulus ? axis.modulus : ceil_div(extent, axis.divisor));
    part = by(ir::BinaryOp::mul, part, axis.divisor);
    ir::Expr& index = indices[std::size_t(axis.source)];
    index = index ? index + part : part;
  }
  return indices;
}

/// `e` divided by `divisor`, if that is known to leave no rest.
inline ir::Expr exact_quotient(const ir::Expr& e, std::int64_t divisor) {
  if (const auto c = ir::as_int(e)) return *c % divisor ? ir::Expr() : ir::imm(*c / divisor);
  const auto* op = e.as<ir::Binary>();
  if (!op) return {};
  if (op->op == ir::BinaryOp::mul)
    if (const auto c = ir::as_int(op->b); c && *c % divisor == 0) return op->a * (*c / divisor);
  if (op->op == ir::BinaryOp::add) {
    const ir::Expr a = exact_quotient(op->a, divisor), b = exact_quotient(op->b, divisor);
    if (a && b) return a + b;
  }
  return {};
}

namespace detail {

/// The most that a number can be, seen from how it is made; -1: it is not seen.
inline std::int64_t most_of(const ir::Expr& e) {
  if (const auto c = ir::as_int(e)) return *c;
  const auto* op = e.as<ir::Binary>();
  const auto by = op ? ir::as_int(op->b) : std::nullopt;
  if (!by) return -1;
  if (op->op == ir::BinaryOp::mod) return *by - 1;
  return op->op == ir::BinaryOp::mul && most_of(op->a) >= 0 ? most_of(op->a) * *by : -1;
}

/// The panels of dimension `dim`, its outermost axis: what lies a panel further on is `outputs` indices further, and
/// all else is the same. Null if the layout has no such axis.
inline const ir::Axis* panels_of(const ir::Layout& layout, int dim) {
  const ir::Axis* panels = nullptr;
  for (const ir::Axis& axis : layout.axes)
    if (axis.source == dim && axis.modulus == 0) panels = panels ? nullptr : &axis;
  for (const ir::Axis& axis : layout.axes)
    if (panels && axis.source == dim && &axis != panels && panels->divisor % (axis.divisor * axis.modulus) != 0)
      return nullptr;
  return panels;
}

}  // namespace detail

/// A sum of numbers that are not negative, divided: j * 32 + t % 8 * 4 + 3 by 4 is j * 8 + t % 8, and leaves 3. There
/// is no quotient if it is not seen that the terms that are no multiples of the divisor stay below it.
struct DividedSum {
  ir::Expr quotient, rest;

  DividedSum(const ir::Expr& e, std::int64_t divisor) : quotient(ir::imm(0)), rest(ir::imm(0)) {
    if (e.dtype() != DType::i32 || !add(e, divisor) || most_ >= divisor) quotient = ir::Expr();
  }

 private:
  bool add(const ir::Expr& e, std::int64_t divisor) {
    const auto* sum = e.as<ir::Binary>();
    if (sum && sum->op == ir::BinaryOp::add) return add(sum->a, divisor) && add(sum->b, divisor);
    if (const ir::Expr whole = exact_quotient(e, divisor)) return quotient = quotient + whole, true;
    const std::int64_t most = detail::most_of(e);
    if (most < 0) return false;
    return rest = rest + e, most_ += most, true;
  }

  std::int64_t most_ = 0;  // of the rest
};

/// Whether each place of the memory is an element's, of padded dimensions, and no other's: the axes nest without room
/// between them, innermost first, and take each index apart without overlap.
inline bool fills_memory(const ir::BufferInfo& buffer) {
  const auto& axes = buffer.layout.axes;
  std::int64_t size = 1;
  bool exact = !axes.empty();
  for (const ir::Axis& axis : axes) {
    const std::int64_t extent = buffer.dims[std::size_t(axis.source)].extent();
    exact &= axis.stride == size;
    size *= axis.modulus ? axis.modulus : ceil_div(extent, axis.divisor);
    int same = 0, below = axis.divisor == 1;
    for (const ir::Axis& other : axes) {
      same += other.source == axis.source && other.divisor == axis.divisor;
      below += other.source == axis.source && other.divisor * other.modulus == axis.divisor;
    }
    exact &= same == 1 && below == 1;
  }
  return exact && size == buffer.layout.fixed_size;
}

/// Elements by which a place moves if index `dim` moves by `by`; null if that is not known to be the same everywhere.
inline ir::Expr place_of_shift(const ir::Layout& layout, int dim, const ir::Expr& by) {
  const ir::Axis* panels = detail::panels_of(layout, dim);
  const ir::Expr quotient = panels ? exact_quotient(by, panels->divisor) : ir::Expr();
  return quotient ? quotient * panels->stride : quotient;
}

/// The place of the element that `indices` name, if they are what `indices_at` gives for some place, or are that but
/// for whole panels by which one of them is shifted, `begin + index`. Null if they are something else.
inline ir::Expr place_of(const ir::BufferInfo& buffer, const Vector<ir::Expr>& indices) {
  if (!fills_memory(buffer)) return {};
  for (const ir::Expr& index : indices) {
    ir::Expr place = index;  // an index is made of remainders and quotients of it, on their left side
    while (const auto* op = place.as<ir::Binary>()) place = op->a;
    const Vector<ir::Expr> plain = indices_at(buffer, place);
    ir::Expr shift = ir::imm(0);
    bool same = plain.size() == indices.size();
    for (std::size_t d = 0; same && d < plain.size(); ++d) {
      if (!plain[d] || ir::equal(indices[d], plain[d])) continue;
      const auto* sum = indices[d].as<ir::Binary>();
      const bool shifted = sum && sum->op == ir::BinaryOp::add && ir::equal(sum->b, plain[d]);
      const auto* all = shifted ? sum->a.as<ir::Broadcast>() : nullptr;
      const ir::Expr moved = shifted ? place_of_shift(buffer.layout, int(d), all ? all->value : sum->a) : ir::Expr();
      same = bool(moved);
      if (moved) shift = shift + moved;
    }
    if (!same) continue;
    if (const auto* ramp = place.as<ir::Ramp>()) return ir::Ramp::make(shift + ramp->base, ramp->type.lanes);
    return place.lanes() == 1 ? shift + place : ir::Expr();
  }
  return {};
}

}  // namespace cortex::schedule
