// How a model's kernel is launched.
#pragma once

#include <cstddef>

#include "cortex/jit/cuda_driver.hpp"
#include "cortex/runtime/cuda_executable.hpp"

namespace cortex::runtime {

/// How a kernel is launched for so many groups. The result points to `attribute`.
inline jit::cuda::LaunchConfig launch_config(const CudaExecutable& code, std::size_t groups, jit::CudaHandle stream,
                                             jit::cuda::LaunchAttribute& attribute) {
  jit::cuda::LaunchConfig config{};
  const unsigned blocks = unsigned(code.shape.blocks);
  config.grid[0] = unsigned(groups) * blocks, config.grid[1] = config.grid[2] = 1;
  config.block[0] = unsigned(code.shape.threads), config.block[1] = config.block[2] = 1;
  config.shared_bytes = unsigned(code.text.chip_bytes);
  config.stream = stream;
  config.attributes = &attribute;
  attribute = {};
  if (code.text.barrier == codegen::CudaBarrier::none) return config;
  config.num_attributes = 1;
  const bool cluster = code.text.barrier == codegen::CudaBarrier::cluster;
  using A = jit::cuda::LaunchAttribute;
  attribute.id = cluster ? A::cluster_dimension : A::cooperative;
  if (cluster)
    attribute.cluster[0] = blocks, attribute.cluster[1] = attribute.cluster[2] = 1;
  else
    attribute.cooperative_value = 1;
  return config;
}

}  // namespace cortex::runtime
