// Keeps each block's slice of the weights in its shared memory, filled once a call (O2, the paper's model persistence).
//
//   for b: for n: parallel for i: .. W[i,j] ..
//     ->
//   W_slice[e % S,e / S] = W[begin + e % S,e / S]   for all e, shared by the block's threads
//   for b: for n: parallel for i: .. W_slice[i - begin,j] ..
//
// Of matrices that the loop over batches reads at the column that a thread owns, in the order of their first use, as
// many as fit; the others are read from the L2 cache. Runs on packed weights, before barriers
// of threads are put in and nests are shared among them.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/split_sums.hpp"
#include "cortex/schedule/tensor_products.hpp"

namespace cortex::schedule {

namespace detail {

class WeightKeeper {
 public:
  explicit WeightKeeper(const GpuShape& shape) : shape_(shape), room_(shape.chip_bytes) {}

  ir::Stmt run(const ir::Stmt& body) {
    ir::visit_with(body, [&](const ir::For& loop) {
      if (!carries_recursion(loop)) return true;
      for_each_nest(loop.body, [&](const Nest& nest) { choose(nest); });
      return false;
    });
    if (!left_out_.empty() && shape_.resident)
      refuse_gpu("weights are to stay in shared memory, but " + left_out_ + " does not fit beside the others into " +
                 std::to_string(shape_.chip_bytes) + " bytes a block; take more blocks or let the compiler choose");
    if (kept_.empty()) return body;
    const ir::Stmt reading = map_nests(body, [&](const Nest& nest) { return over_slices(nest); });
    Vector<ir::Stmt> stmts;
    for (const Kept& kept : kept_) stmts.push_back(fill(kept));
    stmts.push_back(reading);
    return ir::Block::make(stmts);
  }

 private:
  struct Kept {
    ir::Buffer weight, copy;
    std::size_t dim;  // that is cut into slices
    bool shared;      // among the blocks of the group
    BlockSlice slice;
  };

  /// The dimension of a weight that the nest's column indexes, if the other indices are of loops inside; else -1.
  static int column_dim(const Nest& nest, const ir::Load& load) {
    const ir::Expr column = slice_var(nest);
    if (!column || load.buffer->role != ir::Role::weight || load.indices.size() < 2) return -1;
    int found = -1;
    bool plain = true;
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      plain &= load.buffer->dims[d].kind() == DimKind::dense;
      if (load.indices[d].same_as(column))
        plain &= std::exchange(found, int(d)) < 0;
      else
        plain &= is_of_loops(nest, load.indices[d]);
    }
    return plain ? found : -1;
  }

  /// A constant, or a variable that is no node and no row.
  static bool is_of_loops(const Nest& nest, const ir::Expr& index) {
    if (index.as<ir::IntImm>()) return true;
    return index.as<ir::Var>() && !index.same_as(nest.let_var) && !(nest.rows && index.same_as(nest.rows->var));
  }

  const Kept* find(const ir::Buffer& weight, int dim, bool shared) const {
    for (const Kept& kept : kept_)
      if (kept.weight == weight && int(kept.dim) == dim && kept.shared == shared) return &kept;
    return nullptr;
  }

  /// The dimension that a weight in fragments or parts is summed over: the one beside `column` in a tile.
  static int summed_dim(const ir::BufferInfo& fragments, int column) {
    std::size_t a = 0;
    while (fragments.layout.axes[a].source == column) ++a;
    return fragments.layout.axes[a].source;
  }

  static ir::Layout columns_side_by_side(const Vector<Dim>& dims, int column) {
    ir::Layout layout;
    layout.axes.push_back({column, 1, 0, 1});
    layout.fixed_size = dims[std::size_t(column)].extent();
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (int(d) == column) continue;
      layout.axes.push_back({int(d), 1, 0, layout.fixed_size});
      layout.fixed_size *= dims[d].extent();
    }
    return layout;
  }

