// The part of CUDA's driver that is used, as a table of functions: found in libcuda at run time, or put there by a
// test. No header of CUDA's is needed; the few structures that cross the boundary are declared here, and a test holds
// them against cuda.h where there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cortex/jit/dynlib.hpp"

namespace cortex::jit {

using CudaResult = int;             // 0: success
using CudaPointer = std::uint64_t;  // into a device's memory
using CudaHandle = void*;           // of a context, module, function, stream or event

namespace cuda {

inline constexpr CudaResult success = 0, out_of_memory = 2, deinitialized = 4, invalid_context = 201, not_ready = 600,
                            context_is_destroyed = 709;

/// Errors after which a context is of no use any more, by cuda.h's words: the driver shuts down (4), or "any further
/// CUDA work will return the same error", and the like of errors of memory and links that cannot be corrected (214,
/// 220).
constexpr bool is_sticky(CudaResult result) {
  switch (result) {
    case deinitialized:
    case 214:
    case 220:
    case 226:
    case 700:
    case 702:
    case 710:
    case 721:
    case 911: return true;
    default: return result >= 714 && result <= 719;
  }
}
/// Errors that may say the same of the context, or something else: that the context of a stream is destroyed (709),
/// which is also what a stream gives that is; and what the driver does not know (999).
constexpr bool is_doubtful(CudaResult result) { return result == context_is_destroyed || result == 999; }

enum DeviceAttribute : int {
  clock_khz = 13,
  multiprocessors = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  compute_major = 75,
  compute_minor = 76,
  registers_per_multiprocessor = 82,
  cooperative_launch = 95,
  shared_bytes_optin = 97,
};
enum PointerAttribute : int { context = 1, memory_type = 2, device_ordinal = 9, range_start = 11, range_bytes = 12 };
inline constexpr unsigned device_memory = 2, unified_memory = 4;  // as which `memory_type` counts what a GPU owns
inline constexpr unsigned blocking = 0, non_blocking = 1;        // a stream that the default one waits for, or does not
inline constexpr int relaxed_capture = 2;                        // as what a thread takes captures
inline constexpr int error_log_buffer = 5, error_log_bytes = 6;  // options of a module that is loaded
enum FunctionAttribute : int { local_bytes = 3, registers = 4, max_dynamic_shared_bytes = 8 };

struct alignas(8) LaunchAttribute {
  enum Id : int { cooperative = 2, cluster_dimension = 4 };
  int id;
  int pad;
  union {
    char bytes[64];
    int cooperative_value;
    unsigned cluster[3];
  };
};

struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  CudaHandle stream;
  LaunchAttribute* attributes;
  unsigned num_attributes;
};

}  // namespace cuda

/// The functions, named as the driver's without the `cu`. All may be called by any thread.
struct CudaDriver {
  CudaResult (*Init)(unsigned);
  CudaResult (*DriverGetVersion)(int*);
  CudaResult (*GetErrorName)(CudaResult, const char**);
  CudaResult (*GetErrorString)(CudaResult, const char**);
  CudaResult (*DeviceGetCount)(int*);
  CudaResult (*DeviceGet)(int*, int);
  CudaResult (*DeviceGetName)(char*, int, int);
  CudaResult (*DeviceGetAttribute)(int*, int, int);
  CudaResult (*DevicePrimaryCtxRetain)(CudaHandle*, int);
  CudaResult (*DevicePrimaryCtxRelease)(int);
  CudaResult (*CtxPushCurrent)(CudaHandle);
  CudaResult (*CtxPopCurrent)(CudaHandle*);
  CudaResult (*CtxGetDevice)(int*);
  CudaResult (*CtxSynchronize)();
  CudaResult (*ModuleLoadDataEx)(CudaHandle*, const void*, unsigned, int*, void**);
  CudaResult (*ModuleUnload)(CudaHandle);
  CudaResult (*ModuleGetFunction)(CudaHandle*, CudaHandle, const char*);
  CudaResult (*FuncSetAttribute)(CudaHandle, int, int);
  CudaResult (*FuncGetAttribute)(int*, int, CudaHandle);
  CudaResult (*OccupancyMaxActiveBlocksPerMultiprocessor)(int*, CudaHandle, int, std::size_t);
  CudaResult (*OccupancyMaxActiveClusters)(int*, CudaHandle, const cuda::LaunchConfig*);
  CudaResult (*LaunchKernelEx)(const cuda::LaunchConfig*, CudaHandle, void**, void**);
  CudaResult (*MemAlloc)(CudaPointer*, std::size_t);
  CudaResult (*MemFree)(CudaPointer);
  CudaResult (*MemHostAlloc)(void**, std::size_t, unsigned);
  CudaResult (*MemFreeHost)(void*);
  CudaResult (*MemcpyHtoDAsync)(CudaPointer, const void*, std::size_t, CudaHandle);
  CudaResult (*MemcpyDtoHAsync)(void*, CudaPointer, std::size_t, CudaHandle);
  CudaResult (*MemcpyDtoDAsync)(CudaPointer, CudaPointer, std::size_t, CudaHandle);
  CudaResult (*MemcpyPeerAsync)(CudaPointer, CudaHandle, CudaPointer, CudaHandle, std::size_t, CudaHandle);
  CudaResult (*MemsetD8Async)(CudaPointer, unsigned char, std::size_t, CudaHandle);
  CudaResult (*PointerGetAttributes)(unsigned, const int*, void**, CudaPointer);
  CudaResult (*StreamCreate)(CudaHandle*, unsigned);
  CudaResult (*StreamDestroy)(CudaHandle);
  CudaResult (*StreamQuery)(CudaHandle);
  CudaResult (*StreamSynchronize)(CudaHandle);
  CudaResult (*StreamIsCapturing)(CudaHandle, int*);
  CudaResult (*StreamWaitEvent)(CudaHandle, CudaHandle, unsigned);
  CudaResult (*ThreadExchangeStreamCaptureMode)(int*);
  CudaResult (*EventCreate)(CudaHandle*, unsigned);
  CudaResult (*EventDestroy)(CudaHandle);
  CudaResult (*EventRecord)(CudaHandle, CudaHandle);
  CudaResult (*EventQuery)(CudaHandle);
  CudaResult (*EventSynchronize)(CudaHandle);
  CudaResult (*EventElapsedTime)(float*, CudaHandle, CudaHandle);
};

