// Products for tensor cores: what they multiply is rounded where it is read, and weights lie in the order in which the
// threads of a warp hold them.
//
//   for r: a = fma(f32(W[i,r]),x[n,r],a)     ->     for r: a = fma(f32(W_fragments[i,r]),f32(bf16(x[n,r])),a)
//
// The rounding is the program's, not the hardware's: whoever runs it, and in whatever order it adds, multiplies the
// same numbers. All sums over dense dimensions at nodes are such products afterwards, or the model is refused: with
// tensor cores for some and not for others, what a model loses could not be said in a sentence. Runs after
// `store_weights`, which rounds the weights, and before weights are packed and nests are shared among threads
// (`tensor_tiles.hpp`).
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/gpu_shape.hpp"
#include "cortex/schedule/pack_weights.hpp"
#include "cortex/schedule/tile_nests.hpp"

namespace cortex::schedule {

/// The layout of a weight in tiles of `outputs` indices of dimension `column` and `depth` of dimension `summed`: in
/// each of them thread after thread of a warp has 16 bytes, its registers of PTX's operand A one after the other.
/// Register r of thread l holds output l / 4 + 8 (r % 2), and of 16 bits two neighbours from l % 4 * 2 + 8 (r / 2) on,
/// of tf32 the one at l % 4 + 4 (r / 2). Edges are padded to whole tiles.
inline ir::Layout fragment_layout(const Vector<Dim>& dims, DType type, int column, int summed) {
  ir::Layout layout;
  if (type == DType::tf32)
    layout.axes = {{column, 8, 2, 1}, {summed, 4, 2, 2}, {summed, 1, 4, 4}, {column, 1, 8, 16}};
  else
    layout.axes = {{summed, 1, 2, 1}, {column, 8, 2, 2}, {summed, 8, 2, 4}, {summed, 2, 4, 8}, {column, 1, 8, 32}};
  const int depth = TensorTile::depth(type);
  const std::int64_t tile = TensorTile::outputs * depth, tiles = ceil_div(dims[std::size_t(summed)].extent(), depth);
  layout.axes.push_back({summed, depth, 0, tile});
  add_panels(layout, dims, column, summed, TensorTile::outputs, tile * tiles);
  return layout;
}

/// The schedule with the matrices stored as tensor cores take them. Throws `Error{invalid_schedule}` if it stores them
/// as something else.
inline Schedule with_tensor_cores(Schedule schedule) {
  const DType type = products_of(schedule.gpu);
  if (type == DType::f32) return schedule;
  if (schedule.weight_type != DType::f32 && schedule.weight_type != type)
    detail::refuse_gpu("tensor cores multiply " + std::string(to_string(type)) + ", but store_weights says " +
                       std::string(to_string(schedule.weight_type)) + ": leave one of them out");
  schedule.weight_type = type;
  return schedule;
}

namespace detail {

/// The factors of a term `acc = fma(weights, x, acc)`.
struct TensorTerm {
  const ir::Load* weights = nullptr;
  ir::Expr x;
};

class TensorProducts {
 public:
  explicit TensorProducts(DType type) : type_(type) {}

  ir::Stmt nest(const Nest& nest) {
    if (!has_contraction(nest.inner) || (!nest.rows && !nest.level)) return {};
    nest_ = &nest;
    name_ = name_of_sum(nest.inner);
    if (!nest.rows) refuse("is computed node by node");
    check_nest();
    Nest result = nest;
    result.inner = ir::mutate_with(nest.inner, [&](auto&, const ir::For& loop) -> ir::Stmt {
      return loop.dim.kind() == DimKind::dense ? products(loop) : ir::handle_of(loop);
    });
    return build_nest(result);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    refuse_gpu("tensor cores take all products of a model or none, but the sum '" + name_ + "' " + why +
               "; leave tensor_cores out");
  }

  /// What the first accumulator is called by the user.
  static std::string name_of_sum(const ir::Stmt& inner) {
    std::string name;
    ir::visit_with(inner, [&](const ir::Alloc& alloc) {
      if (name.empty() && has_contraction(ir::handle_of(alloc))) name = alloc.buffer->name;
    });
    const std::size_t end = name.rfind("_acc");
    return end == std::string::npos ? name : name.substr(0, end);
  }

