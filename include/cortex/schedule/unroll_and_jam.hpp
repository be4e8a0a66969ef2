// Unroll and jam: the iterations of a loop run side by side, sharing the loops inside it.
//
//   for r = 0:2: {a = 0; for j: a += w[j] * x[r,j]; y[r] = a}
//     ->
//   a = 0; b = 0; for j: {a += w[j] * x[0,j]; b += w[j] * x[1,j]}; y[0] = a; y[1] = b
//
// Legal where the iterations do not depend on each other: for rows of a batch (P.3) and output elements.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

namespace detail {

inline ir::Stmt jam(const Vector<ir::Stmt>& copies);

inline ir::Stmt jam_lets(const Vector<ir::Stmt>& copies) {
  Vector<ir::Stmt> bodies;
  Vector<std::pair<ir::Expr, ir::Expr>> lets;
  for (const ir::Stmt& copy : copies) {  // those of the same value share a variable, and so what is read there
    const auto* let = copy.as<ir::LetStmt>();
    std::size_t known = 0;
    while (known < lets.size() && !ir::equal(lets[known].second, let->value)) ++known;
    if (known == lets.size())
      lets.emplace_back(ir::Var::make(let->var.as<ir::Var>()->name, let->var.type()), let->value);
    bodies.push_back(ir::substitute(let->body, {{let->var.get(), lets[known].first}}));
  }
  return ir::with_lets(lets, jam(bodies));
}

inline ir::Stmt jam_allocs(const Vector<ir::Stmt>& copies) {
  Vector<ir::Stmt> bodies;
  Vector<ir::Buffer> buffers;
  for (const ir::Stmt& copy : copies) {
    const auto* alloc = copy.as<ir::Alloc>();
    buffers.emplace_back(ir::BufferInfo(*alloc->buffer));
    bodies.push_back(ir::with_buffer(alloc->body, alloc->buffer, buffers.back()));
  }
  return ir::with_allocs(buffers, jam(bodies));
}

/// Whether all that a block does is to add to accumulators.
inline bool only_accumulates(const ir::Block& block) {
  return all_of(block.stmts, [](const ir::Stmt& s) {
    const auto* store = s.as<ir::Store>();
    return store && store->buffer->scope == ir::Scope::local && store->value.as<ir::Fma>();
  });
}

/// Whether all copies of a condition are the same, whatever the copies do.
inline bool same_condition(const Vector<ir::Stmt>& copies) {
  const ir::Expr& condition = copies.front().as<ir::If>()->condition;
  bool same = !ir::has_loads(condition);
  for (const ir::Stmt& copy : copies) same &= ir::equal(copy.as<ir::If>()->condition, condition);
  return same;
}

/// Copies of one statement, interleaved. All have the same shape; loops are shared if their extents agree. Of sums,
/// those of one copy stay together: what a row multiplies is then in a register for as long as the row has its turn,
/// and not for as long as all rows have.
inline ir::Stmt jam(const Vector<ir::Stmt>& copies) {
  const ir::Stmt& first = copies.front();
  if (copies.size() == 1) return first;
  if (const auto* block = first.as<ir::Block>(); block && only_accumulates(*block)) {
    Vector<ir::Stmt> stmts;
    for (const ir::Stmt& copy : copies) append(stmts, copy.as<ir::Block>()->stmts);
    return ir::Block::make(stmts);
  }
  if (const auto* block = first.as<ir::Block>()) {
    Vector<ir::Stmt> stmts;
    for (std::size_t s = 0; s < block->stmts.size(); ++s) {
      Vector<ir::Stmt> column;
      for (const ir::Stmt& copy : copies) column.push_back(copy.as<ir::Block>()->stmts[s]);
      stmts.push_back(jam(column));
    }
    return ir::Block::make(stmts);
  }
  if (const auto* loop = first.as<ir::For>()) {
    bool shared = true;
    Vector<ir::Stmt> bodies;
    for (const ir::Stmt& copy : copies) {
      shared &= ir::equal(copy.as<ir::For>()->extent, loop->extent);
      bodies.push_back(ir::substitute(copy.as<ir::For>()->body, {{copy.as<ir::For>()->var.get(), loop->var}}));
    }
    if (shared) return ir::For::make(loop->var, loop->dim, loop->extent, loop->loop, jam(bodies), loop->piece);
  }
  if (const auto* branch = first.as<ir::If>(); branch && same_condition(copies)) {
    Vector<ir::Stmt> bodies, others;
    for (const ir::Stmt& copy : copies) bodies.push_back(copy.as<ir::If>()->then_body);
    if (!branch->else_body) return ir::If::make(branch->condition, jam(bodies));
    for (const ir::Stmt& copy : copies) others.push_back(copy.as<ir::If>()->else_body);
    return ir::If::make(branch->condition, jam(bodies), jam(others));
  }
  if (first.as<ir::LetStmt>()) return jam_lets(copies);
  if (first.as<ir::Alloc>()) return jam_allocs(copies);
  return ir::Block::make(copies);
}

}  // namespace detail

/// `count` iterations of `body` over `var`, the first at `var = begin`, side by side.
inline ir::Stmt unroll_and_jam(const ir::Stmt& body, const ir::Expr& var, const ir::Expr& begin, int count) {
  Vector<ir::Stmt> copies;
  for (int r = 0; r < count; ++r) copies.push_back(ir::substitute(body, {{var.get(), begin + r}}));
  return detail::jam(copies);
}

}  // namespace cortex::schedule
