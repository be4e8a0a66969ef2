// How the roots of a call are divided among groups, on CPUs and on GPUs.
#pragma once

#include <algorithm>
#include <cstddef>

#include "cortex/base/vector.hpp"

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

/// What so many workers take of a call, one group of them, by the cost model: in seconds, without numbering its nodes.
struct TeamCost {
  int workers = 1;
  double start = 0, node = 0, level = 0;  // for the call, each of its nodes and each of its levels

  double of(double nodes, double levels) const { return start + node * nodes + level * levels; }
};

/// How many of at most `most` workers are to compute so many nodes in so many levels: more only where they take a tenth
/// off. `costs` are sorted by workers; without any, all take part.
inline int best_team(const Vector<TeamCost>& costs, int most, double nodes, double levels) {
  int best = costs.empty() ? most : 1;
  double least = 0;
  for (const TeamCost& cost : costs) {
    if (cost.workers > most) break;
    const double seconds = cost.of(nodes, levels);
    if (cost.workers == 1 || seconds < 0.9 * least) best = cost.workers, least = seconds;
  }
  return best;
}

/// How many groups a call of so many workers and roots has at most: groups are of one size, and each has a root.
inline int most_groups(int asked, int workers, std::size_t roots) {
  int groups = int(std::min({std::size_t(asked), std::size_t(workers), roots}));
  while (groups > 1 && workers % groups != 0) --groups;
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
