// What is declared of CUDA's driver and of NVRTC without their headers, held against these where they are.
#include <catch2/catch.hpp>
#include <cstddef>
#include <type_traits>

#include "cortex/jit/cuda_driver.hpp"
#include "cortex/jit/nvrtc.hpp"

TEST_CASE("a launch has its attributes where the driver reads them", "[cuda]") {
  using namespace cortex::jit::cuda;
  CHECK(sizeof(LaunchAttribute) == 72);
  CHECK(alignof(LaunchAttribute) == 8);  // of values that are pointers, which are not declared here
  CHECK(offsetof(LaunchAttribute, bytes) == 8);
  CHECK(sizeof(LaunchConfig) == 56);
  CHECK(offsetof(LaunchConfig, attributes) == 40);
}

#if __has_include("/usr/local/cuda/include/cuda.h") && __has_include("/usr/local/cuda/include/nvrtc.h")
#include "/usr/local/cuda/include/cuda.h"
#include "/usr/local/cuda/include/nvrtc.h"

using namespace cortex;

namespace {

/// Whether a parameter or a result is passed in the same way: a pointer, or an integer or an enumeration of that size.
template <class A, class B>
constexpr bool same_passing = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                              (std::is_pointer_v<A> || std::is_integral_v<A> ||
                               std::is_enum_v<A>)&&(std::is_pointer_v<B> || std::is_integral_v<B> || std::is_enum_v<B>);

template <class F, class G>
constexpr bool same_call = false;
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) constexpr bool same_call<R (*)(A...), S (*)(B...)> = same_passing<R, S> &&
                                                                                            (same_passing<A, B> && ...);

}  // namespace

// Names of the driver are macros for their newest versions, as which `find_cuda_driver` asks for them; but for
// cuEventElapsedTime, whose newest version older drivers lack, and whose first one is called alike.
#define SAME_DRIVER(name) static_assert(same_call<decltype(jit::CudaDriver::name), decltype(&cu##name)>, #name)
SAME_DRIVER(Init);
SAME_DRIVER(DriverGetVersion);
SAME_DRIVER(GetErrorName);
SAME_DRIVER(GetErrorString);
SAME_DRIVER(DeviceGetCount);
SAME_DRIVER(DeviceGet);
SAME_DRIVER(DeviceGetName);
SAME_DRIVER(DeviceGetAttribute);
SAME_DRIVER(DevicePrimaryCtxRetain);
SAME_DRIVER(DevicePrimaryCtxRelease);
SAME_DRIVER(CtxPushCurrent);
SAME_DRIVER(CtxPopCurrent);
SAME_DRIVER(CtxGetDevice);
SAME_DRIVER(CtxSynchronize);
SAME_DRIVER(ModuleLoadDataEx);
SAME_DRIVER(ModuleUnload);
SAME_DRIVER(ModuleGetFunction);
SAME_DRIVER(FuncSetAttribute);
SAME_DRIVER(FuncGetAttribute);
SAME_DRIVER(OccupancyMaxActiveBlocksPerMultiprocessor);
SAME_DRIVER(OccupancyMaxActiveClusters);
SAME_DRIVER(LaunchKernelEx);
SAME_DRIVER(MemAlloc);
SAME_DRIVER(MemFree);
SAME_DRIVER(MemHostAlloc);
SAME_DRIVER(MemFreeHost);
SAME_DRIVER(MemcpyHtoDAsync);
SAME_DRIVER(MemcpyDtoHAsync);
SAME_DRIVER(MemcpyDtoDAsync);
SAME_DRIVER(MemcpyPeerAsync);
SAME_DRIVER(MemsetD8Async);
SAME_DRIVER(PointerGetAttributes);
SAME_DRIVER(StreamCreate);
SAME_DRIVER(StreamDestroy);
SAME_DRIVER(StreamQuery);
SAME_DRIVER(StreamSynchronize);
SAME_DRIVER(StreamIsCapturing);
SAME_DRIVER(StreamWaitEvent);
SAME_DRIVER(ThreadExchangeStreamCaptureMode);
SAME_DRIVER(EventCreate);
SAME_DRIVER(EventDestroy);
SAME_DRIVER(EventRecord);
SAME_DRIVER(EventQuery);
SAME_DRIVER(EventSynchronize);
SAME_DRIVER(EventElapsedTime);

#define SAME_NVRTC(name) static_assert(same_call<decltype(jit::Nvrtc::name), decltype(&nvrtc##name)>, #name)
SAME_NVRTC(GetErrorString);
SAME_NVRTC(Version);
SAME_NVRTC(GetNumSupportedArchs);
SAME_NVRTC(GetSupportedArchs);
SAME_NVRTC(CreateProgram);
SAME_NVRTC(DestroyProgram);
SAME_NVRTC(CompileProgram);
SAME_NVRTC(GetProgramLogSize);
SAME_NVRTC(GetProgramLog);
SAME_NVRTC(GetCUBINSize);
SAME_NVRTC(GetCUBIN);
SAME_NVRTC(GetPTXSize);
SAME_NVRTC(GetPTX);

