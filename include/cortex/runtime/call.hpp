// The second half of a call: from the linearizer's arrays to the states.
#pragma once

#include <algorithm>

#include "cortex/runtime/guards.hpp"
#include "cortex/runtime/run_kernel.hpp"
#include "cortex/runtime/workspace.hpp"

namespace cortex::runtime {

/// Runs the kernel on what the workspace's linearizer has numbered, with the workspace's weights. Takes as many workers
/// as the schedule allows and are free at the moment. Throws `Error{out_of_range}` if a guarded check fails.
inline void run(Workspace& workspace) {
  const structure::Arrays& arrays = workspace.arrays();
  if (arrays.num_nodes == 0) return;
  const Executable& executable = *workspace.plan().executable;
  check_guarded(workspace.plan(), arrays, workspace.weights());
  Workers* const workers = workspace.workers();
  const int wanted = workers ? std::min({executable.schedule.max_workers, workers->size() + 1, max_call_workers}) : 1;
  workspace.prepare(wanted);
  const bool tabulated = workspace.has_tables();
  if (wanted <= 1) {
    if (tabulated) workspace.place_rows(0, 1);
    detail::run_kernel(executable, {workspace.pointers(0), &detail::no_barrier, nullptr, 0, 1});
    return;
  }
  workers->run(wanted, [&](int worker, int num_workers, Barrier& barrier) {
    if (tabulated) {
      workspace.place_rows(worker, num_workers);
      if (num_workers > 1) barrier.wait();
    }
    detail::run_kernel(executable, {workspace.pointers(worker), num_workers > 1 ? &Barrier::call : &detail::no_barrier,
                                    &barrier, worker, num_workers});
  });
}

}  // namespace cortex::runtime
