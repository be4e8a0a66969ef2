// The counts of a call's structure that generated code reads, in the order of `ir::Count`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cortex/ir/program.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::runtime {

using Counts = std::array<std::int32_t, std::size_t(ir::Count::size)>;

inline Counts counts_of(const structure::Arrays& in) {
  Counts counts{};
  counts[std::size_t(ir::Count::nodes)] = in.num_nodes;
  counts[std::size_t(ir::Count::internal)] = in.num_internal;
  counts[std::size_t(ir::Count::batches)] = in.num_batches;
  counts[std::size_t(ir::Count::roots)] = in.num_roots;
  counts[std::size_t(ir::Count::groups)] = in.subtrees.num_groups;
  counts[std::size_t(ir::Count::child_step)] = in.child_step;
  return counts;
}

}  // namespace cortex::runtime
