// A kernel as CUDA C++: what its text is made of, what it is given, and what a launch of it needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cortex/base/vectors.hpp"
#include "cortex/codegen/cuda_call.hpp"
#include "cortex/codegen/cuda_prelude.hpp"
#include "cortex/codegen/cuda_serve.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

struct CudaTextOptions {
  CudaBarrier barrier = CudaBarrier::none;
  int blocks = 1;                 // of a group; more than one only with a barrier
  int threads = 256;              // of a block
  std::int64_t spin_limit = 0;    // how often a block looks at a barrier in memory before it gives up; 0: for ever
  std::int64_t shared_bytes = 0;  // of a block's shared memory, of which the linearizer's arrays get what is left
};

/// Whether a buffer is an array of the linearizer, or an integer of each node, such as its word.
inline bool is_structure(const ir::BufferInfo& buffer) {
  return buffer.role == ir::Role::index && (buffer.slot < ir::slot_of::field || buffer.dims.size() == 1);
}

/// Whether a buffer holds the linearizer's counts, behind which its other arrays lie.
inline bool is_counts(const ir::BufferInfo& buffer) {
  return buffer.role == ir::Role::index && buffer.slot == ir::slot_of::counts;
}

/// How many bytes of a block's shared memory the program takes.
inline std::int64_t chip_bytes(const ir::Program& program) {
  std::int64_t bytes = 0;
  for (const ir::Buffer& buffer : program.buffers)
    if (ir::is_on_chip(buffer->scope)) bytes += ir::chip_bytes(*buffer);
  return bytes;
}

/// How many bytes the linearizer's arrays may have to be copied to a block's shared memory, of which the program leaves
/// them what it does not take; 0: they are not.
inline std::int64_t room_for_structure(const ir::Program& program, std::int64_t shared_bytes) {
  constexpr std::int64_t most = 8192, least = 1024;
  const bool counted = any_of(program.buffers, [](const ir::Buffer& buffer) { return is_counts(*buffer); });
  const std::int64_t room = std::min(most, (shared_bytes - chip_bytes(program)) / 16 * 16);
  return counted && room >= least ? room : 0;
}

/// How many bytes of a call may come with its launch: what is left of the 4096 that parameters may have.
inline constexpr std::size_t cuda_most_with_launch = 4048;

/// What the kernel is given, by value, in this order. All pointers are of the device.
struct CudaLaunch {
  std::uint64_t call = 0;        // each group's part, see `cuda_parts`; in its tables 0 for buffers on chip
  std::uint64_t words = 0;       // [groups][cuda_barrier_words]: zero before the first launch, then left alone
  std::uint64_t fault = 0;       // `CudaFault`
  std::int32_t before = 0;       // whether any group has rows to move before the program runs,
  std::int32_t after = 0;        // and after it
  std::int32_t with_launch = 0;  // how many bytes of `in` are what would be at `call`; 0: it is there
  alignas(16) std::byte in[cuda_most_with_launch] = {};
};
static_assert(sizeof(CudaLaunch) == 4096 && offsetof(CudaLaunch, in) == 48 && cuda_most_with_launch % 16 == 0,
              "the text of a kernel has the same, and no driver takes more");

/// How many bytes of that room a group's part of the call has, before the arrays; 0: it leaves them too little.
inline std::int64_t room_for_part(const ir::Program& program, std::int64_t shared_bytes) {
  constexpr std::int64_t least = 512;  // for arrays
  const std::int64_t bytes = std::int64_t(CudaPart(program).words()) * 8;
  return bytes + least <= room_for_structure(program, shared_bytes) ? bytes : 0;
}

/// How large a call may be that comes with its launch: it is read in shared memory, where all that it brings has to be
/// the linearizer's arrays. 0: none does.
inline std::size_t most_with_launch(const ir::Program& program, std::int64_t shared_bytes) {
  if (!room_for_part(program, shared_bytes)) return 0;
  for (const ir::Buffer& buffer : program.buffers)
    if ((buffer->role == ir::Role::index || buffer->role == ir::Role::field) && !is_structure(*buffer)) return 0;
  return std::min(std::size_t(room_for_structure(program, shared_bytes)), cuda_most_with_launch);
}

/// The source of a kernel, `cortex_kernel`, and what a launch of it needs; with `cortex_gather` beside it.
/// And the source of one that stays on the device, `cortex_resident`.
struct CudaText {
  std::string settings, kernel, resident;  // before and after the preludes
  CudaBarrier barrier = CudaBarrier::none;
  std::int64_t chip_bytes = 0;  // of shared memory a block
  std::size_t with_launch = 0;  // see `most_with_launch`

  std::string source(std::string_view device_prelude = cuda_device_prelude) const {
    std::string text = preludes(device_prelude);
    text += cuda_gather();
    return text += kernel;
  }
  std::string resident_source(std::string_view device_prelude = cuda_device_prelude) const {
    std::string text = preludes(device_prelude);
    text += cuda_serve();
    return text += resident;
  }

 private:
  std::string preludes(std::string_view device_prelude) const {
    std::string text = settings;
    text += device_prelude;
    text += cuda_common_prelude;
    if (barrier == CudaBarrier::lock_based) text += cuda_lock_based_barrier;
    if (barrier == CudaBarrier::lock_free) text += cuda_lock_free_barrier;
    return text += cuda_parts();
  }
};

}  // namespace cortex::codegen
