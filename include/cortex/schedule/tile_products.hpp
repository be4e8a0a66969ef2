// Products for a CPU's matrix unit (Intel's AMX), which multiplies tiles of bf16 and adds in f32: those of weights that
// are stored as bf16. Nothing is lost of the f32 that they multiply: rows are taken apart into three pieces of bf16,
// whose sum is the f32. Weights of f32 could be three pieces, too; six products then take as long as vectors do.
//
//   for r: a = fma(f32(W[i,r]),x[n,r],a)     ->     for r: a = fma(f32(W_tiles[i,r]),x[n,r],a)
//
// `tile_weights` decides which nests these are, and lays their weights out in tiles, before other weights are packed;
// when nests are tiled, `TileOperands` takes rows apart and makes the products of such a nest:
//
//   for t: base = ..; rows = ..                                          # at most 16
//     for r = 0:rows: for k: pieces[..] = bf16(x), bf16(x - ..), ..
//     tiles of rows
//     for o: sums = tiles(W_tiles[16 * o,0],pieces[0]); for r = 0:rows: y[node r,16 * o + lane] = sums[..] + ..
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/memory.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/halves.hpp"
#include "cortex/schedule/pack_weights.hpp"

namespace cortex::schedule {

/// The layout of a weight in tiles of 16 indices of dimension `column` and 32 of dimension `summed`: pairs of the
/// latter side by side, of one output after the other. Edges are padded to whole tiles, and a panel of 16 by a cache
/// line, so that panels do not fall on the same cache sets.
inline ir::Layout tile_layout(const Vector<Dim>& dims, int column, int summed) {
  using ir::TileProduct;
  ir::Layout layout;
  layout.axes = {{summed, 1, 2, 1}, {column, 1, 16, 2}, {summed, 2, 16, 32}, {summed, 32, 0, TileProduct::tile}};
  const std::int64_t steps = ceil_div(dims[std::size_t(summed)].extent(), TileProduct::depth);
  add_panels(layout, dims, column, summed, TileProduct::outputs, TileProduct::tile * steps + cache_line / 2);
  return layout;
}

namespace detail {

/// The factors of a term `acc = fma(f32(weight), x, acc)`, whose weight is bf16 and one that `is_weight` takes.
struct TileTerm {
  const ir::Load* weight = nullptr;
  ir::Expr x;
};

template <class IsWeight>
TileTerm tile_term(const ir::Store& store, IsWeight is_weight) {
  const auto* term = store.value.as<ir::Fma>();
  const auto* sum = term ? term->c.as<ir::Load>() : nullptr;
  if (!sum || sum->buffer != store.buffer || store.buffer->dtype != DType::f32) return {};
  for (const bool first : {true, false}) {
    const auto* widened = (first ? term->a : term->b).as<ir::Cast>();
    const auto* load = widened ? widened->a.as<ir::Load>() : nullptr;
    if (load && is_weight(*load)) return {load, first ? term->b : term->a};
  }
  return {};
}

inline int tile_steps(const ir::For& loop) { return int(ceil_div(loop.dim.extent(), ir::TileProduct::depth)); }

/// Whether a nest's sums are products that the matrix unit can make, and would make sooner than vectors do.
class UnitSuits {
 public:
  explicit UnitSuits(const Nest& nest) : nest_(nest) {}

  /// Why vectors multiply, in words; null if the unit is to.
  const char* reason() const {
    if (!nest_.rows || nest_.rows->kind != ir::ForKind::serial || nest_.loops.size() != 1 || !slice_var(nest_))
      return "it is not a vector at each of a level's nodes";
    if (nest_.guard) return "it is under a condition of each node";
    const LoopHeader& column = nest_.loops.back();
    const bool whole = ir::as_int(column.extent) == column.dim.extent(),
               panels = column.piece == 1 || column.piece % ir::TileProduct::outputs == 0,
               plain = column.kind == ir::ForKind::serial || column.kind == ir::ForKind::parallel;
    if (!whole || !panels || !plain) return "its columns are cut otherwise";
    const Halves halves(nest_.inner);
    bool plain_sums = halves.plain;
    for (const ir::Stmt& s : halves.rest)
      ir::visit_with(s, [&](const ir::For& loop) { plain_sums &= loop.dim.kind() != DimKind::dense; });
    if (!plain_sums) return "its sums do not stand side by side";
    if (widest_stored(nest_.inner) != DType::f32) return "it is not f32";
    return reason_of_sums(halves);
  }

