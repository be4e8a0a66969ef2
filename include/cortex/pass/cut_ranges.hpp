// Loops over elements are cut where a condition on the element changes, so that both pieces are plain vector code: the
// halves of a concatenation, what is shifted by one.
//
//   for i = 0:128: x[i] = select(i < 64,a[min(i,63)],b[max(i - 64,0)])
//     ->
//   for i = 0:64: x[i] = a[i]
//   for i = 0:64: x[i + 64] = b[i]
//
// A loop that holds a contraction stays whole, and one with functions is cut at whole vectors alone: they are worth
// more than conditions cost.
#pragma once

#include <cstdint>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/cuts.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

class RangeCutter {
 public:
  explicit RangeCutter(int lanes) : lanes_(lanes) {}

  ir::Stmt run(const ir::Stmt& body) const {
    return ir::mutate_with(body, [&](auto& self, const ir::For& n) -> ir::Stmt {
      const Vector<std::int64_t> cuts = cuts_of(n);
      if (cuts.size() <= 2 || cuts.size() > most_pieces + 1) return self.children(n);
      Vector<ir::Stmt> pieces;
      for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
        const ir::Expr var = ir::Var::make(n.var.as<ir::Var>()->name);
        const ir::Stmt piece = ir::between(n.body, n.var, var, cuts[c], cuts[c + 1]);
        const Dim dim = ir::piece_of(n.dim, cuts[c], cuts[c + 1]);
        pieces.push_back(ir::For::make(var, dim, ir::imm(dim.extent()), n.loop, run(piece)));
      }
      return ir::Block::make(std::move(pieces));
    });
  }

 private:
  static constexpr std::size_t most_pieces = 8;

  /// Where a loop is cut, with its ends.
  Vector<std::int64_t> cuts_of(const ir::For& loop) const {
    const auto extent = ir::as_int(loop.extent);
    const bool plain = loop.loop == ir::ForKind::serial && loop.dim.kind() == DimKind::dense && extent;
    if (!plain || schedule::has_contraction(loop.body)) return {};
    const bool whole_vectors = ir::has_functions(loop.body);
    Vector<std::int64_t> cuts;
    for (const std::int64_t cut : ir::cuts_of(loop.body, loop.var, *extent))
      if (!whole_vectors || cut % lanes_ == 0 || cut == *extent) cuts.push_back(cut);
    return cuts;
  }

  const int lanes_;  // of vectors of f32
};

}  // namespace detail

inline ir::Stmt cut_ranges(const ir::Stmt& body, int lanes) { return detail::RangeCutter(lanes).run(body); }

}  // namespace cortex::pass
