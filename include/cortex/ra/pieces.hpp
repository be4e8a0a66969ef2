// Whether large calls may be computed in pieces (structure/pieces.hpp), which the program is lowered for.
#pragma once

#include <string>

#include "cortex/ra/share_subtrees.hpp"

namespace cortex::ra {

/// Why calls under a schedule cannot be computed in pieces; empty: they can.
inline std::string reason_against_pieces(const Graph& graph, const Schedule& schedule) {
  if (!schedule.batched) return "nodes run one by one; ask for dynamic_batch";
  if (!schedule.unrolled.empty()) return "it is unrolled, into subtrees of so many heights";
  if (reads(graph, Relation::parents)) return "it reads the parents of nodes, which may be in later pieces";
  return {};
}

/// Whether they may be, by the schedule or by the compiler's choice.
///
/// That leaves whole: DAGs, whose nodes are looked for in several pieces: grids were measured to gain at most a
/// twentieth, and small ones to lose more; and sequences, whose nodes of one call stand at equal distances, which code
/// makes use of, but for those over large states, as of linear attention, which stay in the cache where fewer sequences
/// run side by side.
inline bool may_be_divided(const Graph& graph, const Schedule& schedule) {
  if (schedule.piece_nodes == 0 || !reason_against_pieces(graph, schedule).empty()) return false;
  if (schedule.piece_nodes > 0) return true;
  bool large_states = false;
  for (std::size_t s = 0; s < graph.states.size(); ++s) large_states |= may_share_rows(graph, s);
  const bool gains =
      graph.structure == StructureKind::tree || (graph.structure == StructureKind::sequence && large_states);
  return gains && !schedule.by_hand;
}

}  // namespace cortex::ra
