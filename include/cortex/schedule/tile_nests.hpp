// Register tiles: every nest with contractions computes a few rows times a few vectors of outputs at once, for all its
// gates, with each accumulator in a register over the whole pass through k.
//
//   for n = 0:N: node = f(n): for i = 0:H: {a = 0; for j: a += W[i,j] * x[node,j]; y[node,i] = a}
//     ->
//   for t: base = ..; rows = ..;           # ceil(N / R) tiles of even size
//     if rows == r:                        # code for each r up to R
//       for o: for j: a[r,v] += W[..] * x[node r,j]     # r rows x V vectors, vectorized
//
// Made of `split`, `split_evenly`, `unroll_and_jam` and vectorized loops. Needs packed weights to be fast. The order of
// k is the same for every tile size, so results do not depend on which rows share a tile.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/schedule/halves.hpp"
#include "cortex/schedule/machine_model.hpp"
#include "cortex/schedule/pack_weights.hpp"
#include "cortex/schedule/share_iterations.hpp"
#include "cortex/schedule/split.hpp"
#include "cortex/schedule/sums_in_lanes.hpp"
#include "cortex/schedule/tile_products.hpp"
#include "cortex/schedule/tile_shape.hpp"

namespace cortex::schedule {

namespace detail {

/// How many contractions a nest accumulates side by side at most: the gates of its tile.
inline int gates_of(const ir::Stmt& inner) {
  int most = 0;
  ir::visit_with(inner, [&](const ir::For& loop) {
    if (loop.dim.kind() != DimKind::dense) return;
    ir::Stmt body = loop.body;
    while (const auto* let = body.as<ir::LetStmt>()) body = ir::Stmt(let->body);
    int here = 0;
    for (const ir::Stmt& s : stmts_of(body)) here += s.as<ir::Store>() != nullptr;
    most = std::max(most, here);
  });
  return std::max(most, 1);
}

/// Tiles one nest.
class NestTiler {
 public:
  NestTiler(const Nest& nest, const Target& target, const Tiling& tiling, const CacheSizes& caches,
            const Vector<int>& teams, double level_bytes)
      : nest_(nest),
        target_(target),
        lanes_(lanes_of(target, widest_stored(nest.inner))),
        slice_unit_(lanes_of(target, DType::f32)),
        vector_bytes_(target.vector_bytes),
        caches_(caches),
        teams_(teams),
        most_workers_(teams.empty() ? 0 : teams.back()),
        level_bytes_(level_bytes),
        contracts_(has_contraction(nest.inner)),
        rows_asked_(tiling.rows > 0),
        shape_(tile_shape(target, gates_of(nest.inner), tiling)) {}

  /// The tiled nest; nothing if there is no dimension to tile.
  ir::Stmt run() {
    const bool narrow = !slice_var(nest_) || nest_.loops.back().dim.extent() < lanes_;
    if (narrow && !has_vectors())
      if (const ir::Stmt sums = with_sums_in_lanes()) return sums;
    if (!slice_var(nest_) || is_done_by_hand() || has_conditions_on_columns()) return {};
    if (multiplies_tiles(nest_)) return tiles_of_matrix_unit();
    if (contracts_ && find_rows_of_matrix()) return rows_of_matrix();
    if (nest_.rows && contracts_ && !nest_.guard && !has_loops_of_its_row() && rows_share_operand()) {
      row_ = &*nest_.rows;
      return split_evenly(row_->extent, shape_.most_rows, usual_rows(), row_->dim, [&](const ir::Expr& base, int rows) {
        base_ = base;
        return outer_loops(columns(rows), rows);
      });
    }
    Nest result = nest_;
    result.inner = outer_loops(columns(1), 1);
    result.loops.clear();
    return build_nest(result);
  }

 private:
  /// The nest with the lanes of vectors over what it reduces, for want of results to fill them. Nothing if that fits
  /// none of its reductions, or if what is left of them has results for some lanes.
  ir::Stmt with_sums_in_lanes() const {
    const SumsInLanes sums = sums_in_lanes(nest_.inner, target_);
    if (!sums.some || (sums.others && slice_var(nest_))) return {};
    Nest result = nest_;
    result.inner = sums.body;
    return build_nest(result);
  }

