// Up to how many nodes small levels are filled with nodes from below (`structure/fill_levels.hpp`): as many as it takes
// until a node is about as cheap as in a level of many, by the cost model.
#pragma once

#include <string>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "cortex/schedule/cost.hpp"

namespace cortex::schedule {

/// Why the levels of a schedule cannot be filled; empty: they can.
inline std::string reason_against_filling(const ra::Graph& graph, const Schedule& schedule) {
  if (!schedule.batched) return "nodes run one by one; ask for dynamic_batch";
  if (!schedule.unrolled.empty()) return "it is unrolled, into subtrees of so many heights";
  if (ra::reads(graph, ra::Relation::parents))
    return "it reads the parents of nodes, in an order that would change with the other nodes of a call";
  return {};
}

/// Throws `Error{invalid_schedule}` if the schedule asks for filled levels where they cannot be.
inline void check_level_fill(const ra::Graph& graph, const Schedule& schedule) {
  if (schedule.level_fill < 0 || schedule.level_fill > 1024)
    throw Error(Code::invalid_schedule, "fill_levels: levels of " + std::to_string(schedule.level_fill) +
                                            " nodes were asked for; give a number from 1 to 1024, or 0 to leave it to "
                                            "the compiler");
  if (schedule.level_fill <= 1) return;
  const std::string reason = reason_against_filling(graph, schedule);
  if (reason.empty()) return;
  throw Error(Code::invalid_schedule, "fill_levels: model '" + graph.name + "': levels cannot be filled: " + reason +
                                          "; leave it out, or ask for fill_levels_where_it_pays");
}

/// The schedule's own number, or for a GPU as many nodes as its threads compute side by side.
inline int gpu_level_fill(const ra::Graph& graph, const Schedule& schedule) {
  if (schedule.level_fill) return schedule.level_fill;
  if (schedule.by_hand || !reason_against_filling(graph, schedule).empty()) return 1;
  return schedule.gpu.tensor_cores == GpuSchedule::TensorCores::off ? schedule.gpu.rows : 8;
}

/// The schedule's own number, or where it leaves that to the compiler, the fewest nodes of a level that take at most a
/// twentieth longer each than those of a large one; 1, which fills nothing, where a level of one node is soon done.
/// `work`: of the program before register tiles.
inline int level_fill(const ra::Graph& graph, const Vector<ir::WorkItem>& work, const Schedule& schedule,
                      const Target& target, const MachineModel& machine) {
  constexpr int many = 32, most = 16;
  constexpr double worth = 0.1e-6;  // seconds: some twenty times what it takes to move a node
  if (schedule.level_fill) return schedule.level_fill;
  if (!reason_against_filling(graph, schedule).empty()) return 1;
  const double children = graph.structure == ra::StructureKind::sequence ? 1 : 2;
  const auto seconds = [&](const Vector<CallShape::Level>& levels) {
    const CostTerms terms = predict(work, schedule, target, machine, {levels});
    return terms.total() - terms.nodes;
  };
  const double leaf = seconds({{1, 0}});
  const auto each = [&](int nodes) { return (seconds({{1, 0}, {double(nodes), children * nodes}}) - leaf) / nodes; };
  const double least = each(many);
  if (each(1) - least < worth) return 1;
  int fill = 1;
  while (fill < most && each(fill) > 1.05 * least) ++fill;
  return fill;
}

}  // namespace cortex::schedule
