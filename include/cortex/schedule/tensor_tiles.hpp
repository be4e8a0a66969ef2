// Shares nests of products among the warps of a block, each of which makes tiles on tensor cores: 16 columns of the
// block's slice times 8 nodes.
//
//   for n = 0:N: node = f(n): parallel for i:
//     a = 0; for r: a = fma(f32(W[i,r]),f32(bf16(x[node,r])),a)
//     y[node,i] = a
//     ->
//   for t: column = ..; row = ..                                         # tile t of the warp's
//     node = f(min(row + lane / 4,N - 1)); local a[4] = 0
//     for s: a += mma(W[column,s * 16],bf16(x[node,s * 16 + ..]),..)
//     for e = 0:4: if row + .. < N: node = f(row + ..): y[node,column + ..] = a[e]
//
// With P parts of a sum a warp has P tiles of sums for the same 16 columns and 8 nodes, to each of which it adds every
// P-th product: they do not wait for each other as one chain of products would. The tiles are added by halves at the
// end.
//
// Rows past the last repeat it, and are not stored: a node's results are the same whatever else is in its level. What
// follows from the sums is computed as without tensor cores, each thread for the elements that it holds. Called by
// `share_threads`, for nests that `tensor_products` has made.
#pragma once

#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/tensor_products.hpp"

namespace cortex::schedule {

namespace detail {

/// The factors of a term that `tensor_products` has made; none if it is another.
inline TensorTerm tensor_term(const ir::Store& store) {
  const auto* term = store.value.as<ir::Fma>();
  const auto* weights = term ? term->a.as<ir::Cast>() : nullptr;
  const auto* load = weights ? weights->a.as<ir::Load>() : nullptr;
  if (!load || !load->buffer->fragments) return {};
  return {load, term->b.as<ir::Cast>()->a.as<ir::Cast>()->a};
}

class TensorTiler {
 public:
  TensorTiler(const Nest& nest, const GpuShape& shape)
      : nest_(nest), shape_(shape), slice_(slice_of(nest.loops.back(), shape)), halves_(nest.inner) {}

  ir::Stmt run() {
    const ir::Expr tile = ir::Var::make("tile"), t = ir::Var::make("t"), total = ir::Var::make("rows");
    const std::int64_t across = ceil_div(slice_.most, TensorTile::outputs);
    const int warps = shape_.threads / warp;
    total_ = total;
    column_ = ir::Var::make(nest_.loops.back().var.as<ir::Var>()->name);
    row_ = ir::Var::make("row");
    ir::Stmt body = ir::Block::make({ir::Barrier::make(ir::Meeting::warp), sums()});
    body = ir::If::make(ir::binary(ir::BinaryOp::lt, column_, slice_.end), body);
    body = ir::LetStmt::make(row_, tile / across * TensorTile::rows, body);
    body = ir::LetStmt::make(column_, slice_.begin + tile % across * TensorTile::outputs, body);
    body = ir::LetStmt::make(tile, t * warps + thread_ / warp, body);
    const ir::Expr tiles = (total + (TensorTile::rows - 1)) / TensorTile::rows * across;
    const ir::Expr own = (tiles - thread_ / warp + (warps - 1)) / warps;
    body = ir::For::make(t, nest_.rows->dim, own, ir::ForKind::serial, body);
    body = ir::LetStmt::make(total, rows(), body);
    return nest_.guard ? ir::If::make(nest_.guard, body) : body;
  }

 private:
  static constexpr int warp = Gpu::warp;

  /// How many rows the block has; `begin_` is the first.
  ir::Expr rows() {
    const LoopHeader& loop = *nest_.rows;
    if (loop.kind != ir::ForKind::parallel) return loop.extent;
    const Share own = share_of(loop.extent, loop.piece, ir::imm(shape_.blocks));
    begin_ = own.begin;
    return own.end - own.begin;
  }

