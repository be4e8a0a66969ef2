// Kernels that every generated source has beside its own, which move rows of tensors: a state's at the roots to one
// after the other, wherever their nodes are, and without what pads them; and those of tables to where nodes have them.
#pragma once

#include <cstdint>
#include <string_view>

namespace cortex::codegen {

/// What `cortex_gather` is given, by value; it runs with a block for each root. Words are of 4 bytes.
struct CudaGather {
  std::uint64_t tables;   // as `CudaLaunch::tables`
  std::uint64_t roots;    // [roots][2] int32: the table of the root's group, by where it begins, and the root's node
  std::uint64_t out;      // [roots][runs * run] words
  std::int64_t row;       // words from one node's row to the next
  std::int32_t buffer;    // of the state, its number in a table
  std::int32_t run;       // words that lie side by side
  std::int32_t stride;    // words from one run to the next
  std::int32_t runs = 1;  // of a row
};

inline constexpr int cuda_gather_threads = 128;  // of a block

/// What `cortex_place` is given, by value; it runs with as many threads as the program.
struct CudaPlace {
  std::uint64_t moves;  // [rows][3] u64: from where, to where, and how many words
  std::int32_t rows;
  std::int32_t blocks;  // of the launch
};

inline constexpr std::string_view cuda_rows = R"cuda(
// ---- rows of roots, one after the other ----
namespace gather {
struct Launch {
  const int* const* tables;
  const int* roots;
  int* out;
  long long row;
  int buffer, run, stride, runs;
};
KERNEL(cortex_gather, 128) {
  const int root = block_number(), words = launch.run * launch.runs;
  const int* const from = load(launch.tables, load(launch.roots, 2 * root) + launch.buffer) +
                          load(launch.roots, 2 * root + 1) * launch.row;
  for (int i = thread_number(); i < words; i += 128)
    store(launch.out, (long long)root * words + i, load(from, i / launch.run * launch.stride + i % launch.run));
}
}  // namespace gather

// ---- rows of tables, to where nodes have them ----
namespace place {
struct Launch {
  const u64* moves;
  int rows, blocks;
};
KERNEL(cortex_place, THREADS) {
  constexpr int warps = THREADS / 32;
  for (long long row = block_number() * warps + thread_number() / 32; row < launch.rows; row += launch.blocks * warps)
    move_row(launch.moves, row);
}
}  // namespace place
)cuda";

}  // namespace cortex::codegen
