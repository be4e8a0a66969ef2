// How a call lies in the device's memory, and how rows of tensors are moved: those of tables to where nodes have them
// before the program runs, those of a state at the roots to the host after it. And a kernel beside the program's own
// that writes a state's rows at the roots one after the other, wherever their nodes are, and without what pads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// What `cortex_gather` is given, by value; it runs with a block for each root. Words are of 4 bytes.
struct CudaGather {
  std::uint64_t call;     // as `CudaLaunch::call`
  std::uint64_t roots;    // [roots][2] int32: the table of the root's group, by where it begins, and the root's node
  std::uint64_t out;      // [roots][runs * run] words
  std::int64_t row;       // words from one node's row to the next
  std::int32_t buffer;    // of the state, its number in a table
  std::int32_t run;       // words that lie side by side
  std::int32_t stride;    // words from one run to the next
  std::int32_t runs = 1;  // of a row
};

inline constexpr int cuda_gather_threads = 128;  // of a block

/// Where things are in a group's part of a call (`cuda_parts`), in words of 64 bits.
class CudaPart {
 public:
  explicit CudaPart(const ir::Program& program) : buffers_(program.buffers.size()), step_(buffers_, none) {
    for (std::size_t b = 0; b < buffers_; ++b)
      if (program.buffers[b]->scope == ir::Scope::worker) step_[b] = num_own_++;
  }

  /// How many buffers there are, and how many of these each block has for itself.
  std::size_t buffers() const { return buffers_; }
  std::size_t own() const { return num_own_; }
  /// In the table, which begins at `head`: how far it is from one block's to the next's, of a buffer of that kind.
  std::size_t step(std::size_t buffer) const {
    if (!is_own(buffer)) throw Error(Code::internal, "a buffer of all blocks has no step from one to the next");
    return buffers_ + step_[buffer];
  }
  bool is_own(std::size_t buffer) const { return step_[buffer] != none; }

  static constexpr std::size_t head = 4;
  /// All of it, which is copied 16 bytes at a time.
  std::size_t words() const { return (head + buffers_ + num_own_ + 1) / 2 * 2; }

 private:
  static constexpr std::size_t none = ~std::size_t(0);
  std::size_t buffers_, num_own_ = 0;
  Vector<std::size_t> step_;
};

inline constexpr std::string_view cuda_parts = R"cuda(
// ---- a group's part of a call ----
// A head of 4 words: where the group's arrays begin, in bytes from where the call does, how many bytes these and the rows
// at their end are, how many of the rows are moved before the program runs, and * 2^32 after it, and how many bytes from
// the first array on may be brought near. Then a table of where each buffer is: of those that each block of the group
// has for itself, the first block's, and how far it is from there to the next block's, in bytes, stands behind the
// others in the table.
enum Part { head_words = 4, part_words = (head_words + BUFFERS + OWN_BUFFERS + 1) / 2 * 2 };
DEVICE long long part_of(int group) { return (long long)group * part_words; }
struct Rows {
  const u64* moves;
  int count;
};
// The rows end where the arrays do: in memory, or near, behind the part.
DEVICE const u64* end_of(const u64* call, const u64* head, bool near) {
  const u64 bytes = load_row(head, 1);
  return near ? head + part_words + bytes / 8 : call + (load_row(head, 0) + bytes) / 8;
}
DEVICE Rows rows_before(const u64* head, const u64* end) {
  const u64 rows = load_row(head, 2);
  return {end - 3 * ((int)rows + (int)(rows >> 32)), (int)rows};
}
DEVICE Rows rows_after(const u64* head, const u64* end) {
  const int rows = (int)(load_row(head, 2) >> 32);
  return {end - 3 * rows, rows};
}
// To a block's shared memory: its group's part, and its arrays or those that may be brought. They come from the call in
// memory, or from what came with the launch, which is constant memory, of which a warp reads one word at a time.
DEVICE void bring_part(char* near, const u64* call, const Wide* with_launch, int group) {
  const u64* const in = (const u64*)with_launch + part_of(group);
  for (int i = thread_number(); i < part_words; i += THREADS)
    store_chip((u64*)near, i, with_launch ? in[i] : load(call, part_of(group) + i));
}
DEVICE void bring_arrays(char* near, const u64* call, const Wide* with_launch, const u64* head, int bytes) {
  const long long begin = load_row(head, 0) / 8;
  const u64* const in = (const u64*)with_launch + begin;
  for (int i = thread_number(); i < bytes / 8; i += THREADS)
    store_chip((u64*)near, i, with_launch ? in[i] : load(call, begin + i));
}
// A row of words of 4 bytes, by a warp: `moves` says from where, to where, and how many. A store waits for its load, so
// a thread has several loads on their way before the first store.
DEVICE void move_row(const u64* moves, int row) {
  constexpr int at_once = 8;
  const int* const from = (const int*)load_row(moves, 3 * row);
  int* const to = (int*)load_row(moves, 3 * row + 1);
  const int words = (int)load_row(moves, 3 * row + 2);
  for (int i = thread_number() % 32; i < words; i += 32 * at_once) {
    int part[at_once];
    UNROLL("unroll")
    for (int k = 0; k < at_once; ++k)
      if (i + 32 * k < words) part[k] = load(from, i + 32 * k);
    UNROLL("unroll")
    for (int k = 0; k < at_once; ++k)
      if (i + 32 * k < words) store(to, i + 32 * k, part[k]);
  }
}
DEVICE void move_rows(const Rows& rows, int worker) {
  constexpr int warps = THREADS / 32;
  for (int row = worker * warps + thread_number() / 32; row < rows.count; row += BLOCKS * warps)
    move_row(rows.moves, row);
}
)cuda";

inline constexpr std::string_view cuda_gather = R"cuda(
// ---- rows of roots, one after the other ----
namespace gather {
struct Launch {
  const int* const* call;
  const int* roots;
  int* out;
  long long row;
  int buffer, run, stride, runs;
};
KERNEL(cortex_gather, 128) {
  const int root = block_number(), words = launch.run * launch.runs;
  const int* const from = load(launch.call, load(launch.roots, 2 * root) + launch.buffer) +
                          load(launch.roots, 2 * root + 1) * launch.row;
  for (int i = thread_number(); i < words; i += 128)
    store(launch.out, (long long)root * words + i, load(from, i / launch.run * launch.stride + i % launch.run));
}
}  // namespace gather
)cuda";

}  // namespace cortex::codegen
