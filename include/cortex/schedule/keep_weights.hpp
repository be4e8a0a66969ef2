// Keeps each block's slice of the weights in its shared memory, filled once a call (O2, the paper's model persistence).
//
//   for b: for n: parallel for i: .. W[i,j] ..
//     ->
//   W_slice[e % S,e / S] = W[begin + e % S,e / S]   for all e, shared by the block's threads
//   for b: for n: parallel for i: .. W_slice[i - begin,j] ..
//
// Of matrices that the loop over batches reads at the column that a thread owns, in the order of their first use, as
// many as fit; the others are read from the L2 cache. A slice that lies in the weight as it will lie in shared memory
// is copied in vectors of 16 bytes: each launch waits for these copies before all else.
//
// What every block reads whole, as where a node and its children are one block's, is copied whole by each where it
// fits, beside all else that is kept. Where it does not, the blocks of a cluster keep a part of it each, and read each
// other's (distributed shared memory):
//
//   W_spread[worker * S + e] = W[worker * S + e]   for all e < S, shared by the block's threads; barrier
//
// Runs on packed weights, before barriers of threads are put in and nests are shared among them.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/element_at.hpp"
#include "cortex/schedule/split_sums.hpp"
#include "cortex/schedule/tensor_products.hpp"

namespace cortex::schedule {

namespace detail {

class WeightKeeper {
 public:
  /// `spread`: what every block reads whole is spread over a cluster.
  WeightKeeper(const GpuShape& shape, bool spread) : shape_(shape), spread_(spread), room_(shape.chip_bytes) {}

  /// Chooses what is kept. Whether that is all that levels read.
  bool choose(const ir::Stmt& body) {
    ir::visit_with(body, [&](const ir::For& loop) {
      if (!carries_recursion(loop)) return true;
      for_each_nest(loop.body, [&](const Nest& nest) { choose(nest); });
      return false;
    });
    return left_out_.empty();
  }

