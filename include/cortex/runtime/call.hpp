// A call: from the user's nodes to the linearizer's arrays, and from these to the states.
//
// Where several workers take part, they share the call in one of two ways. In one group: the caller numbers all nodes,
// and each worker owns a slice of every operator, with a barrier a level. In several groups: each numbers and computes
// its own share of the roots at the same time as the others, with a barrier only where a group has several workers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>

#include "cortex/base/clock.hpp"
#include "cortex/base/function_ref.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/guards.hpp"
#include "cortex/runtime/run_kernel.hpp"
#include "cortex/runtime/workspace.hpp"

namespace cortex::runtime {

/// What numbers the nodes of a call, apart from the types of nodes and roots. Throws what the linearizer throws.
struct Numbering {
  FunctionRef<void(Workspace&)> all;   // those that the roots reach
  FunctionRef<void(Workspace&)> list;  // none: writes the roots to the workspace's list
  /// Those that some of the listed roots reach. By several threads at the same time, each with its workspace.
  FunctionRef<void(Workspace&, std::span<const void* const> roots)> some;
};

namespace detail {

inline int wanted_workers(const Workspace& workspace) {
  Workers* const workers = workspace.workers();
  if (!workers) return 1;
  const Schedule& schedule = workspace.plan().executable->schedule;
  const int wanted = std::min({schedule.max_workers, workers->size() + 1, max_call_workers});
  return schedule.fewer_workers ? workers->limit(wanted) : wanted;
}

/// Of so many workers, those that are to compute what a workspace's linearizer has numbered; the first `awake` of them
/// need not be woken.
inline int team_of(const Workspace& group, int workers, int awake = max_call_workers) {
  const structure::Arrays& arrays = group.arrays();
  return best_team(group.plan().executable->team_costs, workers, arrays.num_nodes, arrays.num_batches, awake);
}

/// Whether some of the free threads sleep, and no call was so recent that they would still be awake had they helped
/// with it: then the next one may end sooner without them.
inline bool some_sleep(const Workers& pool, const Workers::Free& free) {
  return free.awake < free.all && !pool.follow();
}

/// Of a team that a call is worth, how many are to take part.
inline int team_to_wake(const Workspace& workspace, int team) {
  if (team == 1 || workspace.plan().executable->team_costs.empty()) return team;
  const Workers& pool = *workspace.workers();
  const Workers::Free free = pool.free(team);
  return some_sleep(pool, free) ? team_of(workspace, team, free.awake) : team;
}

/// Computes without threads that sleep.
template <class F>
void leave_asleep(const Workspace& workspace, F compute) {
  workspace.workers()->left_asleep(ns_of(compute));
}

/// One worker's part of what a group computes, after `prepare`.
inline void run_worker(Workspace& group, int worker, int num_workers, Barrier* barrier) {
  for (std::int32_t piece = 0; piece < group.arrays().num_pieces; ++piece) {
    if (piece > 0) {
      if (num_workers > 1) barrier->wait();
      group.enter_piece(worker, piece);
    }
    if (group.has_tables()) {
      group.place_rows(worker, num_workers, piece);
      if (num_workers > 1) barrier->wait();
    }
    run_kernel(*group.plan().executable,
               {group.pointers(worker), num_workers > 1 ? &Barrier::call : &no_barrier, barrier, worker, num_workers});
  }
}

/// A call in several groups, which are found once it is known how many threads are free.
///
/// Each group's first worker numbers the nodes of its roots. Where that shows the groups to be uneven, the first
/// group's deals the roots anew, by how many nodes they reach, and all number again: nodes that are warm in the caches
/// by now.
///
/// Groups know nothing of each other's nodes. So where a structure could mean something else as a whole (a node of two
/// trees is an error; a node of a DAG may have parents in several groups), and where anything is wrong with it, the
/// call is undone: it is made once more in one group, with the errors that belong to it. What the user's types throw
/// passes through at once.
class CallInGroups {
 public:
  CallInGroups(Workspace& workspace, const Numbering& numbering, std::int64_t* when)
      : workspace_(workspace), numbering_(numbering), when_numbered_(when) {
    const ra::Graph& graph = workspace.plan().executable->graph;
    may_repeat_ = graph.structure == ra::StructureKind::dag && all_of(graph.containers, [](const auto& container) {
                    return container.relation == ra::Relation::children;
                  });
  }

