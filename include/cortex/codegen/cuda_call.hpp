// How a call lies in the device's memory, and how rows of tensors are moved: those of tables to where nodes have them
// before the program runs, those of a state at the roots to the host after it. And a kernel beside the program's own
// that writes a state's rows at the roots one after the other, wherever their nodes are, and without what pads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cortex/base/error.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/codegen/cuda_numbers.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// What `cortex_gather` is given, by value; it runs with a block for each root. Words are of 4 bytes.
struct CudaGather {
  std::uint64_t call;     // as `CudaLaunch::call`
  std::uint64_t roots;    // [roots] `CudaGatheredRoot`
  std::uint64_t out;      // [roots][runs * run] words
  std::int64_t row;       // words from one node's row to the next
  std::int32_t buffer;    // of the state, its number in a table
  std::int32_t run;       // words that lie side by side
  std::int32_t stride;    // words from one run to the next
  std::int32_t runs = 1;  // of a row
};

/// Where a root's rows are: the table of its group, by where it begins, and its node.
struct CudaGatheredRoot {
  std::int32_t table, node;
};
static_assert(sizeof(CudaGatheredRoot) == 8 && offsetof(CudaGatheredRoot, node) == 4,
              "`cortex_gather` reads two words of each root");

inline constexpr int cuda_gather_threads = 128;  // of a block

/// A row of words of 4 bytes that a group moves: from where, to where, and how many.
struct CudaMove {
  std::uint64_t from, to, words;
};
static_assert(sizeof(CudaMove) % 8 == 0 && offsetof(CudaMove, to) == 8 && offsetof(CudaMove, words) == 16,
              "`move_row` reads them one after the other");

/// Where things are in a group's part of a call (`cuda_parts`), in words of 64 bits.
class CudaPart {
 public:
  /// The words of its head, and how many they are: the table begins behind it.
  enum Head : std::size_t { arrays_at, arrays_bytes, moved_rows, near_bytes, head };
  /// Of them `moved_rows`: how many rows are moved before the program runs, and after it.
  static constexpr std::uint64_t rows(std::uint64_t before, std::uint64_t after) { return before | after << 32; }

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

  /// All of it, which is copied 16 bytes at a time.
  std::size_t words() const { return (head + buffers_ + num_own_ + 1) / 2 * 2; }

 private:
  static constexpr std::size_t none = ~std::size_t(0);
  std::size_t buffers_, num_own_ = 0;
  Vector<std::size_t> step_;
};

/// How a kernel finds its group's part and moves rows, as text; with PART_WORDS before it, which is `CudaPart::words`.
inline std::string cuda_parts() {
  return "\n// ---- a group's part of a call ----\n" + cuda_define("WARP", Gpu::warp) +
         cuda_define("MOVE_WORDS", sizeof(CudaMove) / 8) +
         cuda_enum("Head", {{"arrays_at", CudaPart::arrays_at},
                            {"arrays_bytes", CudaPart::arrays_bytes},
                            {"moved_rows", CudaPart::moved_rows},
                            {"near_bytes", CudaPart::near_bytes},
                            {"head_words", CudaPart::head}}) +
         R"cuda(
// A head, whose words say where the group's arrays begin, in bytes from where the call does, how many bytes these and
// the rows at their end are, how many of the rows are moved before the program runs, and * 2^32 after it, and how many
// bytes from the first array on may be brought near. Then a table of where each buffer is: of those that each block of
// the group has for itself, the first block's, and how far it is from there to the next block's, in bytes, stands behind
// the others in the table.
DEVICE long long part_of(int group) { return (long long)group * PART_WORDS; }
struct Rows {
  const u64* moves;
  int count;
};
// The rows end where the arrays do: in memory, or near, behind the part.
DEVICE const u64* end_of(const u64* call, const u64* head, bool near) {
  const u64 bytes = load_row(head, arrays_bytes);
  return near ? head + PART_WORDS + bytes / 8 : call + (load_row(head, arrays_at) + bytes) / 8;
}
DEVICE Rows rows_before(const u64* head, const u64* end) {
  const u64 rows = load_row(head, moved_rows);
  return {end - MOVE_WORDS * ((int)rows + (int)(rows >> 32)), (int)rows};
}
DEVICE Rows rows_after(const u64* head, const u64* end) {
  const int rows = (int)(load_row(head, moved_rows) >> 32);
  return {end - MOVE_WORDS * rows, rows};
}
// To a block's shared memory: its group's part, and its arrays or those that may be brought. They come from the call in
// memory, or from what came with the launch, which is constant memory, of which a warp reads one word at a time.
DEVICE void bring_part(char* near, const u64* call, const Wide* with_launch, int group) {
  const u64* const in = (const u64*)with_launch + part_of(group);
  for (int i = thread_number(); i < PART_WORDS; i += THREADS)
    store_chip((u64*)near, i, with_launch ? in[i] : load(call, part_of(group) + i));
}
DEVICE void bring_arrays(char* near, const u64* call, const Wide* with_launch, const u64* head, int bytes) {
  const long long begin = load_row(head, arrays_at) / 8;
  const u64* const in = (const u64*)with_launch + begin;
  for (int i = thread_number(); i < bytes / 8; i += THREADS)
    store_chip((u64*)near, i, with_launch ? in[i] : load(call, begin + i));
}
// A row of words of 4 bytes, by a warp: `moves` says from where, to where, and how many. A store waits for its load, so
// a thread has several loads on their way before the first store.
DEVICE void move_row(const u64* moves, int row) {
  constexpr int at_once = 8;
  const int* const from = (const int*)load_row(moves, MOVE_WORDS * row);
  int* const to = (int*)load_row(moves, MOVE_WORDS * row + 1);
  const int words = (int)load_row(moves, MOVE_WORDS * row + 2);
  for (int i = thread_number() % WARP; i < words; i += WARP * at_once) {
    int part[at_once];
    UNROLL("unroll")
    for (int k = 0; k < at_once; ++k)
      if (i + WARP * k < words) part[k] = load(from, i + WARP * k);
    UNROLL("unroll")
    for (int k = 0; k < at_once; ++k)
      if (i + WARP * k < words) store(to, i + WARP * k, part[k]);
  }
}
DEVICE void move_rows(const Rows& rows, int worker) {
  constexpr int warps = THREADS / WARP;
  for (int row = worker * warps + thread_number() / WARP; row < rows.count; row += BLOCKS * warps)
    move_row(rows.moves, row);
}
)cuda";
}

/// The text of `cortex_gather`.
inline std::string cuda_gather() {
  return "\n// ---- rows of roots, one after the other ----\n" + cuda_define("GATHER_THREADS", cuda_gather_threads) +
         R"cuda(
namespace gather {
struct Launch {
  const int* const* call;
  const int* roots;
  int* out;
  long long row;
  int buffer, run, stride, runs;
};
KERNEL(cortex_gather, GATHER_THREADS) {
  const int root = block_number(), words = launch.run * launch.runs;
  const int* const from = load(launch.call, load(launch.roots, 2 * root) + launch.buffer) +
                          load(launch.roots, 2 * root + 1) * launch.row;
  for (int i = thread_number(); i < words; i += GATHER_THREADS)
    store(launch.out, (long long)root * words + i, load(from, i / launch.run * launch.stride + i % launch.run));
}
}  // namespace gather
)cuda";
}

}  // namespace cortex::codegen
