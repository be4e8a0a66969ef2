// Asks for memory before a tile wants it.
//
//   for o:                                                for o:
//     for j: a += W_packed[o * 16 + lane,j] * h[c,j]  ->    for j: {prefetch W_packed[o * 16 + lane,j + 16]
//                                                                   if j % 16 == 0: prefetch h[c,j + 16]; a += ..}
//
// Runs when nests are tiled. None of it changes a result.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/memory.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/pack_weights.hpp"

namespace cortex::schedule {

namespace detail {

/// Whether the loop adds up products.
inline bool is_contraction(const ir::For& loop) {
  return loop.dim.kind() == DimKind::dense && loop.loop == ir::ForKind::serial;
}

inline void add_once(Vector<ir::Expr>& all, const ir::Expr& e) {
  const auto same = [&](const ir::Expr& known) { return ir::equal(known, e); };
  if (!any_of(all, same)) all.push_back(e);
}

/// The variables that say where the loop around a contraction is: its own, and those that follow from it.
using Position = Vector<ir::Expr>;

/// What iterations of a contraction read: of packed f32 weights that the loop around passes over once, since what it
/// reads again and again is in the first-level cache by itself; and the rows along which it goes, of anything else, or
/// by choice of such a row.
struct Operands {
  Vector<ir::Expr> weights, rows;
  int sums = 0;

  Operands(const ir::For& loop, const Position& around) {
    Position inside;  // variables that have no value where the loop begins
    ir::visit_with(
        loop.body, [&](const ir::For& inner) { inside.push_back(inner.var); },
        [&](const ir::LetStmt& let) { inside.push_back(let.var); },
        [&](const ir::Let& let) { inside.push_back(let.var); });
    const auto is_row = [&](const ir::Expr& e) {
      const auto* load = e.as<ir::Load>();
      return load && load->buffer->scope != ir::Scope::local && !load->buffer->packed_from && !load->indices.empty() &&
             load->indices.back().same_as(loop.var) && !ir::uses_any(e, inside);
    };
    ir::visit_with(
        loop.body, [&](const ir::Prefetch&) { return false; }, [&](const ir::Store&) { ++sums; },
        [&](const ir::Select& choice) {
          const bool row = is_row(choice.then_value) || is_row(choice.else_value);
          if (row && !ir::uses_any(ir::handle_of(choice), inside)) add_once(rows, ir::handle_of(choice));
          return !row;
        },
        [&](const ir::Load& load) {
          const ir::Expr e = ir::handle_of(load);
          if (is_row(e)) add_once(rows, e);
          const bool streams = load.buffer->packed_from && ir::uses(e, loop.var) && ir::uses_any(e, around);
          if (streams && load.buffer->dtype == DType::f32 && !ir::uses_any(e, inside)) add_once(weights, e);
        });
  }
};

/// `body` with `change(contraction, operands)` in place of each contraction of which that makes something.
inline ir::Stmt map_contractions(const ir::Stmt& body, FunctionRef<ir::Stmt(const ir::For&, const Operands&)> change) {
  Position around;
  return ir::mutate_with(
      body,
      [&](auto& self, const ir::LetStmt& let) -> ir::Stmt {
        const bool follows = ir::uses_any(let.value, around);
        if (follows) around.push_back(let.var);
        const ir::Stmt inner = self.children(let);
        if (follows) around.pop_back();
        return inner;
      },
      [&](auto& self, const ir::For& loop) -> ir::Stmt {
        if (loop.loop == ir::ForKind::vectorized) return self.children(loop);
        if (is_contraction(loop))
          if (const ir::Stmt changed = change(loop, Operands(loop, around))) return changed;
        const Position before = std::exchange(around, Position{loop.var});
        const ir::Stmt inner = self.children(loop);
        around = before;
        return inner;
      });
}

}  // namespace detail

/// Asks for packed weights some steps before a tile multiplies them: they stream through the first-level cache, and a
/// tile of few rows has not the arithmetic to hide their way there. A tile of one row waits for memory whatever is
/// asked for, and a program's weights stay in the first-level cache if half of it holds them. `vector_bytes`: of a
/// weight's load; only whole lines are worth a prefetch each.
inline ir::Stmt prefetch_weights(const ir::Stmt& body, int vector_bytes, double first_cache) {
  constexpr int ahead_bytes = 2048;  // of all that a tile reads: nearer they come late, and farther they may be gone
  if (vector_bytes != cache_line || detail::packed_bytes(body) <= first_cache / 2) return body;
  return detail::map_contractions(body, [&](const ir::For& loop, const detail::Operands& operands) -> ir::Stmt {
    const int count = int(operands.weights.size());
    if (count == 0 || operands.sums <= count) return {};
    const int ahead = std::max(1, ahead_bytes / cache_line / count);
    Vector<ir::Stmt> stmts;
    for (const ir::Expr& weight : operands.weights)
      stmts.push_back(ir::Prefetch::make(ir::substitute(weight, {{loop.var.get(), loop.var + ahead}})));
    stmts.push_back(loop.body);
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::Block::make(stmts), loop.piece);
  });
}

/// Where a tile begins a line of the rows along which it goes, asks for the next one: for programs that workers share.
/// A line that another worker has written takes some hundred nanoseconds, in which a tile does about a line's
/// multiply-adds. To ask for whole rows before the tile begins is later, since a core has room for few lines on their
/// way, and long rows push each other out of the first-level cache.
inline ir::Stmt prefetch_rows(const ir::Stmt& body) {
  return detail::map_contractions(body, [&](const ir::For& loop, const detail::Operands& operands) -> ir::Stmt {
    const auto extent = ir::as_int(loop.extent);
    if (operands.weights.empty() || operands.rows.empty() || !extent) return {};
    int step = cache_line;  // steps to a line's end, of the row whose elements are largest
    for (const ir::Expr& row : operands.rows) step = std::min(step, cache_line / int(size_of(row.dtype())));
    if (*extent <= step) return {};
    Vector<ir::Stmt> prefetches;
    for (const ir::Expr& row : operands.rows)
      prefetches.push_back(ir::Prefetch::make(ir::substitute(row, {{loop.var.get(), loop.var + step}})));
    const ir::Expr at_line = ir::binary(ir::BinaryOp::eq, loop.var % step, ir::imm(0));
    const ir::Stmt ask = ir::If::make(at_line, ir::Block::make(prefetches));
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::Block::make({ask, loop.body}), loop.piece);
  });
}

}  // namespace cortex::schedule
