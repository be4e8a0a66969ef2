// Shares every nest among the threads of a block, and slices of it among the blocks of a group: each thread has a
// column of the output and some of the nodes, as a register tile over packed weights.
//
//   for n = 0:N: node = f(n): parallel for i = 0:H: {a = 0; for j: a += W[i,j] * x[node,j]; y[node,i] = a}
//     ->
//   for t: column = begin + thread % C: if column < end:           # begin .. end: the block's slice
//     for j: a[r] += W[column,j] * x[node r,j]                     # for the nodes t * .. + thread / C + r * threads /
//     C if the node is there: y[node r,column] = a[r]
//
// Neighbours in a warp have neighbouring columns: weights are read in whole lines, a node's states once for all. The
// last tile of nodes computes some of them twice, and stores them once. The order of j is the same whatever the shape,
// so results do not depend on which nodes share a tile. Runs after both kinds of barriers stand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/tensor_tiles.hpp"
#include "cortex/schedule/tile_nests.hpp"

namespace cortex::schedule {

namespace detail {

class ThreadSharer {
 public:
  ThreadSharer(const Nest& nest, const GpuShape& shape) : nest_(nest), shape_(shape) {}

  ir::Stmt run() {
    if (fills_chip()) return {};
    const ir::Expr column = slice_var(nest_);
    if (!column || ir::as_int(nest_.loops.back().extent) != nest_.loops.back().dim.extent()) {
      if (!nest_.rows || rows_repeat())
        return ir::If::make(ir::binary(ir::BinaryOp::eq, thread_, ir::imm(0)), build_nest(nest_));
      return rows(shape_.threads, thread_, 1, [&](const ir::Expr& row, const ir::Expr&) { return element(row, {}); });
    }
    const LoopHeader& loop = nest_.loops.back();
    const BlockSlice slice = slice_of(loop, shape_);
    int across = shape_.threads;  // threads side by side in a row of outputs
    while (nest_.rows && !rows_repeat() && across / 2 >= slice.most) across /= 2;
    const ir::Expr lane = across == shape_.threads ? thread_ : thread_ % across;
    const std::int64_t count = (slice.most + across - 1) / across;
    const bool all_full = slice.most % across == 0 && (loop.kind != ir::ForKind::parallel || even());
    // Columns outside of the nodes that stand side by side: a condition inside would keep them apart.
    const auto columns = [&](const auto& body) -> ir::Stmt {
      const ir::Expr tile = ir::Var::make("tile"), at = ir::Var::make(loop.var.as<ir::Var>()->name);
      const ir::Expr value = slice.begin + (count == 1 ? ir::imm(0) : tile * across) + lane;
      ir::Stmt one = body(at);
      if (!all_full) one = ir::If::make(ir::binary(ir::BinaryOp::lt, at, slice.end), one);
      one = ir::LetStmt::make(at, value, one);
      return count == 1 ? one : ir::For::make(tile, loop.dim, ir::imm(count), ir::ForKind::serial, one);
    };
    if (!nest_.rows) return columns([&](const ir::Expr& at) { return element({}, at); });
    return rows(shape_.threads / across, across == shape_.threads ? ir::imm(0) : thread_ / across, side_by_side(),
                [&](const ir::Expr& row, const ir::Expr& valid) {
                  return columns([&](const ir::Expr& at) { return tile(row, valid, at); });
                });
  }

 private:
  /// Whether threads share the nest already: it copies weights to shared memory.
  bool fills_chip() const {
    bool found = false;
    ir::visit_with(nest_.inner, [&](const ir::Store& store) { found |= store.buffer->scope == ir::Scope::chip; });
    return found;
  }

  /// Whether two rows may be the same node, and write the same element: a root that is given twice. Then the rows are
  /// one thread's.
  bool rows_repeat() const {
    const auto* node = nest_.let_value ? nest_.let_value.as<ir::UfCall>() : nullptr;
    return node && node->uf.kind == ir::UfKind::root_node;
  }

  /// Whether all blocks have slices of the same size.
  bool even() const {
    const LoopHeader& loop = nest_.loops.back();
    const std::int64_t unit = loop.piece == 1 ? shape_.slice_unit : loop.piece;
    return shape_.blocks == 1 || loop.dim.extent() % (unit * shape_.blocks) == 0;
  }

