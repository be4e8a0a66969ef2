// Shares every nest among the threads of a block, and slices of it among the blocks of a group: each thread has a
// column of the output and some of the nodes, as a register tile over packed weights.
//
//   for n = 0:N: node = f(n): parallel for i = 0:H: {a = 0; for j: a += W[i,j] * x[node,j]; y[node,i] = a}
//     ->
//   for t: column = begin + thread % C: if column < end:           # begin .. end: the block's slice
//     for j: a[r] += W[column,j] * x[node r,j]                     # node r: that at t * .. + thread / C + r * rows
//     if node r is there: y[node r,column] = a[r]                  # rows: threads / C
//
// Neighbours in a warp have neighbouring columns: weights are read in whole lines, a node's states once for all. The
// last tile of nodes computes some of them twice, and stores them once. The order of j is the same whatever the shape,
// so results do not depend on which nodes share a tile. Runs after both kinds of barriers stand.
//
// Where nothing is multiplied, as in copies and sums over children, a thread has four neighbouring columns of a node,
// so that a load and a store are of four elements, and the block more nodes at once.
//
// Where each node has a matrix, or more, the dimensions beside the columns are rows, too: M rows of each node, row q
// those of node q / M. So one node gives all threads work, and as long as it does a thread has several columns as well
// as rows:
//
//   for n: node = f(n): for i = 0:I: parallel for c = 0:C: {a = 0; for j: a += W[c,j] * x[node,i,j]; y[node,i,c] = a}
//     ->
//   for t: node = f(t * .. / I): for j: a[r,s] += W[column s,j] * x[node,i r,j]   # for i r = .. % I + r * ..
//     y[node,i r,column s] = a[r,s]
//
// Where tiles divide the rows of a node, as here, all rows of a tile are one node's and none is left over.
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
// other what they have. What a thread reads from memory for what follows, it reads before the sums. Where there are
// more nodes than two, or rows of each, it has several columns as well: a block reads 32 elements of shared memory or
// of the L1 cache in the cycle in which it multiplies 128 times. Warps without a row take no part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/read_ahead.hpp"
#include "cortex/schedule/split_sums.hpp"
#include "cortex/schedule/tensor_tiles.hpp"
#include "cortex/schedule/tile_nests.hpp"
#include "cortex/schedule/unroll_and_jam.hpp"

namespace cortex::schedule {

namespace detail {

class ThreadSharer {
 public:
  ThreadSharer(const Nest& nest, const GpuShape& shape)
      : nest_(nest), shape_(shape), sums_(nest.inner), parts_(sums_.loop ? int(*ir::as_int(sums_.loop->extent)) : 1) {
    if (nest_.loops.empty()) return;
    own_loops_ = first_loop_of_rows(nest_);
    for (std::size_t d = own_loops_; d + 1 < nest_.loops.size(); ++d) of_node_ *= nest_.loops[d].dim.extent();
  }

  ir::Stmt run() {
    if (fills_chip()) return {};
    const ir::Expr column = slice_var(nest_);
    if (!column || ir::as_int(nest_.loops.back().extent) != nest_.loops.back().dim.extent()) {
      if (!by_node()) return ir::If::make(ir::binary(ir::BinaryOp::eq, thread_, ir::imm(0)), build_nest(nest_));
      of_node_ = 1;
      return rows(shape_.threads, thread_, 1, [&](const ir::Expr& row) { return element(row, {}); });
    }
    const int wide = columns_of_parts();
    if (wide == 1 || of_node_ > 1 || multiplies_columns()) return over_columns(wide);
    // For a node or two, most threads would have no column.
    const ir::Stmt several = over_columns(wide), few = over_columns(1);
    return ir::If::make(ir::binary(ir::BinaryOp::gt, nest_.rows->extent, ir::imm(2)), several, few);
  }

