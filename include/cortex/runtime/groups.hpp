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

/// The first root of group `group` of `groups`; of group `groups`, the number of all roots.
inline std::size_t first_root_of(std::size_t group, std::size_t groups, std::size_t roots) {
  return roots * group / groups;
}

/// The group that has root `root` of `roots`.
inline std::size_t group_of_root(std::size_t root, std::size_t groups, std::size_t roots) {
  return ((root + 1) * groups - 1) / roots;
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
