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

/// The number by which `d` chooses a matrix at its node.
inline ir::Expr choice_of(const Definition& d, const ra::Questions& questions) {
  return ir::substitute(questions.choice.key, {{questions.node.get(), d.node}});
}

/// Definitions in a row, for the nodes of each part of a batch or for all at once.
struct Stretch {
  Vector<Definition> definitions;
  bool by_part = false;
};

/// Products that all nodes have in common stay whole; what is computed between those goes with the products that parts
/// have in common, if there are any.
inline Vector<Stretch> stretches_of(const Vector<Definition>& definitions) {
  const auto is_whole = [](const Definition& d) { return !d.by_matrix && has_contraction(d.body); };
  Vector<Stretch> stretches;
  for (std::size_t begin = 0, end = 0; begin < definitions.size(); begin = end) {
    Stretch next;
    for (; end < definitions.size() && is_whole(definitions[end]) == is_whole(definitions[begin]); ++end) {
      next.definitions.push_back(definitions[end]);
      next.by_part |= definitions[end].by_matrix;
    }
    if (stretches.empty() || next.by_part || stretches.back().by_part)
      stretches.push_back(std::move(next));
    else
      append(stretches.back().definitions, next.definitions);
  }
  return stretches;
}

/// The definitions at nodes that choose `matrix`.
inline Vector<Definition> with_matrix(Vector<Definition> definitions, const ra::Questions& questions, int matrix) {
  for (Definition& d : definitions) {
    if (!d.by_matrix) continue;
    const ir::Expr key = choice_of(d, questions);
    d.body = ir::mutate_with(d.body, [&](auto& self, const ir::Load& load) -> ir::Expr {
      Vector<ir::Expr> indices;
      for (const ir::Expr& index : load.indices) {
        const bool chosen = load.buffer->role == ir::Role::weight && ir::equal(index, key);
        indices.push_back(chosen ? ir::imm(matrix) : self(index));
      }
      return ir::Load::make(load.buffer, std::move(indices));
    });
  }
  return definitions;
}

}  // namespace detail

/// Says which definitions hold products with matrices that nodes choose. Leaves do not: they have tables.
inline void sort_by_matrix(Vector<Recursion>& recursions, const ra::Questions& questions) {
  if (!questions.choice.matrices) return;
  for (Recursion& recursion : recursions) {
    const bool recurs = recursion.direction == ra::Direction::up || recursion.direction == ra::Direction::down;
    if (!recurs || recursion.unrolled) continue;
    for (Version& version : recursion.versions) {
      if (version.part == Part::leaves) continue;
      for (Definition& d : version.definitions) {
        if (!d.node) continue;
        const ir::Expr key = detail::choice_of(d, questions);
        ir::visit_with(d.body, [&](const ir::Reduce& sum) {
          ra::for_each_choice(sum, key, [&](const ir::Load&) { d.by_matrix = true; });
        });
      }
    }
  }
}

}  // namespace cortex::lower