  /// How many nodes a thread computes at once: several only where they share the reading of weights.
  int side_by_side() const {
    const bool differ = std::any_of(nest_.loops.begin(), nest_.loops.end(),
                                    [&](const LoopHeader& loop) { return ir::uses(loop.extent, nest_.let_var); });
    if (!has_contraction(nest_.inner) || nest_.guard || differ || rows_repeat()) return 1;
    int rows = shape_.rows;
    while (rows > 1 && rows * gates_of(nest_.inner) > shape_.accumulators) rows /= 2;
    return rows;
  }

  /// The nest's work for one node and one column.
  ir::Stmt element(const ir::Expr& row, const ir::Expr& column) const {
    Nest one = nest_;
    one.rows.reset();
    if (column) {
      one.inner = ir::substitute(one.inner, {{one.loops.back().var.get(), column}});
      one.loops.pop_back();
    }
    ir::Stmt result = build_nest(one);
    if (row) result = ir::substitute(result, {{nest_.rows->var.get(), row}});
    return result;
  }

  /// The rows of the block, `apart` threads apart: thread group `first` has rows first, first + apart, ...; `most` of
  /// them side by side. The body is told the first row and how to know whether a row r further is there.
  template <class Body>
  ir::Stmt rows(int apart, const ir::Expr& first, int most, const Body& body) {
    const LoopHeader& loop = *nest_.rows;
    const ir::Expr total = ir::Var::make("rows");
    ir::Expr begin = ir::imm(0), count = loop.extent;
    if (loop.kind == ir::ForKind::parallel) {
      const ir::Expr worker = ir::call(ir::UfKind::worker, "worker"), units = loop.extent / loop.piece;
      begin = worker * units / shape_.blocks * loop.piece;
      count = (worker + 1) * units / shape_.blocks * loop.piece - begin;
    }
    begin_ = begin, total_ = total, apart_ = apart;
    const ir::Expr t = ir::Var::make("t");
    ir::Stmt inside;
    if (most == 1) {
      side_ = 1;
      const ir::Expr trips = (total - first + (apart - 1)) / apart;
      inside = ir::For::make(t, loop.dim, trips, ir::ForKind::serial, body(t * apart + first, {}));
    } else {
      const ir::Expr base = ir::Var::make("base"), wanted = ir::Var::make("wanted");
      ir::Stmt cases;
      for (int size = 1; size <= most; size *= 2) {
        side_ = size;
        ir::Stmt one = body(base, total);
        if (size == 1) one = ir::If::make(ir::binary(ir::BinaryOp::lt, base, total), one);
        cases = cases ? ir::If::make(ir::binary(ir::BinaryOp::gt, wanted, ir::imm(size / 2)), one, cases) : one;
      }
      const ir::Expr tiles = (total + (apart * most - 1)) / (apart * most);
      const ir::Expr left = (total - t * (apart * most) + (apart - 1)) / apart;
      inside =
          ir::For::make(t, loop.dim, tiles, ir::ForKind::serial,
                        ir::LetStmt::make(base, t * (apart * most) + first, ir::LetStmt::make(wanted, left, cases)));
    }
    return ir::LetStmt::make(total, count, inside);
  }

  /// The work of one column for the rows that stand side by side.
  ir::Stmt tile(const ir::Expr& row, const ir::Expr& total, const ir::Expr& column) const {
    if (side_ == 1) return element(begin_ + row, column);
    const ir::Expr r = ir::Var::make("r"), own = ir::Var::make("row"), there = row + r * apart_;
    const ir::Expr last = ir::binary(ir::BinaryOp::min, there, total - 1);
    const ir::Stmt guarded =
        ir::mutate_with(element(begin_ + own, column), [&](auto& self, const ir::Store& store) -> ir::Stmt {
          if (store.buffer->scope == ir::Scope::local) return self.children(store);
          return ir::If::make(ir::binary(ir::BinaryOp::lt, there, total), ir::handle_of(store));
        });
    return unroll_and_jam(ir::LetStmt::make(own, last, guarded), r, ir::imm(0), side_);
  }

  const Nest& nest_;
  const GpuShape& shape_;
  const ir::Expr thread_ = ir::call(ir::UfKind::thread, "thread");
  ir::Expr begin_, total_;
  int apart_ = 1, side_ = 1;
};

}  // namespace detail

inline ir::Stmt share_threads(const ir::Stmt& body, const GpuShape& shape) {
  const ir::Stmt shared = map_nests(body, [&](const Nest& nest) {
    return is_tensor_product(nest) ? share_tiles(nest, shape) : detail::ThreadSharer(nest, shape).run();
  });
  return share_iterations(shared, shape.slice_unit);
}

}  // namespace cortex::schedule
