// Splits the sums of a nest's products into parts, one for each of some neighbouring threads of a warp, and lays
// weights out in the order in which these read them.
//
//   parallel for i: {a = 0; for j = 0:J: a += W[i,j] * x[node,j]; y[node,i] = a}
//     ->
//   parallel for i: {
//     parts for p = 0:4: {a_part[p] = 0; for j = 0:J/16: {a_part[p] += W[i,j * 16 + p * 4] * x[node,j * 16 + p * 4]
//                                                        a_part[p] += W[i,j * 16 + p * 4 + 1] * x[node,..]; ..}}
//     a = (a_part[0] + a_part[1]) + (a_part[2] + a_part[3]); y[node,i] = a}
//
// A level of one node has no more sums than the columns of a block's slice: with a thread to each of them most threads
// of the block would wait for chains of additions as long as J. How many parts there are is the schedule's, and the
// order of additions the same at every level, so results do not depend on what else is in a level. A part has four
// neighbours of every so many, which a thread reads at once: with a load to each product, threads would do little else.
// `lay_out_parts` runs before weights are packed, `split_sums` when slices of them are kept on chip, and before nests
// are shared among threads (`share_threads.hpp`), which gives each part to a thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/schedule/nest.hpp"
#include "cortex/schedule/pack_weights.hpp"
#include "cortex/schedule/tile_nests.hpp"

namespace cortex::schedule {

/// The layout of a weight for sums over dimension `summed` in so many parts: in tiles of 128 elements, four for each
/// thread of a warp. Thread t has indices t % parts * 4 to t % parts * 4 + 3 of `summed`, and after a tile those
/// `parts` * 4 further on; of dimension `column` it has index t / parts. So a warp reads 128 neighbours: whole lines of
/// memory, and of the banks of shared memory each equally often. Edges are padded to whole tiles.
inline ir::Layout part_layout(const Vector<Dim>& dims, int column, int summed, int parts) {
  constexpr int warp = Gpu::warp, own = quad;
  const int columns = warp / parts, all = parts * own;
  ir::Layout layout;
  layout.axes.push_back({summed, 1, own, 1});
  layout.axes.push_back({summed, own, parts, own});
  if (columns > 1) layout.axes.push_back({column, 1, columns, all});
  layout.axes.push_back({summed, all, 0, warp * own});
  add_panels(layout, dims, column, summed, columns, warp * own * ceil_div(dims[std::size_t(summed)].extent(), all));
  return layout;
}

namespace detail {

/// Finds the nests whose sums are worth parts, and gives them weights to match.
class PartLayouts {
 public:
  explicit PartLayouts(int parts) : parts_(parts), of_many_(std::min(parts, 8)) {}

  /// Into how many parts the nest's sums can be split, with weights that are not packed yet; 1: they cannot.
  int parts_for(const Nest& nest) const {
    const bool matrix = nest.loops.size() > 1;
    const int parts = matrix || !nest.level ? of_many_ : parts_;
    if (parts == 1 || !is_plain(nest)) return 1;
    const Halves halves(nest.inner);
    if (!halves.plain || halves.sums.empty() || has_sums(halves.rest)) return 1;
    PointerSet started;
    for (const ir::Stmt& s : halves.lead) {
      const auto* start = s.as<ir::Store>();
      if (start && (!start->value.as<ir::FloatImm>() || !started.insert(start->buffer.id()))) return 1;
      if (!start && !sums_products(nest, *s.as<ir::For>(), started)) return 1;
    }
    return parts;
  }

  ir::Stmt nest(const Nest& nest) {
    const int parts = parts_for(nest);
    if (parts == 1) return {};
    Nest result = nest;
    result.inner = ir::mutate_with(nest.inner, [&](auto& self, const ir::For& loop) -> ir::Stmt {
      if (loop.dim.kind() != DimKind::dense) return self.children(loop);
      return ir::mutate_with(ir::handle_of(loop), [&](auto& inside, const ir::Load& load) -> ir::Expr {
        const int column = dim_indexed_by(load, nest.loops.back().var), summed = dim_indexed_by(load, loop.var);
        if (column < 0 || summed < 0 || load.buffer->role != ir::Role::weight) return inside.children(load);
        return ir::Load::make(copy(load.buffer, column, summed, parts), load.indices);
      });
    });
    return build_nest(result);
  }

 private:
  /// Whether the nest computes a vector or a matrix at each of its nodes, which threads can share in columns.
  static bool is_plain(const Nest& nest) {
    if (!nest.rows || nest.loops.empty() || !slice_var(nest) || !has_contraction(nest.inner)) return false;
    if (first_loop_of_rows(nest) != 0) return false;
    if (ir::as_int(nest.loops.back().extent) != nest.loops.back().dim.extent()) return false;
    const auto* node = nest.let_value ? nest.let_value.as<ir::UfCall>() : nullptr;
    if (node && node->uf.kind == ir::UfKind::root_node) return false;  // one of which may be given twice
    return !nest.guard ||
           !((nest.let_var && ir::uses(nest.guard, nest.let_var)) || ir::uses(nest.guard, nest.rows->var));
  }

