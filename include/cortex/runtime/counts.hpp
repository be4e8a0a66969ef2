// The counts of a call's structure that generated code reads, in the order of `ir::Count`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cortex/ir/program.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::runtime {

using Counts = std::array<std::int32_t, std::size_t(ir::Count::size)>;

/// Of one piece of a call; its program sees no other.
inline Counts counts_of(const structure::Arrays& in, std::int32_t piece = 0) {
  Counts counts{};
  counts[std::size_t(ir::Count::nodes)] = in.num_nodes;
  counts[std::size_t(ir::Count::internal)] = in.num_internal;
  counts[std::size_t(ir::Count::leaves)] = in.num_nodes - in.num_internal;
  counts[std::size_t(ir::Count::batches)] = in.num_batches;
  counts[std::size_t(ir::Count::roots)] = in.num_roots;
  counts[std::size_t(ir::Count::groups)] = in.subtrees.num_groups;
  counts[std::size_t(ir::Count::child_step)] = in.child_step;
  if (in.num_pieces == 1) return counts;
  // Leaves of the piece and of those before it, where its nodes' children may be, have these numbers and above.
  const std::int32_t leaves = in.piece_batch[piece];
  counts[std::size_t(ir::Count::internal)] = in.batch_begin[leaves];
  counts[std::size_t(ir::Count::leaves)] = in.batch_length[leaves];
  counts[std::size_t(ir::Count::batches)] = in.piece_batch[piece + 1] - leaves;
  counts[std::size_t(ir::Count::roots)] = in.piece_root[piece + 1] - in.piece_root[piece];
  return counts;
}

}  // namespace cortex::runtime