  /// Whether the call is made, and not undone.
  bool run(int wanted) {
    const int most = int(std::min(std::size_t(wanted), workspace_.division.num_roots));
    workspace_.make_groups(most);
    for (int g = 0; g < most; ++g) workspace_.group(g).division.numbered.reset(unknown);
    const Workers::Times times = workspace_.workers()->run(
        wanted, [&](int worker, int num_workers, Barrier& barrier) { take_part(worker, num_workers, barrier); });
    if (overlap_.load(std::memory_order_relaxed)) workspace_.division.calls_in_one = 15;  // they may be alike
    const bool made = !undone_.load(std::memory_order_relaxed);
    workspace_.set_groups(made ? groups_ : 1);
    if (made) note(times);
    if (thrown_) std::rethrow_exception(thrown_);
    return made;
  }

 private:
  /// How far a group is: `numbered` once its nodes are, and in the first group once it is decided who has which roots.
  static constexpr std::uint32_t unknown = 0, numbered = 1, good = 2, bad = 3;

  /// Tells the pool of the call. Groups take times as their nodes are many; this thread is of the first.
  void note(const Workers::Times& times) const {
    double most = 0, all = 0;
    for (int g = 0; g < groups_; ++g) {
      const double nodes = workspace_.group(g).arrays().num_nodes;
      most = std::max(most, nodes), all += nodes;
    }
    const double own = std::max(1, workspace_.group(0).arrays().num_nodes);
    const double of_node = double(times.working_ns) / own;
    workspace_.workers()->note(times, std::int64_t(of_node * (all - most)), std::int64_t(of_node * (most - own)));
  }

  void take_part(int worker, int num_workers, Barrier& barrier) {
    const Executable& executable = *workspace_.plan().executable;
    const int groups =
        groups_of(executable.group_rules, executable.schedule.num_groups, num_workers, workspace_.division.num_roots);
    if (worker == 0) groups_ = groups;
    if (groups == 1) return undo();
    const int size = num_workers / groups, first = worker / size * size;
    if (first >= groups * size) return;  // one of those that groups of one size leave out
    Workspace& group = workspace_.group(worker / size);
    Barrier own = barrier.among(first, size);
    if (worker == first && !begin(group, worker / size, groups, size, barrier)) group.division.numbered.set(bad);
    if (size > 1) own.wait();
    if (group.division.numbered.get() != good) return;
    const int team = team_of(group, size);
    Barrier of_team = own.among(0, team);
    if (worker - first < team) run_worker(group, worker - first, team, &of_team);
  }

  /// Numbers the nodes of a group and provides what its workers need; false if the call is undone. Throws nothing:
  /// others may be in generated code, and wait at barriers there.
  bool begin(Workspace& group, int g, int groups, int size, const Barrier& barrier) noexcept {
    try {
      group.use_weights_of(workspace_, g, size);
      numbering_.some(group, roots_of(group, g, groups));
      if (!(g == 0 ? deal(groups, size, barrier) : await_deal(group, barrier))) return false;
      if (workspace_.division.by_size) numbering_.some(group, roots_of(group, g, groups));
      if (g == 0 && when_numbered_) *when_numbered_ = now_ns();
      check_guarded(group.plan(), group.nodes, group.weights());
      group.nodes.list_addresses(group.division.addresses);
      group.prepare(size);
    } catch (const Error&) {
      return undo(), false;
    } catch (const std::bad_alloc&) {
      return undo(), false;
    } catch (...) {  // what the user's types throw, perhaps only once
      if (!throws_.exchange(true)) thrown_ = std::current_exception();
      return undo(), false;
    }
    group.division.numbered.set(good);
    return stands_apart(group, g, barrier);
  }

