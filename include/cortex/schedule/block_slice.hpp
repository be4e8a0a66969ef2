// The part of a loop over columns that one block of a group runs.
#pragma once

#include <cstdint>

#include "cortex/schedule/gpu_shape.hpp"
#include "cortex/schedule/share_iterations.hpp"

namespace cortex::schedule {

/// The part of a loop of constant extent that one block runs.
struct BlockSlice {
  ir::Expr begin, end;
  std::int64_t most = 0;  // of any block
};

/// As `share_iterations` cuts the loop; `shared`: the blocks of a group share it, else each runs all of it.
inline BlockSlice slice_of(std::int64_t extent, std::int64_t unit, int blocks, bool shared) {
  if (!shared || blocks == 1) return {ir::imm(0), ir::imm(extent), extent};
  if (extent % (unit * blocks) == 0) {  // the same, and easily seen to begin with whole panels
    const std::int64_t each = extent / blocks;
    const ir::Expr worker = ir::worker();
    return {worker * each, (worker + 1) * each, each};
  }
  const Share own = share_of(ir::imm(extent), unit, ir::imm(blocks));
  return {own.begin, own.end, most_of_slice(extent, unit, blocks)};
}

/// The slice of a nest's innermost loop.
inline BlockSlice slice_of(const LoopHeader& loop, const GpuShape& shape) {
  return slice_of(loop.dim.extent(), loop.piece == 1 ? shape.slice_unit : loop.piece, shape.blocks,
                  loop.kind == ir::ForKind::parallel);
}

}  // namespace cortex::schedule
