// Addresses on a device that users give: looked at before anything is done with them, since an illegal one costs the
// whole context.
#pragma once

#include <cstddef>
#include <string>

#include "cortex/runtime/cuda_device.hpp"

namespace cortex::runtime {

/// What is wrong with `bytes` bytes at `at` as memory of `device` whose address is a multiple of `alignment`: "was
/// given memory of ..."; empty if nothing is. Throws where the driver does not say.
inline std::string fault_of_memory(const CudaDevice& device, jit::CudaPointer at, std::size_t bytes,
                                   std::size_t alignment) {
  if (!at) return "was given a null pointer";
  using A = jit::cuda::PointerAttribute;
  jit::CudaHandle context = nullptr;
  unsigned type = 0;
  int number = -1;
  jit::CudaPointer begin = 0;
  std::size_t size = 0;
  const int which[] = {A::context, A::memory_type, A::device_ordinal, A::range_start, A::range_bytes};
  void* values[] = {&context, &type, &number, &begin, &size};
  device.call("cuPointerGetAttributes",
              [&](const jit::CudaDriver& d) { return d.PointerGetAttributes(5, which, values, at); });
  if (type != jit::cuda::device_memory && type != jit::cuda::unified_memory)
    return "was given an address that is in no GPU's memory";
  if (number != device.number())
    return "was given memory of GPU " + std::to_string(number) + ", and is for GPU " + std::to_string(device.number()) +
           ", " + device.name();
  // Memory out of a pool is of no context.
  if (context && context != device.context()) return "was given memory of another context of " + device.name();
  if (at % alignment != 0) return "was given an address that is no multiple of " + std::to_string(alignment) + " bytes";
  if (size && at + bytes > begin + size)
    return "was given an address behind which the memory goes on for " + std::to_string(begin + size - at) +
           " bytes, but " + std::to_string(bytes) + " are needed";
  return {};
}

}  // namespace cortex::runtime
