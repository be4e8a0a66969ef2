// Groups inner nodes into subtrees of at most `depth` levels (paper section 3.1, unrolling; S3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cortex/base/multiples.hpp"
#include "cortex/structure/derived.hpp"

namespace cortex::structure::subtrees {

/// Writes what `Subtrees` describes for trees and sequences. A node whose parent stands in a higher group, or that has
/// none, is the top of a subtree.
inline Subtrees write(WalkState& walk, const Arrays& arrays, std::int32_t depth) {
  const std::size_t internal = std::size_t(arrays.num_internal);
  const std::int32_t heights = std::max(arrays.num_batches - 1, 0), groups = ceil_div(heights, depth);
  std::int32_t* const begin = walk.group_begin.reserve(std::size_t(groups) + 1);
  std::int32_t* const tops = walk.group_node.reserve(internal + 1);
  std::int32_t* const inner = walk.inner_begin.reserve(internal + 1);
  std::int32_t* const child = walk.inner_child.reserve(internal + 1);  // each inner node is in at most one list
  std::int32_t* const below = walk.queue.reserve(std::size_t(arrays.num_nodes) + 1);
  std::fill(below, below + arrays.num_nodes, 0);
  std::int32_t edges = 0;
  for (std::int32_t g = groups - 1; g >= 0; --g) {  // by ascending number: the highest group first
    const std::int32_t first = arrays.batch_begin[std::min((g + 1) * depth, heights)];
    const std::int32_t end = arrays.batch_begin[g * depth + 1] + arrays.batch_length[g * depth + 1];
    for (std::int32_t n = first; n < end; ++n) {
      inner[n] = edges;
      derived::for_each_child(arrays, walk.num_named, walk.num_containers, n, [&](std::int32_t c) {
        if (c >= end || below[c]) return;  // below the group, or met through another accessor
        below[c] = 1;
        child[edges++] = c;
      });
    }
  }
  inner[internal] = edges;
  std::int32_t at = 0;
  for (std::int32_t g = 0; g < groups; ++g) {
    begin[g] = at;
    for (std::int32_t b = g * depth + 1; b <= std::min((g + 1) * depth, heights); ++b)
      for (std::int32_t n = arrays.batch_begin[b]; n < arrays.batch_begin[b] + arrays.batch_length[b]; ++n)
        if (!below[n]) tops[at++] = n;
  }
  begin[groups] = at;
  return {groups, begin, tops, inner, child};
}

}  // namespace cortex::structure::subtrees