  /// The first group decides whether roots change groups, once all are numbered. False if one is bad.
  bool deal(int groups, int size, const Barrier& barrier) {
    const std::size_t num_roots = workspace_.division.num_roots;
    double nodes = 0, most = 0;
    for (int g = 0; g < groups; ++g) {
      Workspace& group = workspace_.group(g);
      if (g > 0 && is_bad(group, barrier)) return false;
      nodes += group.arrays().num_nodes;
      most = std::max(most, double(group.arrays().num_nodes));
    }
    const double node_seconds = workspace_.plan().executable->node_seconds / size;
    if (num_roots > std::size_t(groups) && worth_dealing_by_size(most, nodes, std::size_t(groups), node_seconds))
      deal_by_size(groups);
    workspace_.division.numbered.set(numbered);
    return true;
  }
  void deal_by_size(int groups) {
    Workspace::Division& division = workspace_.division;
    const std::size_t num_roots = division.num_roots;
    std::int32_t* const sizes = division.sizes.reserve(num_roots);
    std::int32_t* const order = division.order.reserve(num_roots);
    for (int g = 0; g < groups; ++g) {
      workspace_.group(g).nodes.count_by_root(order);
      const std::size_t count = num_roots_of(std::size_t(g), std::size_t(groups), num_roots);
      for (std::size_t r = 0; r < count; ++r) sizes[root_at({std::size_t(g), r}, std::size_t(groups))] = order[r];
    }
    runtime::deal_by_size(sizes, num_roots, std::size_t(groups), order, division.places.reserve(num_roots));
    division.by_size = true;
  }
  /// What the other groups do meanwhile.
  bool await_deal(Workspace& group, const Barrier& barrier) {
    group.division.numbered.set(numbered);
    return !is_bad(workspace_, barrier);
  }
  static bool is_bad(Workspace& group, const Barrier& barrier) {
    return barrier.wait_for(group.division.numbered, [](std::uint32_t is) { return is != unknown; }) == bad;
  }

  /// The roots of group `g`, listed in its workspace.
  std::span<const void* const> roots_of(Workspace& group, int g, int groups) const {
    const std::size_t num_roots = workspace_.division.num_roots;
    const void* const* const all = workspace_.division.roots.data();
    const void** const own = group.division.own_roots.reserve(num_roots);
    std::size_t count = 0;
    if (workspace_.division.by_size) {
      for (std::size_t r = 0; r < num_roots; ++r)
        if (workspace_.division.places.data()[r].group == std::size_t(g)) own[count++] = all[r];
    } else {
      const std::size_t end = num_roots_of(std::size_t(g), std::size_t(groups), num_roots);
      for (; count < end; ++count) own[count] = all[root_at({std::size_t(g), count}, std::size_t(groups))];
    }
    return {own, count};
  }

  /// Whether few enough of the group's nodes are also in groups before it. Waits until these are numbered.
  bool stands_apart(Workspace& group, int g, const Barrier& barrier) {
    for (int before = 0; before < g; ++before)
      if (barrier.wait_for(workspace_.group(before).division.numbered, [](std::uint32_t is) { return is >= good; }) ==
          bad)
        return false;
    group.division.num_repeated = group.nodes.count_nodes([&](const void* node) {
      for (int before = 0; before < g; ++before) {
        const Workspace& other = workspace_.group(before);
        if (other.division.addresses.may_contain(node) && other.nodes.find(node) >= 0) return true;
      }
      return false;
    });
    if (group.division.num_repeated <= (may_repeat_ ? group.nodes.num_reached() / 8 : 0)) return true;
    overlap_.store(true, std::memory_order_relaxed);
    return undo(), false;
  }

  void undo() { undone_.store(true, std::memory_order_relaxed); }

