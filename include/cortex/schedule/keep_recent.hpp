// Keeps recent rows of what the blocks of a group give each other in the shared memory of every one of them: the blocks
// of a cluster write there (distributed shared memory), and what a block reads is near it.
//
//   for b: {for n: .. h[child,j] ..; for n: parallel for i: h[node,i] = v; barrier}
//     ->
//   for b: first = internal_batches(b,0)
//     for n: .. (child < first + W ? h_recent[child % W,j] : h[child,j]) ..
//     for n: parallel for i: {h[node,i] = v; if node < first + W: h_recent[node % W,i] = v}
//     barrier
//
// Nodes are numbered downward: of a level's nodes the first has the lowest number so far, so the W numbers from it on
// are the level's and those of the nodes computed last before it. Within a level, what is written and what may be read
// are numbers of the same W, no two of which share a row; and the row of a number above these is not read any more. A
// row is taken over a level after it could be read last, and blocks have to meet between the two. Whoever does not find
// a row near reads it from memory, where what nodes have is written in any case.
//
// Of tensors over a level's rows, which are there for one level, the first W rows are near, and these alone: such rows
// are not written to memory at all. Their barriers are those that they had in memory. What each block computes for
// itself it keeps to itself.
//
// Runs when weights have their places, in the room that they leave, before nests are shared among threads.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/gpu_shape.hpp"
#include "cortex/schedule/nest.hpp"
#include "cortex/schedule/padded_layout.hpp"

namespace cortex::schedule {

namespace detail {

class RecentKeeper {
 public:
  explicit RecentKeeper(const GpuShape& shape) : shape_(shape) {}

  ir::Stmt run(const ir::Stmt& body) {
    if (shape_.group == GpuSchedule::Group::grid || shape_.recent_rows == 0) return body;
    look_at_stores(body);
    look_at_loads(body);
    Vector<ir::Buffer> wanted;
    for (const Tensor& tensor : tensors_)
      if (tensor.exchanged && tensor.fits && (!tensor.loop || shape_.blocks == 1 || meets_between_levels(tensor, body)))
        wanted.push_back(tensor.buffer);
    rows_ = wanted.empty() ? 0 : rows_for(wanted, body);
    if (!rows_) return body;
    for (const ir::Buffer& buffer : wanted) near_.emplace(buffer.id(), near(*buffer));
    return change(body);
  }

 private:
  using K = ir::UfKind;

  /// An iteration of a loop over levels.
  struct Level {
    ir::Expr first;              // node; null outside of levels
    const void* loop = nullptr;  // its variable
  };

  struct Tensor {
    ir::Buffer buffer;
    bool exchanged = false;      // read at other columns than threads, or blocks, write
    bool fits = true;            // it is known of each store which level it belongs to
    const void* loop = nullptr;  // over the levels that its nodes' rows are computed in, and recent in
  };

  // ---- What is exchanged --------------------------------------------------------------------------------------------

  static bool is_by_node(const ir::BufferInfo& buffer) { return buffer.dims[0].kind() == DimKind::node; }

  bool is_candidate(const ir::BufferInfo& buffer) const {
    if (!ir::changes_in_calls(buffer) || buffer.dtype != DType::f32 ||
        (buffer.scope != ir::Scope::shared && buffer.scope != ir::Scope::worker) || buffer.dims.size() < 2)
      return false;
    // To write a matrix to all blocks takes longer than to read it where it is.
    if (shape_.blocks > 1 && buffer.scope == ir::Scope::shared && buffer.dims.size() > 2) return false;
    for (std::size_t d = 1; d < buffer.dims.size(); ++d)
      if (buffer.dims[d].kind() != DimKind::dense) return false;
    return is_by_node(buffer) || is_row_dim(buffer.dims[0]);
  }

  Tensor& tensor(const ir::Buffer& buffer) {
    for (Tensor& known : tensors_)
      if (known.buffer == buffer) return known;
    return tensors_.emplace_back(Tensor{buffer});
  }

  /// The level around a nest; none in a loop that carries the recursion in another way.
  static Level level_of(const Nest& nest) {
    const auto* count = nest.level ? nest.level->extent.as<ir::UfCall>() : nullptr;
    if (!count || nest.level->dim.kind() != DimKind::all_batches) return {};
    const ir::Expr& b = nest.level->var;
    if (count->uf.kind == K::num_internal_batches)
      return {ir::call(K::internal_batch_node, "internal_batches", {b, ir::imm(0)}), b.get()};
    if (count->uf.kind == K::num_batches) return {ir::call(K::batch_node, "batches", {b, ir::imm(0)}), b.get()};
    return {};
  }