  bool has_vectors() const {
    bool found = false;
    ir::visit_with(nest_.inner, [&](const ir::For& loop) { found |= loop.loop == ir::ForKind::vectorized; });
    for (const LoopHeader& loop : nest_.loops) found |= loop.kind == ir::ForKind::vectorized;
    return found;
  }

  /// Whether the nest is vectorized already, by hand.
  bool is_done_by_hand() const {
    const bool found = has_vectors();
    if (found && nest_.loops.back().kind == ir::ForKind::parallel)
      throw Error(Code::invalid_schedule,
                  "a loop that workers share has vectors already: their slices would not be those of tiles");
    return found;
  }

  /// Whether some columns are left out, as by a loop that was split with a guard: lanes would part.
  bool has_conditions_on_columns() const {
    PointerSet of_columns{nest_.loops.back().var.get()};
    bool found = false;
    ir::visit_with(
        nest_.inner,
        [&](const ir::LetStmt& let) {
          if (ir::uses_any(let.value, of_columns)) of_columns.insert(let.var.get());
        },
        [&](const ir::If& branch) { found |= ir::uses_any(branch.condition, of_columns); });
    if (found && nest_.loops.back().kind == ir::ForKind::parallel)
      throw Error(Code::invalid_schedule,
                  "a loop that workers share leaves elements out: their slices would not be those of tiles");
    return found;
  }

  /// Whether the extent of a loop depends on the row, such as one over a node's own children: rows then differ.
  bool has_loops_of_its_row() const {
    return any_of(nest_.loops, [&](const LoopHeader& loop) { return ir::uses(loop.extent, nest_.let_var); });
  }

  /// Whether the contractions read something that is the same for all rows, such as weights. Where all is the row's
  /// own, rows side by side would save nothing, and each takes the other's cache. Nor would they where there is one
  /// contraction a child, as rows have different numbers of these.
  bool rows_share_operand() const {
    bool shared = false;
    PointerSet of_children;
    ir::visit_with(nest_.inner, [&](const ir::For& fold) {
      if (nest_.let_var && ir::uses(fold.extent, nest_.let_var))
        ir::visit_with(fold.body, [&](const ir::For& inside) { of_children.insert(&inside); });
    });
    ir::visit_with(nest_.inner, [&](const ir::For& contraction) {
      if (contraction.dim.kind() != DimKind::dense || of_children.contains(&contraction)) return;
      ir::visit_with(contraction.body, [&](const ir::Load& load) {
        const ir::Expr e = ir::handle_of(load);
        const bool of_row = ir::uses(e, nest_.rows->var) || (nest_.let_var && ir::uses(e, nest_.let_var));
        shared |= load.buffer->scope != ir::Scope::local && !of_row;
      });
    });
    return shared;
  }

  /// Whether a node's outputs are matrices whose rows are products with the same columns: then they can be the rows of
  /// tiles. So are the channels of a grid, over whose places a window goes.
  bool find_rows_of_matrix() {
    for (std::size_t i = nest_.loops.size(); i-- > 0 && !row_;)
      if (i + 1 < nest_.loops.size() && has_same_columns(nest_.loops[i])) row_ = &nest_.loops[i];
    return row_ != nullptr;
  }
  bool has_same_columns(const LoopHeader& row) const {
    bool same_columns = row.dim.kind() == DimKind::dense && ir::as_int(row.extent).value_or(0) > 1;
    ir::visit_with(nest_.inner, [&](const ir::For& contraction) {
      ir::visit_with(contraction.body, [&](const ir::Load& load) {
        const ir::Expr e = ir::handle_of(load);
        same_columns &= !ir::uses(e, row.var) || !ir::uses(e, nest_.loops.back().var);
      });
    });
    return same_columns;
  }

