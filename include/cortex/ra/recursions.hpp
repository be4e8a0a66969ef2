// The recursions of a graph: which operators each needs, and in which order it goes through the nodes.
#pragma once

#include <algorithm>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ra/graph.hpp"

namespace cortex::ra {

/// In which order a recursion goes through the nodes.
enum class Direction : std::uint8_t {
  up,     // children before parents
  down,   // parents before children
  none,   // any: no node reads what the recursion computes at another
  roots,  // the roots alone, in any order: a readout
};

/// What `recursion` reads in place of operator `op`: the state, by its placeholder, of an earlier recursion that has
/// the operator's values at all nodes; the operator itself if there is none.
inline int read_as(const Graph& graph, int op, int recursion) {
  if (graph.ops[std::size_t(op)].at_roots) return op;
  for (const State& state : graph.states)
    if (state.body == op && state.recursion < recursion) return state.placeholder;
  return op;
}

/// Adds what the operators `needed` are made of in `recursion`, by number.
inline void add_read(const Graph& graph, Vector<bool>& needed, int recursion) {
  const auto add = [&](int read) { needed[std::size_t(read_as(graph, read, recursion))] = true; };
  for (std::size_t i = graph.ops.size(); i-- > 0;) {  // an operator reads only those before it
    const Op& op = graph.ops[i];
    if (!needed[i]) continue;
    if (op.kind == OpKind::if_then_else) add(op.then_op), add(op.else_op);
    if (!op.body) continue;
    ir::visit_with(op.body, [&](const ir::Load& load) {
      if (const int read = graph.find(load.buffer); read >= 0) add(read);
    });
  }
}

/// Which operators the states of `recursion` are made of.
inline Vector<bool> operators_of(const Graph& graph, int recursion) {
  Vector<bool> needed(graph.ops.size());
  for (const State& state : graph.states)
    if (state.recursion == recursion) needed[std::size_t(read_as(graph, state.body, recursion))] = true;
  add_read(graph, needed, recursion);
  return needed;
}

/// Which operators the results are made of.
inline Vector<bool> operators_read(const Graph& graph) {
  Vector<bool> read(graph.ops.size());
  for (int r = 0; r < num_recursions(graph); ++r) {
    const Vector<bool> needed = operators_of(graph, r);
    for (std::size_t i = 0; i < read.size(); ++i) read[i] = read[i] || needed[i];
  }
  return read;
}

/// The relation of the node that `index` leads to from the current one: at one step through a child or a container.
inline Relation relation_of(const Graph& graph, const ir::UfCall& step) {
  return step.uf.kind == ir::UfKind::kth_child ? graph.containers[std::size_t(step.uf.accessor)].relation
                                               : Relation::children;
}

/// In which order `recursion` goes through the nodes. Throws `Error{invalid_model}` if it reads its own states at
/// children and at parents, at the node itself, or at the members of a root: then there is no order.
inline Direction direction_of(const Graph& graph, int recursion) {
  const Vector<bool> needed = operators_of(graph, recursion);
  bool up = false, down = false, roots = false;
  const auto refuse = [&](const Op& op, const std::string& what) {
    throw Error(Code::invalid_model, "operator '" + op.name() + "' of model '" + graph.name + "': " + what);
  };
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    roots |= needed[i] && op.at_roots;
    if (!needed[i] || !op.body) continue;
    ir::visit_with(op.body, [&](const ir::Load& load) {
      const int read = graph.find(load.buffer);
      const int state = read < 0 ? -1 : state_of(graph, read);
      if (state < 0 || graph.states[std::size_t(state)].recursion != recursion) return;
      const auto* step = load.indices[0].as<ir::UfCall>();
      if (!step)
        refuse(op, "(P.2) reads '" + load.buffer->name + "' at the node itself in the recursion that computes it");
      switch (relation_of(graph, *step)) {
        case Relation::children: up = true; break;
        case Relation::parents: down = true; break;
        case Relation::members:
          refuse(op, "a readout reads '" + load.buffer->name + "', which is computed in the same pass");
      }
      if (up && down)
        refuse(op,
               "a recursion reads its states at children or at parents, not at both; make it two recursions, the "
               "second of which may read the first's results at the node itself");
    });
  }
  return roots ? Direction::roots : up ? Direction::up : down ? Direction::down : Direction::none;
}

}  // namespace cortex::ra
