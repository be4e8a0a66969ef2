// What a nest reads and writes, and whether two nests may share their loops.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

struct Access {
  ir::Buffer buffer;
  Vector<ir::Expr> indices;
  bool write = false;
};

/// The accesses of `stmt` to buffers that outlive it and can change while the program runs.
inline Vector<Access> accesses_of(const ir::Stmt& stmt) {
  Vector<Access> result;
  const auto add = [&](const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool write) {
    if (ir::changes_in_calls(*buffer) && buffer->scope != ir::Scope::local) result.push_back({buffer, indices, write});
  };
  ir::visit_with(
      stmt, [&](const ir::Load& load) { add(load.buffer, load.indices, false); },
      [&](const ir::Store& store) { add(store.buffer, store.indices, true); });
  return result;
}

/// Whether `access` is of a child's state. A child is never in its parent's batch, so within the loop that carries the
/// dependence such a read meets no write of the same iteration.
inline bool reads_child_state(const Access& access) {
  if (access.write || access.buffer->role != ir::Role::state || access.indices.empty()) return false;
  const auto* call = access.indices[0].as<ir::UfCall>();
  return call && ir::is_child(call->uf.kind);
}

/// Whether two numbers of parts are not the same: p and q, p and (b + 1) * parts + q of a loop's b, or, if variables
/// are the same in both, e + p and e + q.
inline bool are_other_parts(const ir::Expr& x, const ir::Expr& y, bool same_variables) {
  using enum ir::BinaryOp;
  const auto split = [](const ir::Expr& e) {
    const auto* sum = e.as<ir::Binary>();
    const bool ends = sum && sum->op == add && ir::as_int(sum->b);
    return ends ? std::pair(sum->a, *ir::as_int(sum->b)) : std::pair(e, std::int64_t(0));
  };
  const auto constant = ir::as_int(x), other = ir::as_int(y);
  if (constant && other) return *constant != *other;
  const auto [b, q] = split(y);
  if (!constant) return same_variables && ir::equal(split(x).first, b) && split(x).second != q;
  const auto* product = b.as<ir::Binary>();
  const auto parts = product && product->op == mul ? ir::as_int(product->b) : std::nullopt;
  if (!parts) return false;
  const auto [batch, past] = split(product->a);
  return batch.as<ir::Var>() && past > 0 && *constant < past * *parts + q;
}

/// The variables of two nests' rows, where no row of the one is one of the other.
struct RowsApart {
  ir::Expr earlier, later;
};

/// Their rows' variables if two nests of the same iteration of the loops around both are of different parts of a batch,
/// such as two cases of a switch; else none.
inline RowsApart rows_apart(const Nest& earlier, const Nest& later) {
  const auto part_of = [](const Nest& nest) {
    const auto* node = nest.let_value ? nest.let_value.as<ir::UfCall>() : nullptr;
    return node && node->uf.kind == ir::UfKind::part_node ? node->args[0] : ir::Expr();
  };
  const ir::Expr x = part_of(earlier), y = part_of(later);
  return x && y && are_other_parts(x, y, true) ? RowsApart{earlier.let_var, later.let_var} : RowsApart();
}

/// How one nest depends on an earlier one of the same iteration of the loops around both.
enum class Dependence { none, pointwise, whole };

/// `pointwise`: only elements of the same loop iteration meet, once `later` runs in the loops of `earlier`. `carried`:
/// both stand in the loop that carries the dependence, where no child's state is written in the same iteration.
/// `apart`: states at these rows do not meet. Temporaries do, whose rows parts of a batch take one after the other.
inline Dependence dependence(const Vector<Access>& earlier, const Vector<Access>& later, bool carried,
                             const RowsApart& apart = {}) {
  const auto is_row = [](const Access& access, const ir::Expr& var) {
    return var && !access.indices.empty() && access.indices[0].same_as(var);
  };
  Dependence result = Dependence::none;
  for (const Access& a : earlier)
    for (const Access& b : later) {
      if (!(a.buffer == b.buffer) || (!a.write && !b.write)) continue;
      if (carried && (reads_child_state(a) || reads_child_state(b))) continue;
      if (a.buffer->role == ir::Role::state && is_row(a, apart.earlier) && is_row(b, apart.later)) continue;
      bool same = a.indices.size() == b.indices.size();
      for (std::size_t i = 0; same && i < a.indices.size(); ++i) same = ir::equal(a.indices[i], b.indices[i]);
      if (!same) return Dependence::whole;
      result = Dependence::pointwise;
    }
  return result;
}

