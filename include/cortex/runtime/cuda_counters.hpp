// What a call on a device does beside computing (paper section 7.2, table 6), and how long each part takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "cortex/runtime/cuda_device.hpp"

namespace cortex::runtime {

/// Of one call. Times are 0 unless `CudaCompileOptions::timings` is set, and where a launch was captured into a graph.
/// A resident model launches only where its kernel was not there; its transfer is the time in which the first group
/// brings its part of the call to the device, and its kernel's time goes on until all groups have finished.
struct CudaCounters {
  int launches = 0;               // of kernels: one each time that the call is made, and one for each `roots_into`
  std::size_t bytes_up = 0;       // of structure that each launch sends to the device, or has in its parameters; what
                                  // came so goes up again, and is counted, with each `roots_into`
  std::size_t bytes_down = 0;     // of results that have been copied to the host
  std::size_t device_bytes = 0;   // that the call holds on the device, beside the weights, which calls share
  std::int64_t linearize_ns = 0;  // by the host's clock: nodes are numbered, and what goes up is laid out; weights that
                                  // have been bound go up in the next call, and are counted here
  std::int64_t copy_ns = 0;       // by the device's clock, of the last launch: that transfer
  std::int64_t kernel_ns = 0;     // and its kernel
};

/// Events on the device's clock about the transfer and the kernel of a launch.
class CudaStopwatch {
 public:
  explicit CudaStopwatch(std::shared_ptr<const CudaDevice> device) : device_(std::move(device)) {
    try {
      for (jit::CudaHandle& event : events_)
        device_->call("cuEventCreate", [&](const jit::CudaDriver& d) { return d.EventCreate(&event, 0); });
    } catch (...) {
      destroy();
      throw;
    }
  }
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;
  ~CudaStopwatch() { destroy(); }

  enum Mark : int { before_copy, before_kernel, after_kernel, num_marks };

  void mark(Mark mark, jit::CudaHandle stream) {
    device_->call("cuEventRecord", [&](const jit::CudaDriver& d) { return d.EventRecord(events_[mark], stream); });
  }
  /// From one mark to another that the device has passed; 0 where it cannot say.
  std::int64_t between(Mark from, Mark to) const {
    float milliseconds = 0;
    const jit::CudaResult failed = device_->in_context(
        [&](const jit::CudaDriver& d) { return d.EventElapsedTime(&milliseconds, events_[from], events_[to]); });
    return failed ? 0 : std::int64_t(double(milliseconds) * 1e6);
  }

 private:
  void destroy() {
    device_->in_context([&](const jit::CudaDriver& d) {
      for (const jit::CudaHandle event : events_)
        if (event) d.EventDestroy(event);
      return jit::cuda::success;
    });
  }

  const std::shared_ptr<const CudaDevice> device_;
  jit::CudaHandle events_[num_marks] = {};
};

}  // namespace cortex::runtime