  ir::Stmt sums() {
    for (const ir::Buffer& sum : halves_.sums)
      for (int part = 0; part < shape_.parts; ++part) {
        ir::BufferInfo info = *sum;
        info.name += "_tile";
        info.dims = {Dim("element", 4)};
        tiles_.emplace_back(std::move(info));
      }
    Vector<ir::Stmt> stmts;
    for (const ir::Stmt& s : halves_.lead) {
      const auto* start = s.as<ir::Store>();
      for (int n = 0; start && n < 4 * shape_.parts; ++n)
        stmts.push_back(ir::Store::make(tile_of(start->buffer, n / 4), {ir::imm(n % 4)},
                                        n < 4 ? start->value : ir::FloatImm::make(0, DType::f32)));
      if (!start) stmts.push_back(for_row(s));
    }
    stmts.push_back(elements());
    return ir::with_allocs(tiles_, ir::Block::make(stmts));
  }

  const ir::Buffer& tile_of(const ir::Buffer& sum, int part) const {
    std::size_t i = 0;
    while (halves_.sums[i] != sum) ++i;
    return tiles_[i * std::size_t(shape_.parts) + std::size_t(part)];
  }

  /// A loop of products for the row whose operands this thread has.
  ir::Stmt for_row(const ir::Stmt& loop) {
    const ir::Expr there = row_ + thread_ % warp / 4, own = ir::Var::make("own");
    ir::Stmt body = products(*loop.as<ir::For>());
    ir::Substitution map{{nest_.rows->var.get(), begin_ + own}};
    if (nest_.let_var) {
      const ir::Expr node = ir::Var::make(nest_.let_var.as<ir::Var>()->name, nest_.let_var.type());
      map.emplace(nest_.let_var.get(), node);
      body = ir::LetStmt::make(node, nest_.let_value, body);
    }
    return ir::LetStmt::make(own, ir::binary(ir::BinaryOp::min, there, total_ - 1), ir::substitute(body, map));
  }

  /// Sums over `loop`, and those over `loop` and a loop inside.
  ir::Stmt products(const ir::For& loop) {
    Vector<ir::Stmt> sums, inner;
    for (const ir::Stmt& s : stmts_of(loop.body))
      if (s.as<ir::For>())
        inner.push_back(products(*s.as<ir::For>()));
      else
        sums.push_back(s);
    Vector<ir::Stmt> stmts;
    if (!sums.empty()) stmts.push_back(tiles_along(loop, sums));
    if (!inner.empty())
      stmts.push_back(ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::Block::make(inner)));
    return ir::Block::make(stmts);
  }

  /// The terms `sums` of a loop, tile by tile.
  ir::Stmt tiles_along(const ir::For& loop, const Vector<ir::Stmt>& sums) {
    const int depth = TensorTile::depth(shape_.products), parts = shape_.parts;
    const std::int64_t count = ceil_div(loop.dim.extent(), depth), rounds = count / parts;
    const ir::Expr step = ir::Var::make("step");
    Vector<ir::Stmt> round, stmts;
    for (int part = 0; part < parts; ++part)
      append(round, tile_products(loop, sums, (step * parts + part) * depth, part));
    if (rounds)
      stmts.push_back(
          ir::For::make(step, Dim("step", rounds), ir::imm(rounds), ir::ForKind::serial, ir::Block::make(round)));
    for (int part = 0; part < count % parts; ++part)
      append(stmts, tile_products(loop, sums, ir::imm((rounds * parts + part) * depth), part));
    return ir::Block::make(stmts);
  }

  /// The products of one tile's depth, from index `first` of the sum on, for each gate.
  Vector<ir::Stmt> tile_products(const ir::For& loop, const Vector<ir::Stmt>& sums, const ir::Expr& first,
                                 int part) const {
    Vector<ir::Stmt> stmts;
    Vector<std::pair<ir::Expr, Vector<ir::Expr>>> known;  // operands, which gates share
    for (const ir::Stmt& s : sums) {
      const auto& store = *s.as<ir::Store>();
      const TensorTerm term = tensor_term(store);
      const ir::Expr weights = ir::substitute(ir::handle_of(*term.weights),
                                              {{loop.var.get(), first}, {nest_.loops.back().var.get(), column_}});
      const Vector<ir::Expr>* x = nullptr;
      for (const auto& [other, operands] : known)
        if (ir::equal(other, term.x)) x = &operands;
      if (!x) {
        known.emplace_back(term.x, operands(term.x, loop, first));
        x = &known.back().second;
      }
      stmts.push_back(ir::Mma::make(tile_of(store.buffer, part), weights, *x));
    }
    return stmts;
  }