  /// Whether `load` reads a matrix of bf16, by the nest's columns and by what is summed over.
  bool is_matrix_of_unit(const ir::Load& load, const ir::Expr& summed) const {
    const ir::BufferInfo& info = *load.buffer;
    const bool laid_out_here = info.layout.empty() || info.packed_from;
    return info.role == ir::Role::weight && info.dtype == DType::bf16 && laid_out_here &&
           is_matrix(load, nest_, summed);
  }

 private:
  /// What rows taken apart may take of a worker's second-level cache, beside weights.
  static constexpr std::int64_t most_bytes = 256 * 1024;
  /// Products of a row from which on the unit is faster for a few rows, too: of fewer, rows taken apart and a unit told
  /// how many there are take longer than products with vectors.
  static constexpr std::int64_t least_products = 64 * 64;

  const char* reason_of_sums(const Halves& halves) const {
    std::int64_t bytes = 0, products = 0;
    for (const ir::Stmt& s : halves.lead)
      if (const auto* start = s.as<ir::Store>()) {
        const auto* constant = start->value.as<ir::FloatImm>();
        if (!constant || constant->value != 0) return "a sum does not start from zero";
      } else if (const auto* loop = s.as<ir::For>()) {
        if (!is_product(*loop)) return "a sum is not of products of rows with matrices of bf16 alone";
        bytes += std::int64_t(tile_steps(*loop)) * ir::TileProduct::pieces * 1024;
        products += loop->dim.extent() * nest_.loops.back().dim.extent();
      }
    if (bytes > most_bytes) return "its rows are too long to be taken apart";
    return products < least_products ? "a row has so few products that vectors make them sooner" : nullptr;
  }

  /// Whether the loop adds up products with matrices that the unit takes, and nothing else.
  bool is_product(const ir::For& loop) const {
    if (loop.loop != ir::ForKind::serial || ir::as_int(loop.extent) != loop.dim.extent()) return false;
    for (const ir::Stmt& s : stmts_of(loop.body)) {
      const auto* store = s.as<ir::Store>();
      if (!store || store->buffer->scope != ir::Scope::local) return false;
      const TileTerm term = tile_term(*store, [&](const ir::Load& load) { return is_matrix_of_unit(load, loop.var); });
      if (!term.weight || ir::uses(term.x, nest_.loops.back().var) || reads_local(term.x)) return false;
    }
    return true;
  }

  /// Whether `x` reads what an element of the output has for itself.
  static bool reads_local(const ir::Expr& x) {
    bool found = false;
    ir::visit_with(x, [&](const ir::Load& load) { found |= load.buffer->scope == ir::Scope::local; });
    return found;
  }

  const Nest& nest_;
};

/// Lays out in tiles what nests multiply that the matrix unit can multiply.
class TileWeights {
 public:
  /// The nest over weights in tiles; nothing where its sums are others.
  ir::Stmt nest(const Nest& nest) {
    const UnitSuits suits(nest);
    if (!has_contraction(nest.inner) || suits.reason()) return {};
    Nest result = nest;
    result.inner = ir::mutate_with(nest.inner, [&](auto&, const ir::For& loop) -> ir::Stmt {
      return loop.dim.kind() == DimKind::dense ? in_tiles(nest, suits, loop) : ir::handle_of(loop);
    });
    return build_nest(result);
  }

 private:
  ir::Stmt in_tiles(const Nest& nest, const UnitSuits& suits, const ir::For& loop) {
    return ir::mutate_with(ir::handle_of(loop), [&](auto& self, const ir::Load& load) -> ir::Expr {
      if (!suits.is_matrix_of_unit(load, loop.var)) return self.children(load);
      const int column = dim_indexed_by(load, nest.loops.back().var), summed = dim_indexed_by(load, loop.var);
      const ir::Buffer copy = copies_.of(load.buffer, column, summed, [&](ir::BufferInfo& info) {
        info.name += "_tiles";
        info.tiles = true;
        info.layout = tile_layout(info.dims, column, summed);
      });
      return ir::Load::make(copy, load.indices);
    });
  }

