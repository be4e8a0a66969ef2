// Random schedules for random models.
#pragma once

#include <string>

#include "cortex/ra/pieces.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "cortex/schedule/level_fill.hpp"
#include "support/random_models.hpp"

namespace cortex::test {

/// Any decision, and any combination; some are refused. `shared`: how often several workers share a call.
inline Schedule random_schedule(Random& random, const ra::Graph& graph, double shared = 0.3) {
  Schedule schedule;
  if (random.chance(0.7)) schedule = schedule.dynamic_batch();
  const int specialized = random.below(4);
  if (specialized == 1) schedule = schedule.specialize_where_it_pays();
  if (specialized == 2) schedule = schedule.specialize_if_else();
  if (random.chance(0.5)) schedule = schedule.specialize_leaves();
  for (const ra::Op& op : graph.ops)
    if (op.kind == ra::OpKind::if_then_else && random.chance(0.2)) schedule = schedule.specialize_if_else(op.name());
  if (random.chance(0.25)) schedule = schedule.unroll(graph.name, 1 + random.below(4));
  if (random.chance(shared)) schedule = schedule.workers(2 + random.below(2));
  if (schedule.max_workers > 1 && graph.structure != ra::StructureKind::dag && random.chance(0.4)) {
    const ra::Op& op = graph.ops[std::size_t(random.below(int(graph.ops.size())))];
    if (op.kind == ra::OpKind::compute) schedule = schedule.refactor(op.name());
  }
  if (random.chance(0.3)) schedule = schedule.tile_rows(1 + random.below(12));
  if (schedule.tiling.rows % 2) schedule = schedule.alternate_sweeps();
  if (schedule.tiling.rows % 3 != 1) schedule = schedule.sort_by_matrix();
  if (random.chance(0.2)) schedule = schedule.tile_vectors(1 + random.below(8));
  if (random.chance(0.2)) schedule = schedule.tile_gates(1 + random.below(6));
  if (random.chance(0.1)) schedule = schedule.fuse_nothing();
  const Schedule sharing = schedule.share_subtrees();
  if (random.chance(0.5) && ra::detail::reason_against_sharing(graph, sharing).empty()) schedule = sharing;
  if (random.chance(0.4)) schedule = schedule.tabulate(1);
  const Schedule filled = schedule.fill_levels(2 + random.below(5));
  if (random.chance(0.5) && schedule::reason_against_filling(graph, filled).empty()) schedule = filled;
  if (random.chance(0.6) && ra::reason_against_pieces(graph, schedule).empty())
    schedule = schedule.pieces(1 + random.below(10));
  return schedule;
}

inline std::string text_of(const Schedule& s) {
  std::string text = s.batched ? "batched" : "node by node";
  if (s.specializes_where_it_pays) text += ", leaves and switches specialized";
  if (s.specialize_every) text += ", all branches specialized";
  for (const std::string& name : s.specialized) text += ", " + name + " specialized";
  if (s.level_fill > 1) text += ", levels filled up to " + std::to_string(s.level_fill) + " nodes";
  if (s.piece_nodes > 0) text += ", pieces of " + std::to_string(s.piece_nodes) + " nodes";
  if (s.leaves_apart) text += ", leaves apart";
  for (const std::string& name : s.refactored) text += ", cut at " + name;
  for (const auto& [name, depth] : s.unrolled) text += ", unrolled by " + std::to_string(depth);
  if (s.tiling.rows) text += ", tiles of " + std::to_string(s.tiling.rows) + " rows";
  if (s.tiling.vectors) text += ", tiles of " + std::to_string(s.tiling.vectors) + " vectors";
  if (s.tiling.gates) text += ", " + std::to_string(s.tiling.gates) + " gates";
  if (!s.fuses) text += ", nothing fused";
  if (s.sharing == Sharing::on) text += ", equal subtrees shared";
  if (s.sorting == Sorting::on) text += ", sorted by matrix";
  if (s.tabulating == Tabulating::on) text += ", tabulated";
  return text + ", " + std::to_string(s.max_workers) + " workers";
}

}  // namespace cortex::test
