// In pieces of how many nodes large calls are computed (`structure/pieces.hpp`): as many as the cost model takes the
// least time a node for. Levels of a small piece have few nodes, so that weights are read for few rows and register
// tiles are not full; what a large one writes has left the caches when it is read.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/pieces.hpp"
#include "cortex/schedule/choose_groups.hpp"
#include "cortex/schedule/cost.hpp"

namespace cortex::schedule {

/// Why loops by hand, of a program `lowered` to level loops, cannot run over pieces: no pass divides them. Empty: they
/// can, or there are none.
inline std::string reason_against_loops(const Schedule& schedule, const ir::Program& lowered) {
  bool all_at_once = false;
  if (schedule.by_hand)
    ir::visit_with(lowered.body, [&](const ir::UfCall& call) {
      all_at_once |= call.uf.kind == ir::UfKind::all_node || call.uf.kind == ir::UfKind::internal_node;
    });
  return all_at_once ? "its loop schedule is of loops over all nodes of a call at once" : "";
}

/// What a node takes of a call's memory, in bytes: of states, and of what is kept while its level is computed.
struct NodeBytes {
  double states = 0, of_level = 0;
};
inline NodeBytes node_bytes(const ir::Program& program) {
  NodeBytes bytes;
  for (const ir::Buffer& buffer : program.buffers) {
    if (buffer->role != ir::Role::state && buffer->role != ir::Role::temp) continue;
    switch (ir::kind_of_rows(*buffer)) {
      case DimKind::node: (buffer->recycled ? bytes.of_level : bytes.states) += ir::dense_bytes(*buffer); break;
      case DimKind::edge: bytes.states += ir::dense_bytes(*buffer); break;
      case DimKind::batch:
      case DimKind::batch_edge: bytes.of_level += ir::dense_bytes(*buffer); break;
      default: break;
    }
  }
  return bytes;
}

/// The smallest pieces that the compiler chooses; of sequences, about one of them.
inline int least_piece(ra::StructureKind kind) { return kind == ra::StructureKind::sequence ? 32 : 64; }

/// How many nodes batches have to have on average where calls are divided by the compiler's choice: trees may be of any
/// form, and calls on trees like lists would have batches of one node.
inline int least_width(ra::StructureKind kind) { return kind == ra::StructureKind::sequence ? 1 : 4; }

/// The schedule's own number of nodes, or where it leaves that to the compiler, the largest that takes hardly more than
/// the best, of sequences the smallest; 0: calls are computed as a whole, also where pieces of trees would gain less
/// than a fiftieth. `work`: of the program before register tiles. `overwrites_children`: a sequence has one row at a
/// time of states that are recycled, and not two. Throws `Error{invalid_schedule}` for pieces that cannot be.
inline int piece_nodes(const ra::Graph& graph, const ir::Program& lowered, const ir::Program& program,
                       const Vector<ir::WorkItem>& work, const Schedule& schedule, const Target& target,
                       const MachineModel& machine, bool overwrites_children) {
  if (schedule.piece_nodes > 0) {
    std::string reason = ra::reason_against_pieces(graph, schedule);
    if (reason.empty()) reason = reason_against_loops(schedule, lowered);
    if (reason.empty()) return schedule.piece_nodes;
    throw Error(Code::invalid_schedule, "pieces: calls of model '" + graph.name + "' cannot be divided: " + reason +
                                            "; leave it out, or ask for pieces_where_they_pay");
  }
  if (!ra::may_be_divided(graph, schedule)) return 0;
  const NodeBytes bytes = node_bytes(program);
  const bool sequences = graph.structure == ra::StructureKind::sequence;
  const double of_example = example_call(graph.structure).nodes();
  const auto seconds = [&](double nodes) {
    const double roots = nodes / of_example;
    const CostTerms terms = predict(work, schedule, target, machine, example_call(graph.structure, roots));
    // Half of a tree's nodes are leaves, whose level is the largest; a sequence has one or two nodes at a time. Each
    // byte is written and read, of which arithmetic hides some.
    constexpr double seen = 0.6;
    const double at_once = sequences ? (overwrites_children ? 1 : 2) * roots : nodes / 2;
    const double held = nodes * bytes.states + at_once * bytes.of_level;
    const double moved = 2 * nodes * (bytes.states + bytes.of_level);
    return (terms.total() - terms.nodes + seen * moved / machine.bandwidth(held)) / nodes;
  };
  constexpr int most = 1 << 14;
  const int least = least_piece(graph.structure);
  const double whole = seconds(1 << 20);
  double best = HUGE_VAL;
  for (int nodes = least; nodes <= most; nodes *= 2) best = std::min(best, seconds(nodes));
  if (sequences) {  // as few side by side as take hardly more than the best
    best = std::min(best, whole);
    for (int nodes = least; nodes <= most; nodes *= 2)
      if (seconds(nodes) < 1.01 * best) return nodes;
    return 0;
  }
  if (best > 0.98 * whole) return 0;
  int nodes = most;
  while (seconds(nodes) > 1.01 * best) nodes /= 2;
  return nodes;
}

}  // namespace cortex::schedule
