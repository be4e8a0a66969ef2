// What compiling for a GPU yields: text, and what a launch has to know of it.
#pragma once

#include <cstdint>
#include <memory>

#include "cortex/codegen/cuda_text.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/schedule/gpu_shape.hpp"

namespace cortex::pass {
class PassObserver;
}

namespace cortex::runtime {

/// A model compiled for GPUs of one kind.
struct CudaExecutable {
  std::shared_ptr<const Executable> executable;  // without a kernel for the CPU
  schedule::GpuShape shape;
  codegen::CudaText text;
  std::int64_t spin_limit = 0;
  bool timings = false;
};

struct CudaCompileOptions {
  bool verify = false;                     // check the program after each pass
  bool timings = false;                    // fill in the times of `CudaCounters`, which reads clocks on every call
  std::int64_t spin_limit = 0;             // as `codegen::CudaTextOptions`: a debug build of the barrier
  pass::PassObserver* observer = nullptr;  // is told of each pass; only where the compiler is not in a library
};

inline codegen::CudaBarrier barrier_of(const schedule::GpuShape& shape) {
  using Group = GpuSchedule::Group;
  if (shape.blocks == 1) return codegen::CudaBarrier::none;
  if (shape.group == Group::cluster) return codegen::CudaBarrier::cluster;
  return shape.lock_based ? codegen::CudaBarrier::lock_based : codegen::CudaBarrier::lock_free;
}

}  // namespace cortex::runtime
