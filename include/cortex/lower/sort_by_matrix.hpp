// Products with one of several matrices, which the node chooses by a number of its own: batches are sorted by that
// number, and each matrix has a loop over the nodes that chose it, which have the product in common.
//
//   for n in batch b: t[n,i] = sum(j, U[tag(n),i,j] * s[n,j]); h[n,i] = tanh(t[n,i])
//     ->                                                                (two matrices)
//   for n in part 2*b:     t[n,i] = sum(j, U[0,i,j] * s[n,j]); h[n,i] = tanh(t[n,i])
//   for n in part 2*b + 1: t[n,i] = sum(j, U[1,i,j] * s[n,j]); h[n,i] = tanh(t[n,i])
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/partition.hpp"

namespace cortex::lower {

namespace detail {

/// Definitions in a row, for the nodes of each part of a batch or for all at once.
struct Stretch {
  Vector<Definition> definitions;
  bool by_part = false;
};

/// Those of a part make the products that they have in common, and what follows up to a product that all nodes have in
/// common.
inline Vector<Stretch> stretches_of(const Vector<Definition>& definitions) {
  Vector<Stretch> stretches;
  bool by_part = false;
  for (const Definition& d : definitions) {
    by_part = d.by_matrix || (by_part && !has_contraction(d.body));
    if (stretches.empty() || stretches.back().by_part != by_part) stretches.push_back({{}, by_part});
    stretches.back().definitions.push_back(d);
  }
  return stretches;
}

/// The definitions at nodes that choose `matrix`.
inline Vector<Definition> with_matrix(Vector<Definition> definitions, const ra::Questions& questions, int matrix) {
  for (Definition& d : definitions) {
    if (!d.by_matrix) continue;
    const ra::MatrixKey key = questions.matrix_key(d.node);
    d.body = ir::mutate_with(d.body, [&](auto& self, const ir::Load& load) -> ir::Expr {
      Vector<ir::Expr> indices;
      for (std::size_t i = 0; i < load.indices.size(); ++i)
        indices.push_back(ra::chooses(load, i, key) ? ir::imm(matrix) : self(load.indices[i]));
      return ir::Load::make(load.buffer, std::move(indices));
    });
  }
  return definitions;
}

}  // namespace detail

/// Says which definitions hold products with matrices that nodes choose. Those of leaves, by a field as it is, have
/// tables instead, where the schedule has any, and unless all nodes are sorted for their parents.
inline void sort_by_matrix(Vector<Recursion>& recursions, const Schedule& schedule, const ra::Questions& questions) {
  if (!questions.choice.matrices) return;
  const bool tables = schedule.tabulating != Tabulating::off && !questions.choice.for_parents &&
                      ra::plain_field(questions.choice.key, questions.node) >= 0;
  for (Recursion& recursion : recursions) {
    const bool recurs = recursion.direction == ra::Direction::up || recursion.direction == ra::Direction::down;
    if (!recurs || recursion.unrolled) continue;
    for (Version& version : recursion.versions) {
      if (version.part == Part::leaves && tables) continue;
      for (Definition& d : version.definitions) {
        if (!d.node) continue;
        const ra::MatrixKey key = questions.matrix_key(d.node);
        ir::visit_with(d.body, [&](const ir::Reduce& sum) { d.by_matrix |= ra::elements_chosen(sum, key) > 0; });
      }
    }
  }
}

}  // namespace cortex::lower