  static bool has_sums(const Vector<ir::Stmt>& rest) {
    bool found = false;
    for (const ir::Stmt& s : rest)
      ir::visit_with(s, [&](const ir::For& loop) { found |= loop.dim.kind() == DimKind::dense; });
    return found;
  }

  /// Whether the loop adds products to accumulators and does nothing else, and what it reads is a matrix that can be
  /// laid out or a node's own, or lies in the order of the loop.
  static bool sums_products(const Nest& nest, const ir::For& loop, const PointerSet& started) {
    bool fits = loop.loop == ir::ForKind::serial && ir::as_int(loop.extent) == loop.dim.extent();
    for (const ir::Stmt& s : stmts_of(loop.body)) {
      const auto* store = s.as<ir::Store>();
      const auto* product = store ? store->value.as<ir::Fma>() : nullptr;
      const auto* sum = product ? product->c.as<ir::Load>() : nullptr;
      if (!sum || sum->buffer != store->buffer || !store->indices.empty() || !started.contains(sum->buffer.id()))
        return false;
      for (const ir::Expr& factor : {product->a, product->b})
        ir::visit_with(factor, [&](const ir::Load& load) { fits &= suits(nest, loop, load); });
    }
    return fits;
  }

  static bool suits(const Nest& nest, const ir::For& loop, const ir::Load& load) {
    const ir::Expr e = ir::handle_of(load), &column = nest.loops.back().var;
    if (load.buffer->scope == ir::Scope::local) return false;
    if (!ir::uses(e, column)) return !ir::uses(e, loop.var) || load.indices.back().same_as(loop.var);
    if (dim_indexed_by(load, column) < 0 || dim_indexed_by(load, loop.var) < 0) return false;
    const bool weight = load.buffer->role == ir::Role::weight;
    bool plain = weight ? load.buffer->layout.empty() : load.indices.back().same_as(column);
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      const ir::Expr& index = load.indices[d];
      const bool known = index.same_as(column) || index.same_as(loop.var);
      if (weight)
        plain &= load.buffer->dims[d].kind() == DimKind::dense && (known || index.as<ir::IntImm>());
      else
        plain &= known || !(ir::uses(index, column) || ir::uses(index, loop.var));
    }
    return plain;
  }

  ir::Buffer copy(const ir::Buffer& weight, int column, int summed, int parts) {
    PackedCopies& copies = parts == parts_ ? copies_ : copies_of_many_;
    return copies.of(weight, column, summed, [&](ir::BufferInfo& info) {
      info.name += "_packed";
      info.layout = part_layout(info.dims, column, summed, parts);
      info.parts = parts;
    });
  }

  const int parts_;
  /// Where a nest has many rows, which give threads work without parts: at a node that has a matrix, or at all nodes,
  /// ahead of the levels. So many that each thread that shares a sum has a row for itself in what follows.
  const int of_many_;
  PackedCopies copies_, copies_of_many_;
};

/// The parts of a nest's sums: those of the weights that it reads, as `layouts` chose, or of what it reads beside them
/// where there are none; 1 if its sums are whole.
inline int parts_of(const Nest& nest, const PartLayouts& layouts) {
  if (!has_contraction(nest.inner)) return 1;
  int parts = 1;
  bool weights = false;
  ir::visit_with(nest.inner, [&](const ir::Load& load) {
    parts = std::max(parts, load.buffer->parts);
    weights |= load.buffer->role == ir::Role::weight || ir::keeps_weights(load.buffer->scope);
  });
  return weights ? parts : layouts.parts_for(nest);
}

class SumSplitter {
 public:
  SumSplitter(const Nest& nest, int parts) : nest_(nest), parts_(parts), halves_(nest.inner) {}

  ir::Stmt run() {
    const Dim dim("part", parts_);
    for (const ir::Buffer& sum : halves_.sums) {
      ir::BufferInfo info = *sum;
      info.name += "_part";
      info.dims = {dim};
      terms_.emplace_back(std::move(info));
    }
    Vector<ir::Stmt> stmts, each;
    for (const ir::Stmt& s : halves_.lead) append(each, stmts_of(part(s)));
    stmts.push_back(ir::For::make(p_, dim, ir::imm(parts_), ir::ForKind::parts, ir::Block::make(each)));
    for (std::size_t i = 0; i < terms_.size(); ++i)
      stmts.push_back(ir::Store::make(halves_.sums[i], {}, joined(terms_[i], 0, parts_)));
    append(stmts, halves_.rest);
    Nest result = nest_;
    result.inner = ir::Block::make(stmts);
    for (const auto* buffers : {&halves_.locals, &halves_.sums, &std::as_const(terms_)})
      result.inner = ir::with_allocs(*buffers, result.inner);
    return build_nest(result);
  }