  Workspace& workspace_;
  const Numbering& numbering_;
  std::int64_t* const when_numbered_;
  bool may_repeat_ = false;
  int groups_ = 1;
  std::atomic<bool> undone_{false}, overlap_{false}, throws_{false};
  std::exception_ptr thrown_;
};

/// Runs the kernel with so many workers, or as many of them as are free.
inline void run_with(Workspace& workspace, int wanted) {
  workspace.prepare(wanted);
  if (wanted > 1) {
    const auto team_among = [&](int num_workers) {  // of those that are free
      return num_workers == wanted ? wanted : team_of(workspace, num_workers);
    };
    const Workers::Times times = workspace.workers()->run(wanted, [&](int worker, int num_workers, Barrier& barrier) {
      const int team = team_among(num_workers);
      Barrier of_team = barrier.among(0, team);
      if (worker < team) run_worker(workspace, worker, team, &of_team);
    });
    // Each worker has its slice of what one would do; what is not divided evenly makes it less.
    return workspace.workers()->note(times, times.working_ns * (team_among(times.num_workers) - 1) / 2);
  }
  run_worker(workspace, 0, 1, nullptr);
}

}  // namespace detail

/// Runs the kernel on what the workspace's linearizer has numbered, with the workspace's weights. Takes as many workers
/// as the schedule finds worth it and are free at the moment; threads that sleep, where that ends the call sooner.
/// Throws `Error{out_of_range}` if a guarded check fails.
inline void run(Workspace& workspace) {
  if (workspace.arrays().num_nodes == 0) return;
  check_guarded(workspace.plan(), workspace.nodes, workspace.weights());
  const int team = detail::team_of(workspace, detail::wanted_workers(workspace));
  const int wanted = detail::team_to_wake(workspace, team);
  if (wanted == team) return detail::run_with(workspace, team);
  detail::leave_asleep(workspace, [&] { detail::run_with(workspace, wanted); });
}

/// Numbers the nodes of a call and runs the kernel on them, in as many groups as the schedule says or the compiler
/// chose for so many roots, and as threads are free; in one where threads sleep that take longer to wake than groups
/// save, which the last call tells until the nodes are numbered. `numbered` becomes the moment between the two, unless
/// null. Throws what `numbering` and `run` throw.
inline void number_and_run(Workspace& workspace, const Numbering& numbering, std::int64_t* numbered) {
  const Executable& executable = *workspace.plan().executable;
  const Workers::Caller caller(workspace.workers());
  const int wanted = detail::wanted_workers(workspace), asked = executable.schedule.num_groups;
  const structure::Arrays& last = workspace.arrays();
  const double nodes_of_root = last.num_roots > 0 ? double(last.num_nodes) / last.num_roots : 0;  // 0: not known
  workspace.set_groups(1);
  const bool may_divide = wanted > 1 && (asked > 1 || (asked == 0 && !executable.group_rules.empty()));
  int& calls_in_one = workspace.division.calls_in_one;
  bool alone = false;
  if (!may_divide || (calls_in_one > 0 && calls_in_one-- > 0)) {
    numbering.all(workspace);
  } else {
    numbering.list(workspace);
    const std::size_t num_roots = workspace.division.num_roots;
    const auto number_all = [&] { numbering.some(workspace, {workspace.division.roots.data(), num_roots}); };
    const bool several = groups_of(executable.group_rules, asked, wanted, num_roots) > 1;
    const auto pays = [&](double nodes) { return executable.node_seconds * nodes * (1 - 1.0 / wanted) >= wake_up; };
    const bool chosen = asked == 0 && executable.schedule.fewer_workers && executable.node_seconds > 0;
    alone = several && chosen && nodes_of_root > 0 && !pays(nodes_of_root * double(num_roots)) &&
            detail::some_sleep(*workspace.workers(), workspace.workers()->free(wanted));
    if (alone) number_all(), alone = !pays(workspace.arrays().num_nodes);
    if (!alone) {
      if (several && detail::CallInGroups(workspace, numbering, numbered).run(wanted)) return;
      number_all();
    }
  }
  if (numbered) *numbered = now_ns();
  if (alone)
    detail::leave_asleep(workspace, [&] { run(workspace); });
  else
    run(workspace);
}

}  // namespace cortex::runtime
