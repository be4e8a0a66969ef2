// Elements that are on chip or in memory (`ir::is_near_or_far`), in CUDA: one address, which is decided once for a row.
//
//   for j: a = fma(w[j],n < m ? near[n % 64 * 264 + j] : h[n * 256 + j],a)
//     ->
//   const float* const r = n < m ? near + n % 64 * 264 : h + n * 256; for j: a = fma_(w[j], load_row(r, j), a)
//
// The two lie alike within a row, whose offset is the first term of an index: so `flatten_storage` adds.
#pragma once

#include <cstddef>
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

/// A row that is on chip or in memory, and the variable that points to it. An index that is not seen to be of a row and
/// a place in it is a row of one element.
struct NearRow {
  ir::Expr is_near, near, far;  // offsets of the row
  ir::Expr place;               // of the element
  ir::Buffer chip, memory;
  std::string pointer;

  explicit NearRow(const ir::Select& either)
      : is_near(either.condition),
        near(index(either.then_value)),
        far(index(either.else_value)),
        place(ir::imm(0)),
        chip(either.then_value.as<ir::Load>()->buffer),
        memory(either.else_value.as<ir::Load>()->buffer) {
    const RowIndex near_row(near), far_row(far);
    if (same_number(near_row.place, far_row.place)) near = near_row.row, far = far_row.row, place = near_row.place;
  }

  bool is_row_of(const NearRow& other) const {
    return chip == other.chip && ir::equal(near, other.near) && ir::equal(far, other.far) &&
           ir::equal(is_near, other.is_near);
  }

 private:
  static const ir::Expr& index(const ir::Expr& load) { return load.as<ir::Load>()->indices[0]; }
};

/// The rows that a loop reads in every iteration and that are the same in all.
inline Vector<NearRow> rows_before(const ir::For& loop) {
  PointerSet inside;
  inside.insert(loop.var.get());
  ir::visit_with(
      loop.body, [&](const ir::For& inner) { inside.insert(inner.var.get()); },
      [&](const ir::LetStmt& let) { inside.insert(let.var.get()); },
      [&](const ir::Let& let) { inside.insert(let.var.get()); });
  Vector<NearRow> rows;
  ir::visit_with(
      loop.body, [](const ir::If&) { return false; },  // what stands under a condition may not be there elsewhere
      [&](const ir::For& inner) { return ir::as_int(inner.extent).value_or(0) > 0; },
      [&](const ir::Select& either) {
        if (!ir::is_near_or_far(either)) return true;
        const NearRow row(either);
        bool same = true;
        for (const ir::Expr& e : {row.is_near, row.near, row.far})
          ir::visit_with(e, [&](const ir::Var& v) { same &= !inside.contains(&v); });
        if (same && !any_of(rows, [&](const NearRow& known) { return known.is_row_of(row); })) rows.push_back(row);
        return false;
      });
  return rows;
}

}  // namespace cortex::codegen::detail
