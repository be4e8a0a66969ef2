// Rows of elements that are not simply in a block's own or in global memory, in CUDA: their address is found once for a
// row. Elements that are on chip or in memory (`ir::is_near_or_far`), and weights that are spread over a cluster.
//
//   for j: a = fma(w[j],n < m ? near[n % 64 * 264 + j] : h[n * 256 + j],a)
//     ->
//   const float* const r = n < m ? near + n % 64 * 264 : h + n * 256; for j: a = fma_(w[j], load_row(r, j), a)
//
// A row's offset is the first term of an index: so `flatten_storage` adds.
#pragma once

#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::codegen::detail {

/// A flat index as its first term and the sum of the others.
struct RowIndex {
  ir::Expr row, place;

  explicit RowIndex(const ir::Expr& index) : row(index), place(ir::imm(0)) {
    const auto* sum = index.as<ir::Binary>();
    if (!sum || sum->op != ir::BinaryOp::add) return;
    const RowIndex first(sum->a);
    row = first.row;
    place = ir::as_int(first.place) == 0 ? sum->b : first.place + sum->b;
  }
};

/// Whether two indices are the same number, of whatever width they are computed in.
inline bool same_number(const ir::Expr& a, const ir::Expr& b) {
  if (const auto* cast = a.as<ir::Cast>()) return same_number(cast->a, b);
  if (const auto* cast = b.as<ir::Cast>()) return same_number(a, cast->a);
  if (const auto c = ir::as_int(a)) return ir::as_int(b) == c;
  const auto *x = a.as<ir::Binary>(), *y = b.as<ir::Binary>();
  if (!x || !y) return ir::equal(a, b);
  return x->op == y->op && same_number(x->a, y->a) && same_number(x->b, y->b);
}

/// A row to which a variable points, and an element's place in it. An index that is not seen to be of a row and a place
/// is a row of one element.
struct Row {
  ir::Buffer chip, memory;      // of spread weights there is no memory
  ir::Expr is_near, near, far;  // offsets of the row; where there is no memory, `near` alone
  ir::Expr place;               // of the element
  std::string pointer;

  explicit Row(const ir::Select& either)
      : chip(either.then_value.as<ir::Load>()->buffer),
        memory(either.else_value.as<ir::Load>()->buffer),
        is_near(either.condition),
        near(index(either.then_value)),
        far(index(either.else_value)),
        place(ir::imm(0)) {
    const RowIndex near_row(near), far_row(far);
    if (same_number(near_row.place, far_row.place)) near = near_row.row, far = far_row.row, place = near_row.place;
  }
  explicit Row(const ir::Load& spread) : chip(spread.buffer), near(spread.indices[0]), place(ir::imm(0)) {
    const RowIndex split(near);  // a panel is in one block as a whole
    const auto* panel = split.row.as<ir::Binary>();
    if (panel && panel->op == ir::BinaryOp::mul && ir::as_int(panel->b) == chip->layout.axes.back().stride)
      near = split.row, place = split.place;
  }

  bool is_row_of(const Row& other) const {
    return chip == other.chip && ir::equal(near, other.near) &&
           (!memory || (ir::equal(far, other.far) && ir::equal(is_near, other.is_near)));
  }
  /// Calls `f` on what the address is made of.
  template <class F>
  void each_part(const F& f) const {
    for (const ir::Expr& e : {is_near, near, far})
      if (e) f(e);
  }

 private:
  static const ir::Expr& index(const ir::Expr& load) { return load.as<ir::Load>()->indices[0]; }
};

/// The variables that a loop binds, its own and those inside it.
inline PointerSet bound_by(const ir::For& loop) {
  PointerSet inside;
  inside.insert(loop.var.get());
  ir::visit_with(
      loop.body, [&](const ir::For& inner) { inside.insert(inner.var.get()); },
      [&](const ir::LetStmt& let) { inside.insert(let.var.get()); },
      [&](const ir::Let& let) { inside.insert(let.var.get()); });
  return inside;
}

/// The integers that decide what a loop loads and that it loads itself, the same in each iteration, such as the word
/// of a node: what they decide would wait for them in each.
inline Vector<ir::Expr> indices_before(const ir::For& loop) {
  const PointerSet inside = bound_by(loop);
  Vector<ir::Expr> indices;
  ir::visit_with(
      loop.body, [](const ir::If&) { return false; }, [](const ir::For&) { return false; },
      [&](const ir::Load& load) {
        bool same = load.type.dtype == DType::i32 && load.buffer->role != ir::Role::temp;
        const ir::Expr e = ir::handle_of(load);
        ir::visit_with(
            e, [&](const ir::Var& v) { same &= !inside.contains(&v); },
            [&](const ir::Load& inner) { same &= inner.buffer->scope != ir::Scope::local; });
        if (same) indices.push_back(e);
        return !same;
      });
  return indices;
}

/// The rows that a loop reads in every iteration and that are the same in all.
inline Vector<Row> rows_before(const ir::For& loop) {
  const PointerSet inside = bound_by(loop);
  Vector<Row> rows;
  const auto add = [&](const Row& row) {
    bool same = !any_of(rows, [&](const Row& known) { return known.is_row_of(row); });
    row.each_part(
        [&](const ir::Expr& e) { ir::visit_with(e, [&](const ir::Var& v) { same &= !inside.contains(&v); }); });
    if (same) rows.push_back(row);
  };
  ir::visit_with(
      loop.body, [](const ir::If&) { return false; },  // what stands under a condition may not be there elsewhere
      [&](const ir::For& inner) { return ir::as_int(inner.extent).value_or(0) > 0; },
      [&](const ir::Select& either) {
        if (ir::is_near_or_far(either)) add(Row(either));
        return !ir::is_near_or_far(either);
      },
      [&](const ir::Load& load) {
        if (load.buffer->scope == ir::Scope::spread) add(Row(load));
      });
  return rows;
}

}  // namespace cortex::codegen::detail
