// How the roots of a call are divided among groups, on CPUs and on GPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/barrier.hpp"

namespace cortex::runtime {

/// A call with at least so many workers and roots is predicted to be fastest in so many groups.
struct GroupRule {
  int workers = 1, roots = 1, groups = 1;
  friend bool operator==(const GroupRule&, const GroupRule&) = default;
};

/// A root's place: its group, and its number there.
struct RootPlace {
  std::size_t group, number;
  friend bool operator==(const RootPlace&, const RootPlace&) = default;
};

/// Where a root is. Groups take one root after the other, forth and back, so that they have as much to do as each other
/// where users sort roots by size.
inline RootPlace place_of_root(std::size_t root, std::size_t groups) {
  const std::size_t turn = root / groups, at = root % groups;
  return {turn % 2 ? groups - 1 - at : at, turn};
}

/// The root at a place.
inline std::size_t root_at(const RootPlace& place, std::size_t groups) {
  return place.number * groups + (place.number % 2 ? groups - 1 - place.group : place.group);
}

/// How many roots a group has.
inline std::size_t num_roots_of(std::size_t group, std::size_t groups, std::size_t roots) {
  const std::size_t turns = roots / groups;
  return turns + (root_at({group, turns}, groups) < roots);
}

/// The places of roots that reach so many nodes each, where every root goes to the group that has the least to do so
/// far, the largest first. `order` has room for all roots, too. A group's numbers go by the roots'.
inline void deal_by_size(const std::int32_t* sizes, std::size_t roots, std::size_t groups, std::int32_t* order,
                         RootPlace* places) {
  for (std::size_t r = 0; r < roots; ++r) order[r] = std::int32_t(r);
  std::sort(order, order + roots,
            [&](std::int32_t a, std::int32_t b) { return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b; });
  std::array<std::int64_t, max_call_workers> nodes{};
  for (std::size_t i = 0; i < roots; ++i) {
    const auto least = std::min_element(nodes.begin(), nodes.begin() + std::ptrdiff_t(groups));
    *least += sizes[order[i]];
    places[order[i]].group = std::size_t(least - nodes.begin());
  }
  std::array<std::size_t, max_call_workers> count{};
  for (std::size_t r = 0; r < roots; ++r) places[r].number = count[places[r].group]++;
}

/// Whether groups, of which one has `most` of all `nodes`, are so uneven that to deal the roots by size gains more than
/// to number the nodes again takes; a group takes `node_seconds` for each node.
inline bool worth_dealing_by_size(double most, double nodes, std::size_t groups, double node_seconds) {
  constexpr double number_again = 10e-9, start_again = 0.5e-6;
  const double mean = nodes / double(groups);
  return (most - mean) * node_seconds > 2 * (most * number_again + start_again);
}

/// What it takes to wake threads that sleep, in seconds.
inline constexpr double wake_up = 40e-6;

/// What so many workers take of a call, one group of them, by the cost model: in seconds, without numbering its nodes.
struct TeamCost {
  int workers = 1;
  double start = 0, node = 0, level = 0;  // for the call, each of its nodes and each of its levels

  double of(double nodes, double levels) const { return start + node * nodes + level * levels; }
};

/// How many of at most `most` workers are to compute so many nodes in so many levels: more only where they take a tenth
/// off. Those beyond the first `awake` have to be woken. `costs` are sorted by workers; without any, all take part.
inline int best_team(const Vector<TeamCost>& costs, int most, double nodes, double levels,
                     int awake = max_call_workers) {
  int best = costs.empty() ? most : 1;
  double least = 0;
  for (const TeamCost& cost : costs) {
    if (cost.workers > most) break;
    const double seconds = cost.of(nodes, levels) + (cost.workers > awake ? wake_up : 0);
    if (cost.workers == 1 || seconds < 0.9 * least) best = cost.workers, least = seconds;
  }
  return best;
}

/// How many threads are to number the nodes of groups, of which `free` are free and `awake` of these awake, where one
/// thread takes so many seconds: more only where they take a tenth off.
inline int numbering_team(std::size_t groups, int free, int awake, double seconds) {
  constexpr double meeting = 2e-6;
  int best = 1;
  double least = seconds;
  for (int n = 2; n <= free && std::size_t(n) <= groups; ++n) {
    const std::size_t longest = ceil_div(groups, std::size_t(n));  // groups of one thread
    const double shared = seconds * double(longest) / double(groups) + meeting + (n > awake ? wake_up : 0);
    if (shared < 0.9 * least) best = n, least = shared;
  }
  return best;
}

/// How many groups a call of so many workers and roots has at most: groups are of one size, so that an eighth of the
/// workers may be left out, and each has a root.
inline int most_groups(int asked, int workers, std::size_t roots) {
  int groups = int(std::min({std::size_t(asked), std::size_t(workers), roots}));
  while (groups > 1 && workers % groups > workers / 8) --groups;
  return std::max(groups, 1);
}

/// The same as `asked` says, or where that is 0 the last of `rules` that holds; they are sorted by workers, then roots.
inline int groups_of(const Vector<GroupRule>& rules, int asked, int workers, std::size_t roots) {
  if (asked == 0) {
    asked = 1;
    for (const GroupRule& rule : rules)
      if (rule.workers <= workers && std::size_t(rule.roots) <= roots) asked = rule.groups;
  }
  return most_groups(asked, workers, roots);
}

}  // namespace cortex::runtime