/// The driver of this machine; null with the reason in `why`.
inline std::shared_ptr<const CudaDriver> find_cuda_driver(std::string& why) {
  const DynamicLibrary library = DynamicLibrary::open({"libcuda.so.1"});
  if (!library) {
    why = "no NVIDIA driver is installed: " + library.why();
    return nullptr;
  }
  auto driver = std::make_shared<CudaDriver>();
  CudaDriver& d = *driver;
  std::string missing;
  const auto bind = [&](auto*& function, const char* symbol) { library.bind(function, symbol, missing); };
  bind(d.Init, "cuInit"), bind(d.DriverGetVersion, "cuDriverGetVersion");
  bind(d.GetErrorName, "cuGetErrorName"), bind(d.GetErrorString, "cuGetErrorString");
  bind(d.DeviceGetCount, "cuDeviceGetCount"), bind(d.DeviceGet, "cuDeviceGet");
  bind(d.DeviceGetName, "cuDeviceGetName"), bind(d.DeviceGetAttribute, "cuDeviceGetAttribute");
  bind(d.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  bind(d.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  bind(d.CtxPushCurrent, "cuCtxPushCurrent_v2"), bind(d.CtxPopCurrent, "cuCtxPopCurrent_v2");
  bind(d.CtxGetDevice, "cuCtxGetDevice"), bind(d.CtxSynchronize, "cuCtxSynchronize");
  bind(d.ModuleLoadDataEx, "cuModuleLoadDataEx"), bind(d.ModuleUnload, "cuModuleUnload");
  bind(d.ModuleGetFunction, "cuModuleGetFunction");
  bind(d.FuncSetAttribute, "cuFuncSetAttribute"), bind(d.FuncGetAttribute, "cuFuncGetAttribute");
  bind(d.OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  bind(d.OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters"), bind(d.LaunchKernelEx, "cuLaunchKernelEx");
  bind(d.MemAlloc, "cuMemAlloc_v2"), bind(d.MemFree, "cuMemFree_v2");
  bind(d.MemHostAlloc, "cuMemHostAlloc"), bind(d.MemFreeHost, "cuMemFreeHost");
  bind(d.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2"), bind(d.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  bind(d.MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2"), bind(d.MemcpyPeerAsync, "cuMemcpyPeerAsync");
  bind(d.MemsetD8Async, "cuMemsetD8Async"), bind(d.PointerGetAttributes, "cuPointerGetAttributes");
  bind(d.StreamCreate, "cuStreamCreate"), bind(d.StreamDestroy, "cuStreamDestroy_v2");
  bind(d.StreamQuery, "cuStreamQuery");
  bind(d.StreamSynchronize, "cuStreamSynchronize"), bind(d.StreamIsCapturing, "cuStreamIsCapturing");
  bind(d.StreamWaitEvent, "cuStreamWaitEvent");
  bind(d.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  bind(d.EventCreate, "cuEventCreate"), bind(d.EventDestroy, "cuEventDestroy_v2");
  bind(d.EventRecord, "cuEventRecord"), bind(d.EventQuery, "cuEventQuery");
  bind(d.EventSynchronize, "cuEventSynchronize"), bind(d.EventElapsedTime, "cuEventElapsedTime");
  if (missing.empty()) return driver;
  why = "the NVIDIA driver is older than CUDA 11.8: it lacks " + missing;
  return nullptr;
}

}  // namespace cortex::jit
