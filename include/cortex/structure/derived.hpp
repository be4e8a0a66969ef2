// Containers that no node holds and that follow from the children: the parents of each node, and all nodes of each
// root.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cortex/structure/arrays.hpp"
#include "cortex/structure/failures.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure::derived {

/// Calls `f` with the number of each child of `node`, accessor by accessor.
template <class F>
void for_each_child(const Arrays& arrays, int num_named, int num_containers, std::int32_t node, F f) {
  for (int k = 0; k < num_named; ++k)
    if (arrays.child[k][node] < arrays.num_nodes) f(arrays.child[k][node]);
  for (int c = 0; c < num_containers; ++c) {
    const Csr& csr = arrays.children[c];
    for (std::int32_t e = csr.begin[node]; e < csr.begin[node + 1]; ++e) f(csr.child[e]);
  }
}

/// By how much every inner node's number differs from its child's: 1 for one sequence, the number of sequences if all
/// are of one length; 0 if it is not the same everywhere. `child`: [num_internal] numbers of the children.
inline std::int32_t common_step(const Arrays& arrays, const std::int32_t* child) {
  if (arrays.num_internal == 0) return 0;
  std::int32_t differs = 0;
  for (std::int32_t n = 0; n < arrays.num_internal; ++n) differs |= (child[n] - n) ^ child[0];
  return differs == 0 ? child[0] : 0;
}

/// The most entries that the rows of one batch have together.
inline std::int32_t widest_batch(const Arrays& arrays, const std::int32_t* begin) {
  std::int32_t widest = 0;
  for (std::int32_t b = 0; b < arrays.num_batches; ++b) {
    const std::int32_t low = arrays.batch_begin[b];
    widest = std::max(widest, begin[low + arrays.batch_length[b]] - begin[low]);
  }
  return widest;
}

/// Row n: the distinct nodes that have n as a child, in the order of their numbers. `arrays` holds the children
/// already.
inline Csr write_parents(WalkState& walk, const Arrays& arrays, std::size_t container) {
  const std::size_t count = std::size_t(arrays.num_nodes);
  std::int32_t* const begin = walk.csr_begin[container].reserve(count + 2);
  std::int32_t* const last = walk.queue.reserve(count + 1);  // the parent of each node that was met last
  const int num_named = walk.num_named, num_containers = walk.num_containers;
  const auto for_each_pair = [&](auto f) {
    std::fill(last, last + count, -1);
    for (std::int32_t parent = 0; parent < arrays.num_internal; ++parent)
      for_each_child(arrays, num_named, num_containers, parent, [&](std::int32_t child) {
        if (last[child] != parent) f(parent, child);
        last[child] = parent;
      });
  };
  std::memset(begin, 0, (count + 2) * sizeof(std::int32_t));
  for_each_pair([&](std::int32_t, std::int32_t child) { ++begin[child + 2]; });
  for (std::size_t n = 0; n < count; ++n) begin[n + 2] += begin[n + 1];  // begin[n + 1]: where row n starts, for now
  std::int32_t* const parents = walk.csr_child[container].reserve(std::size_t(begin[count + 1]) + 2);
  for_each_pair([&](std::int32_t parent, std::int32_t child) { parents[begin[child + 1]++] = parent; });
  return {begin, parents, begin[count], widest_batch(arrays, begin)};
}

/// Row n, if n is a root: every node that it reaches, itself first, breadth first; else nothing. Roots that stand below
/// each other may have far more members together than there are nodes: no more than the walk may have visits, so that
/// their numbers stay within 32 bits.
inline Csr write_members(WalkState& walk, const Arrays& arrays, std::size_t container) {
  const std::size_t count = std::size_t(arrays.num_nodes);
  std::int32_t* const begin = walk.csr_begin[container].reserve(count + 2);
  std::int32_t* const seen = walk.queue.reserve(count + 1);  // by which root each node was reached last
  std::fill(seen, seen + count, -1);
  std::fill(begin, begin + count + 1, 0);
  for (std::int32_t r = 0; r < arrays.num_roots; ++r) begin[arrays.root[r]] = 1;
  Block<std::int32_t>& list = walk.csr_child[container];
  std::int32_t* members = list.reserve(count + 2);
  std::int64_t size = 0;
  for (std::int32_t root = 0; root < arrays.num_nodes; ++root) {
    const bool is_root = begin[root] == 1;
    begin[root] = std::int32_t(size);
    if (!is_root) continue;
    try {
      members = list.extend(std::size_t(size) + count + 2, std::size_t(size));
    } catch (const Error& why) {
      fail::no_room_for_members(why, size);
    }
    members[size++] = root;
    seen[root] = root;
    for (std::int64_t at = begin[root]; at < size; ++at)
      for_each_child(arrays, walk.num_named, walk.num_containers, members[at], [&](std::int32_t child) {
        if (seen[child] == root) return;
        seen[child] = root;
        members[size++] = child;
      });
    if (size > walk.max_visits) fail::too_many_members(walk);
  }
  const std::int32_t edges = begin[count] = std::int32_t(size);
  return {begin, members, edges, edges};
}

}  // namespace cortex::structure::derived
