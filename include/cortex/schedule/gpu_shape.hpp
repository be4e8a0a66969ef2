// How a GPU shares a call among blocks and threads: what the schedule says, and the rest chosen from shapes and device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cortex/base/multiples.hpp"
#include "cortex/base/target.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::schedule {

/// The shape of a launch. A worker of the program is a thread block; the blocks of a group share its trees, and groups
/// know nothing of each other.
struct GpuShape {
  GpuSchedule::Group group = GpuSchedule::Group::block;  // not automatic
  bool lock_based = true;
  int blocks = 1;                 // of a group
  int threads = 0;                // of a block, a power of two
  int rows = 0;                   // nodes that a thread computes side by side, at most, where their sums are in parts
  int whole_rows = 0;             // and where they are whole, as those of nodes' matrices, which have columns, too
  int parts = 1;                  // of a sum, each a thread's, or a tile of a warp's; a power of two
  std::int64_t shared_bytes = 0;  // of a block's shared memory
  std::int64_t chip_bytes = 0;    // of weights that a block may keep there
  int recent_rows = -1;           // that blocks keep there of what they exchange; -1: as many as there is room for
  bool resident = false;          // it is an error if they do not fit
  int weight_registers = 0;       // of a thread, for weights; 0: none are kept there
  int accumulators = 32;          // that a thread keeps in registers, for all its nodes and gates
  DType products = DType::f32;    // what tensor cores multiply: bf16, f16, tf32; f32: threads multiply, without them
  std::int64_t slice_unit = 8;  // columns that blocks' slices are cut between: whole sectors of memory, 32 bytes each,
                                // or of tensor cores' tiles
};

/// A tile of tensor cores: outputs times indices that are summed over times rows. The weights are the larger operand
/// (PTX's A, 16 outputs), and rows the smaller (B, 8), because levels are small: a level of one node pads to 8.
struct TensorTile {
  static constexpr int outputs = 16, rows = 8;
  static constexpr int depth(DType type) { return type == DType::tf32 ? 8 : 16; }
};

/// What tensor cores multiply; f32 without them.
inline DType products_of(const GpuSchedule& wish) {
  constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::tf32};
  return types[std::size_t(wish.tensor_cores)];
}

/// How many rows of what its blocks exchange a group keeps at hand where the schedule does not say: half as many where
/// there is no room, and none rather than fewer than the least, with which hardly a child would be among them.
inline constexpr int most_recent_rows = 64, fewest_recent_rows = 8;

/// What the choice depends on.
struct GpuProblem {
  std::int64_t weight_bytes = 0;  // of matrices that levels read, as they are stored, embeddings not included
  std::int64_t columns = 1;       // of the widest result
  std::int64_t rows = 1;          // of the largest result at a node: the other dimensions of a matrix
  bool shares_columns = true;     // blocks share the columns of each node, and none has nodes or sums of its own
  std::int64_t cut = 0;           // of the sums at which `refactor` cuts, of which blocks own equal slices; 0: of none
};

/// The most of `extent` columns that a block has where they are cut between units, and the last block has the rest.
/// That is the last block: where units do not divide evenly, w * units / blocks leaves it as many as any other has.
inline std::int64_t most_of_slice(std::int64_t extent, std::int64_t unit, int blocks) {
  const std::int64_t units = extent / unit, rest = extent - units * unit;
  return ceil_div(units, blocks) * unit + rest;
}

