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
/// That leaves whole: sequences, whose nodes of one call stand at equal distances, which code makes use of, and DAGs,
/// whose nodes are looked for in several pieces: grids were measured to gain at most a twentieth, and small ones to
/// lose more.
inline bool may_be_divided(const Graph& graph, const Schedule& schedule) {
  if (schedule.piece_nodes == 0 || !reason_against_pieces(graph, schedule).empty()) return false;
  return schedule.piece_nodes > 0 || (graph.structure == StructureKind::tree && !schedule.by_hand);
}

}  // namespace cortex::ra