  /// The level that a nest stores rows of: that around it, or that of the leaves. Null: it is not known.
  static ir::Expr first_of(const Nest& nest, const Level& level) {
    const auto* node = nest.let_value ? nest.let_value.as<ir::UfCall>() : nullptr;
    if (!nest.rows || !node) return {};
    const auto* around = level.first ? level.first.as<ir::UfCall>() : nullptr;
    if (around && node->uf.kind == around->uf.kind && node->args[0].same_as(around->args[0]) &&
        node->args[1].same_as(nest.rows->var))
      return level.first;
    const auto* count = nest.rows->extent.as<ir::UfCall>();
    const bool leaves = !level.first && node->uf.kind == K::leaf_node && node->args[0].same_as(nest.rows->var) &&
                        count && count->uf.kind == K::num_leaves && count->uf.accessor < 0;
    return leaves ? leaf_first() : ir::Expr();
  }
  static ir::Expr leaf_first() { return ir::call(K::leaf_node, "leaf_batch", {ir::imm(0)}); }

  static bool is_absent_row(const ir::Expr& index) {
    const auto* call = index.as<ir::UfCall>();
    return call && call->uf.kind == K::num_nodes && call->uf.accessor < 0;
  }

  void look_at_stores(const ir::Stmt& body) {
    for_each_nest(body, [&](const Nest& nest) {
      const Level level = level_of(nest);
      ir::visit_with(nest.inner, [&](const ir::Store& store) {
        if (!is_candidate(*store.buffer)) return;
        Tensor& stored = tensor(store.buffer);
        if (!is_by_node(*store.buffer) || is_absent_row(store.indices[0])) return;
        stored.fits &= nest.let_var && store.indices[0].same_as(nest.let_var) && first_of(nest, level);
        if (!level.loop) return;
        stored.fits &= !stored.loop || stored.loop == level.loop;
        stored.loop = level.loop;
      });
    });
  }

  /// Whether blocks read what others have written, at another column than their own or at all columns; or threads what
  /// others of a block that has a tensor to itself have.
  void look_at_loads(const ir::Stmt& body) {
    for_each_nest(body, [&](const Nest& nest) {
      const Level level = level_of(nest);
      const ir::Expr column = slice_var(nest);
      const bool own_columns = column && (shape_.blocks == 1 || nest.loops.back().kind == ir::ForKind::parallel);
      ir::visit_with(build_nest(nest), [&](const ir::Load& load) {
        if (!is_candidate(*load.buffer) || !level.loop) return;
        Tensor& read = tensor(load.buffer);
        if (is_by_node(*load.buffer) && level.loop != read.loop) return;
        const bool own = own_columns || (column && load.buffer->scope == ir::Scope::worker);
        read.exchanged |= !own || !load.indices.back().same_as(column);
      });
    });
  }

  /// Whether blocks meet between what a level reads of a tensor and what the next one writes of it, and between leaves
  /// and the first level. A barrier that stands by itself in a level is met in each; others do not count.
  static bool meets_between_levels(const Tensor& tensor, const ir::Stmt& body) {
    bool met_behind_leaves = false, met = false, after_last_read = false, before_first_store = false, stored = false;
    const auto reads = [&](const ir::Stmt& s) {
      ir::visit_with(
          s, [&](const ir::Load& load) { after_last_read &= load.buffer != tensor.buffer; },
          [&](const ir::Store& store) {
            if (store.buffer == tensor.buffer && !std::exchange(stored, true)) before_first_store = met;
          });
    };
    for (const ir::Stmt& s : stmts_of(body)) {
      const auto* loop = s.as<ir::For>();
      if (s.as<ir::Barrier>()) {
        met_behind_leaves = true;
      } else if (loop && loop->var.get() == tensor.loop) {
        for (const ir::Stmt& part : stmts_of(loop->body)) {
          if (part.as<ir::Barrier>()) met = after_last_read = true;
          reads(part);
        }
        return (met_behind_leaves || before_first_store) && (after_last_read || before_first_store);
      } else {
        ir::visit_with(s, [&](const ir::Store& store) { met_behind_leaves &= store.buffer != tensor.buffer; });
      }
    }
    return false;
  }

  // ---- Where it is kept ---------------------------------------------------------------------------------------------

  /// Elements from one row to the next. Rows begin 32 bytes apart in the banks of shared memory, which are 128 bytes,
  /// so that threads which read a piece each of several rows at once are not in each other's way.
  static std::int64_t stride_of(const ir::BufferInfo& buffer) {
    constexpr int banks = 32, apart = 8;  // words of 4 bytes, as elements are
    return round_up(padded_layout(buffer).row_size, banks) + apart;
  }