  /// What this thread has of the operand at `first` and after it. Past the end of the sum it is 0, as the weights are:
  /// the product of a padded 0 with what happens to lie there could be a NaN.
  Vector<ir::Expr> operands(const ir::Expr& x, const ir::For& loop, const ir::Expr& first) const {
    const bool tf32 = shape_.products == DType::tf32;
    const std::int64_t extent = loop.dim.extent();
    const bool whole = extent % TensorTile::depth(shape_.products) == 0;
    Vector<ir::Expr> result;
    for (const int k : tf32 ? Vector<int>{0, 4} : Vector<int>{0, 1, 8, 9}) {
      const ir::Expr at = first + (thread_ % 4 * (tf32 ? 1 : 2) + k);
      const ir::Expr inside = whole ? at : ir::binary(ir::BinaryOp::min, at, ir::imm(extent - 1));
      ir::Expr value = ir::substitute(x, {{loop.var.get(), inside}});
      if (!whole)
        value = ir::Select::make(ir::binary(ir::BinaryOp::lt, at, ir::imm(extent)), value,
                                 ir::FloatImm::make(0, DType::f32));
      result.push_back(ir::Cast::make(shape_.products, value));
    }
    return result;
  }

  /// Element `e` of the tiles of a sum, added by halves.
  ir::Expr joined(const ir::Buffer& sum, const ir::Expr& e, int first, int count) const {
    if (count == 1) return ir::Load::make(tile_of(sum, first), {e});
    return joined(sum, e, first, count / 2) + joined(sum, e, first + count / 2, count / 2);
  }

  /// What follows from the sums, for the four elements that the thread holds.
  ir::Stmt elements() const {
    const ir::Expr e = ir::Var::make("e"), row = ir::Var::make("row"), column = ir::Var::make("column");
    Vector<ir::Stmt> stmts;
    for (const ir::Buffer& sum : halves_.sums)
      stmts.push_back(ir::Store::make(sum, {}, joined(sum, e, 0, shape_.parts)));
    append(stmts, halves_.rest);
    ir::Stmt body = ir::Block::make(stmts);
    for (const auto* buffers : {&halves_.locals, &halves_.sums})
      for (const ir::Buffer& buffer : *buffers) body = ir::Alloc::make(buffer, body);
    ir::Substitution map{{nest_.rows->var.get(), begin_ + row}, {nest_.loops.back().var.get(), column}};
    if (nest_.let_var) {
      const ir::Expr node = ir::Var::make(nest_.let_var.as<ir::Var>()->name, nest_.let_var.type());
      map.emplace(nest_.let_var.get(), node);
      body = ir::LetStmt::make(node, nest_.let_value, body);
    }
    body = ir::substitute(body, map);
    const ir::Expr there = ir::binary(ir::BinaryOp::lt, row, total_);
    const ir::Expr inside = ir::binary(ir::BinaryOp::lt, column, slice_.end);
    body = ir::If::make(ir::both(there, inside), body);
    body = ir::LetStmt::make(row, row_ + (thread_ % 4 * 2 + e % 2), body);
    body = ir::LetStmt::make(column, column_ + (thread_ % warp / 4 + e / 2 * 8), body);
    return ir::For::make(e, Dim("element", 4), ir::imm(4), ir::ForKind::serial, body);
  }

  const Nest& nest_;
  const GpuShape& shape_;
  const BlockSlice slice_;
  const Halves halves_;
  const ir::Expr thread_ = ir::thread();
  ir::Expr column_, row_, total_, begin_ = ir::imm(0);
  Vector<ir::Buffer> tiles_;  // [sum of halves_.sums][part]
};

}  // namespace detail

/// Whether the nest's sums are products that `tensor_products` has made.
inline bool is_tensor_product(const Nest& nest) {
  bool found = false;
  ir::visit_with(nest.inner, [&](const ir::Load& load) { found |= load.buffer->fragments; });
  return found && has_contraction(nest.inner);
}

inline ir::Stmt share_tiles(const Nest& nest, const GpuShape& shape) { return detail::TensorTiler(nest, shape).run(); }

}  // namespace cortex::schedule
