// Cuts contractions over the rows of children's matrices into partial sums, one for each slice of the rows.
//
//   for i: {a = 0; for r = 0:64: a += M[left(n),r,i] * v[right(n),r]; t[n,i] = a}
//     ->
//   for f = 0:4: for i: {a = 0; for c = 0:16: a += M[left(n),f*16+c,i] * v[right(n),f*16+c]; p[n,f,i] = a}
//   for i: t[n,i] = p[n,0,i] + p[n,1,i] + p[n,2,i] + p[n,3,i]
//
// Workers own rows of the matrices that nodes have (`share_work.hpp`), and slices of vectors. A worker then reads its
// own rows alone, which are in its cache, and where another nest reads them too they come from memory once; and there
// is one barrier a level, before the partial sums are added up. The number of slices is a matter of shapes, not of
// workers: so results are the same bits for any number of workers.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::schedule {

namespace detail {

/// A loop over the elements of a vector at a node, each of which is one sum:
/// `for i: {acc = start; for r: acc = step; t[n,i] = acc}`.
struct VectorOfSums {
  const ir::For* elements = nullptr;
  const ir::Alloc* accumulator = nullptr;
  const ir::Store* start = nullptr;
  const ir::For* terms = nullptr;
  const ir::Store* result = nullptr;

  explicit operator bool() const { return elements != nullptr; }
};

inline VectorOfSums vector_of_sums(const ir::For& loop) {
  VectorOfSums v{&loop, loop.body.as<ir::Alloc>()};
  const auto* block = v.accumulator ? v.accumulator->body.as<ir::Block>() : nullptr;
  if (!block || block->stmts.size() != 3 || loop.dim.kind() != DimKind::dense) return {};
  v.start = block->stmts[0].as<ir::Store>();
  v.terms = block->stmts[1].as<ir::For>();
  v.result = block->stmts[2].as<ir::Store>();
  if (!v.start || !v.terms || !v.result || v.terms->dim.kind() != DimKind::dense) return {};
  const auto* step = v.terms->body.as<ir::Store>();
  const auto* sum = step ? step->value.as<ir::Fma>() : nullptr;
  const auto is_accumulator = [&](const ir::Expr& e) {
    const auto* load = e.as<ir::Load>();
    return load && load->buffer == v.accumulator->buffer;
  };
  const bool plain = sum && is_accumulator(sum->c) && is_accumulator(v.result->value) &&
                     v.result->buffer->role == ir::Role::temp && v.result->indices.size() == 2 &&
                     v.result->indices[1].same_as(loop.var);
  return plain ? v : VectorOfSums();
}

/// Rows in a slice: whole vectors on all targets.
inline constexpr std::int64_t rows_in_slice = 16;

/// Whether the sums are over the rows of a child's matrix, which workers own.
inline bool sums_own_rows(const VectorOfSums& v) {
  const std::int64_t rows = ir::as_int(v.terms->extent).value_or(0);
  if (rows < 2 * rows_in_slice || rows % rows_in_slice) return false;
  bool found = false;
  ir::visit_with(v.terms->body, [&](const ir::Load& load) {
    const auto& at = load.indices;
    if (!reads_child_state({load.buffer, at}) || at.size() != 3 || !at[1].same_as(v.terms->var) ||
        !at[2].same_as(v.elements->var))
      return;
    const std::int64_t columns = load.buffer->dims[2].extent();
    found |= load.buffer->dims[1].extent() == rows && columns <= rows;
  });
  return found;
}

class ContractionSlicer {
 public:
  ir::Stmt operator()(const VectorOfSums& v) {
    const std::int64_t rows = v.terms->dim.extent(), slices = rows / rows_in_slice;
    const auto& [slice, piece] = dims_of(v.terms->dim, slices);
    ir::BufferInfo info = *v.result->buffer;
    info.name += "_partial";
    info.dims.insert(info.dims.begin() + 1, slice);
    const ir::Buffer partial(std::move(info));
    const ir::Expr node = v.result->indices[0], f = ir::Var::make("f"), c = ir::Var::make("c"),
                   i = ir::Var::make(v.elements->var.as<ir::Var>()->name);

    // The partial sums
    const ir::Substitution to{{v.terms->var.get(), f * rows_in_slice + c}};
    const ir::Stmt terms =
        ir::For::make(c, piece, ir::imm(rows_in_slice), ir::ForKind::serial, ir::substitute(v.terms->body, to));
    const ir::Stmt keep = ir::Store::make(partial, {node, f, v.elements->var}, v.result->value);
    const ir::Stmt one =
        ir::Alloc::make(v.accumulator->buffer, ir::Block::make({ir::handle_of(*v.start), terms, keep}));
    const ir::Stmt each = over_elements(v, v.elements->var, one);
    const ir::Stmt parts = ir::For::make(f, slice, ir::imm(slices), ir::ForKind::serial, each);

    // What they add up to
    ir::Expr sum;
    for (std::int64_t s = 0; s < slices; ++s) {
      const ir::Expr part = ir::Load::make(partial, {node, ir::imm(s), i});
      sum = sum ? sum + part : part;
    }
    return ir::Block::make({parts, over_elements(v, i, ir::Store::make(v.result->buffer, {node, i}, sum))});
  }

 private:
  static ir::Stmt over_elements(const VectorOfSums& v, const ir::Expr& i, const ir::Stmt& body) {
    return ir::For::make(i, v.elements->dim, v.elements->extent, ir::ForKind::serial, body);
  }
  /// The slices of a dimension, and the elements of one: the same for all sums, so that their loops can be fused.
  struct SliceDims {
    Dim slice, piece;
  };
  const SliceDims& dims_of(const Dim& rows, std::int64_t slices) {
    const auto known = dims_.find(rows.id());
    if (known != dims_.end()) return known->second;
    SliceDims dims{Dim("slice", slices, DimKind::slice), Dim(rows.name() + "_slice", rows_in_slice)};
    return dims_.emplace(rows.id(), std::move(dims)).first->second;
  }

  PointerMap<SliceDims> dims_;  // by the dimension that is cut
};

}  // namespace detail

inline ir::Stmt slice_contractions(const ir::Stmt& body) {
  detail::ContractionSlicer slicer;
  return ir::mutate_with(body, [&](auto& self, const ir::For& loop) -> ir::Stmt {
    const detail::VectorOfSums sums = detail::vector_of_sums(loop);
    return sums && detail::sums_own_rows(sums) ? slicer(sums) : self.children(loop);
  });
}

}  // namespace cortex::schedule
