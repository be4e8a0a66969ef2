// Which recursions of a schedule are unrolled, and the loops of those that are (paper section 3.1, S3).
//
//   for b: for n in batch b: body(n)
//     ->                                                       (depth 2)
//   for g: for t in group g: {for k in inner(top): body(k); body(top)}
//
// The body is put into itself once a level: a subtree's nodes come one after the other, children first, so that their
// states are still near when their parent reads them, and what is temporary in a child's body lives for that child
// alone. Subtrees of a group are independent, so workers share them whole, and there is one barrier a group and not one
// a level.
#pragma once

#include <algorithm>
#include <string>

#include "cortex/base/names.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::lower {

/// The depth of each recursion, 0 where it is not unrolled. Throws `Error{invalid_schedule}` with the reason for what
/// cannot be unrolled.
inline Vector<int> unrolling(const ra::Graph& graph, const Schedule& schedule) {
  constexpr int deepest = 8;
  Vector<int> result(std::size_t(ra::num_recursions(graph)));
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::invalid_schedule, "unroll: model '" + graph.name + "': " + what);
  };
  int common = 0;
  for (const auto& [name, depth] : schedule.unrolled) {
    if (depth < 1 || depth > deepest)
      refuse("'" + name + "' is to be unrolled by " + std::to_string(depth) + "; give a depth from 1 to " +
             std::to_string(deepest));
    if (graph.structure == ra::StructureKind::dag)
      refuse(
          "it is declared for DAGs, in which a node may have several parents, so that it would be computed once for "
          "each; "
          "declare it for cortex::tree, or leave unroll out");
    bool found = false;
    for (const ra::State& state : graph.states) {
      const bool named = graph.ops[std::size_t(state.placeholder)].name() == name;
      if (!named && name != graph.name) continue;
      const ra::Direction direction = ra::direction_of(graph, state.recursion);
      if (direction != ra::Direction::up && named)
        refuse("'" + name + "' does not recurse on children, so there are no calls to put into each other");
      found |= direction == ra::Direction::up;
      if (direction == ra::Direction::up && depth > 1) result[std::size_t(state.recursion)] = depth;
    }
    if (!found)
      refuse("there is no recursion on children that " + in_quotes(name) + " names; name a state, or the program; " +
             near_names(name, names_of(graph, ra::OpKind::placeholder)));
    if (depth > 1 && common != 0 && common != depth)
      refuse("recursions are unrolled by " + std::to_string(common) + " and by " + std::to_string(depth) +
             "; the nodes are grouped in one way for all");
    common = depth > 1 ? depth : common;
  }
  return result;
}

}  // namespace cortex::lower
