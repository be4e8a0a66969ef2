// Loads of two or four neighbours that can be one: a GPU reads up to 16 bytes at once where they begin at a multiple of
// as many.
//
//   x[i64(n) * 16 + i64(t % 4 * 2)], x[i64(n) * 16 + i64(t % 4 * 2 + 1)]     a pair: the first is even, whatever n and
//   t
//
// Seen from the indices alone: strides are constants, and memory begins at whole lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::codegen {

namespace detail {

/// An index as a sum: what is not constant of it, null if it is all constant, and the rest. Indices do not overflow.
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
  const auto factor = sum && sum->op == ir::BinaryOp::mul ? ir::as_int(sum->b) : std::nullopt;
  if (factor) {
    const IndexParts inner = index_parts(sum->a);
    return {inner.moving ? inner.moving * sum->b : inner.moving, inner.constant * *factor};
  }
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

/// Whether `other` is `by` elements behind `first` in the same memory, or in each of two that both are loaded from.
inline bool are_apart(const ir::Expr& first, const ir::Expr& other, std::int64_t by) {
  const auto *x = first.as<ir::Select>(), *y = other.as<ir::Select>();
  if (x && y)
    return ir::is_near_or_far(*x) && ir::is_near_or_far(*y) && ir::equal(x->condition, y->condition) &&
           are_apart(x->then_value, y->then_value, by) && are_apart(x->else_value, y->else_value, by);
  const auto *load = first.as<ir::Load>(), *next = other.as<ir::Load>();
  if (!load || !next || load->buffer != next->buffer) return false;
  if (load->indices.size() != 1 || next->indices.size() != 1) return false;
  const detail::IndexParts a = detail::index_parts(load->indices[0]), b = detail::index_parts(next->indices[0]);
  const bool same = a.moving && b.moving ? ir::equal(a.moving, b.moving) : !a.moving && !b.moving;
  return same && b.constant == a.constant + by;
}

/// Whether a load begins at a multiple of `n` elements.
inline bool begins_at_multiple(const ir::Expr& e, std::int64_t n) {
  if (const auto* either = e.as<ir::Select>())
    return begins_at_multiple(either->then_value, n) && begins_at_multiple(either->else_value, n);
  const auto& load = *e.as<ir::Load>();
  return is_multiple(load.indices[0], n) && load.buffer->share % n == 0;
}

/// Whether two elements are an f32 in memory at an even place, and its neighbour.
inline bool are_pair(const ir::Expr& first, const ir::Expr& second) {
  const auto* load = first.as<ir::Load>();
  if (!are_apart(first, second, 1) || !begins_at_multiple(first, 2)) return false;
  return !load || (load->buffer->scope != ir::Scope::local && load->buffer->scope != ir::Scope::chip &&
                   load->buffer->dtype == DType::f32);
}

/// Four neighbours that are loaded at once, into `variable` when the first of them is needed.
struct Quad {
  ir::Expr elements[4];
  std::string variable;
};

namespace detail {

/// What is loaded from memory in the straight-line statements of a body that does not store there, once each.
inline Vector<ir::Expr> loads_in(const ir::Stmt& body) {
  PointerSet stored;
  ir::add_stored(body, stored);
  Vector<ir::Expr> found;
  const auto add = [&](const ir::Expr& e, const ir::Buffer& buffer) {
    const bool fits = buffer->scope != ir::Scope::local && !stored.contains(buffer.id()) &&
                      (buffer->dtype == DType::f32 || is_narrow(buffer->dtype));
    if (fits && !any_of(found, [&](const ir::Expr& known) { return ir::equal(known, e); })) found.push_back(e);
  };
  const auto look = [&](const ir::Expr& e) {
    ir::visit_with(
        e, [&](const ir::Load& load) { return add(ir::handle_of(load), load.buffer), true; },
        [&](const ir::Select& either) {
          const bool one = ir::is_near_or_far(either);
          if (one) add(ir::handle_of(either), either.else_value.as<ir::Load>()->buffer);
          return !one;
        });
  };
  const auto walk = [&](const auto& self, const ir::Stmt& s) -> void {
    if (const auto* block = s.as<ir::Block>())
      for (const ir::Stmt& child : block->stmts) self(self, child);
    else if (const auto* let = s.as<ir::LetStmt>())
      look(let->value), self(self, let->body);
    else if (const auto* store = s.as<ir::Store>())
      look(store->value);
  };
  walk(walk, body);
  return found;
}

}  // namespace detail

/// The quads of such statements.
inline Vector<Quad> quads_in(const ir::Stmt& body) {
  Vector<Quad> quads;
  const Vector<ir::Expr> loads = detail::loads_in(body);
  for (const ir::Expr& first : loads) {
    if (!begins_at_multiple(first, 4)) continue;
    Quad quad{{first, {}, {}, {}}, {}};
    for (const ir::Expr& other : loads)
      for (int i = 1; i < 4; ++i)
        if (are_apart(first, other, i)) quad.elements[i] = other;
    if (quad.elements[1] && quad.elements[2] && quad.elements[3]) quads.push_back(std::move(quad));
  }
  return quads;
}

/// Whether four statements store f32s to neighbours, the first at a multiple of four, of values that are not read
/// there: then they can be one.
inline bool are_quad(const ir::Stmt* stmts) {
  const auto place = [](const ir::Store& store) { return ir::Load::make(store.buffer, store.indices); };
  const auto* first = stmts[0].as<ir::Store>();
  if (!first || first->value.dtype() != DType::f32 || first->value.lanes() > 1 || first->indices.size() != 1)
    return false;
  const ir::Scope scope = first->buffer->scope;
  if (scope == ir::Scope::local || scope == ir::Scope::spread) return false;
  bool fits = begins_at_multiple(place(*first), 4);
  for (int i = 0; fits && i < 4; ++i) {
    const auto* store = stmts[i].as<ir::Store>();
    fits = store && store->buffer == first->buffer && (i == 0 || are_apart(place(*first), place(*store), i));
    if (fits) ir::visit_with(store->value, [&](const ir::Load& load) { fits &= load.buffer != first->buffer; });
  }
  return fits;
}

}  // namespace cortex::codegen
