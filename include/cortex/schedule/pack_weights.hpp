// Lays weights out in the order in which contractions read them: panels of one vector of outputs, the reduction's index
// next, so that a register tile streams through memory. The copy is made once, when the weight is bound (O2, I8).
//
//   for i: for j: a += W[i,j] * x[j]     ->     the same over a copy of W whose element [i,j] lies at
//                                               i / L * (J * L + pad) + j * L + i % L
//
// What is read once an element, such as a matrix that is added, is packed where the lanes of a vector would find it a
// row apart. Runs before nests are tiled by vectors of L elements of i. The logical indices stay; only the layout of
// the copy differs.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/memory.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/pointer_map.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::schedule {

/// `elements` rounded up to whole cache lines.
inline std::int64_t round_to_lines(std::int64_t elements, DType dtype) {
  return round_up(elements, cache_line / std::int64_t(size_of(dtype)));
}

/// The layout with dimension `panel` cut into vectors of `lanes`, which are innermost; the other dimensions keep their
/// order outside of it, except that the panels' own number goes before the last of them. A panel is longer than its
/// contents by a cache line, so that panels do not fall on the same cache sets.
inline ir::Layout panel_layout(const Vector<Dim>& dims, int panel, int lanes, DType dtype) {
  Vector<int> others;
  for (int d = 0; d < int(dims.size()); ++d)
    if (d != panel) others.push_back(d);
  ir::Layout layout;
  layout.axes.push_back({panel, 1, lanes, 1});
  std::int64_t stride = lanes;
  layout.axes.push_back({others.back(), 1, 0, stride});
  stride = round_to_lines(stride * dims[std::size_t(others.back())].extent(), dtype) +
           cache_line / std::int64_t(size_of(dtype));
  others.pop_back();
  layout.axes.push_back({panel, lanes, 0, stride});
  stride *= ceil_div(dims[std::size_t(panel)].extent(), lanes);
  for (const auto& d : reversed(others)) {
    layout.axes.push_back({d, 1, 0, stride});
    stride *= std::max<std::int64_t>(dims[std::size_t(d)].extent(), 1);
  }
  const bool open = dims[0].kind() == DimKind::open;
  (open ? layout.row_size : layout.fixed_size) = open ? layout.axes.back().stride : stride;
  return layout;
}

/// Ends a layout of tiles that has the axes of one panel, of `outputs` indices of dimension `column`: a panel takes
/// `stride` elements, and dimensions beside it and `summed` keep their order outside of it, the panels' number last.
inline void add_panels(ir::Layout& layout, const Vector<Dim>& dims, int column, int summed, int outputs,
                       std::int64_t stride) {
  for (int d = int(dims.size()); d-- > 0;) {
    if (d == column || d == summed) continue;
    layout.axes.push_back({d, 1, 0, stride});
    stride *= dims[std::size_t(d)].extent();
  }
  layout.axes.push_back({column, outputs, 0, stride});
  layout.fixed_size = stride * ceil_div(dims[std::size_t(column)].extent(), outputs);
}

/// The layout for threads of a GPU that each have columns of their own and read four indices of dimension `summed` at
/// once: four of these side by side, then columns, as many as slices are cut between, then the next four.
inline ir::Layout quad_layout(const Vector<Dim>& dims, int column, int summed) {
  constexpr int columns = 8;
  ir::Layout layout;
  layout.axes.push_back({summed, 1, quad, 1});
  layout.axes.push_back({column, 1, columns, quad});
  layout.axes.push_back({summed, quad, 0, columns * quad});
  add_panels(layout, dims, column, summed, columns, columns * dims[std::size_t(summed)].extent());
  return layout;
}

/// Lanes of a vector of `dtype` on the target.
inline int lanes_of(const Target& target, DType dtype) { return target.vector_bytes / int(size_of(dtype)); }

namespace detail {

/// The one dimension of an access that `var` indexes; -1 if none is, or several are.
inline int dim_indexed_by(const ir::Load& load, const ir::Expr& var) {
  int found = -1;
  for (std::size_t d = 0; d < load.indices.size(); ++d)
    if (load.indices[d].same_as(var)) found = found == -1 ? int(d) : -2;
  return std::max(found, -1);
}

/// Whether `load` reads a matrix that is the same for all rows of the nest: the nest's column and `summed` each index
/// one dimension, and neither they nor the node others.
inline bool is_matrix(const ir::Load& load, const Nest& nest, const ir::Expr& summed) {
  const int column = dim_indexed_by(load, nest.loops.back().var), k = dim_indexed_by(load, summed);
  if (column < 0 || k < 0) return false;
  bool plain = true;
  for (std::size_t d = 0; d < load.indices.size(); ++d) {
    const ir::Expr& index = load.indices[d];
    plain &= load.buffer->dims[d].kind() == DimKind::dense;
    if (int(d) == column || int(d) == k) continue;
    plain &= index.as<ir::IntImm>() ||
             (index.as<ir::Var>() && !index.same_as(nest.let_var) && !index.same_as(nest.rows->var));
  }
  return plain;
}

/// Bytes of the packed weights that `body` reads.
inline double packed_bytes(const ir::Stmt& body) {
  double bytes = 0;
  PointerSet seen;
  ir::visit_with(body, [&](const ir::Load& load) {
    if (!load.buffer->packed_from || !seen.insert(load.buffer.id())) return;
    bytes += ir::dense_bytes(*load.buffer);
  });
  return bytes;
}

/// Copies of weights in layouts of their own, one for each weight and dimensions that the layout is made for.
class PackedCopies {
 public:
  /// The copy of `weight` that `describe(info)` has described, once. `summed` is -1 where the layout has none.
  template <class Describe>
  ir::Buffer of(const ir::Buffer& weight, int column, int summed, Describe describe) {
    for (const Known& known : known_)
      if (known.copy->packed_from == weight && known.column == column && known.summed == summed) return known.copy;
    ir::BufferInfo info = *weight;
    info.packed_from = weight;
    describe(info);
    known_.push_back({ir::Buffer(std::move(info)), column, summed});
    return known_.back().copy;
  }