  /// How many rows a tile of one gate has where it has four vectors in place of two: so tiles load less for each
  /// product. 0 where it should not: for want of registers, or since the schedule says how many rows there are.
  int rows_of_four_vectors() const {
    constexpr int vectors = 4;
    const int rows = std::min(shape_.most_rows, shape_.budget / vectors - 1);
    const bool wide = nest_.loops.back().dim.extent() > 2 * lanes_;
    return rows >= 4 && shape_.gates == 1 && wide && !rows_asked_ ? rows : 0;
  }

  /// How many rows a tile of a matrix has at most. Rows are swept over once for each panel of columns, so that of four
  /// vectors halves what is read of them; as long as its weights stay in the first-level cache.
  int most_rows_of_matrix() const {
    int steps = 0;
    ir::visit_with(nest_.inner, [&](const ir::For& contraction) {
      if (contraction.dim.kind() == DimKind::dense) steps += int(ir::as_int(contraction.extent).value_or(1 << 20));
    });
    const int rows = rows_of_four_vectors();
    if (rows && 4.0 * vector_bytes_ * steps <= 0.75 * caches_.first) return rows;
    if (panels() > 1 || shape_.gates > 1 || rows_asked_) return shape_.most_rows;
    return std::clamp(shape_.budget - 1, 1, 12);  // of one vector each
  }
  int panels() const { return std::max(1, int(nest_.loops.back().dim.extent()) / lanes_); }

  /// How long the sums of so many rows take for a step of what they add up, in tiles of `each` rows and one of the
  /// rest, in cycles a vector: two additions go on side by side, and each waits for four cycles for the one before.
  double cycles_of_rows(int whole, int each) const {
    const auto of_tile = [&](int rows) {
      const int vectors = std::min(shape_.vectors(rows), panels());
      return std::max(4.0, rows * vectors * shape_.gates / 2.0) / vectors;
    };
    return whole / each * of_tile(each) + (whole % each ? of_tile(whole % each) : 0);
  }

  /// How many rows a tile has of more than one tile's nodes. Fewer rows read weights more often, which the second-level
  /// cache has to hold; where a level reads others, too, as that of a gated cell, it was measured to lose.
  int usual_rows() const {
    const double kept = share_kept * caches_.second * std::max(most_workers_, 1), own = packed_bytes(nest_.inner);
    const int rows = rows_of_four_vectors();
    return 2 * rows > shape_.most_rows && own <= kept && own >= level_bytes_ ? rows : shape_.most_rows;
  }

  /// How many of at most `most` rows of a matrix a tile has so that tiles divide `whole` of them, since what is left
  /// over goes row by row. Of a tile of 16 sums no addition waits for another; with 8 of them it was measured to lose.
  /// `shared`: they are a unit of what workers share, and tiles go on over more of these.
  int dividing_rows(int whole, int most, bool shared) const {
    constexpr int enough_sums = 16;
    int each = most;
    while (each > 1 && whole % each) --each;
    const int sums = each * std::min(shape_.vectors(each), panels()) * shape_.gates;
    if (4 * each >= 3 * most || sums >= enough_sums) return each;
    return !shared && cycles_of_rows(whole, each) < cycles_of_rows(whole, most) ? each : most;
  }

  /// Tiles of rows of one node's matrix, or of the worker's share of it: there are enough of them however few nodes a
  /// batch has. Their number is divided into equal tiles where that is possible without small ones. The loop over rows
  /// is inside that over columns: the columns' weights stay in the first cache meanwhile.
  ir::Stmt rows_of_matrix() {
    const bool shared = row_->kind == ir::ForKind::parallel;
    const int extent = int(*ir::as_int(row_->extent)), most = std::min(most_rows_of_matrix(), extent);
    const int unit = row_->piece > 1 ? int(row_->piece) : slice_unit_;
    const int whole = shared ? unit : extent, each = dividing_rows(whole, most, shared);
    const Share own = shared ? share_of(row_->extent, unit) : Share{ir::imm(0), row_->extent};
    first_row_ = own.begin, num_rows_ = own.end - own.begin;
    row_tiles_divide_ = shared && whole % each == 0 && extent % whole == 0;
    Nest result = nest_;
    result.loops.pop_back();
    result.loops.erase(result.loops.begin() + (row_ - nest_.loops.data()));
    find_wanted_next();
    result.inner = columns(each);
    if (!wanted_next_.empty()) result.inner = ir::LetStmt::make(next_node_, node_after(), result.inner);
    return build_nest(result);
  }

