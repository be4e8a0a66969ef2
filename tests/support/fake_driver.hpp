// The functions of the driver of `FakeCuda`, each as what a call of it does with the machine.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "support/fake_cuda.hpp"

namespace cortex::test {

inline void FakeCuda::about_devices(jit::CudaDriver& d) {
  d.Init = [](unsigned) { return 0; };
  d.DriverGetVersion = [](int* version) { return *version = now().driver_version, 0; };
  d.GetErrorName = [](int e, const char** text) {
    *text = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
    return 0;
  };
  d.GetErrorString = [](int, const char** text) { return *text = "as the test asked", 0; };
  d.DeviceGetCount = [](int* n) { return *n = now().devices, 0; };
  d.DeviceGet = [](int* device, int number) { return *device = number, number < now().devices ? 0 : 101; };
  d.DeviceGetName = [](char* name, int size, int number) {
    if (number == now().nameless) return 999;
    return std::snprintf(name, std::size_t(size), "emulated GPU %d", number), 0;
  };
  d.DeviceGetAttribute = [](int* value, int which, int) { return *value = now().attribute(which), 0; };
  d.DevicePrimaryCtxRetain = [](void** context, int number) {
    const std::lock_guard lock(now().mutex_);
    if (now().streams_.forbids("cuDevicePrimaryCtxRetain")) return int(FakeStreams::capture_forbids);
    if (number == now().refusing) return 46;  // other processes may not use it
    ++now().objects_;
    return *context = reinterpret_cast<void*>(std::intptr_t(number + 1)), 0;
  };
  d.DevicePrimaryCtxRelease = [](int) { return --now().objects_, 0; };
  d.CtxPushCurrent = [](void* context) {
    const std::lock_guard lock(now().mutex_);
    if (now().ended_) return int(jit::cuda::deinitialized);
    now().last_context = context;
    return contexts().push_back(context), 0;
  };
  d.CtxPopCurrent = [](void** context) {
    *context = contexts().back();
    return contexts().pop_back(), 0;
  };
  d.CtxGetDevice = [](int* number) { return *number = device_now(), 0; };
  d.CtxSynchronize = [] {
    Call call("cuCtxSynchronize");
    if (call.not_captured("cuCtxSynchronize").error) return call.error;
    if (now().streams_.is_capturing() && now().streams_.spoil("cuCtxSynchronize"))
      return int(FakeStreams::capture_forbids);
    return now().streams_.flush_all(), now().state();
  };
}

inline void FakeCuda::about_code(jit::CudaDriver& d) {
  d.ModuleLoadDataEx = [](void** module, const void* image, unsigned count, int* options, void** values) {
    Call call("cuModuleLoadDataEx");
    if (call.not_captured("cuModuleLoadDataEx").error) return call.error;
    if (now().driver_version < 13000) {  // of NVRTC 13, as the one here says that it is
      if (count == 2 && options[0] == jit::cuda::error_log_buffer && options[1] == jit::cuda::error_log_bytes)
        std::snprintf(static_cast<char*>(values[0]), std::size_t(values[1]), "ptxas: as the test asked");
      return int(invalid_image);
    }
    const HostKernel* kernel = nullptr;
    std::memcpy(&kernel, image, sizeof kernel);
    *module = new Module{{{kernel, "cortex_kernel"}, {kernel, "cortex_gather"}, {kernel, "cortex_resident"}}};
    return ++now().objects_, 0;
  };
  d.ModuleUnload = [](void* module) {
    const std::lock_guard lock(now().mutex_);
    if (now().streams_.forbids("cuModuleUnload")) return int(FakeStreams::capture_forbids);
    now().streams_.flush_all();
    delete static_cast<Module*>(module);
    return --now().objects_, 0;
  };
  d.ModuleGetFunction = [](void** function, void* module, const char* name) {
    const Call call("cuModuleGetFunction");
    if (call.error) return call.error;
    for (Function& one : static_cast<Module*>(module)->functions)
      if (std::string(one.name) == name) return *function = &one, 0;
    return 500;
  };
  d.FuncSetAttribute = [](void*, int, int value) {
    const Call call("cuFuncSetAttribute");
    return call.error ? call.error : value <= now().gpu.shared_bytes ? 0 : int(invalid_value);
  };
  d.FuncGetAttribute = [](int* value, int, void*) { return *value = 0, 0; };
  d.OccupancyMaxActiveBlocksPerMultiprocessor = [](int* count, void*, int threads, std::size_t shared) {
    const Call call("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *count = shared > std::size_t(now().gpu.shared_bytes) ? 0 : 2048 / threads > 1 && shared == 0 ? 2 : 1;
    return call.error;
  };
  d.OccupancyMaxActiveClusters = [](int* count, void*, const jit::cuda::LaunchConfig* config) {
    const Call call("cuOccupancyMaxActiveClusters");
    return *count = now().gpu.multiprocessors / int(config->attributes->cluster[0]), call.error;
  };
  d.LaunchKernelEx = [](const jit::cuda::LaunchConfig* config, void* function, void** arguments, void**) {
    const Call call("cuLaunchKernelEx", config->stream);
    return call.error ? call.error : now().launch(*config, *static_cast<const Function*>(function), arguments[0]);
  };
}

inline void FakeCuda::about_memory(jit::CudaDriver& d) {
  d.MemAlloc = [](std::uint64_t* at, std::size_t bytes) {
    Call call("cuMemAlloc");
    if (call.not_captured("cuMemAlloc").error) return call.error;
    if (now().memory_.used(device_now()) + bytes > now().memory_limit) return int(jit::cuda::out_of_memory);
    ++now().allocations;
    return *at = now().memory_.place(device_now(), bytes, contexts().back()), 0;
  };
  d.MemFree = [](std::uint64_t at) {
    const std::lock_guard lock(now().mutex_);
    if (now().streams_.forbids("cuMemFree")) return int(FakeStreams::capture_forbids);
    now().streams_.flush_all();
    return now().memory_.release(at), 0;
  };
  d.MemHostAlloc = [](void** at, std::size_t bytes, unsigned) {
    Call call("cuMemHostAlloc");
    if (call.not_captured("cuMemHostAlloc").error) return call.error;
    ++now().allocations;
    return *at = now().memory_.place_pinned(device_now(), bytes), 0;
  };
  d.MemFreeHost = [](void* at) {
    const std::lock_guard lock(now().mutex_);
    if (now().streams_.forbids("cuMemFreeHost")) return int(FakeStreams::capture_forbids);
    now().streams_.flush_all();
    return now().memory_.release_pinned(at), 0;
  };
  d.MemcpyHtoDAsync = [](std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
    const Call call("cuMemcpyHtoDAsync", stream);
    return call.error ? call.error : now().upload(to, from, bytes, stream);
  };
  d.MemcpyDtoHAsync = [](void* to, std::uint64_t from, std::size_t bytes, void* stream) {
    const Call call("cuMemcpyDtoHAsync", stream);
    if (call.error) return call.error;
    ++now().downloads;
    const int failed = now().enqueue(stream, [=] {
      now().read_by_host(reinterpret_cast<void*>(from), bytes);
      std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    });
    if (failed || now().memory_.is_pinned(to, bytes)) return failed;
    return now().synchronise(stream);  // the host waits where its memory may move
  };
  d.MemcpyDtoDAsync = [](std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
    const Call call("cuMemcpyDtoDAsync", stream);
    return call.error ? call.error : now().copy(device_now(), to, device_now(), from, bytes, stream);
  };
  d.MemcpyPeerAsync = [](std::uint64_t to, void* to_context, std::uint64_t from, void* from_context, std::size_t bytes,
                         void* stream) {
    const Call call("cuMemcpyPeerAsync", stream);
    const auto number = [](void* context) { return int(reinterpret_cast<std::intptr_t>(context)) - 1; };
    return call.error ? call.error : now().copy(number(to_context), to, number(from_context), from, bytes, stream);
  };
  d.MemsetD8Async = [](std::uint64_t at, unsigned char value, std::size_t bytes, void* stream) {
    const Call call("cuMemsetD8Async", stream);
    if (call.error) return call.error;
    return now().enqueue(stream, [=] {
      std::memset(reinterpret_cast<void*>(at), value, bytes);
      now().memory_.written(at, bytes);
    });
  };
  d.PointerGetAttributes = [](unsigned count, const int* which, void** values, std::uint64_t at) {
    const Call call("cuPointerGetAttributes");
    if (call.error) return call.error;
    for (unsigned i = 0; i < count; ++i) now().memory_.describe(which[i], values[i], at);
    return 0;
  };
}

inline void FakeCuda::about_streams(jit::CudaDriver& d) {
  d.StreamCreate = [](void** stream, unsigned flags) {
    const Call call("cuStreamCreate");
    if (call.error) return call.error;
    ++now().objects_;
    *stream = new int;
    return now().streams_.make(device_now(), *stream, flags == 0), 0;
  };
  d.StreamDestroy = [](void* stream) {
    const std::lock_guard lock(now().mutex_);
    now().streams_.forget(device_now(), stream);
    delete static_cast<int*>(stream);
    return --now().objects_, 0;
  };
  d.StreamQuery = [](void* stream) {
    Call call("cuStreamQuery", stream);
    if (now().query_error) return now().query_error;
    if (call.not_captured("cuStreamQuery").error) return call.error;
    if (now().streams_.uses_default(device_now(), stream)) return int(FakeStreams::implicit);
    const bool done = now().streams_.go_on(*now().stream(stream));
    return now().state() ? now().state() : done ? 0 : int(jit::cuda::not_ready);
  };
  d.StreamSynchronize = [](void* stream) {
    Call call("cuStreamSynchronize", stream);
    if (call.not_captured("cuStreamSynchronize").error) return call.error;
    if (now().streams_.is_capturing(now().stream(stream)) && now().streams_.spoil("cuStreamSynchronize"))
      return int(FakeStreams::capture_forbids);
    return now().synchronise(stream);
  };
  d.StreamIsCapturing = [](void* stream, int* status) {
    const Call call("cuStreamIsCapturing", stream);
    if (call.error) return call.error;
    *status = now().streams_.is_capturing(now().stream(stream));
    return now().streams_.is_capturing() && !stream && !*status ? int(FakeStreams::implicit) : 0;
  };
  d.StreamWaitEvent = [](void* stream, void* event, unsigned) {
    const Call call("cuStreamWaitEvent", stream);
    if (call.error) return call.error;
    const Event& on = *static_cast<Event*>(event);
    if (on.captured || now().streams_.is_capturing(now().stream(stream))) return int(FakeStreams::capture_forbids);
    if (now().streams_.uses_default(device_now(), stream)) return int(FakeStreams::implicit);
    ++now().stream_waits;
    return now().streams_.wait_for(*now().stream(stream), on.recorded), 0;
  };
  d.ThreadExchangeStreamCaptureMode = [](int* mode) {
    if (contexts().empty() && !now().modes_without_context) return int(invalid_context);
    return std::swap(*mode, FakeStreams::mode()), 0;
  };
  d.EventCreate = [](void** event, unsigned) {
    const Call call("cuEventCreate");
    if (call.error) return call.error;
    ++now().objects_;
    return *event = new Event, 0;
  };
  d.EventDestroy = [](void* event) {
    const std::lock_guard lock(now().mutex_);
    const FakeStreams::Point& recorded = static_cast<Event*>(event)->recorded;
    if (recorded.stream) now().streams_.flush(*recorded.stream, recorded.ticket);
    --now().objects_;
    return delete static_cast<Event*>(event), 0;
  };
  d.EventRecord = [](void* event, void* stream) {
    const Call call("cuEventRecord", stream);
    if (call.error) return call.error;
    Event& on = *static_cast<Event*>(event);
    on.captured = now().streams_.is_capturing(now().stream(stream));
    const int failed = now().enqueue(stream, [&on] { on.at_ms = now().clock_ms_; });
    if (!failed) on.recorded = {now().stream(stream), now().streams_.last_ticket()};
    return failed;
  };
  d.EventQuery = [](void* event) {
    Call call("cuEventQuery");
    if (call.not_captured("cuEventQuery").error) return call.error;
    const Event& on = *static_cast<Event*>(event);
    if (on.captured) return int(FakeStreams::captured_event);
    return FakeStreams::is_done(on.recorded) ? 0 : int(jit::cuda::not_ready);
  };
  d.EventSynchronize = [](void* event) {
    Call call("cuEventSynchronize");
    if (call.not_captured("cuEventSynchronize").error) return call.error;
    const Event& on = *static_cast<Event*>(event);
    if (on.captured) return int(FakeStreams::captured_event);
    ++now().waits;
    if (on.recorded.stream) now().streams_.flush(*on.recorded.stream, on.recorded.ticket);
    return now().state();
  };
  d.EventElapsedTime = [](float* milliseconds, void* from, void* to) {
    const Call call("cuEventElapsedTime");
    const Event &first = *static_cast<Event*>(from), &last = *static_cast<Event*>(to);
    *milliseconds = float(last.at_ms - first.at_ms);
    return call.error ? call.error : first.captured || last.captured ? int(FakeStreams::captured_event) : 0;
  };
}

}  // namespace cortex::test