TEST_CASE("the structures that cross to the driver are those of cuda.h", "[cuda]") {
  using namespace jit::cuda;
  CHECK(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
  CHECK(alignof(LaunchConfig) == alignof(CUlaunchConfig));
  CHECK(offsetof(LaunchConfig, grid) == offsetof(CUlaunchConfig, gridDimX));
  CHECK(offsetof(LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
  CHECK(offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
  CHECK(offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  CHECK(offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  CHECK(offsetof(LaunchConfig, num_attributes) == offsetof(CUlaunchConfig, numAttrs));
  CHECK(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
  CHECK(alignof(LaunchAttribute) == alignof(CUlaunchAttribute));
  CHECK(offsetof(LaunchAttribute, bytes) == offsetof(CUlaunchAttribute, value));
  CHECK(offsetof(LaunchAttribute, cluster) ==
        offsetof(CUlaunchAttribute, value) + offsetof(CUlaunchAttributeValue, clusterDim));
  CHECK(offsetof(LaunchAttribute, cooperative_value) ==
        offsetof(CUlaunchAttribute, value) + offsetof(CUlaunchAttributeValue, cooperative));
  CHECK(int(LaunchAttribute::cooperative) == int(CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
  CHECK(int(LaunchAttribute::cluster_dimension) == int(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
  CHECK(int(multiprocessors) == int(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  CHECK(int(compute_major) == int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  CHECK(int(compute_minor) == int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CHECK(int(registers_per_multiprocessor) == int(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
  CHECK(int(shared_bytes_optin) == int(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  CHECK(int(cooperative_launch) == int(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH));
  CHECK(int(clock_khz) == int(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  CHECK(int(memory_clock_khz) == int(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
  CHECK(int(memory_bus_bits) == int(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
  CHECK(int(l2_bytes) == int(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  CHECK(int(max_dynamic_shared_bytes) == int(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  CHECK(int(local_bytes) == int(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  CHECK(int(registers) == int(CU_FUNC_ATTRIBUTE_NUM_REGS));
  CHECK(int(context) == int(CU_POINTER_ATTRIBUTE_CONTEXT));
  CHECK(int(memory_type) == int(CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
  CHECK(int(device_ordinal) == int(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
  CHECK(int(range_start) == int(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR));
  CHECK(int(range_bytes) == int(CU_POINTER_ATTRIBUTE_RANGE_SIZE));
  CHECK(blocking == unsigned(CU_STREAM_DEFAULT));
  CHECK(non_blocking == unsigned(CU_STREAM_NON_BLOCKING));
  CHECK(relaxed_capture == int(CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(error_log_buffer == int(CU_JIT_ERROR_LOG_BUFFER));
  CHECK(error_log_bytes == int(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES));
  CHECK(device_memory == unsigned(CU_MEMORYTYPE_DEVICE));
  CHECK(unified_memory == unsigned(CU_MEMORYTYPE_UNIFIED));
  CHECK(int(out_of_memory) == int(CUDA_ERROR_OUT_OF_MEMORY));
  CHECK(int(not_ready) == int(CUDA_ERROR_NOT_READY));
}

TEST_CASE("errors that leave nothing of a context are those of which cuda.h says so", "[cuda]") {
  using namespace jit::cuda;
  CHECK(int(deinitialized) == int(CUDA_ERROR_DEINITIALIZED));
  CHECK(int(invalid_context) == int(CUDA_ERROR_INVALID_CONTEXT));
  CHECK(int(context_is_destroyed) == int(CUDA_ERROR_CONTEXT_IS_DESTROYED));
  for (const CUresult sticky :  // 226 and 721 have names since CUDA 13
       {CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUresult(226),
        CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_TIMEOUT, CUDA_ERROR_ASSERT, CUDA_ERROR_HARDWARE_STACK_ERROR,
        CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE,
        CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED, CUresult(721), CUDA_ERROR_EXTERNAL_DEVICE})
    CHECK(is_sticky(sticky));
  for (const CUresult doubtful : {CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_UNKNOWN}) {
    CHECK(is_doubtful(doubtful));
    CHECK(!is_sticky(doubtful));
  }
  for (const CUresult passing :
       {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_READY, CUDA_ERROR_INVALID_HANDLE,
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT}) {
    CHECK(!is_sticky(passing));
    CHECK(!is_doubtful(passing));
  }
}
#endif