namespace detail {

[[noreturn]] inline void refuse_gpu(const std::string& what) {
  throw Error(Code::invalid_schedule, "schedule for a GPU: " + what);
}

inline bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

/// Without tensor cores, as many parts of a sum as leave no thread of a block idle where there is a single node, with
/// eight terms or more in each of sums as long as the widest result: joining them takes additions of its own. On tensor
/// cores two chains of products where registers hold them, which with gates side by side hide how long a product takes.
inline int parts_for(const GpuShape& shape, std::int64_t columns) {
  if (shape.products != DType::f32) return shape.threads <= 256 ? 2 : 1;
  const std::int64_t units = ceil_div(columns, shape.slice_unit);
  const std::int64_t slice = ceil_div(units, shape.blocks) * shape.slice_unit;
  int parts = 1;
  while (parts < Gpu::warp && 2 * parts * slice <= shape.threads && 2 * parts * 8 <= columns) parts *= 2;
  return parts;
}

/// Whether the weights fit into the shared memory of as many blocks as the shape has, with what pads them there, as if
/// all of them had the columns of the widest result, and as many terms of a sum.
inline bool weights_fit(const GpuShape& shape, const GpuProblem& problem) {
  const bool tiles = shape.products != DType::f32;
  const int parts = shape.parts ? shape.parts : parts_for(shape, problem.columns);
  const std::int64_t depth = tiles ? TensorTile::depth(shape.products) : parts == 1 ? 1 : quad * parts;
  const std::int64_t outputs = tiles ? TensorTile::outputs : parts == 1 ? 1 : Gpu::warp / parts;
  const auto padded = [](std::int64_t count, std::int64_t to) { return double(round_up(count, to)); };
  const double columns = double(problem.columns);
  return double(problem.weight_bytes) * (padded(problem.columns, depth) / columns) *
             (padded(most_of_slice(problem.columns, shape.slice_unit, shape.blocks), outputs) / columns) <=
         double(shape.chip_bytes);
}

/// Whether a block by itself is as fast as those that share its levels: if it reads its weights at a level, 128 bytes a
/// cycle, in less time than blocks take to meet. On an H200 a level of a chain takes 0.3 us longer for each time that
/// the blocks of a cluster meet (docs/measurements.md).
inline bool is_small(const GpuProblem& problem) {
  constexpr std::int64_t bytes_while_blocks_meet = 128 * 600;
  return problem.weight_bytes * problem.rows <= bytes_while_blocks_meet;
}

/// The fewest blocks, a power of two and at most `most`, in whose shared memory the weights fit; 0 if there are none.
inline int blocks_for(GpuShape shape, const GpuProblem& problem, std::int64_t most) {
  for (shape.blocks = 2; shape.blocks <= most; shape.blocks *= 2)
    if (weights_fit(shape, problem)) return shape.blocks;
  return 0;
}

/// As many blocks of a grid, a power of two, as have 32 KB each of what a node reads at a level, or of what each row of
/// its matrix does, in which a block reads shared memory for half as long as blocks take to meet; 0 where a cluster is
/// as fast, or it has not been measured. On an H200 levels are up to twice as fast so as in a cluster or in fewer
/// blocks, and those of ten trees, of which a group then has more, mostly faster, too (docs/measurements.md).
inline int wide_blocks(const GpuShape& shape, const GpuProblem& problem, const Gpu& gpu, std::int64_t slices) {
  constexpr std::int64_t bytes = 32 << 10;
  if (!problem.shares_columns || shape.products != DType::f32 || shape.weight_registers) return 0;
  const std::int64_t read = problem.weight_bytes * problem.rows;
  const std::int64_t most = std::min({std::int64_t(gpu.multiprocessors / 2), slices, read / bytes});
  std::int64_t blocks = problem.rows > 1 ? 16 : 32;
  while (2 * blocks <= most) blocks *= 2;
  return blocks <= most ? int(blocks) : 0;
}

inline void check_gpu(const GpuSchedule& wish, const Gpu& gpu) {
  using Group = GpuSchedule::Group;
  const std::string device = "a GPU of compute capability " + capability_text(gpu.sm);
  if (gpu.sm < 70) refuse_gpu(device + " is older than what is supported, 7.0 and later");
  if (gpu.multiprocessors < 1 || gpu.shared_bytes < 0 || gpu.registers < 1)
    refuse_gpu(device + " with " + std::to_string(gpu.multiprocessors) + " multiprocessors, " +
               std::to_string(gpu.shared_bytes) + " bytes of shared memory a block and " +
               std::to_string(gpu.registers) +
               " registers: Gpu::of(sm) describes a usual one, Device::gpu() one that "
               "is there");
  if (wish.tensor_cores != GpuSchedule::TensorCores::off && gpu.sm < 80)
    refuse_gpu(device + " has no tensor cores for " + std::string(to_string(products_of(wish))) +
               " that add in f32; 8.0 and later have");
  if (wish.tensor_cores != GpuSchedule::TensorCores::off && wish.weights == GpuSchedule::Weights::registers)
    refuse_gpu(
        "weights in registers are for threads that multiply them one by one, and tensor cores read them in tiles; take "
        "weights resident, or leave tensor_cores out");
  if (wish.threads && (!is_power_of_two(wish.threads) || wish.threads < Gpu::warp || wish.threads > 1024))
    refuse_gpu(std::to_string(wish.threads) + " threads a block: it takes a power of two from 32 to 1024");
  if (wish.rows && (!is_power_of_two(wish.rows) || wish.rows > 8))
    refuse_gpu(std::to_string(wish.rows) + " nodes side by side: it takes 1, 2, 4 or 8");
  if (wish.parts && (!is_power_of_two(wish.parts) || wish.parts > Gpu::warp))
    refuse_gpu(std::to_string(wish.parts) + " parts of a sum: it takes 1, 2, 4, 8, 16 or 32, threads of one warp");
  if (wish.parts > 8 && wish.tensor_cores != GpuSchedule::TensorCores::off)
    refuse_gpu(std::to_string(wish.parts) +
               " parts of a sum: with tensor cores it takes 1, 2, 4 or 8, tiles of one warp");
  if (wish.blocks < 0) refuse_gpu("a group has no " + std::to_string(wish.blocks) + " blocks");
  if (wish.group == Group::cluster && !gpu.has_clusters())
    refuse_gpu(device + " has no clusters of blocks; 9.0 and later have: take group block or grid");
  if (wish.group == Group::block && wish.blocks > 1)
    refuse_gpu("group block is one block, and not " + std::to_string(wish.blocks));
  if (wish.group == Group::cluster && wish.blocks && (!is_power_of_two(wish.blocks) || wish.blocks > 8))
    refuse_gpu("a cluster of " + std::to_string(wish.blocks) + " blocks: it has 1, 2, 4 or 8");
  if (wish.recent_rows < -1 || wish.recent_rows > 4096 || (wish.recent_rows > 0 && !is_power_of_two(wish.recent_rows)))
    refuse_gpu(std::to_string(wish.recent_rows) +
               " recent rows: it takes a power of two up to 4096, 0 for none, or -1 for the compiler's choice");
  // One block and a cluster have fewer: left to the compiler, so many would be a grid.
  if ((wish.group == Group::grid || wish.group == Group::automatic) && wish.blocks > gpu.multiprocessors)
    refuse_gpu("a grid of " + std::to_string(wish.blocks) + " blocks cannot meet at a barrier on " +
               std::to_string(gpu.multiprocessors) + " multiprocessors");
}

/// The group that so many blocks can be.
inline GpuSchedule::Group group_of(int blocks, const Gpu& gpu) {
  using Group = GpuSchedule::Group;
  if (blocks == 1) return Group::block;
  return gpu.has_clusters() && is_power_of_two(blocks) && blocks <= 8 ? Group::cluster : Group::grid;
}

/// The registers of a thread for weights and for sums.
inline void choose_registers(GpuShape& shape, const GpuSchedule& wish, const Gpu& gpu) {
  const int of_thread = gpu.registers / shape.threads;
  shape.accumulators = std::clamp((of_thread - 32) / 8, 4, 32);
  if (wish.weights != GpuSchedule::Weights::registers) return;
  // With more, loads ahead of their use make the assembler spill. Nodes side by side share no reading of weights here.
  shape.weight_registers = std::clamp((of_thread - 64) / 2, 0, 72);
  shape.accumulators = std::min(shape.accumulators, 2);
  if (!shape.weight_registers)
    refuse_gpu("weights are to stay in registers, but a thread of " + std::to_string(shape.threads) + " a block has " +
               std::to_string(of_thread) + ", all for what it works with; take 512 threads or fewer");
}

/// The most of so many blocks that own equal slices of `extent` elements; all where no two or more do, for lowering to
/// refuse.
inline int equal_blocks(const GpuShape& shape, std::int64_t extent) {
  for (int blocks = shape.blocks; blocks > 1; --blocks)
    if (extent % blocks == 0 && (shape.group != GpuSchedule::Group::cluster || is_power_of_two(blocks))) return blocks;
  return shape.blocks;
}

/// The group and its blocks. `slices`: the most blocks that have a part of every row.
inline void choose_group(GpuShape& shape, const GpuSchedule& wish, const Gpu& gpu, const GpuProblem& problem,
                         std::int64_t slices) {
  using Group = GpuSchedule::Group;
  shape.group = wish.group;
  const int largest_cluster = slices < 4 ? 2 : slices < 8 ? 4 : 8;
  const bool may_be_wide = shape.chip_bytes && wish.recent_rows <= 0;
  const int wide = may_be_wide ? wide_blocks(shape, problem, gpu, slices) : 0;
  if (wish.group == Group::automatic) {
    const bool clusters = gpu.has_clusters() && slices > 1;
    const bool alone = weights_fit(shape, problem) && (!clusters || is_small(problem));
    shape.group = wish.blocks                                               ? group_of(wish.blocks, gpu)
                  : slices == 1 || alone                                    ? Group::block
                  : wide                                                    ? Group::grid
                  : clusters && blocks_for(shape, problem, largest_cluster) ? Group::cluster
                                                                            : Group::grid;
  }
  if (shape.group == Group::cluster) shape.blocks = largest_cluster;
  if (shape.group == Group::grid) {
    // Where there is little to read, few blocks meet sooner than many, and leave room for other groups.
    const std::int64_t most = std::min<std::int64_t>(gpu.multiprocessors, slices);
    const int fit = blocks_for(shape, problem, most);
    shape.blocks = std::max(fit ? fit : int(most), wide);
  }
  if (wish.blocks)
    shape.blocks = wish.blocks;
  else if (problem.cut)
    shape.blocks = equal_blocks(shape, problem.cut);
}

}  // namespace detail

