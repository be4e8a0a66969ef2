// How a model's kernel is launched.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "cortex/base/vectors.hpp"
#include "cortex/jit/cuda_driver.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "cortex/runtime/cuda_executable.hpp"

namespace cortex::runtime {

/// The compute capability whose instructions the kernel has, in whatever form: 0 for any.
inline int least_sm(const codegen::CudaText& text) { return text.barrier == codegen::CudaBarrier::cluster ? 90 : 0; }

/// All that a launch may have.
using LaunchAttributes = std::array<jit::cuda::LaunchAttribute, 2>;

/// Whether blocks of different clusters wait for each other: a launch then takes all blocks at once, or none.
inline bool is_cooperative(const CudaExecutable& code, bool stays) {
  const codegen::CudaBarrier barrier = code.text.barrier;
  return stays || (barrier != codegen::CudaBarrier::none && barrier != codegen::CudaBarrier::cluster);
}

/// How a kernel is launched for so many groups; `stays`: one that waits for calls, whose first block waits for all
/// others. Blocks that wait for each other are launched all at once or not at all: as a cooperative grid, or each
/// group as a cluster. The clusters of a kernel that stays wait for each other as well, so it is both. The result
/// points to `attributes`.
inline jit::cuda::LaunchConfig launch_config(const CudaExecutable& code, std::size_t groups, jit::CudaHandle stream,
                                             LaunchAttributes& attributes, bool stays = false) {
  jit::cuda::LaunchConfig config{};
  const unsigned blocks = unsigned(code.shape.blocks);
  config.grid[0] = unsigned(groups) * blocks, config.grid[1] = config.grid[2] = 1;
  config.block[0] = unsigned(code.shape.threads), config.block[1] = config.block[2] = 1;
  config.shared_bytes = unsigned(code.text.chip_bytes);
  config.stream = stream;
  config.attributes = attributes.data();
  attributes = {};
  using A = jit::cuda::LaunchAttribute;
  const auto add = [&](A::Id id) -> A& {
    A& attribute = attributes[config.num_attributes++];
    attribute.id = id;
    return attribute;
  };
  if (code.text.barrier == codegen::CudaBarrier::cluster) {
    A& attribute = add(A::cluster_dimension);
    attribute.cluster[0] = blocks, attribute.cluster[1] = attribute.cluster[2] = 1;
  }
  if (is_cooperative(code, stays)) add(A::cooperative).cooperative_value = 1;
  return config;
}

/// Launches a kernel that is given `what`, by value.
template <class What>
void launch_kernel(const CudaDevice& device, jit::CudaHandle function, const jit::cuda::LaunchConfig& config,
                   What& what) {
  void* parameters[] = {&what};
  device.call("a kernel's launch",
              [&](const jit::CudaDriver& d) { return d.LaunchKernelEx(&config, function, parameters, nullptr); });
}

/// How many bytes a `codegen::CudaFault` has for itself, in the device's memory, before the words of barriers.
inline constexpr std::size_t fault_bytes = device_alignment;
static_assert(sizeof(codegen::CudaFault) <= fault_bytes);

/// Lets a kernel have the shared memory that its weights and recent rows take. Returns how many groups of it run at
/// once; of a device with other work to do as well, on all but `spare` multiprocessors, if any run there. `stays`: as
/// `launch_config`. Throws `Error{unavailable}` where not one does, where the device launches no blocks that wait for
/// each other, or where there is too little shared memory.
inline int groups_at_once(const CudaDevice& device, const CudaExecutable& code, jit::CudaHandle function,
                          bool stays = false, int spare = 0) {
  if (is_cooperative(code, stays) && !device.attribute(jit::cuda::cooperative_launch))
    throw Error(Code::unavailable,
                device.name() + " has no cooperative launches, and so no " +
                    (stays ? "kernels that stay: call the model on the device without resident()"
                           : "blocks that meet in memory: let GpuSchedule::group be block, or cluster where there are "
                             "clusters, which is gpu_group in a schedule's text"));
  if (code.text.chip_bytes > device.gpu().shared_bytes)
    throw Error(Code::unavailable, "the model keeps " + std::to_string(code.text.chip_bytes) +
                                       " bytes of weights and recent rows in the shared memory of a block, but " +
                                       device.name() + " has " + std::to_string(device.gpu().shared_bytes));
  device.call("cuFuncSetAttribute", [&](const jit::CudaDriver& d) {
    return d.FuncSetAttribute(function, jit::cuda::max_dynamic_shared_bytes, int(code.text.chip_bytes));
  });
  int resident = 0;  // blocks of a multiprocessor, or clusters of the device
  const bool cluster = code.text.barrier == codegen::CudaBarrier::cluster;
  device.call("the occupancy of a kernel", [&](const jit::CudaDriver& d) {
    LaunchAttributes attributes;
    const jit::cuda::LaunchConfig one = launch_config(code, 1, nullptr, attributes);
    if (cluster) return d.OccupancyMaxActiveClusters(&resident, function, &one);
    return d.OccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, code.shape.threads,
                                                       std::size_t(code.text.chip_bytes));
  });
  const auto on = [&](int multiprocessors) {
    return cluster ? resident - (device.gpu().multiprocessors - multiprocessors)
                   : resident * multiprocessors / code.shape.blocks;
  };
  const int all = device.gpu().multiprocessors, at_once = on(all - spare) > 0 ? on(all - spare) : on(all);
  if (at_once < 1)
    throw Error(Code::unavailable, "a group of " + std::to_string(code.shape.blocks) + " blocks of " +
                                       std::to_string(code.shape.threads) + " threads and " +
                                       std::to_string(code.text.chip_bytes) +
                                       " bytes of shared memory each does not run at once on " + device.name() +
                                       ", so its blocks could never meet at a barrier: take fewer blocks or threads");
  // What a node's parents say depends on all roots of the call.
  const auto& containers = code.executable->graph.containers;
  const bool together =
      any_of(containers, [](const ra::Accessor& accessor) { return accessor.relation != ra::Relation::children; });
  return together ? 1 : at_once;
}

}  // namespace cortex::runtime