  /// What the contractions read of children's matrices: the next node's come from far away, and have the time of this
  /// node's arithmetic to do so. A tile asks for as many lines as it has vectors of outputs, so that all tiles together
  /// ask for a matrix.
  void find_wanted_next() {
    if (!nest_.let_var || !node_after()) return;
    const LoopHeader& column = nest_.loops.back();
    ir::visit_with(nest_.inner, [&](const ir::For& contraction) {
      if (contraction.dim.kind() != DimKind::dense || !ir::equal(contraction.extent, column.extent)) return;
      ir::visit_with(contraction.body, [&](const ir::Load& load) {
        const auto* child = load.buffer->role == ir::Role::state ? load.indices[0].as<ir::UfCall>() : nullptr;
        const std::size_t n = load.indices.size();
        if (n < 3 || !child || child->uf.kind != ir::UfKind::child || !load.indices[n - 2].same_as(row_->var) ||
            !load.indices[n - 1].same_as(contraction.var))
          return;
        if (!next_node_) next_node_ = ir::Var::make("next_" + nest_.let_var.as<ir::Var>()->name);
        wanted_next_.push_back(ir::substitute(
            ir::handle_of(load), {{nest_.let_var.get(), next_node_}, {contraction.var.get(), column.var}}));
      });
    });
  }

  /// The node that comes after the nest's, in the next batch where this one ends; the last has itself. Nothing for rows
  /// in another order.
  ir::Expr node_after() const {
    const auto* node = nest_.let_value.as<ir::UfCall>();
    if (!node || node->uf.kind != ir::UfKind::internal_batch_node || !node->args[1].same_as(nest_.rows->var)) return {};
    const ir::Expr batch = node->args[0], n = node->args[1] + 1,
                   more = ir::binary(ir::BinaryOp::lt, n, nest_.rows->extent);
    const ir::Expr last = ir::call(ir::UfKind::num_internal_batches, "num_internal_batches") - 1;
    const ir::Expr at = ir::Select::make(more, batch, ir::binary(ir::BinaryOp::min, batch + 1, last));
    return ir::UfCall::make(node->uf, {at, ir::Select::make(more, n, ir::imm(0))});
  }

  /// Tiles of a matrix unit, with one code for all numbers of rows: the unit is told how many there are. A worker
  /// without columns takes no rows apart, since nobody has it wait for them.
  ir::Stmt tiles_of_matrix_unit() {
    operands_.emplace(nest_);
    row_ = &*nest_.rows;
    const ir::Stmt tiles = even_tiles(
        row_->extent, ir::TileProduct::most_rows, ir::TileProduct::most_rows, row_->dim,
        [&](const ir::Expr& base, ir::Expr rows) {
          base_ = base, num_rows_ = rows;
          const ir::Expr r = ir::Var::make("r");
          const ir::Stmt apart =
              ir::For::make(r, row_->dim, rows, ir::ForKind::serial, at_row(operands_->take_apart(r), r));
          return ir::Block::make({apart, ir::TileRows::make(rows), columns(1), ir::TileRows::make(ir::imm(0))});
        });
    const LoopHeader& column = nest_.loops.back();
    if (column.kind != ir::ForKind::parallel || (most_workers_ && column.dim.extent() / unit() >= most_workers_))
      return tiles;
    const Share own = share_of(column.extent, unit());
    return ir::If::make(ir::binary(ir::BinaryOp::lt, own.begin, own.end), tiles);
  }