  ir::Stmt run(const ir::Stmt& body) const {
    if (!left_out_.empty() && shape_.resident)
      refuse_gpu("weights are to stay in shared memory, but " + left_out_ + " does not fit beside the others into " +
                 std::to_string(shape_.chip_bytes) + " bytes a block; take more blocks or let the compiler choose");
    if (kept_.empty()) return body;
    const ir::Stmt reading = map_nests(body, [&](const Nest& nest) { return over_slices(nest); });
    Vector<ir::Stmt> stmts;
    for (const Kept& kept : kept_) stmts.push_back(fill(kept));
    if (any_of(kept_, [](const Kept& kept) { return kept.copy->scope == ir::Scope::spread; }))
      stmts.push_back(ir::Barrier::make());
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

  /// The dimension of which four indices of a packed weight lie side by side; -1 if its columns do.
  static int quads_of(const ir::BufferInfo& weight, int column) {
    const auto& axes = weight.layout.axes;
    return !axes.empty() && axes.front().source != column && axes.front().modulus == quad ? axes.front().source : -1;
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

  /// Columns side by side as a warp reads them, so that all that a warp reads is in one block.
  static ir::Layout columns_of_a_warp(const Vector<Dim>& dims, int column) {
    constexpr int warp = Gpu::warp;
    const int other = int(dims.size()) - 1 == column ? column - 1 : int(dims.size()) - 1;
    ir::Layout layout;
    layout.axes.push_back({column, 1, warp, 1});
    layout.axes.push_back({other, 1, 0, warp});
    add_panels(layout, dims, column, other, warp, warp * dims[std::size_t(other)].extent());
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
      const bool spread = spread_ && !shared;
      info.scope = ir::Scope::chip;
      info.fragments = load.buffer->fragments;
      info.parts = load.buffer->parts;
      info.layout = info.fragments   ? fragment_layout(info.dims, info.dtype, dim, summed_dim(*load.buffer, dim))
                    : info.parts > 1 ? part_layout(info.dims, dim, summed_dim(*load.buffer, dim), info.parts)
                    : quads_of(*load.buffer, dim) >= 0 ? quad_layout(info.dims, dim, quads_of(*load.buffer, dim))
                    : spread                           ? columns_of_a_warp(info.dims, dim)
                                                       : columns_side_by_side(info.dims, dim);
      if (spread) info.scope = ir::Scope::spread, info.share = share_of_block(info);
      const std::int64_t bytes = ir::chip_bytes(info);
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

  /// Elements that a block has of what is spread: whole panels, of which none is in two blocks, and whole tiles.
  std::int64_t share_of_block(const ir::BufferInfo& info) const {
    const std::int64_t panel = info.layout.axes.back().stride, panels = ceil_div(info.layout.fixed_size, panel);
    return ceil_div(panels, shape_.blocks) * panel;
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

  /// Copies a slice into shared memory: as it lies where that is the same in the weight, else element by element.
  ir::Stmt fill(const Kept& kept) const {
    const ir::Stmt pieces = fill_in_pieces(kept);
    return pieces ? pieces : fill_by_element(kept);
  }

  /// Whether all blocks have slices of the same size, or there is but one slice.
  bool even(const Kept& kept) const {
    return !kept.shared || kept.weight->dims[kept.dim].extent() == kept.slice.most * shape_.blocks;
  }

  /// How much of a copy a block makes, in groups of so many elements, and where it begins.
  struct Part {
    ir::Expr first;           // element
    ir::Expr count;           // of groups
    std::int64_t groups = 0;  // in all
  };

  Part part_of(const Kept& kept, std::int64_t elements) const {
    const std::int64_t groups = kept.copy->layout.fixed_size / elements, each = kept.copy->share / elements;
    if (kept.copy->scope != ir::Scope::spread) return {ir::imm(0), ir::imm(groups), groups};
    const ir::Expr worker = ir::worker();
    if (groups == each * shape_.blocks) return {worker * kept.copy->share, ir::imm(each), groups};
    const ir::Expr left = ir::binary(ir::BinaryOp::max, ir::imm(groups) - worker * each, ir::imm(0));
    return {worker * kept.copy->share, ir::binary(ir::BinaryOp::min, ir::imm(each), left), groups};
  }

  /// Iterations of this thread in a loop that the block's threads share, `count` in all: a constant if it can be one.
  ir::Expr own_of(const ir::Expr& count) const {
    const auto known = ir::as_int(count);
    if (known && *known % shape_.threads == 0) return ir::imm(*known / shape_.threads);
    return (count + ir::imm(shape_.threads - 1) - thread_) / shape_.threads;
  }

  /// The copy of a slice that begins with a panel of the weight, whose panels lie as those of the copy: pieces of 16
  /// bytes, neighbouring threads neighbouring ones. A block with fewer columns than others has room for more panels
  /// than there may be, and copies the end of the weight there, of which nothing is read. Nothing for other slices.
  ir::Stmt fill_in_pieces(const Kept& kept) const {
    constexpr int piece_bytes = 16;
    const ir::BufferInfo &copy = *kept.copy, &weight = *kept.weight;
    const std::int64_t elements = piece_bytes / std::int64_t(size_of(copy.dtype)), size = copy.layout.fixed_size;
    const ir::Expr base = place_of_shift(weight.layout, int(kept.dim), kept.slice.begin);
    const bool fits = copy.layout.axes == weight.layout.axes && fills_memory(copy) && fills_memory(weight);
    if (!base || !fits || size % elements != 0) return {};
    const ir::Expr e = ir::Var::make("e"), at = ir::Var::make("at"), from = even(kept) ? at : ir::Var::make("from");
    const auto piece = [&](const ir::Expr& place) { return ir::Ramp::make(place, int(elements)); };
    Vector<ir::Expr> there = indices_at(weight, piece(from));
    if (kept.shared) there[kept.dim] = ir::Broadcast::make(kept.slice.begin, int(elements)) + there[kept.dim];
    ir::Stmt body = ir::Store::make(kept.copy, indices_at(copy, piece(at)), ir::Load::make(kept.weight, there));
    const ir::Expr last = ir::imm(weight.layout.fixed_size - elements) - base;
    if (!even(kept)) body = ir::LetStmt::make(from, ir::binary(ir::BinaryOp::min, at, last), body);
    const Part part = part_of(kept, elements);
    body = ir::LetStmt::make(at, part.first + (e * shape_.threads + thread_) * elements, body);
    body = ir::For::make(e, Dim("piece", part.groups), own_of(part.count), ir::ForKind::serial, body);
    const bool all = !kept.shared || weight.dims[kept.dim].extent() / shape_.slice_unit >= shape_.blocks;
    if (all) return body;
    return ir::If::make(ir::binary(ir::BinaryOp::lt, kept.slice.begin, kept.slice.end), body);
  }

  /// The copy in the order in which elements lie there: neighbouring threads take neighbours, of columns or of a tile,
  /// which are neighbours in the weight too. Where there is room for more columns than a block has, the weight's last
  /// one may be copied again and again: nothing is read of it there, and loads after a condition would wait for each
  /// other.
  ir::Stmt fill_by_element(const Kept& kept) const {
    const ir::Expr e = ir::Var::make("e"), at = ir::Var::make("at");
    const Vector<ir::Expr> to = indices_at(*kept.copy, at);
    Vector<ir::Expr> from = to;
    from[kept.dim] = kept.slice.begin + to[kept.dim];
    const ir::Expr last = ir::imm(kept.weight->dims[kept.dim].extent() - 1);
    const bool past = kept.copy->scope == ir::Scope::spread || (kept.shared && (!even(kept) || kept.copy->parts > 1));
    if (past) from[kept.dim] = ir::binary(ir::BinaryOp::min, from[kept.dim], last);
    ir::Stmt copy = ir::Store::make(kept.copy, to, ir::Load::make(kept.weight, from));
    const Part part = part_of(kept, 1);
    copy = ir::LetStmt::make(at, part.first + (e * shape_.threads + thread_), copy);
    return ir::For::make(e, Dim("element", part.groups), own_of(part.count), ir::ForKind::serial, copy);
  }

  const GpuShape& shape_;
  const bool spread_;
  const ir::Expr thread_ = ir::thread();
  std::int64_t room_;
  Vector<Kept> kept_;
  std::string left_out_;
};

}  // namespace detail

/// Throws `Error{invalid_schedule}` where the schedule asks for all weights on chip and they do not fit.
inline ir::Stmt keep_weights(const ir::Stmt& body, const GpuShape& shape) {
  detail::WeightKeeper whole(shape, false);
  // Registers are filled from a block's own slices and from the L2 cache.
  const bool may_spread = shape.group == GpuSchedule::Group::cluster && !shape.weight_registers;
  if (whole.choose(body) || !may_spread) return whole.run(body);
  detail::WeightKeeper spread(shape, true);
  spread.choose(body);
  return spread.run(body);
}

}  // namespace cortex::schedule
