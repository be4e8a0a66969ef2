// When calls of a model are divided among groups of workers, and how many workers take part, worked out once by the
// cost model: a call looks up what it has of workers and roots, nodes and levels.
#pragma once

#include <algorithm>

#include "cortex/base/vector.hpp"
#include "cortex/ir/count_work.hpp"
#include "cortex/runtime/barrier.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/weights.hpp"
#include "cortex/schedule/choose_groups.hpp"
#include "cortex/schedule/level_fill.hpp"
#include "cortex/schedule/piece_nodes.hpp"

namespace cortex::runtime {

namespace detail {

inline constexpr int sizes_with_rules[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256};

/// What calls of a program do, but for what they read from tables.
inline Vector<ir::WorkItem> work_of_calls(const ir::Program& program) {
  Vector<ir::WorkItem> work;
  for (const ir::WorkItem& item : ir::count_work(program.body))
    if (!item.tabulated) work.push_back(item);
  return work;
}

/// What so many workers take. What a node and what a level takes follows from two calls that differ in nodes alone.
inline TeamCost team_cost_of(const Executable& executable, const Vector<ir::WorkItem>& work,
                             const schedule::MachineModel& machine, int workers) {
  Schedule schedule = executable.schedule;
  schedule.max_workers = workers;
  const auto seconds = [&](const schedule::CallShape& shape) {
    const schedule::CostTerms terms = predict(work, schedule, executable.target, machine, shape);
    return terms.total() - terms.nodes;
  };
  const schedule::CallShape one = schedule::example_call(executable.graph.structure),
                            ten = schedule::example_call(executable.graph.structure, 10);
  TeamCost cost{workers, workers > 1 ? machine.start : 0, 0, 0};
  cost.node = (seconds(ten) - seconds(one)) / (ten.nodes() - one.nodes());
  cost.level = std::max(0.0, seconds(one) - cost.node * one.nodes()) / double(one.levels.size());
  return cost;
}

/// What teams of workers take, for the executable's schedule; none if all that are free take part.
inline Vector<TeamCost> team_costs_of(const Executable& executable, const Vector<ir::WorkItem>& work,
                                      const schedule::MachineModel& machine) {
  if (!executable.schedule.fewer_workers) return {};
  Vector<TeamCost> costs;
  for (const int workers : executable.schedule.team_sizes())
    if (workers <= max_call_workers) costs.push_back(team_cost_of(executable, work, machine, workers));
  return costs;
}

/// The rules for the executable's schedule, by what calls of example structures take; none if calls always have one
/// group, or the schedule says how many.
inline Vector<GroupRule> group_rules_of(const Executable& executable, const Vector<ir::WorkItem>& work,
                                        const schedule::MachineModel& machine) {
  Schedule schedule = executable.schedule;
  if (schedule.num_groups != 0) return {};
  Vector<GroupRule> rules;
  bool several = false;
  for (const int workers : sizes_with_rules) {
    if (workers > executable.schedule.max_workers) break;
    schedule.max_workers = workers;
    rules.push_back({workers, 1, 1});
    for (const int roots : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128}) {
      const int groups = schedule::choose_groups(work, schedule, executable.target, machine,
                                                 schedule::example_call(executable.graph.structure, double(roots)));
      if (groups != rules.back().groups) rules.push_back({workers, roots, groups});
      several |= groups > 1;
    }
  }
  return several ? rules : Vector<GroupRule>{};
}

/// Of each buffer of the program, whether it holds a weight that some nest reads whole, and not the rows of it that its
/// nodes name, as those of words.
inline Vector<bool> read_whole(const ir::Program& program, const Vector<ir::WorkItem>& work) {
  Vector<bool> result;
  for (const ir::Buffer& buffer : program.buffers) {
    const int slot = weight_slot(buffer);
    const auto reads = [&](const ir::WorkItem& item) {
      return any_of(item.weights, [&](const ir::WeightRead& read) {
        return weight_slot(read.weight) == slot && !schedule::is_of_rows(read.unit);
      });
    };
    result.push_back(slot >= 0 && any_of(work, reads));
  }
  return result;
}

/// Decides which groups have weights of their own, of those that the rules or the schedule divide calls into; of more
/// than 16, the others share these.
inline void choose_weights_of_groups(Executable& executable, const Vector<ir::WorkItem>& work,
                                     const schedule::MachineModel& machine) {
  int most = 1, least_size = max_call_workers;
  const auto consider = [&](int workers, int groups) {
    const int size = workers / groups;
    if (groups == 1 || !schedule::groups_have_weights(work, size, machine)) return;
    most = std::max(most, groups), least_size = std::min(least_size, size);
  };
  const Schedule& schedule = executable.schedule;
  if (schedule.num_groups)
    consider(schedule.max_workers, most_groups(schedule.num_groups, schedule.max_workers, std::size_t(-1)));
  for (const GroupRule& rule : executable.group_rules) consider(rule.workers, rule.groups);
  executable.groups_with_weights = std::min(most, 16);
  executable.size_with_weights = least_size;
}

}  // namespace detail

/// Works out the executable's `level_fill`, `piece_nodes`, `piece_width`, `group_rules`, `groups_with_weights`,
/// `size_with_weights`, `read_whole`, `team_costs` and `node_seconds`. After its checks are planned.
inline void choose_for_calls(Executable& executable, const schedule::MachineModel& machine) {
  const Vector<ir::WorkItem> work = detail::work_of_calls(executable.scheduled);
  executable.level_fill = schedule::level_fill(executable.graph, work, executable.schedule, executable.target, machine);
  executable.piece_nodes =
      schedule::piece_nodes(executable.graph, executable.lowered, executable.program, work, executable.schedule,
                            executable.target, machine, executable.overwrites_children);
  if (executable.schedule.piece_nodes == Schedule::by_the_caches)
    executable.piece_width = schedule::least_width(executable.graph.structure);
  if (executable.schedule.max_workers == 1 || executable.schedule.by_hand) return;
  executable.group_rules = detail::group_rules_of(executable, work, machine);
  detail::choose_weights_of_groups(executable, work, machine);
  executable.read_whole = detail::read_whole(executable.program, work);
  executable.team_costs = detail::team_costs_of(executable, work, machine);
  executable.node_seconds = detail::team_cost_of(executable, work, machine, 1).node;
}

}  // namespace cortex::runtime
