// When calls of a model are divided among groups of workers, worked out once by the cost model: a call looks up what it
// has of workers and roots.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/count_work.hpp"
#include "cortex/runtime/caches.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/schedule/choose_groups.hpp"

namespace cortex::runtime {

/// The rules for the executable's schedule, by what calls of example structures take; none if calls always have one
/// group, or the schedule says how many.
inline Vector<GroupRule> group_rules_of(const Executable& executable) {
  Schedule schedule = executable.schedule;
  const int most = schedule.max_workers;
  if (most == 1 || schedule.num_groups != 0 || schedule.by_hand) return {};
  Vector<ir::WorkItem> work;
  for (const ir::WorkItem& item : ir::count_work(executable.scheduled.body))
    if (!item.tabulated) work.push_back(item);
  const schedule::MachineModel machine = machine_model(executable.target);
  Vector<GroupRule> rules;
  bool several = false;
  for (const int workers : {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256}) {
    if (workers > most) break;
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

}  // namespace cortex::runtime