  /// The products for some panels from `first` on, and then what follows from them.
  ir::Stmt tile_of_matrix_unit(const ir::Expr& first, int lanes, int panels) const {
    const Halves& halves = operands_->halves();
    const ir::Expr lane = ir::Var::make("lane"), r = ir::Var::make("r"), v = ir::Var::make("v");
    Vector<ir::Stmt> stmts;
    Vector<ir::Buffer> kept;
    ir::Stmt rest = ir::Block::make(halves.rest);
    for (std::size_t i = 0; i < halves.sums.size(); ++i) {
      const ir::Buffer& sum = halves.sums[i];
      kept.push_back(kept_in_tile(sum, std::int64_t(panels) * ir::TileProduct::sums_of_panel));
      stmts.push_back(operands_->products(i, kept.back(), first, panels, num_rows_));
      rest = with_sum(rest, sum, TileOperands::value(kept.back(), r, v, lane));
    }
    ir::Stmt each = at_column(ir::with_allocs(halves.locals, rest), first + v * lanes + lane);
    const Dim& dim = nest_.loops.back().dim;
    each = loop_if_several(lane, dim, lanes, ir::ForKind::vectorized, each);
    each = loop_if_several(v, dim, panels, ir::ForKind::serial, each);
    stmts.push_back(ir::For::make(r, row_->dim, num_rows_, ir::ForKind::serial, at_row(each, r)));
    return ir::with_allocs(kept, ir::Block::make(stmts));
  }

  ir::Stmt outer_loops(ir::Stmt body, int rows) const {
    if (nest_.loops.size() > 1) body = several_outputs(nest_.loops[nest_.loops.size() - 2], body, rows);
    for (std::size_t i = nest_.loops.size(); i-- > 2;) body = loop_around(nest_.loops[i - 2], body);
    return body;
  }

  /// A loop over outputs around tiles of so many rows. Where these have fewer sums than hide how long additions take,
  /// as of a short last dimension, a few of its iterations go side by side.
  ir::Stmt several_outputs(const LoopHeader& loop, const ir::Stmt& tiles, int rows) const {
    constexpr int enough_sums = 8;
    const int vectors = std::min(shape_.vectors(rows), panels()) * shape_.gates, sums = rows * vectors;
    const int registers = sums + (rows > 1 ? vectors : 0), extent = int(loop.dim.extent());
    const bool whole = loop.kind == ir::ForKind::serial && ir::as_int(loop.extent) == extent;
    int several = contracts_ && whole ? std::min((enough_sums + sums - 1) / sums, shape_.budget / registers) : 1;
    while (several > 1 && extent % several) --several;
    if (several <= 1) return loop_around(loop, tiles);
    const ir::Expr o = ir::Var::make("o");
    const ir::Stmt body = unroll_and_jam(tiles, loop.var, o * several, several);
    return loop_if_several(o, loop.dim, extent / several, loop.kind, body);
  }

  /// The innermost output loop as vectors, several of them at once, of the whole dimension or of the worker's slice.
  /// Slices are cut at vectors of f32 for all types, or at the loop's pieces, so that a worker's slice is the same in
  /// every nest.
  ir::Stmt columns(int rows) {
    const LoopHeader& loop = nest_.loops.back();
    const int extent = int(loop.dim.extent());
    const auto tiles = [&](const ir::Expr& panel, int vectors) { return tile(panel * lanes_, lanes_, rows, vectors); };
    if (loop.piece % lanes_ && loop.piece > 1) return piece_loop(rows);
    const auto rest_from = [&](int first) {  // what does not fill a vector of f32, or of the own type
      const int panels = (extent - first) / lanes_, tail = (extent - first) % lanes_;
      Vector<ir::Stmt> stmts;
      if (panels) stmts.push_back(tiles(ir::imm(first / lanes_), panels));
      if (tail) stmts.push_back(tile(ir::imm(extent - tail), tail, rows, 1));
      return ir::Block::make(stmts);
    };
    const int most = operands_ ? ir::TileProduct::most_panels : vectors_at_once(rows);
    const int vectors = std::clamp(extent / lanes_, 1, most);
    if (loop.kind != ir::ForKind::parallel)
      return split_panels(ir::imm(0), ir::imm(extent / lanes_), vectors, tiles, rest_from(extent / lanes_ * lanes_));
    const ir::Expr worker = ir::worker(), workers = ir::num_workers();
    const int unit = this->unit(), blocks = extent / unit;
    ir::Stmt last = rest_from(blocks * unit);
    if (extent % unit) last = ir::If::make(ir::binary(ir::BinaryOp::eq, worker + 1, workers), last);
    if (blocks == 0) return last;
    const ir::Expr begin = worker * blocks / workers, end = (worker + 1) * blocks / workers;
    return split_panels(begin * (unit / lanes_), (end - begin) * (unit / lanes_), vectors, tiles, last,
                        unit / lanes_ * common_divisor(blocks));
  }