 private:
  /// The nest, where the sums are in parts with so many columns for each thread.
  ir::Stmt over_columns(int wide) {
    const LoopHeader& loop = nest_.loops.back();
    const BlockSlice slice = slice_of(loop, shape_);
    const int threads = shape_.threads / parts_;  // of which each has sums
    const bool has_rows = by_node() || of_node_ > 1;
    int across = threads;  // of these side by side in a row of outputs
    while (has_rows && across / 2 >= slice.most) across /= 2;
    const bool all_full = slice.most % across == 0 && (loop.kind != ir::ForKind::parallel || even());
    const bool neighbours = all_full && has_neighbours(slice.most);
    if (neighbours)
      columns_ = quad, across = int(std::min<std::int64_t>(threads, slice.most / quad));
    else if (all_full && parts_ == 1)
      across = divide_columns(slice.most, across);
    if (parts_ > 1 && !neighbours) columns_ = wide, across /= wide;
    const ir::Expr own = thread_ / parts_, lane = across == threads ? own : own % across;
    const std::int64_t each = std::int64_t(across) * columns_, count = ceil_div(slice.most, each);
    // Columns outside of the nodes that stand side by side: a condition inside would keep them apart.
    const auto columns = [&](const auto& body) -> ir::Stmt {
      const ir::Expr tile = ir::Var::make("tile"), own_quad = ir::Var::make("quad");
      const ir::Expr inside = (count == 1 ? ir::imm(0) : tile * (neighbours ? across : each)) + lane;
      Vector<ir::Expr> at;
      for (int c = 0; c < columns_; ++c)
        at.push_back(neighbours ? own_quad * quad + c : ir::Var::make(loop.var.as<ir::Var>()->name));
      ir::Stmt one = body(at);
      if (!all_full && parts_ == 1) one = ir::If::make(ir::binary(ir::BinaryOp::lt, at[0], slice.end), one);
      if (neighbours)
        one = ir::LetStmt::make(own_quad, slice.begin / quad + inside, one);
      else
        for (int c = columns_; c-- > 0;)
          one = ir::LetStmt::make(at[std::size_t(c)], slice.begin + inside + c * across, one);
      return count == 1 ? one : ir::For::make(tile, loop.dim, ir::imm(count), ir::ForKind::serial, one);
    };
    if (!has_rows) return columns([&](const Vector<ir::Expr>& at) { return element({}, at); });
    if (!all_full) end_ = slice.end;
    const int apart = threads / across;
    const ir::Stmt shared =
        rows(apart, across == threads ? ir::imm(0) : own / across, side_by_side(apart),
             [&](const ir::Expr& row) { return columns([&](const Vector<ir::Expr>& at) { return tile(row, at); }); });
    if (parts_ == 1) return shared;
    ir::Expr wanted = nest_.guard;
    if (end_) {  // a block may have no column at all
      const ir::Expr any = ir::binary(ir::BinaryOp::lt, slice.begin, slice.end);
      wanted = ir::both(wanted, any);
    }
    return wanted ? ir::If::make(wanted, shared) : shared;
  }

  /// Whether a thread has four neighbouring columns of `most`, so that a load brings four elements: where nothing is
  /// multiplied, more nodes are then on their way at once.
  bool has_neighbours(std::int64_t most) const {
    if (most % quad || !is_power_of_two(int(most / quad))) return false;
    if (parts_ > 1) return multiplies_columns();
    bool loads = false;
    ir::visit_with(nest_.inner, [&](const ir::Load& load) { loads |= load.buffer->scope != ir::Scope::local; });
    return loads && by_node() && of_node_ == 1 && !nest_.guard && !has_contraction(nest_.inner);
  }

  /// Whether what a node has is multiplied column by column, as a matrix that stands before a vector transposed.
  bool multiplies_columns() const {
    bool found = false;
    if (parts_ > 1)
      ir::visit_with(sums_.loop->body, [&](const ir::Load& load) {
        const bool weight = load.buffer->role == ir::Role::weight || ir::keeps_weights(load.buffer->scope);
        found |= !weight && !load.indices.empty() && load.indices.back().same_as(nest_.loops.back().var);
      });
    return found;
  }

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

  /// Whether the nest's rows, or those of which each has M, are the block's threads'.
  bool by_node() const { return nest_.rows && !rows_repeat(); }

  /// Whether all blocks have slices of the same size.
  bool even() const {
    const LoopHeader& loop = nest_.loops.back();
    const std::int64_t unit = loop.piece == 1 ? shape_.slice_unit : loop.piece;
    return shape_.blocks == 1 || loop.dim.extent() % (unit * shape_.blocks) == 0;
  }

