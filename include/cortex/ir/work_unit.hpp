// What work is counted for each of: a call, a level, a node, an edge, ...
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace cortex::ir {

/// `explain` prints units; the cost model knows by their kinds how many of them a call has.
struct WorkUnit {
  enum class Kind : std::uint8_t {
    call,
    level,
    subtree_level,  // a level of subtrees
    root,
    below_root,  // a node below a root
    node,
    leaf,
    inner_node,
    part_node,  // a node of one part of a level's nodes
    subtree_top,
    below_top,  // a node below a subtree's top
    edge,
    part_edge,  // an edge of such a node
    iteration,  // of a loop of which no more is known
  } kind = Kind::call;
  std::int64_t part = 0;  // of part_node and part_edge
  std::string of{};       // iteration: its dimension; edge: the nodes that it is of; empty: any
  std::string where{};    // the conditions under which the work is done, " where x < 3 where not is_leaf(n)"

  friend bool operator==(const WorkUnit&, const WorkUnit&) = default;

  /// Whether it is any of that kind, under no condition.
  bool is_any(Kind of_kind) const { return kind == of_kind && where.empty(); }
};

/// "inner node", "edge of a node of part 3 where x < 3"
inline std::string to_string(const WorkUnit& unit) {
  const auto text = [&]() -> std::string {
    using enum WorkUnit::Kind;
    switch (unit.kind) {
      case call: return "call";
      case level: return "level";
      case subtree_level: return "level of subtrees";
      case root: return "root";
      case below_root: return "node below a root";
      case node: return "node";
      case leaf: return "leaf";
      case inner_node: return "inner node";
      case part_node: return "node of part " + std::to_string(unit.part);
      case subtree_top: return "subtree's top";
      case below_top: return "node below a subtree's top";
      case edge: return unit.of.empty() ? "edge" : "edge of a " + unit.of;
      case part_edge: return "edge of a node of part " + std::to_string(unit.part);
      case iteration: return "iteration over " + unit.of;
    }
    return "?";
  };
  return text() + unit.where;
}

/// The edges of such nodes. Leaves have none, so that those of all nodes and of the inner ones are the same.
inline WorkUnit edge_of(WorkUnit nodes) {
  using enum WorkUnit::Kind;
  if (nodes.is_any(node) || nodes.is_any(inner_node)) return {edge};
  std::string where = std::exchange(nodes.where, {});
  if (nodes.kind == part_node) return {part_edge, nodes.part, {}, std::move(where)};
  return {edge, 0, to_string(nodes), std::move(where)};
}

}  // namespace cortex::ir
