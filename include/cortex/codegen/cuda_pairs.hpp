// Loads of two neighbours that can be one: of 8 bytes, which a GPU reads at once where they begin at a multiple of 8.
//
//   x[i64(n) * 16 + i64(t % 4 * 2)], x[i64(n) * 16 + i64(t % 4 * 2 + 1)]     a pair: the first is even, whatever n and
//   t
//
// Seen from the indices alone: strides are constants, and memory begins at whole lines.
#pragma once

#include <cstdint>
#include <utility>

#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"

namespace cortex::codegen {

namespace detail {

/// An index as a sum: what is not constant of it, null if it is all constant, and the rest.
struct IndexParts {
  ir::Expr moving;
  std::int64_t constant = 0;
};

/// Casts of an index are to a wider type: a sum that is cast is that of its parts.
inline IndexParts index_parts(const ir::Expr& e) {
  if (const auto c = ir::as_int(e)) return {{}, *c};
  if (const auto* cast = e.as<ir::Cast>()) {
    const IndexParts inner = index_parts(cast->a);
    return {inner.moving ? ir::Cast::make(e.dtype(), inner.moving) : inner.moving, inner.constant};
  }
  const auto* sum = e.as<ir::Binary>();
  if (!sum || sum->op != ir::BinaryOp::add) return {e, 0};
  const IndexParts a = index_parts(sum->a), b = index_parts(sum->b);
  return {a.moving && b.moving ? a.moving + b.moving : a.moving ? a.moving : b.moving, a.constant + b.constant};
}

}  // namespace detail

/// Whether an integer that is not negative is known to be a multiple of `n`.
inline bool is_multiple(const ir::Expr& e, std::int64_t n) {
  if (const auto c = ir::as_int(e)) return *c % n == 0;
  if (const auto* cast = e.as<ir::Cast>()) return is_int(cast->a.dtype()) && is_multiple(cast->a, n);
  const auto* op = e.as<ir::Binary>();
  if (!op) return false;
  if (op->op == ir::BinaryOp::mul) return is_multiple(op->a, n) || is_multiple(op->b, n);
  return (op->op == ir::BinaryOp::add || op->op == ir::BinaryOp::sub) && is_multiple(op->a, n) && is_multiple(op->b, n);
}

/// Whether two loads of a flat program are of an f32 in memory at an even place, and of its neighbour.
inline bool are_pair(const ir::Load& first, const ir::Load& second) {
  const ir::BufferInfo& buffer = *first.buffer;
  const bool anywhere = buffer.scope != ir::Scope::local && buffer.scope != ir::Scope::chip;
  if (first.buffer != second.buffer || !anywhere || buffer.dtype != DType::f32) return false;
  if (first.indices.size() != 1 || second.indices.size() != 1) return false;
  const detail::IndexParts a = detail::index_parts(first.indices[0]), b = detail::index_parts(second.indices[0]);
  const bool same = a.moving && b.moving ? ir::equal(a.moving, b.moving) : !a.moving && !b.moving;
  return same && b.constant == a.constant + 1 && is_multiple(first.indices[0], 2);
}

/// The same of elements each of which is loaded, or loaded from one of two places.
inline bool are_pair(const ir::Expr& first, const ir::Expr& second) {
  const auto *a = first.as<ir::Load>(), *b = second.as<ir::Load>();
  if (a && b) return are_pair(*a, *b);
  const auto *one = first.as<ir::Select>(), *other = second.as<ir::Select>();
  return one && other && ir::is_near_or_far(*one) && ir::is_near_or_far(*other) &&
         ir::equal(one->condition, other->condition) && are_pair(one->then_value, other->then_value) &&
         are_pair(one->else_value, other->else_value);
}

}  // namespace cortex::codegen