 private:
  /// What part `p_` does of a statement of the lead.
  ir::Stmt part(const ir::Stmt& s) const {
    if (const auto* start = s.as<ir::Store>()) {
      const double first = start->value.as<ir::FloatImm>()->value;
      const ir::Expr zero = ir::FloatImm::make(0, start->value.dtype());
      const ir::Expr value =
          first == 0 ? zero : ir::Select::make(ir::binary(ir::BinaryOp::eq, p_, ir::imm(0)), start->value, zero);
      return ir::Store::make(terms_of(start->buffer), {p_}, value);
    }
    const auto& loop = *s.as<ir::For>();
    constexpr std::int64_t own = quad;
    const std::int64_t all = own * parts_, whole = loop.dim.extent() / all, left = loop.dim.extent() % all;
    const ir::Stmt body = over_terms(loop.body);
    const auto neighbours = [&](const ir::Expr& first, std::int64_t count) {
      return consecutive(body, loop.var, first, count);
    };
    Vector<ir::Stmt> result;
    if (whole)
      result.push_back(
          ir::For::make(loop.var, loop.dim, ir::imm(whole), loop.loop, neighbours(loop.var * all + p_ * own, own)));
    // Of what is left some parts have all their neighbours, and one has some.
    const ir::Expr first = ir::imm(whole * all) + p_ * own;
    if (left >= own)
      result.push_back(ir::If::make(ir::binary(ir::BinaryOp::lt, p_, ir::imm(left / own)), neighbours(first, own)));
    if (left % own)
      result.push_back(
          ir::If::make(ir::binary(ir::BinaryOp::eq, p_, ir::imm(left / own)), neighbours(first, left % own)));
    return ir::Block::make(result);
  }

  ir::Stmt over_terms(const ir::Stmt& body) const {
    return ir::mutate_with(body, [&](auto&, const ir::Store& store) -> ir::Stmt {
      const auto& product = *store.value.as<ir::Fma>();
      const ir::Buffer& terms = terms_of(store.buffer);
      return ir::Store::make(terms, {p_}, ir::Fma::make(product.a, product.b, ir::Load::make(terms, {p_})));
    });
  }

  const ir::Buffer& terms_of(const ir::Buffer& sum) const {
    std::size_t i = 0;
    while (halves_.sums[i] != sum) ++i;
    return terms_[i];
  }

  /// As `ir::Join` adds.
  static ir::Expr joined(const ir::Buffer& terms, int first, int count) {
    if (count == 1) return ir::Load::make(terms, {ir::imm(first)});
    return joined(terms, first, count / 2) + joined(terms, first + count / 2, count / 2);
  }

  const Nest& nest_;
  const int parts_;
  const Halves halves_;
  const ir::Expr p_ = ir::Var::make("p");
  Vector<ir::Buffer> terms_;  // of halves_.sums
};

}  // namespace detail

/// A nest's sums in parts, as `split_sums` writes them.
struct SumsInParts {
  Vector<ir::Buffer> terms, sums, locals;  // of each sum, or of what follows from them
  const ir::For* loop = nullptr;           // over parts; null: the nest's sums are whole
  Vector<ir::Stmt> rest;                   // what follows

  explicit SumsInParts(ir::Stmt inner) {
    Vector<ir::Buffer> all;
    while (const auto* alloc = inner.as<ir::Alloc>()) all.push_back(alloc->buffer), inner = alloc->body;
    const Vector<ir::Stmt> stmts = stmts_of(inner);
    if (!stmts.empty()) loop = stmts.front().as<ir::For>();
    if (loop && loop->loop != ir::ForKind::parts) loop = nullptr;
    if (!loop) return;
    std::size_t i = 1;
    for (PointerSet parts = stored_in(loop->body); i < stmts.size(); ++i) {
      const auto* sum = stmts[i].as<ir::Store>();
      const ir::Buffer first = sum ? first_load(sum->value) : ir::Buffer();
      if (!first || !parts.contains(first.id())) break;
      sums.push_back(sum->buffer), terms.push_back(first);
    }
    rest.insert(rest.end(), stmts.begin() + std::ptrdiff_t(i), stmts.end());
    for (const ir::Buffer& buffer : all)
      if (!contains(terms, buffer) && !contains(sums, buffer)) locals.push_back(buffer);
  }

 private:
  static PointerSet stored_in(const ir::Stmt& s) {
    PointerSet buffers;
    ir::add_stored(s, buffers);
    return buffers;
  }
  static ir::Buffer first_load(const ir::Expr& e) {
    ir::Buffer first;
    ir::visit_with(e, [&](const ir::Load& load) {
      if (!first) first = load.buffer;
    });
    return first;
  }
};

/// Gives the nests whose sums are worth parts weights that are laid out for them.
inline ir::Stmt lay_out_parts(const ir::Stmt& body, int parts) {
  detail::PartLayouts layouts(parts);
  return map_nests(body, [&](const Nest& nest) { return layouts.nest(nest); });
}

/// Splits the sums of the nests that read such weights, or what nodes have alone.
inline ir::Stmt split_sums(const ir::Stmt& body, int parts) {
  const detail::PartLayouts layouts(parts);
  return map_nests(body, [&](const Nest& nest) {
    const int own = detail::parts_of(nest, layouts);
    return own > 1 ? detail::SumSplitter(nest, own).run() : ir::Stmt();
  });
}

}  // namespace cortex::schedule