  PackedCopies copies_;
};

/// The rows of a nest over weights in tiles, taken apart, and its products.
class TileOperands {
 public:
  explicit TileOperands(const Nest& nest) : nest_(nest), halves_(nest.inner) {
    for (const ir::Stmt& s : halves_.lead)
      if (const auto* loop = s.as<ir::For>())
        for (const ir::Stmt& term : stmts_of(loop->body)) add(*loop, *term.as<ir::Store>());
  }

  const Halves& halves() const { return halves_; }

  /// Takes row `r` apart, of the nest's node.
  ir::Stmt take_apart(const ir::Expr& r) const {
    Vector<ir::Stmt> stmts;
    for (const Operand& operand : operands_) {
      const auto extent = int(operand.loop->dim.extent());
      const ir::Expr o = ir::Var::make("o");
      const auto block = [&](const ir::Expr& number, int lanes) { return pieces_of(operand, r, number, lanes); };
      if (extent / 16)
        stmts.push_back(ir::For::make(o, operand.loop->dim, ir::imm(extent / 16), ir::ForKind::serial, block(o, 16)));
      if (extent % 16) stmts.push_back(block(ir::imm(extent / 16), extent % 16));
      for (int k = extent; k < tile_steps(*operand.loop) * ir::TileProduct::depth; k = k / 16 * 16 + 16)
        stmts.push_back(zeros(operand, r, k));
    }
    return ir::Block::make(stmts);
  }

  /// The products of the nest's sum number `sum` for `panels` panels from `column` on, in `tile`.
  ir::Stmt products(std::size_t sum, const ir::Buffer& tile, const ir::Expr& column, int panels,
                    const ir::Expr& rows) const {
    Vector<ir::Stmt> stmts;
    for (const Term& term : terms_) {
      if (term.sum != halves_.sums[sum]) continue;
      const Operand& operand = operands_[term.operand];
      Vector<ir::Expr> weights;
      for (int panel = 0; panel < panels; ++panel)
        weights.push_back(
            ir::substitute(ir::handle_of(*term.weight),
                           {{nest_.loops.back().var.get(), column + 16 * panel}, {term.summed.get(), ir::imm(0)}}));
      const ir::TileProduct::Shape shape{tile_steps(*operand.loop),
                                         dim_indexed_by(*term.weight, nest_.loops.back().var),
                                         dim_indexed_by(*term.weight, term.summed), !stmts.empty()};
      stmts.push_back(
          ir::TileProduct::make(tile, std::move(weights), ir::Load::make(operand.pieces, {ir::imm(0)}), rows, shape));
    }
    return ir::Block::make(stmts);
  }

  /// What a sum is at `lane` of panel `panel` in row `r`.
  static ir::Expr value(const ir::Buffer& tile, const ir::Expr& r, const ir::Expr& panel, const ir::Expr& lane) {
    using ir::TileProduct;
    return ir::Load::make(tile, {panel * TileProduct::sums_of_panel + r * TileProduct::outputs + lane});
  }

 private:
  /// What rows have that is multiplied: a function of the loop's variable.
  struct Operand {
    const ir::For* loop;
    ir::Expr x;
    ir::Buffer pieces;
  };
  struct Term {
    ir::Buffer sum;
    const ir::Load* weight;
    ir::Expr summed;
    std::size_t operand;
  };

  void add(const ir::For& loop, const ir::Store& store) {
    const TileTerm term = tile_term(store, [](const ir::Load& load) { return load.buffer->tiles; });
    std::size_t same = 0;
    while (same < operands_.size() &&
           !(operands_[same].loop->dim == loop.dim &&
             ir::equal(ir::substitute(term.x, {{loop.var.get(), operands_[same].loop->var}}), operands_[same].x)))
      ++same;
    if (same == operands_.size()) {
      ir::BufferInfo info;
      info.name = loop.dim.name() + "_pieces";
      info.dtype = DType::bf16;
      info.scope = ir::Scope::worker;
      info.dims = {Dim("piece", std::int64_t(tile_steps(loop)) * ir::TileProduct::pieces * ir::TileProduct::tile)};
      operands_.push_back({&loop, term.x, ir::Buffer(std::move(info))});
    }
    terms_.push_back({store.buffer, term.weight, loop.var, same});
  }

  static ir::Stmt in_lanes(const Operand& operand, int lanes, const ir::Expr& lane, const ir::Stmt& body) {
    return loop_if_several(lane, operand.loop->dim, lanes, ir::ForKind::vectorized, body);
  }