/// Whether two nests have the same rows, condition and loops, of the same kinds, and then the variables of the one as
/// those of the other.
struct SameLoops {
  bool same = false;
  ir::Substitution variables;
};

/// The variables of `nest`'s loops as those of `like`.
inline SameLoops same_loops(const Nest& nest, const Nest& like) {
  if (bool(nest.rows) != bool(like.rows) || bool(nest.let_var) != bool(like.let_var) ||
      nest.loops.size() != like.loops.size() || bool(nest.guard) != bool(like.guard))
    return {};
  ir::Substitution map;
  if (nest.rows) {
    if (!(nest.rows->dim == like.rows->dim) || nest.rows->kind != like.rows->kind ||
        !ir::equal(nest.rows->extent, like.rows->extent))
      return {};
    map.emplace(nest.rows->var.get(), like.rows->var);
  }
  if (nest.let_var) {
    if (!ir::equal(ir::substitute(nest.let_value, map), like.let_value)) return {};
    map.emplace(nest.let_var.get(), like.let_var);
  }
  if (nest.guard && !ir::equal(ir::substitute(nest.guard, map), like.guard)) return {};
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (!(nest.loops[i].dim == like.loops[i].dim) || nest.loops[i].kind != like.loops[i].kind ||
        !ir::equal(ir::substitute(nest.loops[i].extent, map), like.loops[i].extent))
      return {};
    map.emplace(nest.loops[i].var.get(), like.loops[i].var);
  }
  return {true, std::move(map)};
}

/// The variable of the loop that workers slice: innermost, and the last index of everything that the nest stores.
inline ir::Expr slice_var(const Nest& nest) {
  if (nest.loops.empty() || nest.loops.back().dim.kind() != DimKind::dense) return {};
  const ir::Expr var = nest.loops.back().var;
  bool last = true;
  ir::visit_with(nest.inner, [&](const ir::Store& store) {
    if (store.buffer->scope != ir::Scope::local) last &= !store.indices.empty() && store.indices.back().same_as(var);
  });
  return last ? var : ir::Expr();
}

/// The loop over the rows of a matrix that the nest computes: the one around the columns, if there are as many rows.
inline const LoopHeader* matrix_rows(const Nest& nest) {
  if (nest.loops.size() < 2 || !slice_var(nest)) return nullptr;
  const LoopHeader &row = nest.loops[nest.loops.size() - 2], &column = nest.loops.back();
  bool indexed = row.dim.kind() == DimKind::dense && row.dim.extent() >= column.dim.extent();
  ir::visit_with(nest.inner, [&](const ir::Store& store) {
    const auto& at = store.indices;
    if (store.buffer->scope != ir::Scope::local) indexed &= at.size() >= 2 && at[at.size() - 2].same_as(row.var);
  });
  return indexed ? &row : nullptr;
}

/// The first of the loops beside the columns whose iterations are rows of their own, as those of a matrix at each node:
/// of a constant number above one, each of which stores what no other does. The column's loop where there is none.
inline std::size_t first_loop_of_rows(const Nest& nest) {
  const auto is_of_rows = [&](const LoopHeader& loop) {
    bool own = loop.dim.kind() == DimKind::dense && loop.kind == ir::ForKind::serial &&
               ir::as_int(loop.extent) == loop.dim.extent() && loop.dim.extent() > 1;
    ir::visit_with(nest.inner, [&](const ir::Store& store) {
      const auto is_var = [&](const ir::Expr& index) { return index.same_as(loop.var); };
      own &= store.buffer->scope == ir::Scope::local || any_of(store.indices, is_var);
    });
    return own;
  };
  std::size_t first = nest.loops.size() - 1;
  while (slice_var(nest) && first > 0 && is_of_rows(nest.loops[first - 1])) --first;
  return first;
}