  /// How many rows a thread computes at once: several where they share the reading of weights; and of matrices that are
  /// only copied, so that many loads are on their way at once.
  int side_by_side(int apart) {
    const bool differ =
        any_of(nest_.loops, [&](const LoopHeader& loop) { return ir::uses(loop.extent, nest_.let_var); });
    const bool sums = parts_ > 1 || has_contraction(nest_.inner);  // parts of few terms have no loop
    const bool loads = ir::has_loads(nest_.inner);
    if ((nest_.guard && parts_ == 1) || differ || rows_repeat() || !loads || (!sums && of_node_ == 1)) return 1;
    int rows = !sums ? copied_at_once : parts_ == 1 ? shape_.whole_rows : std::min(shape_.rows, parts_);
    while (rows > 1 && rows * columns_ * gates() > accumulators()) rows /= 2;
    int divides = rows;
    while (divides > 1 && of_node_ % (std::int64_t(apart) * divides)) divides /= 2;
    of_one_node_ = divides > 1 && (sums ? 2 * divides >= rows : divides == rows);
    return of_one_node_ ? divides : rows;
  }

  /// How many accumulators a thread has: a few more where the rows of a tile are one node's, which have one pointer.
  int accumulators() const { return parts_ > 1 && of_node_ > 1 ? shape_.accumulators * 8 / 7 : shape_.accumulators; }

  /// Sums of an element.
  int gates() const { return parts_ > 1 ? int(sums_.terms.size()) : gates_of(nest_.inner); }

  /// How many columns a thread has where the sums are in parts and there are several nodes, or rows of each: what a
  /// node has is then read once for all of them. Gates, which read it once as they are, count as columns.
  int columns_of_parts() const {
    if (parts_ == 1 || !nest_.rows || shape_.weight_registers) return 1;
    const bool rows = of_node_ > 1;
    const int most = rows ? accumulators() / std::min(shape_.rows, parts_) : std::min(4, shape_.accumulators / 4);
    const std::int64_t columns = slice_of(nest_.loops.back(), shape_).most, fewest = rows ? 1 : Gpu::warp / parts_;
    int wide = columns <= shape_.threads / parts_ ? 4 : 1;
    while (wide > 1 && (wide * gates() > most || columns % wide || columns / wide < fewest)) wide /= 2;
    return wide;
  }

  /// Gives a thread several columns of matrices, as long as registers hold all sums and one node still has a tile for
  /// each thread: then each of what rows and columns multiply is read for several products. `across` threads are side
  /// by side in a row of `most` columns; the result is how many are then. Neighbours have neighbouring columns, of at
  /// least a sector of memory.
  int divide_columns(std::int64_t most, int across) {
    if (of_node_ == 1 || nest_.guard || shape_.weight_registers || !has_contraction(nest_.inner)) return across;
    const auto fits = [&](int columns) {
      const int sums = shape_.whole_rows * columns;
      return sums * gates_of(nest_.inner) <= shape_.accumulators &&
             of_node_ * most >= std::int64_t(sums) * shape_.threads;
    };
    for (const int columns : {2, 4}) {
      if (!fits(columns)) break;
      if (most / across % columns != 0) {
        if (across < 16) break;
        across /= 2;
      }
      columns_ = columns;
    }
    return across;
  }

  /// The nest's work for one row and the columns.
  ir::Stmt element(const ir::Expr& row, const Vector<ir::Expr>& columns) const {
    Nest one = nest_;
    if (by_node()) one.rows.reset();
    if (!columns.empty()) {
      one.inner = at_columns(columns);
      while (one.loops.size() > own_loops_) one.loops.pop_back();
    }
    const ir::Stmt result = build_nest(one);
    if (!row) return result;
    if (of_node_ == 1) return ir::substitute(result, {{nest_.rows->var.get(), begin_ + row}});
    return at_node(row, in_node(row % of_node_, result));
  }

  ir::Stmt at_columns(const Vector<ir::Expr>& columns) const {
    const bool by_quads = has_rows_of_sums(nest_) && !shape_.weight_registers;
    const ir::Stmt inner = by_quads ? in_quads(nest_.inner) : nest_.inner;
    Vector<ir::Stmt> copies;
    for (const ir::Expr& column : columns)
      copies.push_back(ir::substitute(inner, {{nest_.loops.back().var.get(), column}}));
    return has_contraction(inner) ? jam(copies) : reading_ahead(jam(copies));
  }

  /// What is copied, read before anything is stored: stores are for rows that are there, and nothing after such a
  /// condition would begin before it.
  static ir::Stmt reading_ahead(const ir::Stmt& inner) {
    const ReadAhead ahead(stmts_of(inner));
    return ir::with_lets(ahead.loads, ir::Block::make(ahead.rest));
  }

