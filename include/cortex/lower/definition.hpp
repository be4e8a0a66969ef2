// What lowering works on between the operator graph and loops: tensors defined at each node of a part of the input.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
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

/// Whether two definitions have the same values, at the same nodes and indices, whatever their variables are called.
inline bool same_values(const Definition& a, const Definition& b) {
  if (bool(a.node) != bool(b.node) || bool(a.child) != bool(b.child) || a.container != b.container ||
      a.body.type() != b.body.type() || a.indices.size() != b.indices.size())
    return false;
  ir::Substitution to_b;
  if (a.node) to_b.emplace(a.node.get(), b.node);
  if (a.child) to_b.emplace(a.child.get(), b.child);
  for (std::size_t i = 0; i < a.indices.size(); ++i) {
    if (!(a.indices[i].dim == b.indices[i].dim)) return false;
    to_b.emplace(a.indices[i].var.get(), b.indices[i].var);
  }
  const auto same = [&](const ir::Expr& x, const ir::Expr& y) {
    return x && y ? ir::equal(ir::substitute(x, to_b), y) : !x && !y;
  };
  return same(a.guard, b.guard) && same(a.body, b.body);
}

/// Whether two definitions of nodes compute the same into the same buffer.
inline bool same_definition(const Definition& a, const Definition& b) {
  return a.buffer == b.buffer && !a.child && same_values(a, b);
}

inline Vector<ir::Expr> vars_of(const Vector<IndexVar>& indices) {
  Vector<ir::Expr> vars;
  for (const IndexVar& index : indices) vars.push_back(index.var);
  return vars;
}

/// Whether `e` is an element of a weight by outputs and what is summed over.
inline bool is_matrix(const ir::Expr& e, const Vector<ir::Expr>& outputs, const Vector<ir::Expr>& summed) {
  const auto* load = e.as<ir::Load>();
  return load && load->buffer->role == ir::Role::weight && ir::uses_any(e, outputs) && ir::uses_any(e, summed);
}
inline bool has_matrix(const ir::Expr& e, const Vector<ir::Expr>& outputs, const Vector<ir::Expr>& summed) {
  bool found = false;
  ir::visit_with(e, [&](const ir::Load& load) { found |= is_matrix(ir::handle_of(load), outputs, summed); });
  return found;
}

inline bool uses_all(const ir::Expr& e, const Vector<ir::Expr>& vars) {
  return all_of(vars, [&](const ir::Expr& var) { return ir::uses(e, var); });
}

/// Whether `e` is another value for each node: it is made of more than weights, which all nodes have in common.
inline bool is_of_nodes(const ir::Expr& e) {
  bool found = false;
  ir::visit_with(
      e, [&](const ir::UfCall&) { found = true; },
      [&](const ir::Load& load) { found |= load.buffer->role != ir::Role::weight; });
  return found;
}

/// Whether `e` holds a reduction over a dense dimension: a contraction, the work that is worth moving and tiling.
inline bool has_contraction(const ir::Expr& e) {
  bool found = false;
  ir::visit_with(e, [&](const ir::Reduce& r) { found |= r.axis.dim.kind() == DimKind::dense; });
  return found;
}

}  // namespace cortex::lower