  /// How many vectors of outputs of `rows` rows a nest computes side by side at most. A fold over children has several,
  /// since where a child's row lies is then found once for all of them; functions of what it folds would take longer
  /// than that, and their code be there as often.
  int vectors_at_once(int rows) const {
    if (contracts_) return shape_.vectors(rows);
    bool folds = false, functions = false;
    int sums = 0;
    ir::visit_with(
        nest_.inner, [&](const ir::For& loop) { folds |= loop.dim.kind() == DimKind::child; },
        [&](const ir::Unary& unary) { functions |= is_transcendental(unary.op); },
        [&](const ir::Binary& binary) { functions |= is_transcendental(binary.op); },
        [&](const ir::Alloc&) { ++sums; });
    if (!folds || functions) return 1;
    int vectors = shape_.most_vectors;
    while (vectors > 1 && vectors * sums > shape_.budget) vectors /= 2;
    return vectors;
  }

  /// Between how many outputs the slices of workers are cut.
  int unit() const {
    const LoopHeader& loop = nest_.loops.back();
    return loop.piece > 1 ? int(loop.piece) : std::max(slice_unit_, lanes_);
  }

  /// What divides each worker's number of blocks, however many workers share a call.
  int common_divisor(int blocks) const {
    int result = 0;
    for (const int workers : teams_)
      for (int w = 0; w < workers; ++w) result = std::gcd(result, (w + 1) * blocks / workers - w * blocks / workers);
    return std::max(result, 1);
  }

  /// The worker's pieces of the innermost output loop, one after the other: they are not of whole vectors.
  ir::Stmt piece_loop(int rows) {
    const LoopHeader& loop = nest_.loops.back();
    const int piece = int(loop.piece), panels = piece / lanes_, tail = piece % lanes_;
    const ir::Expr p = ir::Var::make("piece"), first = p * piece;
    const auto tiles = [&](const ir::Expr& panel, int v) { return tile(first + panel * lanes_, lanes_, rows, v); };
    const int vectors = vectors_at_once(rows);
    const ir::Stmt last = tail ? tile(first + panels * lanes_, tail, rows, 1) : ir::nothing();
    const ir::Stmt body = split_panels(ir::imm(0), ir::imm(panels), vectors, tiles, last);
    return ir::For::make(p, loop.dim, ir::imm(loop.dim.extent() / piece), ir::ForKind::parallel, body);
  }

  /// `count` panels from `begin` on, `vectors` at a time, and then `last`. The count is a multiple of `multiple`.
  template <class Tiles>
  ir::Stmt split_panels(const ir::Expr& begin, const ir::Expr& count, int vectors, const Tiles& tiles,
                        const ir::Stmt& last, int multiple = 1) const {
    const auto rest = [&](const ir::Expr& first, int v) { return tiles(begin + first, v); };
    const auto tile = [&](const ir::Expr& first) { return rest(first, vectors); };
    const auto single = [&](const ir::Expr& first) { return rest(first, 1); };
    return ir::Block::make({split(count, vectors, nest_.loops.back().dim, tile, single, rest, multiple), last});
  }

  /// Tiles of `rows` rows times `vectors` vectors of `lanes` outputs from `first` on: one, or all of a matrix.
  ir::Stmt tile(const ir::Expr& first, int lanes, int rows, int vectors) {
    if (operands_) return tile_of_matrix_unit(first, lanes, vectors);
    if (!num_rows_) return one_tile(first, lanes, rows, vectors);
    const auto from = [&](const ir::Expr& row, int some) {
      own_row_ = row, base_ = first_row_ + row;
      return one_tile(first, lanes, some, vectors);
    };
    const auto tile = [&](const ir::Expr& row) { return from(row, rows); };
    const auto single = [&](const ir::Expr& row) { return from(row, 1); };
    if (!row_tiles_divide_) return split(num_rows_, rows, row_->dim, tile, single, from);
    const ir::Expr o = ir::Var::make("o");
    return ir::For::make(o, row_->dim, num_rows_ / rows, ir::ForKind::serial, tile(o * rows));
  }