  void check_nest() const {
    const Nest& nest = *nest_;
    const auto* node = nest.let_value ? nest.let_value.as<ir::UfCall>() : nullptr;
    if (node && node->uf.kind == ir::UfKind::root_node)
      refuse("is of roots, one of which may be given twice, and the threads of a warp would write the same place");
    if (nest.loops.size() != 1 || !slice_var(nest) ||
        ir::as_int(nest.loops.back().extent) != nest.loops.back().dim.extent())
      refuse("is of a matrix at each node, or of part of a vector");
    if (nest.guard && ((nest.let_var && ir::uses(nest.guard, nest.let_var)) || ir::uses(nest.guard, nest.rows->var)))
      refuse("is computed for some nodes and not for others: give each side of the branch code of its own");
    const Halves halves(nest.inner);
    for (const ir::Stmt& s : halves.lead)
      if (const auto* start = s.as<ir::Store>(); start && !start->value.as<ir::FloatImm>())
        refuse("does not start from a constant");
    for (const ir::Stmt& s : halves.rest)
      ir::visit_with(s, [&](const ir::For& loop) {
        if (loop.dim.kind() == DimKind::dense) refuse("is one of many at each node, such as one a child");
      });
  }

  /// The loops of products, one in the other, with their operands rounded.
  ir::Stmt products(const ir::For& loop) {
    if (ir::as_int(loop.extent) != loop.dim.extent()) refuse("has an extent that is known only in calls");
    Vector<ir::Stmt> stmts;
    for (const ir::Stmt& s : stmts_of(loop.body)) {
      const auto *inner = s.as<ir::For>(), *outer = &loop;
      const auto* store = s.as<ir::Store>();
      if (inner && inner->dim.kind() == DimKind::dense)
        stmts.push_back(products(*inner));
      else if (store && store->buffer->scope == ir::Scope::local)
        stmts.push_back(product(*store, outer->var));
      else
        refuse("is no sum of products with a matrix");
    }
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::Block::make(stmts));
  }

  ir::Stmt product(const ir::Store& store, const ir::Expr& summed) {
    const auto* term = store.value.as<ir::Fma>();
    const auto* sum = term ? term->c.as<ir::Load>() : nullptr;
    if (!sum || sum->buffer != store.buffer || store.buffer->dtype != DType::f32)
      refuse("is no sum of products of f32 with a matrix");
    for (const bool first : {true, false}) {
      const auto* widened = (first ? term->a : term->b).as<ir::Cast>();
      const auto* weights = widened ? widened->a.as<ir::Load>() : nullptr;
      const ir::Expr& x = first ? term->b : term->a;
      if (!weights || weights->buffer->role != ir::Role::weight || !is_matrix(*weights, *nest_, summed)) continue;
      if (weights->buffer->dtype != type_)
        refuse("reads '" + weights->buffer->name + "' as " + std::string(to_string(weights->buffer->dtype)) +
               ", and not as " + std::string(to_string(type_)));
      if (ir::uses(x, nest_->loops.back().var)) refuse("multiplies each of its outputs with something else");
      const int column = dim_indexed_by(*weights, nest_->loops.back().var), k = dim_indexed_by(*weights, summed);
      const ir::Expr w = ir::Load::make(copy(weights->buffer, column, k), weights->indices);
      const ir::Expr rounded = ir::Cast::make(DType::f32, ir::Cast::make(type_, x));
      return ir::Store::make(store.buffer, {}, ir::Fma::make(ir::Cast::make(DType::f32, w), rounded, term->c));
    }
    refuse("has no factor that is a matrix of weights as " + std::string(to_string(type_)) +
           ", the same at every node");
  }

  ir::Buffer copy(const ir::Buffer& weight, int column, int summed) {
    return copies_.of(weight, column, summed, [&](ir::BufferInfo& info) {
      info.name += "_fragments";
      info.layout = fragment_layout(info.dims, info.dtype, column, summed);
      info.fragments = true;
    });
  }

  const DType type_;
  const Nest* nest_ = nullptr;
  std::string name_;
  PackedCopies copies_;
};

}  // namespace detail

/// Throws `Error{invalid_schedule}` if a sum over a dense dimension is no product that tensor cores can make.
inline ir::Stmt tensor_products(const ir::Stmt& body, DType type) {
  detail::TensorProducts products(type);
  return map_nests(body, [&](const Nest& nest) { return products.nest(nest); });
}

}  // namespace cortex::schedule
