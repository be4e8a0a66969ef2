// What a product of tiles computes, as loops: for whoever has no matrix unit.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex::ir {

namespace detail {

/// The weight of output `i` and index `k`, counted from the first element of a panel, which `first` loads. Of a program
/// whose buffers are flat at its offset in `schedule::tile_layout`; of others the element inside the weight's extents,
/// since its padding has no index and the rows' is 0.
inline Expr weight_of_tile(const Load& first, const TileProduct::Shape& shape, const Expr& i, const Expr& k) {
  if (first.indices.size() == 1) {
    const Expr at = k / 32 * TileProduct::tile + k % 32 / 2 * 32 + i * 2 + k % 2;
    return Load::make(first.buffer, {first.indices[0] + Cast::make(first.indices[0].dtype(), at)});
  }
  Vector<Expr> indices = first.indices;
  const auto inside = [&](int d, const Expr& step) {
    Expr& index = indices[std::size_t(d)];
    index = binary(BinaryOp::min, index + step, imm(first.buffer->dims[std::size_t(d)].extent() - 1));
  };
  inside(shape.column, i), inside(shape.summed, k);
  return Load::make(first.buffer, std::move(indices));
}

}  // namespace detail

/// The loops that compute what `n` does.
inline Stmt definition(const TileProduct& n) {
  const TileProduct::Shape& shape = n.shape;
  const Expr r = Var::make("r"), i = Var::make("i"), k = Var::make("k");
  const auto loop = [](const Expr& var, const Expr& extent, const Stmt& body) {
    return For::make(var, Dim(var.as<Var>()->name, std::max<std::int64_t>(as_int(extent).value_or(1), 1)), extent,
                     ForKind::serial, body);
  };
  const auto& x = *n.x.as<Load>();
  Vector<Stmt> stmts;
  for (int panel = 0; panel < int(n.weights.size()); ++panel) {
    const Expr sum = imm(panel * TileProduct::sums_of_panel) + r * TileProduct::outputs + i;
    Vector<Stmt> element, terms;
    if (!shape.more) element.push_back(Store::make(n.sums, {sum}, FloatImm::make(0, DType::f32)));
    const Expr weight = detail::weight_of_tile(*n.weights[std::size_t(panel)].as<Load>(), shape, i, k);
    for (int piece = 0; piece < TileProduct::pieces; ++piece) {
      const Expr at = (k / 32 * TileProduct::pieces + piece) * TileProduct::tile + r * 32 + k % 32;
      const Expr factor = Load::make(x.buffer, {x.indices[0] + at});
      terms.push_back(Store::make(
          n.sums, {sum},
          Fma::make(Cast::make(DType::f32, weight), Cast::make(DType::f32, factor), Load::make(n.sums, {sum}))));
    }
    element.push_back(loop(k, imm(shape.steps * TileProduct::depth), Block::make(terms)));
    stmts.push_back(loop(r, n.rows, loop(i, imm(TileProduct::outputs), Block::make(element))));
  }
  return Block::make(stmts);
}

}  // namespace cortex::ir