/// The shape of launches for this device. Models with little to compute have groups of one block; those with much to
/// read at a level, of many blocks of a grid; those whose weights fit into a cluster's shared memory, of the largest
/// cluster, whose blocks read the least each; else the fewest blocks of a grid in whose shared memory they fit take
/// slices, or all. Throws `Error{invalid_schedule}` for what the device cannot do.
inline GpuShape gpu_shape(const GpuSchedule& wish, const Gpu& gpu, const GpuProblem& problem) {
  using Group = GpuSchedule::Group;
  detail::check_gpu(wish, gpu);
  GpuShape shape;
  shape.products = products_of(wish);
  if (shape.products != DType::f32) shape.slice_unit = TensorTile::outputs;
  const std::int64_t slices = std::max<std::int64_t>(problem.columns / shape.slice_unit, 1);
  shape.lock_based = wish.lock_based;
  shape.threads = wish.threads ? wish.threads : 256;
  shape.rows = wish.rows ? wish.rows : shape.threads <= 256 ? 8 : 4;
  shape.whole_rows = wish.rows ? wish.rows : 4;
  shape.parts = wish.parts;
  detail::choose_registers(shape, wish, gpu);
  shape.shared_bytes = gpu.shared_bytes;
  shape.chip_bytes = wish.weights == GpuSchedule::Weights::streamed ? 0 : gpu.shared_bytes;
  shape.recent_rows = wish.recent_rows;
  shape.resident = wish.weights == GpuSchedule::Weights::resident;
  detail::choose_group(shape, wish, gpu, problem, slices);
  if (shape.group == Group::grid && wish.recent_rows > 0)
    detail::refuse_gpu(
        "the blocks of a grid do not reach each other's shared memory, in which recent rows are kept; leave "
        "out recent_rows, or take group cluster");
  // On an H200 levels take 0 to 12 % less where blocks read from the L2 cache what they exchange than where each writes
  // it to all (docs/measurements.md). With tensor cores, and weights in registers, it has not been measured.
  const bool measured = shape.products == DType::f32 && !shape.weight_registers;
  if (shape.group == Group::cluster && measured && wish.recent_rows < 0) shape.recent_rows = 0;
  if (!shape.parts) shape.parts = detail::parts_for(shape, problem.columns);
  if (shape.parts == 1) shape.rows = shape.whole_rows;
  return shape;
}

}  // namespace cortex::schedule
