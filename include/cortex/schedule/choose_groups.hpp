// Into how many groups a call is best divided: as many as the cost model takes the least time for.
//
// Workers of one group own slices of each operator: they wait for each other at every level, and read weights once
// between them. Groups of fewer workers wait less, and each reads its weights again, from a larger slice that may not
// fit the core's cache; their levels have fewer nodes, so register tiles may not be full; and the call waits for the
// group with the most work. Section 4 of the design: "parallel group g".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cortex/base/vector.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/schedule/cost.hpp"

namespace cortex::schedule {

/// A call to give an example of, for each kind of structure: a sequence of 32 nodes, a sentence's tree of 20 words in
/// nine levels, a grid of 6 x 6 nodes; so many of them.
inline CallShape example_call(ra::StructureKind kind, double roots = 1) {
  CallShape shape;
  shape.roots = roots;
  if (kind == ra::StructureKind::tree)
    for (const double nodes : {20, 7, 4, 2, 2, 1, 1, 1, 1})
      shape.levels.push_back({nodes * roots, shape.levels.empty() ? 0 : 2 * nodes * roots});
  if (kind == ra::StructureKind::sequence)
    for (int step = 0; step < 32; ++step) shape.levels.push_back({roots, step ? roots : 0.0});
  if (kind == ra::StructureKind::dag)
    for (int level = 0; level < 11; ++level) {
      const double nodes = roots * (level < 6 ? level + 1 : 11 - level);
      shape.levels.push_back({nodes, level ? 2 * nodes : 0});
    }
  return shape;
}

/// Whether groups of so many workers have weights of their own: where those that a worker sweeps over stay in its
/// second-level cache. A line that two cores hold comes, once one of them has lost it, from the other, and slower than
/// from the cache that all share. Larger ones come from that cache, in which copies of them are in each other's way.
inline bool groups_have_weights(const Vector<ir::WorkItem>& items, int workers, const MachineModel& machine) {
  return machine.levels.size() > 1 && largest_slice(items, workers) <= share_kept * machine.levels[1].bytes;
}

/// What the group with the most work takes of calls that are divided into `groups`, which have to divide the workers.
class GroupCost {
 public:
  GroupCost(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
            const MachineModel& machine, int groups)
      : groups_(std::max(groups, 1)),
        schedule_(divided(schedule, groups_)),
        machine_(shared(machine, items, schedule_, groups_)),
        model_(items, schedule_, target, machine_) {}
  GroupCost(const GroupCost&) = delete;
  GroupCost& operator=(const GroupCost&) = delete;

  CostTerms of(CallShape shape) const {
    if (groups_ == 1) return sum_of_nests(model_, machine_, shape);
    const double most = std::ceil(shape.roots / groups_);
    // Structures are of different sizes, by a third of their mean or so, and the largest of several stands above their
    // mean by that. Where a group has more of them they are dealt by size, which leaves little of it: fitted to random
    // sizes.
    const double uneven = 1 + (1.2 * std::sqrt(std::log(groups_)) - 0.4) / 3 / std::pow(most, 1.6);
    const double share = most / shape.roots * uneven;
    for (CallShape::Level& level : shape.levels) level.nodes *= share, level.edges *= share;
    shape.roots = most;
    CostTerms terms = sum_of_nests(model_, machine_, shape);
    terms.nodes = machine_.group_node * shape.nodes();
    terms.barriers += 2 * machine_.barrier;  // until the groups before are numbered, and at the end
    return terms;
  }

 private:
  static Schedule divided(Schedule schedule, int groups) {
    schedule.max_workers /= groups;
    return schedule;
  }
  static MachineModel shared(MachineModel machine, const Vector<ir::WorkItem>& items, const Schedule& schedule,
                             int groups) {
    if (groups > 1 && !groups_have_weights(items, schedule.max_workers, machine))
      for (MachineModel::Level& level : machine.levels) level.rate *= machine.shared_rate;
    return machine;
  }

  const int groups_;
  const Schedule schedule_;
  const MachineModel machine_;
  const detail::CostModel model_;
};

inline CostTerms predict_in_groups(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
                                   const MachineModel& machine, const CallShape& shape, int groups) {
  return GroupCost(items, schedule, target, machine, groups).of(shape);
}

/// Until the workers of a call have begun, so many in all, beyond what the nests of the group with the most work take.
inline double start_of(int workers, const MachineModel& machine) { return workers > 1 ? machine.start : 0; }

/// The least time of a call in so many groups: of all their workers, or where the schedule may leave some out, of 1, 2,
/// 4, ... or all in each. `seconds(workers, groups)` is what it takes so many workers in all.
template <class Seconds>
double least_in_groups(const Schedule& schedule, int groups, Seconds seconds) {
  const int all = schedule.max_workers / groups;
  double least = HUGE_VAL;
  for (int workers = 1; schedule.fewer_workers && workers < all; workers *= 2)
    least = std::min(least, seconds(workers * groups, groups));
  return std::min(least, seconds(all * groups, groups));
}

/// The number of groups in which a call of so many roots is fastest: one that divides the schedule's workers. More than
/// one have to gain at least a fiftieth.
template <class Seconds>
int choose_groups(const Schedule& schedule, double roots, Seconds seconds) {
  int best = 1;
  double least = least_in_groups(schedule, 1, seconds) * 0.98;
  for (int groups = 2; groups <= schedule.max_workers && groups <= roots; ++groups) {
    if (schedule.max_workers % groups != 0) continue;
    const double own = least_in_groups(schedule, groups, seconds);
    if (own < least) best = groups, least = own;
  }
  return best;
}

namespace detail {

/// What a call of that shape takes, by the cost model.
inline auto seconds_of(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
                       const MachineModel& machine, const CallShape& shape) {
  return [&, own = schedule](int workers, int groups) mutable {
    own.max_workers = workers;
    return start_of(workers, machine) + predict_in_groups(items, own, target, machine, shape, groups).total();
  };
}

}  // namespace detail

/// The same, as predicted for a call of that shape.
inline double least_in_groups(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
                              const MachineModel& machine, const CallShape& shape, int groups) {
  return least_in_groups(schedule, groups, detail::seconds_of(items, schedule, target, machine, shape));
}
inline int choose_groups(const Vector<ir::WorkItem>& items, const Schedule& schedule, const Target& target,
                         const MachineModel& machine, const CallShape& shape) {
  return choose_groups(schedule, shape.roots, detail::seconds_of(items, schedule, target, machine, shape));
}

}  // namespace cortex::schedule