  int rows_for(const Vector<ir::Buffer>& wanted, const ir::Stmt& body) const {
    std::int64_t room = shape_.shared_bytes, row = 0;
    PointerSet counted;
    ir::visit_with(body, [&](const ir::Store& store) {
      const ir::BufferInfo& buffer = *store.buffer;
      if (ir::keeps_weights(buffer.scope) && counted.insert(store.buffer.id())) room -= ir::chip_bytes(buffer);
    });
    for (const ir::Buffer& buffer : wanted) row += stride_of(*buffer) * std::int64_t(size_of(buffer->dtype));
    if (shape_.recent_rows > 0) {
      if (shape_.recent_rows * row > room)
        refuse_gpu(std::to_string(shape_.recent_rows) + " recent rows take " +
                   std::to_string(shape_.recent_rows * row) + " bytes of each block's shared memory, and beside " +
                   "weights there are " + std::to_string(std::max<std::int64_t>(room, 0)) +
                   "; take fewer rows, more blocks, or weights streamed");
      return shape_.recent_rows;
    }
    int rows = most_recent_rows;
    while (rows >= fewest_recent_rows && rows * row > room) rows /= 2;
    return rows >= fewest_recent_rows ? rows : 0;
  }

  ir::Buffer near(const ir::BufferInfo& buffer) const {
    ir::BufferInfo info;
    info.name = buffer.name + "_recent";
    info.dtype = buffer.dtype;
    info.role = ir::Role::temp;  // unlike a state, its rows are written again
    info.scope = buffer.scope == ir::Scope::worker ? ir::Scope::recent : ir::Scope::mirrored;
    info.dims = buffer.dims;
    info.dims[0] = Dim("recent", rows_);
    info.layout.axes = padded_layout(buffer).axes;  // within a row as in memory: one address does for both
    info.layout.axes.back().stride = stride_of(buffer);
    info.layout.fixed_size = rows_ * stride_of(buffer);
    return ir::Buffer(std::move(info));
  }

  // ---- How it is read and written -----------------------------------------------------------------------------------

  ir::Stmt change(const ir::Stmt& body) {
    return map_nests(body, [&](const Nest& nest) {
      const Level level = level_of(nest);
      const ir::Expr stored = first_of(nest, level);
      return ir::mutate_with(
          build_nest(nest),
          [&](auto& self, const ir::Load& load) -> ir::Expr {
            const ir::Expr far = self.children(load);
            const auto* recent = near_.find(load.buffer.id());
            if (!recent || (is_by_node(*load.buffer) && level.loop != tensor(load.buffer).loop)) return far;
            const Vector<ir::Expr>& indices = far.as<ir::Load>()->indices;
            return ir::Select::make(is_recent(*load.buffer, indices[0], level.first),
                                    ir::Load::make(recent->second, near_indices(indices)), far);
          },
          [&](auto& self, const ir::Store& store) -> ir::Stmt {
            const ir::Stmt far = self.children(store);
            const auto* recent = near_.find(store.buffer.id());
            return recent ? both(*far.as<ir::Store>(), recent->second, stored ? stored : leaf_first()) : far;
          });
    });
  }

  ir::Stmt both(const ir::Store& far, const ir::Buffer& recent, const ir::Expr& first) const {
    const ir::Expr value = ir::Var::make(far.buffer->name, far.value.type());
    const ir::Stmt to_memory = ir::Store::make(far.buffer, far.indices, value);
    const ir::Stmt to_all = ir::Store::make(recent, near_indices(far.indices), value);
    const ir::Expr is_near = is_recent(*far.buffer, far.indices[0], first);
    const ir::Stmt stores = is_by_node(*far.buffer) ? ir::Block::make({to_memory, ir::If::make(is_near, to_all)})
                                                    : ir::If::make(is_near, to_all, to_memory);
    return ir::LetStmt::make(value, far.value, stores);
  }

  ir::Expr is_recent(const ir::BufferInfo& buffer, const ir::Expr& row, const ir::Expr& first) const {
    return ir::binary(ir::BinaryOp::lt, row, is_by_node(buffer) ? first + rows_ : ir::imm(rows_));
  }
  /// Also of rows that are not near: these are not read there, but have to be inside.
  Vector<ir::Expr> near_indices(Vector<ir::Expr> indices) const {
    indices[0] = indices[0] % rows_;
    return indices;
  }

  const GpuShape& shape_;
  Vector<Tensor> tensors_;
  PointerMap<ir::Buffer> near_;
  int rows_ = 0;
};

}  // namespace detail

/// Throws `Error{invalid_schedule}` where so many rows are asked for as do not fit.
inline ir::Stmt keep_recent(const ir::Stmt& body, const GpuShape& shape) {
  return detail::RecentKeeper(shape).run(body);
}

}  // namespace cortex::schedule