  void choose(const Nest& nest) {
    ir::visit_with(nest.inner, [&](const ir::Load& load) {
      const int dim = column_dim(nest, load);
      if (dim < 0) return;
      const LoopHeader& loop = nest.loops.back();
      const bool shared = loop.kind == ir::ForKind::parallel && shape_.blocks > 1;
      if (loop.piece > 1 || find(load.buffer, dim, shared)) return;
      Kept kept{load.buffer, {}, std::size_t(dim), shared, slice_of(loop, shape_)};
      ir::BufferInfo info;
      info.name = load.buffer->name + "_slice";
      info.dtype = load.buffer->dtype;
      info.dims = load.buffer->dims;
      if (kept.slice.most != info.dims[kept.dim].extent()) info.dims[kept.dim] = Dim("slice", kept.slice.most);
      info.scope = ir::Scope::chip;
      info.fragments = load.buffer->fragments;
      info.parts = load.buffer->parts;
      info.layout = info.fragments   ? fragment_layout(info.dims, info.dtype, dim, summed_dim(*load.buffer, dim))
                    : info.parts > 1 ? part_layout(info.dims, dim, summed_dim(*load.buffer, dim), info.parts)
                                     : columns_side_by_side(info.dims, dim);
      const std::int64_t bytes = (info.layout.fixed_size * std::int64_t(size_of(info.dtype)) + 15) / 16 * 16;
      if (bytes > room_) {
        if (left_out_.empty())
          left_out_ = "a slice of '" + load.buffer->name + "', " + std::to_string(bytes) + " bytes,";
        return;
      }
      room_ -= bytes;
      kept.copy = ir::Buffer(std::move(info));
      kept_.push_back(std::move(kept));
    });
  }

  ir::Stmt over_slices(const Nest& nest) const {
    Nest result = nest;
    result.inner = ir::mutate_with(nest.inner, [&](auto& self, const ir::Load& load) -> ir::Expr {
      const int dim = column_dim(nest, load);
      const bool shared = dim >= 0 && nest.loops.back().kind == ir::ForKind::parallel && shape_.blocks > 1;
      const Kept* kept = dim < 0 || nest.loops.back().piece > 1 ? nullptr : find(load.buffer, dim, shared);
      if (!kept) return self.children(load);
      Vector<ir::Expr> indices = load.indices;
      indices[kept->dim] = indices[kept->dim] - kept->slice.begin;
      return ir::Load::make(kept->copy, indices);
    });
    return result.inner.same_as(nest.inner) ? ir::Stmt() : build_nest(result);
  }

  /// The indices of the element that lies at `at`.
  static Vector<ir::Expr> indices_at(const ir::BufferInfo& buffer, const ir::Expr& at) {
    Vector<ir::Expr> indices(buffer.dims.size());
    for (const ir::Axis& axis : buffer.layout.axes) {
      const std::int64_t extent = buffer.dims[std::size_t(axis.source)].extent();
      ir::Expr part = at;
      if (axis.stride != 1) part = part / axis.stride;
      part = part % (axis.modulus ? axis.modulus : (extent + axis.divisor - 1) / axis.divisor);
      if (axis.divisor != 1) part = part * axis.divisor;
      ir::Expr& index = indices[std::size_t(axis.source)];
      index = index ? index + part : part;
    }
    return indices;
  }

  /// The copy, element by element, in the order in which they lie there: neighbouring threads take neighbours, of
  /// columns or of a tile, which are neighbours in the weight too.
  ir::Stmt fill(const Kept& kept) const {
    const ir::Expr thread = ir::call(ir::UfKind::thread, "thread"), e = ir::Var::make("e"), at = ir::Var::make("at");
    const Vector<ir::Expr> to = indices_at(*kept.copy, at);
    Vector<ir::Expr> from = to;
    from[kept.dim] = kept.slice.begin + to[kept.dim];
    ir::Stmt copy = ir::Store::make(kept.copy, to, ir::Load::make(kept.weight, from));
    const std::int64_t unit = kept.copy->fragments ? TensorTile::outputs : 1;  // tiles are copied whole
    const ir::Expr first = unit == 1 ? from[kept.dim] : from[kept.dim] / unit * unit;
    if (kept.shared) copy = ir::If::make(ir::binary(ir::BinaryOp::lt, first, kept.slice.end), copy);
    const ir::Expr count = (ir::imm(kept.copy->layout.fixed_size + shape_.threads - 1) - thread) / shape_.threads;
    copy = ir::LetStmt::make(at, e * shape_.threads + thread, copy);
    return ir::For::make(e, Dim("element", kept.copy->layout.fixed_size), count, ir::ForKind::serial, copy);
  }

  const GpuShape& shape_;
  std::int64_t room_;
  Vector<Kept> kept_;
  std::string left_out_;
};

}  // namespace detail

/// Throws `Error{invalid_schedule}` where the schedule asks for all weights on chip and they do not fit.
inline ir::Stmt keep_weights(const ir::Stmt& body, const GpuShape& shape) {
  return detail::WeightKeeper(shape).run(body);
}

}  // namespace cortex::schedule