  /// `inner` with four terms after the other in each iteration of its sums: their factors lie side by side.
  static ir::Stmt in_quads(const ir::Stmt& inner) {
    return ir::mutate_with(inner, [](auto& self, const ir::For& loop) -> ir::Stmt {
      if (!is_sum_of_quads(loop)) return self.children(loop);
      return ir::For::make(loop.var, loop.dim, ir::imm(loop.dim.extent() / quad), loop.loop,
                           consecutive(loop.body, loop.var, loop.var * quad, quad));
    });
  }

  /// `body` for the node of a row of matrices.
  ir::Stmt at_node(const ir::Expr& row, const ir::Stmt& body) const {
    if (!by_node()) return body;
    const ir::Expr number = ir::Var::make(nest_.rows->var.as<ir::Var>()->name);
    return ir::LetStmt::make(number, begin_ + row / of_node_, ir::substitute(body, {{nest_.rows->var.get(), number}}));
  }

  /// `body` for row `at` of those of a node.
  ir::Stmt in_node(const ir::Expr& at, ir::Stmt body) const {
    std::int64_t inside = 1;
    for (std::size_t d = nest_.loops.size() - 1; d-- > own_loops_;) {
      const LoopHeader& loop = nest_.loops[d];
      const ir::Expr number = inside == 1 ? at : at / inside;
      inside *= loop.dim.extent();
      const ir::Expr own = ir::Var::make(loop.var.as<ir::Var>()->name);
      body = ir::LetStmt::make(own, inside == of_node_ ? number : number % loop.dim.extent(),
                               ir::substitute(body, {{loop.var.get(), own}}));
    }
    return body;
  }

  /// `body` for the row that is `behind` rows after `first`, one of those that stand side by side, or for the last one;
  /// `name` is of the row's variable.
  ir::Stmt at_place(const char* name, const ir::Expr& first, const ir::Expr& behind, const ir::Stmt& body) const {
    const ir::Expr& node = nest_.rows->var;
    if (of_one_node_) {
      const ir::Stmt at_node = ir::substitute(body, {{node.get(), begin_ + first / of_node_}});
      if (nest_.loops.size() > 2) return in_node(first % of_node_ + behind, at_node);
      const ir::Expr inside = ir::Var::make("first");  // from which other rows are at constant distances
      return ir::LetStmt::make(inside, first % of_node_,
                               ir::substitute(at_node, {{nest_.loops.front().var.get(), inside + behind}}));
    }
    const ir::Expr own = ir::Var::make(name), number = of_node_ == 1 ? own : own / of_node_;
    const ir::Stmt at_node = ir::substitute(body, {{node.get(), begin_ + number}});
    return ir::LetStmt::make(own, ir::binary(ir::BinaryOp::min, first + behind, total_ - 1),
                             of_node_ == 1 ? at_node : in_node(own % of_node_, at_node));
  }

  /// The rows of the block, `apart` threads apart: thread group `first` has rows first, first + apart, ...; `most` of
  /// them side by side. The body is told the first row.
  template <class Body>
  ir::Stmt rows(int apart, const ir::Expr& first, int most, const Body& body) {
    const LoopHeader& loop = by_node() ? *nest_.rows : nest_.loops[own_loops_];
    const ir::Expr total = ir::Var::make("rows"), t = ir::Var::make("t"), base = ir::Var::make("base");
    ir::Expr begin = ir::imm(0), count = by_node() ? loop.extent : ir::imm(1);
    if (loop.kind == ir::ForKind::parallel) {
      const ir::Expr worker = ir::worker(), units = loop.extent / loop.piece;
      begin = worker * units / shape_.blocks * loop.piece;
      count = (worker + 1) * units / shape_.blocks * loop.piece - begin;
    }
    begin_ = begin, total_ = total, apart_ = apart;
    const std::int64_t tile = std::int64_t(apart) * most;
    const auto each = [&](const ir::Expr& trips, const ir::Stmt& work) {
      return ir::For::make(t, loop.dim, trips, ir::ForKind::serial, work);
    };
    if (of_one_node_) {
      side_ = most;
      const ir::Expr tiles = count * (of_node_ / tile);
      return each(tiles, ir::LetStmt::make(base, t * tile + first, body(base)));
    }
    ir::Stmt inside;
    if (most == 1 && parts_ == 1) {
      side_ = 1;
      const ir::Expr trips = (total - first + (apart - 1)) / apart, row = t * apart + first;
      inside = each(trips, of_node_ == 1 ? body(row) : ir::LetStmt::make(base, row, body(base)));
    } else {
      const ir::Expr wanted = ir::Var::make("wanted");
      ir::Stmt cases;
      for (int size = 1; size <= most; size *= 2) {
        side_ = size;
        ir::Stmt one = body(base);
        if (size == 1 && parts_ == 1) one = ir::If::make(ir::binary(ir::BinaryOp::lt, base, total), one);
        cases = cases ? ir::If::make(ir::binary(ir::BinaryOp::gt, wanted, ir::imm(size / 2)), one, cases) : one;
      }
      const ir::Expr tiles = (total + (tile - 1)) / tile, left = (total - t * tile + (apart - 1)) / apart;
      if (parts_ > 1 && apart > 1 && !shape_.weight_registers)  // no register is free for it beside weights
        cases = ir::If::make(ir::binary(ir::BinaryOp::lt, t * tile + first_of_warp(apart, first), total), cases);
      inside = each(tiles, ir::LetStmt::make(base, t * tile + first, ir::LetStmt::make(wanted, left, cases)));
    }
    return ir::LetStmt::make(total, of_node_ == 1 ? count : count * of_node_, inside);
  }

