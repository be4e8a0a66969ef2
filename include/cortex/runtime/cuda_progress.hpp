// What a device is given to do with one call's memory, in order, and the end of that.
#pragma once

#include <memory>
#include <utility>

#include "cortex/runtime/cuda_device.hpp"

namespace cortex::runtime {

/// An event after the last use of a call's memory, on whatever stream. Waits for it when it goes.
class CudaProgress {
 public:
  explicit CudaProgress(std::shared_ptr<const CudaDevice> device) : device_(std::move(device)) {
    constexpr unsigned without_timing = 2;
    device_->call("cuEventCreate", [&](const jit::CudaDriver& d) { return d.EventCreate(&event_, without_timing); });
  }
  CudaProgress(const CudaProgress&) = delete;
  CudaProgress& operator=(const CudaProgress&) = delete;
  ~CudaProgress() {
    device_->in_context([&](const jit::CudaDriver& d) {
      if (pending_) d.EventSynchronize(event_);
      return d.EventDestroy(event_);
    });
  }

  /// Does `work`, which gives `stream` something to do, after all uses on other streams, and records the event after
  /// it; none of that in a capture, whose graph has an order of its own. If it fails, nothing that was sent still reads
  /// or writes there; where that cannot be made sure of, `is_in_doubt()`.
  template <class DoWork>
  void in_order(jit::CudaHandle stream, const DoWork& work) {
    refuse_in_doubt();
    if (device_->is_capturing(stream)) return work();
    let_wait(stream);
    or_settled(stream, [&] {
      work();
      mark(stream);
    });
  }

  /// The event comes after what `stream` does now, too, which waits for all other uses. If it fails, as above.
  void record(jit::CudaHandle stream) {
    refuse_in_doubt();
    or_settled(stream, [&] {
      let_wait(stream);
      mark(stream);
    });
  }

  /// What `stream` is given from now on comes after all uses so far: also where these were on a stream of the same
  /// handle, which may be another, as each thread's own is, or one made since.
  void let_wait(jit::CudaHandle stream) const {
    if (!pending_) return;
    device_->call("cuStreamWaitEvent", [&](const jit::CudaDriver& d) { return d.StreamWaitEvent(stream, event_, 0); });
  }

  /// Whether the event is still to come, as far as it has been asked.
  bool is_pending() const { return pending_; }
  bool ready() const {
    refuse_in_doubt();
    if (!pending_) return true;
    const jit::CudaResult result = device_->in_context([&](const jit::CudaDriver& d) { return d.EventQuery(event_); });
    if (result == jit::cuda::not_ready) return false;
    device_->check(result, "a kernel");
    return true;
  }
  void wait() {
    refuse_in_doubt();
    if (!pending_) return;
    device_->call("a kernel", [&](const jit::CudaDriver& d) { return d.EventSynchronize(event_); });
    pending_ = false;  // not where the driver could not wait
  }

  /// Whether the device may be at work there though no event tells of its end: something was sent to a stream, and then
  /// the driver neither recorded one nor waited, as where another thread has just begun to capture. The memory is not
  /// to be used again then.
  bool is_in_doubt() const { return in_doubt_; }
  /// Waits for all that the device does. False if the driver does not do that either.
  bool settle() {
    settle_by([](const jit::CudaDriver& d) { return d.CtxSynchronize(); });
    return !in_doubt_;
  }

 private:
  template <class Work>
  void or_settled(jit::CudaHandle stream, const Work& work) {
    try {
      work();
    } catch (...) {
      settle_by([&](const jit::CudaDriver& d) { return d.StreamSynchronize(stream); });
      throw;
    }
  }
  void mark(jit::CudaHandle stream) {
    device_->call("cuEventRecord", [&](const jit::CudaDriver& d) { return d.EventRecord(event_, stream); });
    pending_ = true;
  }
  /// Where nothing runs any more, on a device that is lost, there is no doubt either.
  template <class Wait>
  void settle_by(const Wait& wait) {
    const jit::CudaResult failed = device_->in_context(wait);
    in_doubt_ = failed && !jit::cuda::is_sticky(failed) && !device_->has_driver_ended();
  }
  void refuse_in_doubt() const {
    if (in_doubt_)
      throw Error(Code::unavailable,
                  "a call failed on its way to the device, and so did the wait for it, so that nothing tells when its "
                  "memory is free: make the call anew");
  }

  const std::shared_ptr<const CudaDevice> device_;
  jit::CudaHandle event_ = nullptr;
  bool pending_ = false, in_doubt_ = false;
};

}  // namespace cortex::runtime
