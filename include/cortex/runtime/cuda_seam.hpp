// The compile seam for GPUs, beside that of `compile.hpp`: with `CORTEX_COMPILED` it is only declared, and the library
// `cortex::compiled` has it.
#pragma once

#include <memory>

#include "cortex/runtime/compile.hpp"
#include "cortex/runtime/cuda_executable.hpp"
#if !CORTEX_COMPILED
#include "cortex/runtime/cuda_compile.hpp"
#endif

namespace cortex::runtime {

#if CORTEX_COMPILED
/// Compiles `graph` under `schedule` for `gpu`. Throws `invalid_model` and `invalid_schedule`.
std::shared_ptr<const CudaExecutable> compile_cuda_graph(const ra::Graph& graph, const Schedule& schedule,
                                                         const Gpu& gpu, const CudaCompileOptions& options,
                                                         ThisAbi = {});
#else
inline std::shared_ptr<const CudaExecutable> compile_cuda_graph(const ra::Graph& graph, const Schedule& schedule,
                                                                const Gpu& gpu, const CudaCompileOptions& options,
                                                                ThisAbi = {}) {
  return build_cuda_executable(graph, schedule, gpu, options);
}
#endif

}  // namespace cortex::runtime
