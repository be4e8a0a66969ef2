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
//
// Where `split_sums` has cut the sums of an element into P parts, P neighbouring threads have a part each of one column
// and up to R nodes, join them (`ir::Join`), and thread r of them does what follows for node r:
//
//   for t: column = min(begin + thread / P % C,end - 1)
//     for j = 0:J/P: a_part[r] += W[column,thread % P + j * P] * x[node r,thread % P + j * P]
//     a = join(a_part of P threads)
//     row = .. + thread % P * ..; if thread % P < R and row < N and ..: y[node,column] = a
//
// All threads of a warp take part in the sums, those behind the last column or node in the last one's: they hand each
// other what they have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/vectors.hpp"
#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/split_sums.hpp"
#include "cortex/schedule/tensor_tiles.hpp"
#include "cortex/schedule/tile_nests.hpp"
#include "cortex/schedule/unroll_and_jam.hpp"

namespace cortex::schedule {

namespace detail {

class ThreadSharer {
 public:
  ThreadSharer(const Nest& nest, const GpuShape& shape)
      : nest_(nest), shape_(shape), sums_(nest.inner), parts_(sums_.loop ? int(*ir::as_int(sums_.loop->extent)) : 1) {}

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
    const int threads = shape_.threads / parts_;  // of which each has sums
    int across = threads;                         // of these side by side in a row of outputs
    while (nest_.rows && !rows_repeat() && across / 2 >= slice.most) across /= 2;
    const ir::Expr own = thread_ / parts_, lane = across == threads ? own : own % across;
    const std::int64_t count = (slice.most + across - 1) / across;
    const bool all_full = slice.most % across == 0 && (loop.kind != ir::ForKind::parallel || even());
    // Columns outside of the nodes that stand side by side: a condition inside would keep them apart.
    const auto columns = [&](const auto& body) -> ir::Stmt {
      const ir::Expr tile = ir::Var::make("tile"), at = ir::Var::make(loop.var.as<ir::Var>()->name);
      const ir::Expr value = slice.begin + (count == 1 ? ir::imm(0) : tile * across) + lane;
      ir::Stmt one = body(at);
      if (!all_full && parts_ == 1) one = ir::If::make(ir::binary(ir::BinaryOp::lt, at, slice.end), one);
      one = ir::LetStmt::make(at, value, one);
      return count == 1 ? one : ir::For::make(tile, loop.dim, ir::imm(count), ir::ForKind::serial, one);
    };
    if (!nest_.rows) return columns([&](const ir::Expr& at) { return element({}, at); });
    if (!all_full) end_ = slice.end;
    const ir::Stmt shared = rows(threads / across, across == threads ? ir::imm(0) : own / across, side_by_side(),
                                 [&](const ir::Expr& row, const ir::Expr& valid) {
                                   return columns([&](const ir::Expr& at) { return tile(row, valid, at); });
                                 });
    if (parts_ == 1) return shared;
    ir::Expr wanted = nest_.guard;
    if (end_) {  // a block may have no column at all
      const ir::Expr any = ir::binary(ir::BinaryOp::lt, slice.begin, slice.end);
      wanted = wanted ? ir::binary(ir::BinaryOp::logical_and, wanted, any) : any;
    }
    return wanted ? ir::If::make(wanted, shared) : shared;
  }