  ir::Stmt one_tile(const ir::Expr& first, int lanes, int rows, int vectors) {
    const ir::Expr lane = ir::Var::make("lane"), r = ir::Var::make("r"), v = ir::Var::make("v");
    const ir::Expr column = first + v * lanes + lane;
    const Halves halves(nest_.inner, rows == 1);
    const bool together =
        !contracts_ || !halves.plain || halves.only_stores() || halves.only_contracts_more() || rows * vectors == 1;
    ir::Stmt body =
        together ? jammed(nest_.inner, r, v, column, rows, vectors) : in_halves(halves, r, v, column, rows, vectors);
    if (!wanted_next_.empty() && exceeds_first_cache())
      body = ir::Block::make({asking_for_next(first, lane, lanes, rows, vectors), body});
    else
      for (const ir::Expr& wanted : wanted_next_)
        body = ir::Block::make({jammed(ir::Prefetch::make(wanted), r, v, column, rows, vectors), body});
    return loop_if_several(lane, nest_.loops.back().dim, lanes, ir::ForKind::vectorized, body);
  }

  /// Whether a node's matrix does not fit the first-level cache: then it was measured to arrive sooner if it is asked
  /// for in the order of memory, and if it does not, panel by panel as it will be read.
  bool exceeds_first_cache() const {
    return 4.0 * double(row_->dim.extent()) * double(nest_.loops.back().dim.extent()) > caches_.first;
  }

  /// Asks for as many vectors of each of the next node's matrices as the tile has outputs, after those that the tiles
  /// before it asked for, in the order of memory.
  ir::Stmt asking_for_next(const ir::Expr& first, const ir::Expr& lane, int lanes, int rows, int vectors) const {
    const ir::Expr asked = first * num_rows_ + own_row_ * (vectors * lanes);  // elements, before this tile
    Vector<ir::Stmt> stmts;
    for (const ir::Expr& wanted : wanted_next_)
      for (int v = 0; v < rows * vectors; ++v) {
        const ir::Expr element = asked + v * lanes + lane;
        stmts.push_back(ir::Prefetch::make(
            ir::substitute(wanted, {{row_->var.get(), first_row_}, {nest_.loops.back().var.get(), element}})));
      }
    return ir::Block::make(stmts);
  }

  /// `work` for all rows and vectors, side by side.
  ir::Stmt jammed(const ir::Stmt& work, const ir::Expr& r, const ir::Expr& v, const ir::Expr& column, int rows,
                  int vectors) const {
    const ir::Stmt vector = unroll_and_jam(at_column(work, column), v, ir::imm(0), vectors);
    return unroll_and_jam(at_row(vector, r), r, ir::imm(0), rows);
  }

  /// The contractions side by side, their sums put aside; then the rest in a loop, so that its code is there once a
  /// tile size and not once an element.
  ir::Stmt in_halves(const Halves& halves, const ir::Expr& r, const ir::Expr& v, const ir::Expr& column, int rows,
                     int vectors) const {
    Vector<ir::Stmt> lead = halves.lead;
    Vector<ir::Buffer> kept;
    ir::Stmt rest = ir::Block::make(halves.rest);
    const Vector<ir::Expr> element{r * vectors + v};
    for (const ir::Buffer& sum : halves.sums) {
      kept.push_back(kept_in_tile(sum, std::int64_t(rows) * vectors));
      lead.push_back(ir::Store::make(kept.back(), element, ir::Load::make(sum, {})));
      rest = with_sum(rest, sum, ir::Load::make(kept.back(), element));
    }
    const ir::Stmt sums = jammed(ir::with_allocs(halves.sums, ir::Block::make(lead)), r, v, column, rows, vectors);
    const Dim& dim = nest_.loops.back().dim;
    ir::Stmt each = at_column(ir::with_allocs(halves.locals, rest), column);
    each = at_row(loop_if_several(v, dim, vectors, ir::ForKind::serial, each), r);
    if (rows == 1)
      each = ir::substitute(each, {{r.get(), ir::imm(0)}});  // where rows are not tiled there is no loop over them
    else
      each = ir::For::make(r, row_->dim, ir::imm(rows), ir::ForKind::serial, each);
    return ir::with_allocs(kept, ir::Block::make({sums, each}));
  }

