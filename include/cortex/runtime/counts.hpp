// The counts of a call's structure that generated code reads, in the order of `ir::Count`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cortex/ir/program.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::runtime {

using ir::Counts;

/// Of one piece of a call; its program sees no other.
inline Counts counts_of(const structure::Arrays& in, std::int32_t piece = 0) {
  using ir::Count;
  Counts counts = ir::counts_of_whole(in.num_nodes, in.num_internal);
  const auto set = [&](Count which, std::int32_t to) { counts[std::size_t(which)] = to; };
  set(Count::batches, in.num_batches);
  set(Count::roots, in.num_roots);
  set(Count::groups, in.subtrees.num_groups);
  set(Count::child_step, in.child_step);
  if (in.num_pieces == 1) return counts;
  const structure::NodeNumbers leaves = structure::leaves_of(in, piece), inner = structure::inner_of(in, piece);
  const auto set_range = [&](ir::NodeRange range, const structure::NodeNumbers& nodes) {
    counts[std::size_t(Count::range_begin) + std::size_t(range)] = nodes.first;
    counts[std::size_t(Count::range_length) + std::size_t(range)] = nodes.count;
  };
  set(Count::internal, leaves.first);  // behind it also stand those of the pieces before, where children may be
  set(Count::leaves, leaves.count);
  set(Count::batches, in.piece_batch[piece + 1] - in.piece_batch[piece]);
  set(Count::roots, in.piece_root[piece + 1] - in.piece_root[piece]);
  set(Count::ranges, 2);
  set_range(ir::NodeRange::lower, inner);
  set_range(ir::NodeRange::upper, leaves);
  set_range(ir::NodeRange::inner, inner);
  return counts;
}

}  // namespace cortex::runtime