  /// Where piece `a` of index `16 * block + lane` of row `r` is.
  static ir::Expr place(int a, const ir::Expr& r, const ir::Expr& block, const ir::Expr& lane) {
    constexpr int tile = ir::TileProduct::tile;
    return block / 2 * (ir::TileProduct::pieces * tile) + a * tile + r * 32 + block % 2 * 16 + lane;
  }

  static ir::Stmt pieces_of(const Operand& operand, const ir::Expr& r, const ir::Expr& block, int lanes) {
    const ir::Expr lane = ir::Var::make("lane"), index = block * 16 + lane;
    const ir::Expr x = ir::substitute(operand.x, {{operand.loop->var.get(), index}});
    ir::Expr left = ir::Var::make("x", {DType::f32, 1});
    Vector<std::pair<ir::Expr, ir::Expr>> lets{{left, x}};
    Vector<ir::Stmt> stores;
    for (int a = 0; a < ir::TileProduct::pieces; ++a) {
      const ir::Expr piece = ir::Var::make("piece", {DType::bf16, 1});
      lets.emplace_back(piece, ir::Cast::make(DType::bf16, left));
      stores.push_back(ir::Store::make(operand.pieces, {place(a, r, block, lane)}, piece));
      if (a + 1 == ir::TileProduct::pieces) break;
      const ir::Expr rest = ir::Var::make("rest", {DType::f32, 1});
      lets.emplace_back(rest, left - ir::Cast::make(DType::f32, piece));
      left = rest;
    }
    return in_lanes(operand, lanes, lane, ir::with_lets(lets, ir::Block::make(stores)));
  }

  /// Zeros from index `k` to the end of its block of 16.
  static ir::Stmt zeros(const Operand& operand, const ir::Expr& r, int k) {
    const ir::Expr lane = ir::Var::make("lane"), zero = ir::Cast::make(DType::bf16, ir::FloatImm::make(0, DType::f32));
    Vector<ir::Stmt> stores;
    for (int a = 0; a < ir::TileProduct::pieces; ++a)
      stores.push_back(ir::Store::make(operand.pieces, {place(a, r, ir::imm(k / 16), ir::imm(k % 16)) + lane}, zero));
    return in_lanes(operand, 16 - k % 16, lane, ir::Block::make(stores));
  }

  const Nest& nest_;
  const Halves halves_;
  Vector<Operand> operands_;
  Vector<Term> terms_;
};

}  // namespace detail

/// Whether the schedule stores weights that a matrix unit could multiply.
inline bool wants_matrix_unit(const Schedule& schedule) {
  bool bf16 = schedule.weight_type == DType::bf16;
  for (const auto& [name, type] : schedule.stored) bf16 |= type == DType::bf16;
  return bf16 && !schedule.vectors_alone && !schedule.by_hand;
}

/// Whether it stores weights that the target's matrix unit can multiply, between vectors as long as its rows.
inline bool uses_matrix_unit(const Target& target, const Schedule& schedule) {
  return target.matrix_unit && target.vector_bytes == 64 && wants_matrix_unit(schedule);
}

/// Lays out in tiles the weights of the nests that a matrix unit is to multiply.
inline ir::Stmt tile_weights(const ir::Stmt& body, const Target& target, const Schedule& schedule) {
  if (!uses_matrix_unit(target, schedule)) return body;
  detail::TileWeights weights;
  return map_nests(body, [&](const Nest& nest) { return weights.nest(nest); });
}

/// Whether `tile_weights` has chosen the nest.
inline bool multiplies_tiles(const Nest& nest) {
  bool found = false;
  ir::visit_with(nest.inner, [&](const ir::Load& load) { found |= load.buffer->tiles; });
  return found;
}

/// Why vectors make a nest's products of weights of bf16, in words; null if the unit does, or there are none. For
/// programs that `tile_weights` has gone through.
inline const char* why_vectors(const Nest& nest) {
  bool bf16 = false;
  ir::visit_with(nest.inner, [&](const ir::For& loop) {
    if (loop.dim.kind() != DimKind::dense) return;
    ir::visit_with(loop.body, [&](const ir::Load& load) { bf16 |= load.buffer->dtype == DType::bf16; });
  });
  if (!bf16 || !has_contraction(nest.inner) || multiplies_tiles(nest)) return nullptr;
  return detail::UnitSuits(nest).reason();
}

}  // namespace cortex::schedule