  /// Where a tile puts `count` elements of the accumulator `sum` aside.
  static ir::Buffer kept_in_tile(const ir::Buffer& sum, std::int64_t count) {
    ir::BufferInfo info = *sum;
    info.name += "_tile";
    info.dims = {Dim("tile", count)};
    return ir::Buffer(std::move(info));
  }

  /// `rest` with `value` in place of what it reads of `sum`.
  static ir::Stmt with_sum(const ir::Stmt& rest, const ir::Buffer& sum, const ir::Expr& value) {
    return ir::mutate_with(rest, [&](auto& self, const ir::Load& load) -> ir::Expr {
      return load.buffer == sum ? value : self.children(load);
    });
  }

  ir::Stmt at_column(const ir::Stmt& work, const ir::Expr& column) const {
    return ir::substitute(work, {{nest_.loops.back().var.get(), column}});
  }

  /// `work` of row `base + r`, where rows are tiled.
  ir::Stmt at_row(const ir::Stmt& work, const ir::Expr& r) const {
    if (!base_) return work;
    const ir::Substitution row{{row_->var.get(), base_ + r}};
    if (!nest_.rows || row_ != &*nest_.rows || !nest_.let_var) return ir::substitute(work, row);
    const ir::Expr let = ir::Var::make(nest_.let_var.as<ir::Var>()->name);
    return ir::LetStmt::make(let, ir::substitute(nest_.let_value, row),
                             ir::substitute(ir::substitute(work, row), {{nest_.let_var.get(), let}}));
  }

  const Nest& nest_;
  const Target& target_;
  const LoopHeader* row_ = nullptr;       // the loop over the rows of tiles, if there is one
  ir::Expr base_;                         // the first row of the tile
  ir::Expr first_row_, num_rows_;         // of a matrix; of a tile of a matrix unit
  ir::Expr own_row_;                      // of these rows, the first of the tile
  std::optional<TileOperands> operands_;  // where a matrix unit multiplies
  ir::Expr next_node_;                    // whose children's matrices are asked for in time, where there are any
  Vector<ir::Expr> wanted_next_;          // elements of these, at the nest's row and column
  bool row_tiles_divide_ = false;         // there are no rows but those of whole tiles
  int lanes_;
  int slice_unit_;
  int vector_bytes_;
  CacheSizes caches_;
  Vector<int> teams_;  // how many workers may share a call; empty: any number
  int most_workers_;
  double level_bytes_;  // of packed weights that a level reads, the largest one
  bool contracts_;
  bool rows_asked_;  // by the schedule
  TileShape shape_;
};

}  // namespace detail

/// `caches`: of a core. `teams`: how many workers may share a call, in order; none: any number.
inline ir::Stmt tile_nests(const ir::Stmt& body, const Target& target, const Tiling& tiling = {},
                           const CacheSizes& caches = {}, const Vector<int>& teams = {}) {
  double level = 0;
  ir::visit_with(body, [&](const ir::For& loop) {
    if (carries_recursion(loop)) level = std::max(level, detail::packed_bytes(loop.body));
  });
  // What is shared whole, such as a loop over subtrees or slices, is no tile's: each worker takes its share of it.
  const ir::Stmt tiled = map_nests(
      body, [&](const Nest& nest) { return detail::NestTiler(nest, target, tiling, caches, teams, level).run(); });
  return share_iterations(tiled, lanes_of(target, DType::f32));
}

}  // namespace cortex::schedule