  /// The first row of a warp, in which all threads take part or none: `apart` groups of threads have a row each.
  ir::Expr first_of_warp(int apart, const ir::Expr& first) const {
    constexpr int warp = Gpu::warp;
    const int group = shape_.threads / apart;
    return group >= warp ? first : thread_ / warp * (warp / group);
  }

  /// The work of a thread's columns for the rows that stand side by side.
  ir::Stmt tile(const ir::Expr& row, const Vector<ir::Expr>& columns) const {
    if (parts_ > 1) {
      Vector<ir::Stmt> copies;
      for (const ir::Expr& column : columns) copies.push_back(in_parts(row, column));
      return jam(copies);
    }
    if (of_one_node_) return rows_of_one_node(row, columns);
    if (side_ == 1) return element(row, columns);
    const ir::Expr r = ir::Var::make("r"), own = ir::Var::make("row"), there = row + r * apart_;
    const ir::Expr last = ir::binary(ir::BinaryOp::min, there, total_ - 1);
    const ir::Stmt guarded =
        ir::mutate_with(element(own, columns), [&](auto& self, const ir::Store& store) -> ir::Stmt {
          if (store.buffer->scope == ir::Scope::local) return self.children(store);
          return ir::If::make(ir::binary(ir::BinaryOp::lt, there, total_), ir::handle_of(store));
        });
    return unroll_and_jam(ir::LetStmt::make(own, last, guarded), r, ir::imm(0), side_);
  }

  /// The same where all these rows are one node's.
  ir::Stmt rows_of_one_node(const ir::Expr& row, const Vector<ir::Expr>& columns) const {
    Nest one;
    one.inner = at_columns(columns);
    for (std::size_t d = 0; d < own_loops_; ++d) one.loops.push_back(nest_.loops[d]);
    const ir::Expr r = ir::Var::make("r"), first = ir::Var::make("first");
    ir::Stmt body = unroll_and_jam(in_node(first + r * apart_, build_nest(one)), r, ir::imm(0), side_);
    if (nest_.let_var) body = ir::LetStmt::make(nest_.let_var, nest_.let_value, body);
    return at_node(row, ir::LetStmt::make(first, row % of_node_, body));
  }

  /// The same where each thread has a part of the sums.
  ir::Stmt in_parts(const ir::Expr& row, const ir::Expr& column) const {
    const ir::Expr r = ir::Var::make("r"), part = thread_ % parts_;
    Vector<ir::Buffer> terms;
    for (const ir::Buffer& one : sums_.terms) {
      ir::BufferInfo info = *one;
      info.dims = {Dim("row", side_)};
      terms.emplace_back(std::move(info));
    }
    const auto at_row = [&](const ir::Expr& behind, const ir::Stmt& body) {
      const ir::Stmt let = nest_.let_var ? ir::LetStmt::make(nest_.let_var, nest_.let_value, body) : body;
      return at_place("row", row, behind, let);
    };
    ir::Stmt each = ir::substitute(sums_.loop->body, {{sums_.loop->var.get(), part}});
    for (std::size_t i = 0; i < terms.size(); ++i) each = with_terms(each, sums_.terms[i], terms[i], r);
    const ir::Expr& var = nest_.loops.back().var;
    const ir::Expr inside = ir::Var::make(var.as<ir::Var>()->name);
    if (end_) each = ir::substitute(each, {{var.get(), inside}});
    each = unroll_and_jam(at_row(r * apart_, each), r, ir::imm(0), side_);
    if (end_) each = ir::LetStmt::make(inside, ir::binary(ir::BinaryOp::min, column, end_ - 1), each);
    Vector<ir::Stmt> stmts{ir::substitute(each, {{var.get(), column}})};
    for (std::size_t i = 0; i < terms.size(); ++i) stmts.push_back(ir::Join::make(sums_.sums[i], terms[i], parts_));
    ir::Stmt result = followed(stmts, row, column);
    for (const auto* buffers : {&sums_.sums, &std::as_const(terms)}) result = ir::with_allocs(*buffers, result);
    return result;
  }