 private:
  struct Known {
    ir::Buffer copy;
    int column, summed;
  };
  Vector<Known> known_;
};

class WeightPacker {
 public:
  explicit WeightPacker(const Target& target) : target_(target) {}

  /// The nest over packed copies; nothing if it reads none.
  ir::Stmt nest(const Nest& nest) {
    const ir::Expr vector = slice_var(nest);
    if (!vector) return {};
    const auto packing = [&](bool contracts) {
      return [this, &nest, &vector, contracts](auto& self, const ir::Load& load) -> ir::Expr {
        const int panel = panel_dim(load, vector), summed = summed_in_quads(nest, load);
        if (panel >= 0 && summed >= 0) return ir::Load::make(copy_in_quads(load.buffer, panel, summed), load.indices);
        if (panel < 0 || !((contracts && differs_in_sums(nest, load)) || is_read_apart(load, panel)))
          return self.children(load);
        return ir::Load::make(copy(load.buffer, panel), load.indices);
      };
    };
    Nest packed = nest;
    packed.inner = ir::mutate_with(
        nest.inner,
        [&](auto&, const ir::For& loop) -> ir::Stmt { return ir::mutate_with(ir::handle_of(loop), packing(true)); },
        packing(false));
    return packed.inner.same_as(nest.inner) ? ir::Stmt() : build_nest(packed);
  }

 private:
  /// The dimension that the vector's variable indexes, if the load is of a matrix that is worth a copy. An open
  /// dimension can stay only outermost.
  static int panel_dim(const ir::Load& load, const ir::Expr& vector) {
    const auto& dims = load.buffer->dims;
    if (load.buffer->role != ir::Role::weight || !load.buffer->layout.empty() || dims.size() < 2) return -1;
    const int panel = dim_indexed_by(load, vector);
    int loops = 0;
    for (const ir::Expr& index : load.indices) loops += !index.same_as(vector) && is_of_loops(index);
    const bool open_inside = dims[0].kind() == DimKind::open && (panel == 0 || dims.size() == 2);
    return panel >= 0 && loops > 0 && !open_inside ? panel : -1;
  }

  /// Whether a loop inside of those over results has other elements in each iteration: what is the same in all is read
  /// once for each result, and in the order in which these lie.
  static bool differs_in_sums(const Nest& nest, const ir::Load& load) {
    bool differs = false;
    ir::visit_with(nest.inner, [&](const ir::For& loop) { differs |= ir::uses(ir::handle_of(load), loop.var); });
    return differs;
  }

  /// Whether lanes find elements a row apart, of all rows: a row that a node chooses is not worth a copy of its table.
  /// Blocks of a GPU keep what is packed on chip, where there is room for the matrices of sums alone.
  bool is_read_apart(const ir::Load& load, int panel) const {
    bool all = panel + 1 < int(load.indices.size()) && target_.backend != Backend::cuda;
    for (const ir::Expr& index : load.indices) all &= is_of_loops(index);
    return all;
  }

  /// Arithmetic on loops' variables alone, and not an index that the nodes give.
  static bool is_of_loops(const ir::Expr& index) {
    bool loops = false, nodes = false;
    ir::visit_with(
        index, [&](const ir::Var&) { loops = true; }, [&](const ir::UfCall&) { nodes = true; });
    return loops && !nodes;
  }

  /// The dimension of which threads of a GPU read four indices at once; -1 if there is none.
  int summed_in_quads(const Nest& nest, const ir::Load& load) const {
    if (target_.backend != Backend::cuda || load.buffer->dtype != DType::f32 || !has_rows_of_sums(nest)) return -1;
    int found = -1;
    ir::visit_with(nest.inner, [&](const ir::For& loop) {
      const int dim = dim_indexed_by(load, loop.var);
      if (dim >= 0 && is_sum_of_quads(loop) && load.buffer->dims[std::size_t(dim)] == loop.dim) found = dim;
    });
    return found;
  }

  ir::Buffer copy_in_quads(const ir::Buffer& weight, int panel, int summed) {
    return copies_.of(weight, panel, summed, [&](ir::BufferInfo& info) {
      info.name += "_packed";
      info.layout = quad_layout(info.dims, panel, summed);
    });
  }

  ir::Buffer copy(const ir::Buffer& weight, int panel) {
    return copies_.of(weight, panel, -1, [&](ir::BufferInfo& info) {
      info.name += "_packed";
      const int lanes = lanes_of(target_, is_narrow(info.dtype) ? DType::f32 : info.dtype);
      info.layout = panel_layout(info.dims, panel, lanes, info.dtype);
    });
  }

  const Target& target_;
  PackedCopies copies_;
};

}  // namespace detail

inline ir::Stmt pack_weights(const ir::Stmt& body, const Target& target) {
  detail::WeightPacker packer(target);
  return map_nests(body, [&](const Nest& nest) { return packer.nest(nest); });
}

}  // namespace cortex::schedule
