// What lowering works on between the operator graph and loops: tensors defined at each node of a part of the input.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ra/products.hpp"
#include "cortex/ra/recursions.hpp"

namespace cortex::lower {

/// The nodes that a version of the body is for (L3).
enum class Part : std::uint8_t { all, leaves, internal };

/// One free variable of a definition that is not a node: an output index or a reduction's.
using ra::IndexVar;

/// `buffer[node?, edge?, indices...] = body` for every node of the part at which `guard` holds, every child if `child`
/// is set, and every value of the indices. A definition without `node` is the same for all nodes.
struct Definition {
  ir::Buffer buffer;
  ir::Expr node;       // empty: does not depend on the node
  ir::Expr child;      // the variable k of a definition per child; empty: per node
  int container = -1;  // whose child k is
  Vector<IndexVar> indices;
  ir::Expr body;
  ir::Expr guard;          // condition on `node`; empty: always
  int op = -1;             // the operator that it is part of
  bool by_matrix = false;  // it holds a product with a matrix that nodes choose, by which batches are sorted
};

/// The body for one part, in an order in which everything is defined before it is read.
struct Version {
  Part part = Part::all;
  Vector<Definition> definitions;
  int number = -1;  // which part of each batch, by the answers below, or the first of several; -1: the whole batch
  int parts = 1;    // of so many in a row, each of nodes that choose a matrix
  Vector<int> answers{};  // one for each selector, where there is a number
};

/// One recursion of a graph, with its versions.
struct Recursion {
  ra::Direction direction = ra::Direction::up;
  Vector<ir::Buffer> states;  // its own
  Vector<Version> versions;
  int unrolled = 0;  // how many levels are put into each other; 0: none
};

/// Where a definition is evaluated.
enum class Stage : std::uint8_t {
  once,       // before everything, not per node (L5)
  ahead,      // for all nodes at once, before the recursion (O3)
  recursion,  // in the loop over batches or nodes
};

/// The index list with which a definition's tensor is stored.
inline Vector<ir::Expr> store_indices(const Definition& d) {
  Vector<ir::Expr> result;
  if (d.child)
    result.push_back(ir::call(ir::UfKind::edge, "edge", {d.node, d.child}, d.container));
  else if (d.node)
    result.push_back(d.node);
  for (const IndexVar& index : d.indices) result.push_back(index.var);
  return result;
}

/// Calls `f` on each load of a non-weight buffer in `e`.
template <class F>
void for_each_read(const ir::Expr& e, F f) {
  ir::visit_with(e, [&](const ir::Load& load) {
    if (load.buffer->role != ir::Role::weight) f(load);
  });
}

/// Whether two definitions have the same values, at the same nodes and indices.
inline bool same_values(const Definition& a, const Definition& b) {
  const auto same = [](const ir::Expr& x, const ir::Expr& y) { return x ? y && ir::equal(x, y) : !y; };
  if (!same(a.node, b.node) || bool(a.child) != bool(b.child) || a.container != b.container ||
      !same(a.guard, b.guard) || a.body.type() != b.body.type() || a.indices.size() != b.indices.size())
    return false;
  ir::Substitution names;
  if (a.child) names.emplace(a.child.get(), b.child);
  for (std::size_t i = 0; i < a.indices.size(); ++i) {
    if (!(a.indices[i].dim == b.indices[i].dim)) return false;
    names.emplace(a.indices[i].var.get(), b.indices[i].var);
  }
  return ir::equal(ir::substitute(a.body, names), b.body);
}

/// Whether `e` holds a reduction over a dense dimension: a contraction, the work that is worth moving and tiling.
inline bool has_contraction(const ir::Expr& e) {
  bool found = false;
  ir::visit_with(e, [&](const ir::Reduce& r) { found |= r.axis.dim.kind() == DimKind::dense; });
  return found;
}

}  // namespace cortex::lower
