// The calling convention of generated code: a contract between the printers, the JIT and the runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cortex::codegen {

/// What a kernel is given. Each worker of a call runs the kernel once, with its own `worker` and, for buffers of worker
/// scope, its own pointers.
struct KernelArgs {
  void* const* buffers;    // one pointer per buffer of the program, in its order
  void (*barrier)(void*);  // called where the program has a barrier, if num_workers > 1
  void* barrier_context;
  std::int32_t worker;  // [0, num_workers)
  std::int32_t num_workers;
};

static_assert(offsetof(KernelArgs, worker) == 24 && offsetof(KernelArgs, num_workers) == 28,
              "printers know these offsets");

using Kernel = void (*)(const KernelArgs*);

}  // namespace cortex::codegen