/// Whether each node has rows of sums, which threads of a GPU compute side by side.
inline bool has_rows_of_sums(const Nest& nest) {
  return slice_var(nest) && first_loop_of_rows(nest) + 1 < nest.loops.size() && has_contraction(nest.inner);
}

/// How many terms a GPU's threads add up from one read of 16 bytes; the extents of such sums.
inline constexpr std::int64_t quad = 4;
inline bool is_sum_of_quads(const ir::For& loop) {
  bool sum = loop.dim.kind() == DimKind::dense && loop.loop == ir::ForKind::serial &&
             ir::as_int(loop.extent) == loop.dim.extent() && loop.dim.extent() % quad == 0;
  for (const ir::Stmt& s : stmts_of(loop.body)) {
    const auto* store = s.as<ir::Store>();
    sum &= store && store->buffer->scope == ir::Scope::local && store->value.as<ir::Fma>();
  }
  return sum;
}

/// `count` iterations of a loop over `var` one after the other, from `var = first` on.
inline ir::Stmt consecutive(const ir::Stmt& body, const ir::Expr& var, const ir::Expr& first, std::int64_t count) {
  Vector<ir::Stmt> stmts;
  for (std::int64_t k = 0; k < count; ++k) append(stmts, stmts_of(ir::substitute(body, {{var.get(), first + k}})));
  return ir::Block::make(stmts);
}

/// The loop that workers share, or would: the one over slices, or the innermost.
inline const LoopHeader* shared_loop(const Nest& nest) {
  for (const LoopHeader& loop : nest.loops)
    if (loop.kind == ir::ForKind::parallel) return &loop;
  for (const LoopHeader& loop : nest.loops)
    if (loop.dim.kind() == DimKind::slice) return &loop;
  return slice_var(nest) ? &nest.loops.back() : nullptr;
}

/// How many elements a slice has that `index` stays in, where it is `f * C + j` for the nest's slice f and j below C;
/// else 0.
inline std::int64_t piece_of(const Nest& nest, const ir::Expr& index) {
  const LoopHeader* loop = shared_loop(nest);
  const auto* sum = index.as<ir::Binary>();
  const auto* product = sum && sum->op == ir::BinaryOp::add ? sum->a.as<ir::Binary>() : nullptr;
  if (!loop || loop->dim.kind() != DimKind::slice || !product || product->op != ir::BinaryOp::mul) return 0;
  const auto piece = ir::as_int(product->b);
  if (!product->a.same_as(loop->var) || !piece) return 0;
  bool inside = false;
  ir::visit_with(nest.inner, [&](const ir::For& inner) {
    if (inner.var.same_as(sum->b)) inside = ir::as_int(inner.extent).value_or(*piece + 1) <= *piece;
  });
  return inside ? *piece : 0;
}

/// Whether each worker runs the nest whole, for itself: what it writes is not shared.
inline bool is_replicated(const Nest& nest) {
  bool own = false;
  ir::visit_with(nest.inner, [&](const ir::Store& store) { own |= store.buffer->scope == ir::Scope::worker; });
  return own;
}

/// The temporaries that some nest reads at another index than its own slice of the innermost dimension.
inline PointerSet read_whole(const ir::Stmt& body) {
  PointerSet result;
  for_each_nest(body, [&](const Nest& nest) {
    const ir::Expr slice = slice_var(nest);
    for (const Access& access : accesses_of(nest.inner))
      if (!access.write && (!slice || access.indices.empty() ||
                            !(access.indices.back().same_as(slice) || piece_of(nest, access.indices.back()))))
        result.insert(access.buffer.id());
  });
  return result;
}

}  // namespace cortex::schedule