  /// `sums`, and what follows from them: of each row one of the threads does it. Those that have no row of their own
  /// compute the last one's, too, and store nothing: with a condition around all of it, nothing of it would begin
  /// before the sums are there.
  ir::Stmt followed(const Vector<ir::Stmt>& sums, const ir::Expr& row, const ir::Expr& column) const {
    const ir::Expr part = thread_ % parts_;
    const bool beyond = of_one_node_ && side_ < parts_;  // there are rows of other nodes, or none
    const ir::Expr own = beyond ? ir::binary(ir::BinaryOp::min, part, ir::imm(side_ - 1)) : part;
    const ir::Expr behind = side_ == 1 ? ir::imm(0) : own * apart_;
    ir::Expr there = of_one_node_ ? ir::Expr() : ir::binary(ir::BinaryOp::lt, row + behind, total_);
    if (end_) there = ir::both(ir::binary(ir::BinaryOp::lt, column, end_), there);
    if (side_ < parts_) there = ir::both(ir::binary(ir::BinaryOp::lt, part, ir::imm(side_)), there);

    const ir::Expr node = ir::Var::make("node");
    const ir::Expr at = end_ ? ir::binary(ir::BinaryOp::min, column, end_ - 1) : column;
    const auto of_own = [&](const auto& e) {
      const auto at_node = nest_.let_var ? ir::substitute(e, {{nest_.let_var.get(), node}}) : e;
      return ir::substitute(at_node, {{nest_.loops.back().var.get(), at}});
    };
    const ReadAhead ahead(sums_.rest);
    ir::Stmt rest = ir::mutate_with(ir::Block::make(ahead.rest), [&](auto& self, const ir::Store& store) -> ir::Stmt {
      if (store.buffer->scope == ir::Scope::local || !there) return self.children(store);
      return ir::If::make(there, ir::handle_of(store));
    });
    rest = ir::with_allocs(sums_.locals, rest);
    Vector<ir::Stmt> stmts = sums;
    stmts.push_back(of_own(rest));
    ir::Stmt body = ir::Block::make(stmts);
    for (const auto& [variable, load] : reversed(ahead.loads)) body = ir::LetStmt::make(variable, of_own(load), body);
    if (nest_.let_var) body = ir::LetStmt::make(node, of_own(nest_.let_value), body);
    return at_place("own", row, behind, body);
  }

  /// `body` with the terms of a sum in the place of row `r`.
  static ir::Stmt with_terms(const ir::Stmt& body, const ir::Buffer& from, const ir::Buffer& to, const ir::Expr& r) {
    return ir::with_places(body, [&](const ir::Buffer& buffer, const Vector<ir::Expr>&) -> ir::Place {
      return buffer == from ? ir::Place{to, {r}} : ir::Place();
    });
  }

  static constexpr int copied_at_once = 16;

  const Nest& nest_;
  const GpuShape& shape_;
  const SumsInParts sums_;  // of the nest, where they are in parts
  const int parts_;         // 1: they are not
  const ir::Expr thread_ = ir::thread();
  ir::Expr begin_, total_, end_;            // of rows, how many there are; of columns, if a thread may be behind it
  int apart_ = 1, side_ = 1, columns_ = 1;  // of a thread, side_ rows of columns_ columns
  std::int64_t of_node_ = 1;                // rows of each node
  std::size_t own_loops_ = 0;               // how many of the nest's loops are neither rows nor columns
  bool of_one_node_ = false;                // all rows that stand side by side
};

}  // namespace detail

inline ir::Stmt share_threads(const ir::Stmt& body, const GpuShape& shape) {
  const ir::Stmt shared = map_nests(body, [&](const Nest& nest) {
    return is_tensor_product(nest) ? share_tiles(nest, shape) : detail::ThreadSharer(nest, shape).run();
  });
  return share_iterations(shared, shape.slice_unit);
}

}  // namespace cortex::schedule