 private:
  /// Whether threads share the nest already: it copies weights to shared memory.
  bool fills_chip() const {
    bool found = false;
    ir::visit_with(nest_.inner, [&](const ir::Store& store) { found |= ir::keeps_weights(store.buffer->scope); });
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
    const bool differ =
        any_of(nest_.loops, [&](const LoopHeader& loop) { return ir::uses(loop.extent, nest_.let_var); });
    if (!has_contraction(nest_.inner) || (nest_.guard && parts_ == 1) || differ || rows_repeat()) return 1;
    int rows = parts_ == 1 ? shape_.rows : std::min(shape_.rows, parts_);
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
    if (most == 1 && parts_ == 1) {
      side_ = 1;
      const ir::Expr trips = (total - first + (apart - 1)) / apart;
      inside = ir::For::make(t, loop.dim, trips, ir::ForKind::serial, body(t * apart + first, {}));
    } else {
      const ir::Expr base = ir::Var::make("base"), wanted = ir::Var::make("wanted");
      ir::Stmt cases;
      for (int size = 1; size <= most; size *= 2) {
        side_ = size;
        ir::Stmt one = body(base, total);
        if (size == 1 && parts_ == 1) one = ir::If::make(ir::binary(ir::BinaryOp::lt, base, total), one);
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
    if (parts_ > 1) return in_parts(row, total, column);
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

  /// The same where each thread has a part of the sums.
  ir::Stmt in_parts(const ir::Expr& row, const ir::Expr& total, const ir::Expr& column) const {
    const ir::Expr r = ir::Var::make("r"), part = thread_ % parts_, last = total - 1;
    Vector<ir::Buffer> terms;
    for (const ir::Buffer& one : sums_.terms) {
      ir::BufferInfo info = *one;
      info.dims = {Dim("row", side_)};
      terms.emplace_back(std::move(info));
    }
    const auto at_row = [&](const ir::Expr& number, const ir::Stmt& body) {
      const ir::Stmt let = nest_.let_var ? ir::LetStmt::make(nest_.let_var, nest_.let_value, body) : body;
      const ir::Expr own = ir::Var::make("row");
      return ir::LetStmt::make(own, number, ir::substitute(let, {{nest_.rows->var.get(), begin_ + own}}));
    };
    ir::Stmt each = ir::substitute(sums_.loop->body, {{sums_.loop->var.get(), part}});
    for (std::size_t i = 0; i < terms.size(); ++i) each = with_terms(each, sums_.terms[i], terms[i], r);
    const ir::Expr& var = nest_.loops.back().var;
    const ir::Expr inside = ir::Var::make(var.as<ir::Var>()->name);
    if (end_) each = ir::substitute(each, {{var.get(), inside}});
    each = unroll_and_jam(at_row(ir::binary(ir::BinaryOp::min, row + r * apart_, last), each), r, ir::imm(0), side_);
    if (end_) each = ir::LetStmt::make(inside, ir::binary(ir::BinaryOp::min, column, end_ - 1), each);
    Vector<ir::Stmt> stmts{each};
    for (std::size_t i = 0; i < terms.size(); ++i) stmts.push_back(ir::Join::make(sums_.sums[i], terms[i], parts_));
    stmts.push_back(follows(row, total, column));
    ir::Stmt result = ir::substitute(ir::Block::make(stmts), {{var.get(), column}});
    for (const auto* buffers : {&sums_.sums, &std::as_const(terms)})
      for (const ir::Buffer& buffer : reversed(*buffers)) result = ir::Alloc::make(buffer, result);
    return result;
  }

  /// What follows from joined sums: of each row one of the threads does it.
  ir::Stmt follows(const ir::Expr& row, const ir::Expr& total, const ir::Expr& column) const {
    const ir::Expr part = thread_ % parts_, own = side_ == 1 ? row : ir::Var::make("row");
    ir::Stmt body = ir::Block::make(sums_.rest);
    for (const ir::Buffer& buffer : reversed(sums_.locals)) body = ir::Alloc::make(buffer, body);
    if (nest_.let_var) body = ir::LetStmt::make(nest_.let_var, nest_.let_value, body);
    body = ir::substitute(body, {{nest_.rows->var.get(), begin_ + own}});
    ir::Expr there = ir::binary(ir::BinaryOp::lt, own, total);
    const auto also = [&](const ir::Expr& condition) {
      there = ir::binary(ir::BinaryOp::logical_and, condition, there);
    };
    if (end_) also(ir::binary(ir::BinaryOp::lt, column, end_));
    if (side_ < parts_) also(ir::binary(ir::BinaryOp::lt, part, ir::imm(side_)));
    body = ir::If::make(there, body);
    return side_ == 1 ? body : ir::LetStmt::make(own, row + part * apart_, body);
  }

  /// `body` with the terms of a sum in the place of row `r`.
  static ir::Stmt with_terms(const ir::Stmt& body, const ir::Buffer& from, const ir::Buffer& to, const ir::Expr& r) {
    return ir::mutate_with(
        body,
        [&](auto& self, const ir::Load& load) -> ir::Expr {
          return load.buffer == from ? ir::Load::make(to, {r}) : self.children(load);
        },
        [&](auto& self, const ir::Store& store) -> ir::Stmt {
          const ir::Stmt inner = self.children(store);
          return store.buffer == from ? ir::Store::make(to, {r}, inner.as<ir::Store>()->value) : inner;
        });
  }

  const Nest& nest_;
  const GpuShape& shape_;
  const SumsInParts sums_;  // of the nest, where they are in parts
  const int parts_;         // 1: they are not
  const ir::Expr thread_ = ir::call(ir::UfKind::thread, "thread");
  ir::Expr begin_, total_, end_;  // of rows, how many there are; of columns, if a thread may be behind it
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
