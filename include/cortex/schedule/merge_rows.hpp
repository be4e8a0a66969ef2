// Merges neighbouring loops over the same rows that read rows of the same states: what the one has fetched of a child
// is still in the cache when the other reads it.
//
//   for n: M[n] = f(M[left(n)])                       for n:
//   for n: t[n] = g(M[left(n)],v[right(n)])    ->       M[n] = f(M[left(n)])
//                                                       t[n] = g(M[left(n)],v[right(n)])
//
// Only loops that are left whole when nests are tiled: tiles of rows share weights, which is worth more. Neither may
// need anything of the other.
#pragma once

#include <utility>

#include "cortex/schedule/access.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

namespace detail {

/// A loop over rows whose nodes have a name.
inline const ir::LetStmt* named_row(const ir::Stmt& stmt) {
  const auto* loop = stmt.as<ir::For>();
  return loop && is_row_dim(loop->dim) && loop->loop == ir::ForKind::serial ? node_let(*loop) : nullptr;
}

/// Whether `x` and `y` are of two temporaries in the same memory. Where one's rows are longer, a row of it lies where
/// other rows of the other do: merged, it would be stored before these are read.
inline bool share_memory(const Access& x, const Access& y) {
  const auto home = [](const ir::Buffer& buffer) { return buffer->stored_in ? buffer->stored_in : buffer; };
  return x.buffer != y.buffer && home(x.buffer) == home(y.buffer);
}

/// `a` with what `b` does of each row after it; nothing if they are not to be merged.
inline ir::Stmt merged_rows(const ir::Stmt& a, const ir::Stmt& b, bool carried) {
  const ir::LetStmt *row_a = named_row(a), *row_b = named_row(b);
  if (!row_a || !row_b) return {};
  const auto &loop_a = *a.as<ir::For>(), &loop_b = *b.as<ir::For>();
  const ir::Substitution vars{{loop_b.var.get(), loop_a.var}, {row_b->var.get(), row_a->var}};
  if (!(loop_a.dim == loop_b.dim) || !ir::equal(loop_a.extent, loop_b.extent) ||
      !ir::equal(row_a->value, ir::substitute(row_b->value, vars)))
    return {};
  const ir::Stmt body = ir::substitute(row_b->body, vars);
  const Vector<Access> first = accesses_of(row_a->body), second = accesses_of(body);
  if (dependence(first, second, carried) != Dependence::none) return {};
  bool common = false;
  for (const Access& x : first)
    for (const Access& y : second) {
      if (share_memory(x, y)) return {};
      common |=
          x.buffer == y.buffer && !x.indices.empty() && !y.indices.empty() && ir::equal(x.indices[0], y.indices[0]);
    }
  if (!common) return {};
  return ir::For::make(loop_a.var, loop_a.dim, loop_a.extent, loop_a.loop,
                       ir::LetStmt::make(row_a->var, row_a->value, ir::Block::make({row_a->body, body})), loop_a.piece);
}

inline ir::Stmt merge_rows(const ir::Stmt& body, bool carried) {
  return ir::mutate_with(
      body,
      [&](auto& self, const ir::For& loop) -> ir::Stmt {
        if (is_row_dim(loop.dim)) return ir::handle_of(loop);
        if (!carries_recursion(loop)) return self.children(loop);
        const ir::Stmt inner = merge_rows(loop.body, true);
        if (inner.same_as(loop.body)) return ir::handle_of(loop);
        return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner, loop.piece);
      },
      [&](auto& self, const ir::Block& block) -> ir::Stmt {
        Vector<ir::Stmt> stmts;
        bool changed = false;
        for (const ir::Stmt& s : block.stmts) {
          const ir::Stmt next = self(s), merged = stmts.empty() ? ir::Stmt() : merged_rows(stmts.back(), next, carried);
          changed |= merged || !next.same_as(s);
          if (merged)
            stmts.back() = merged;
          else
            stmts.push_back(next);
        }
        return changed ? ir::Block::make(stmts) : ir::handle_of(block);
      });
}

}  // namespace detail

inline ir::Stmt merge_rows(const ir::Stmt& body) { return detail::merge_rows(body, false); }

}  // namespace cortex::schedule
