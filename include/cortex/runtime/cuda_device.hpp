// An NVIDIA GPU at run time: its context, its memory, and what becomes of its errors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/mutex.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/jit/cuda_driver.hpp"
#include "cortex/jit/nvrtc.hpp"
#include "cortex/runtime/forks.hpp"

namespace cortex::runtime {

/// A device and its context: the primary one, which CUDA's runtime API uses too, from its first use on, or the
/// caller's. Calls of the driver go through `call`, which makes the context current for as long as they take.
///
/// An error that the driver counts as sticky (an illegal address, a failed launch) leaves nothing of a context: the
/// object is then lost, and each later use of it says so and names the first error. Out of memory is no such error.
///
/// What the library does by itself goes to streams of the device's own: work on the default stream would wait for all
/// streams of the process that block, and is forbidden while one of these is captured.
class CudaDevice {
 public:
  CudaDevice(std::shared_ptr<const jit::CudaDriver> driver, std::shared_ptr<const jit::Nvrtc> nvrtc, int number,
             jit::CudaHandle users_context = nullptr)
      : driver_(std::move(driver)), nvrtc_(std::move(nvrtc)), number_(number), context_(users_context) {
    check(driver_->DeviceGet(&device_, number_), "cuDeviceGet");
    char name[256] = {};
    check(driver_->DeviceGetName(name, int(sizeof name) - 1, device_), "cuDeviceGetName");
    name_ = name;
    using A = jit::cuda::DeviceAttribute;
    gpu_.sm = 10 * attribute(A::compute_major) + attribute(A::compute_minor);
    gpu_.multiprocessors = attribute(A::multiprocessors);
    gpu_.shared_bytes = attribute(A::shared_bytes_optin);
    gpu_.registers = attribute(A::registers_per_multiprocessor);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() {
    give_back_deferred();
    for (const auto& stream : own_)
      if (stream) in_context([&](const jit::CudaDriver& d) { return d.StreamDestroy(stream); });
    if (retained_ && !is_in_child()) driver_->DevicePrimaryCtxRelease(device_);
  }

  const jit::CudaDriver& driver() const { return *driver_; }
  /// Of CUDA, in thousands and tens: 12040 is 12.4.
  int driver_version() const {
    int version = 0;
    driver_->DriverGetVersion(&version);
    return version;
  }
  const std::string& name() const { return name_; }
  const Gpu& gpu() const { return gpu_; }
  int number() const { return number_; }
  /// The primary one is retained when it is first asked for: it costs some hundred megabytes, and may be refused on
  /// another GPU than the one that is to be used. Throws as `call`.
  jit::CudaHandle context() const {
    if (const jit::CudaHandle known = context_) return known;
    jit::CudaHandle made = nullptr, none = nullptr;  // without a lock, as it takes long: threads may do it at once
    check(relaxed([&] { return driver_->DevicePrimaryCtxRetain(&made, device_); }), "cuDevicePrimaryCtxRetain");
    if (context_.compare_exchange_strong(none, made))
      retained_ = true;
    else
      driver_->DevicePrimaryCtxRelease(device_);  // it is counted, and another thread's is kept
    return context_;
  }

  /// The compiler. Throws `Error{unavailable}` where NVRTC is not installed.
  const jit::Nvrtc& nvrtc() const {
    const Lock lock(mutex_);
    if (nvrtc_) return *nvrtc_;
    std::string why;
    nvrtc_ = jit::find_nvrtc(why, driver_version(), gpu_.sm);
    if (!nvrtc_) throw Error(Code::unavailable, "a model cannot be compiled for " + name_ + ": " + why);
    return *nvrtc_;
  }

  /// What NVRTC has made, as a module. Throws as `call`, with the words of the driver's assembler, and with what to do
  /// where the two do not fit together.
  jit::CudaHandle load(const jit::CudaImage& image) const {
    int major = 0, minor = 0;
    nvrtc().Version(&major, &minor);
    const int driver = driver_version();
    jit::CudaHandle module = nullptr;
    char words[4096] = {};
    int options[] = {jit::cuda::error_log_buffer, jit::cuda::error_log_bytes};
    void* values[] = {words, reinterpret_cast<void*>(sizeof words - 1)};
    try {
      call("cuModuleLoadDataEx of code by NVRTC " + jit::version_of(nvrtc()) + ", with a driver of CUDA " +
               jit::version_of_driver(driver),
           [&](const jit::CudaDriver& d) {
             return d.ModuleLoadDataEx(&module, image.bytes.c_str(), 2, options, values);
           });
    } catch (const Error& error) {
      if (error.code != Code::unavailable) throw;
      std::string text = error.message;
      // Machine code goes by the major version; text (PTX) that the driver compiles itself goes by the minor one, too.
      if (image.ptx ? 1000 * major + 10 * minor > driver : major > driver / 1000)
        text +=
            ": this driver cannot load code from an NVRTC newer than its own CUDA version; install an older NVRTC, or "
            "name one with CORTEX_NVRTC";
      throw Error(error.code, words[0] ? text + "\n" + words : text);
    }
    return module;
  }

  /// Runs `f(driver)` in the device's context; its result is an error of the driver or success. Throws
  /// `Error{out_of_memory}`, `Error{device_lost}` once and after a sticky error, and `Error{unavailable}` for others.
  template <class F>
  void call(const std::string& what, F&& f) const {
    refuse_if_lost();
    context();
    check(in_context(std::forward<F>(f)), what);
  }

  /// The same where an error has nowhere to go: memory that is given back.
  template <class F>
  jit::CudaResult in_context(F&& f) const {
    if (is_in_child()) return jit::cuda::deinitialized;
    if (!context_) return jit::cuda::invalid_context;
    if (const jit::CudaResult pushed = driver_->CtxPushCurrent(context_)) return pushed;
    const jit::CudaResult result = relaxed([&] { return f(*driver_); });
    jit::CudaHandle old = nullptr;
    driver_->CtxPopCurrent(&old);
    return result;
  }

  /// Throws what `result` means, if it is an error; `whose` memory it is that there may be too little of.
  void check(jit::CudaResult result, const std::string& what, const char* whose = "the device") const {
    if (result == jit::cuda::success) return;
    const std::string text = describe(result) + " in " + what + " on " + (name_.empty() ? "a GPU" : name_);
    if (result == jit::cuda::out_of_memory)
      throw Error(Code::out_of_memory,
                  text + ": nothing is lost; free memory of " + whose + ", or call with fewer roots");
    if (!jit::cuda::is_sticky(result) && !(jit::cuda::is_doubtful(result) && !works())) {
      const bool of_stream = result == jit::cuda::context_is_destroyed;
      throw Error(Code::unavailable,
                  text + (of_stream ? ": the context works, so it is a stream that has been destroyed" : ""));
    }
    {
      const Lock lock(mutex_);
      if (lost_.empty()) lost_ = text;
    }
    refuse_if_lost();
  }

  /// Does `work(stream)`, which gives a stream of the library's own something to do that waits for nobody else's work,
  /// and waits for that, also where it fails. Other threads' may be done on the way.
  template <class Work>
  void on_own_stream(const std::string& what, const Work& work) const {
    const jit::CudaHandle stream = own_stream();
    const auto wait = [&](const jit::CudaDriver& d) { return d.StreamSynchronize(stream); };
    try {
      work(stream);
      call(what, wait);
    } catch (...) {  // what it reads or writes may go
      in_context(wait);
      throw;
    }
  }
  jit::CudaHandle own_stream() const { return own_stream(0, jit::cuda::non_blocking); }
  /// For calls that name no stream: in order with the default one. Unlike that it may be used while others are
  /// captured.
  jit::CudaHandle ordered_stream() const { return own_stream(1, jit::cuda::blocking); }

  /// Whether this process was forked from that which made the object. Memory of the host that the device knows need not
  /// be there then.
  bool is_in_child() const { return runtime::forks().load(std::memory_order_relaxed) != forks_; }
  /// Whether libcuda has shut down, as it does when the process exits, so that what it gave is gone; or this is a
  /// forked child of the process that it gave it to.
  bool has_driver_ended() const {
    return in_context([](const jit::CudaDriver&) { return jit::cuda::success; }) == jit::cuda::deinitialized;
  }

  /// Whether what the stream is given becomes part of a graph.
  bool is_capturing(jit::CudaHandle stream) const {
    int status = 0;
    call("cuStreamIsCapturing", [&](const jit::CudaDriver& d) { return d.StreamIsCapturing(stream, &status); });
    return status != 0;
  }

  // --- Kernels that stay ---------------------------------------------------------------------------------------------

  /// A kernel that does not end with what it was launched for. The driver waits for it wherever it waits for all that
  /// a device does, as where memory is given back. Each object knows of those that were launched through it alone.
  class Occupant {
   public:
    virtual ~Occupant() = default;
    /// Whether the kernel may be running. Takes no lock.
    virtual bool is_running() const = 0;
    /// Ends the kernel, if that can be done. Throws nothing.
    virtual void leave() = 0;
  };
  void add_occupant(const std::shared_ptr<Occupant>& occupant) const {
    const Lock lock(mutex_);
    occupants_.push_back({occupant.get(), occupant});
  }
  void remove_occupant(const Occupant* occupant) const {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < occupants_.size(); ++i)
      if (occupants_[i].occupant == occupant) return void(occupants_.erase(occupants_.begin() + std::ptrdiff_t(i)));
  }
  /// Keeps one that nobody needs any more, whose kernel does not end: until it has, and something is given back then.
  /// It keeps this object in turn, so where nothing is, both stay.
  void keep_until_ended(std::unique_ptr<Occupant> occupant) const {
    const Lock lock(mutex_);
    left_behind_.push_back(std::move(occupant));
  }

  enum class Given { memory, pinned, module };
  /// Gives back memory, or a module, for which the driver may wait for work on the device. While a kernel stays there
  /// it would wait for that, so it is done the next time that something is given back behind the kernel's end, or when
  /// something ends it.
  void give_back(Given kind, std::uint64_t what) const {
    if (has_driver_ended()) return;
    {
      const Lock lock(mutex_);
      deferred_.push_back({kind, what});
    }
    if (!deferrals_) give_back_deferred();
  }
  /// While one lives, memory that any thread gives back is only listed, and goes when it ends: for who lets go of
  /// memory and holds a lock.
  class [[nodiscard]] Deferral {
   public:
    explicit Deferral(const CudaDevice& device) : device_(device) { ++device_.deferrals_; }
    ~Deferral() { --device_.deferrals_, device_.give_back_deferred(); }
    Deferral(const Deferral&) = delete;
    Deferral& operator=(const Deferral&) = delete;

   private:
    const CudaDevice& device_;
  };
  void give_back_deferred() const {
    if (has_driver_ended()) return;
    Vector<std::unique_ptr<Occupant>> ended;  // they give back what they have, too, without the lock
    Vector<Deferred> ready;
    {
      const Lock lock(mutex_);
      for (std::size_t i = left_behind_.size(); i-- > 0;)
        if (!left_behind_[i]->is_running()) {
          ended.push_back(std::move(left_behind_[i]));
          left_behind_.erase(left_behind_.begin() + std::ptrdiff_t(i));
        }
      if (!is_occupied()) std::swap(ready, deferred_);
    }
    if (ready.empty()) return;
    in_context([&](const jit::CudaDriver& d) {
      for (const Deferred& one : ready) {
        void* const handle = reinterpret_cast<void*>(one.what);
        if (one.kind == Given::memory) d.MemFree(one.what);
        if (one.kind == Given::pinned) d.MemFreeHost(handle);
        if (one.kind == Given::module) d.ModuleUnload(handle);
      }
      return jit::cuda::success;
    });
  }
  /// `allocate()`, an error of the driver or success; where there is no room, once more without what could not be given
  /// back because of kernels that stay, which end for it.
  template <class F>
  jit::CudaResult with_room(const F& allocate) const {
    jit::CudaResult result = allocate();
    if (result != jit::cuda::out_of_memory || !has_deferred()) return result;
    give_back_deferred();  // what a Deferral of another thread's has put off
    result = allocate();
    if (result != jit::cuda::out_of_memory || !has_deferred()) return result;
    Vector<std::shared_ptr<Occupant>> all;
    {
      const Lock lock(mutex_);
      for (const Tenant& tenant : occupants_) all.push_back(tenant.handle.lock());
    }
    for (const auto& occupant : all)
      if (occupant) occupant->leave();
    give_back_deferred();
    return allocate();
  }

  void refuse_if_lost() const {
    if (is_in_child())
      throw Error(Code::unavailable, name_ + " is of the process that this one was forked from, and CUDA does not " +
                                         "outlive a fork: fork before the first cuda::devices()");
    const Lock lock(mutex_);
    if (!lost_.empty())
      throw Error(Code::device_lost,
                  "the device is lost since " + lost_ +
                      ": nothing on it can be used any more; end the process, or make a new context");
  }

  /// What the driver says of the device.
  int attribute(jit::cuda::DeviceAttribute which) const {
    int value = 0;
    check(driver_->DeviceGetAttribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
  }

 private:
  /// Does `work`, which calls the driver. While a thread captures a stream, others may by default not do what could be
  /// unsafe in a capture, such as to allocate or to wait for an event, and spoil it if they do. Nothing that is done
  /// here is to be in anyone's graph but what its stream is given, so the thread's mode is relaxed for its time; where
  /// the thread has no context yet, the driver may know of no mode either.
  template <class Work>
  jit::CudaResult relaxed(const Work& work) const {
    int mode = jit::cuda::relaxed_capture;
    const jit::CudaResult failed = driver_->ThreadExchangeStreamCaptureMode(&mode);
    if (failed == jit::cuda::invalid_context) return work();
    if (failed) return failed;
    const jit::CudaResult result = work();
    driver_->ThreadExchangeStreamCaptureMode(&mode);
    return result;
  }

  jit::CudaHandle own_stream(std::size_t which, unsigned flags) const {
    std::atomic<jit::CudaHandle>& stream = own_[which];
    if (const jit::CudaHandle known = stream) return known;
    jit::CudaHandle made = nullptr, none = nullptr;
    call("cuStreamCreate", [&](const jit::CudaDriver& d) { return d.StreamCreate(&made, flags); });
    if (!stream.compare_exchange_strong(none, made))  // another thread was faster
      in_context([&](const jit::CudaDriver& d) { return d.StreamDestroy(made); });
    return stream;
  }

  /// Whether a new stream can be asked something.
  bool works() const {
    const jit::CudaResult result = in_context([](const jit::CudaDriver& d) {
      jit::CudaHandle stream = nullptr;
      jit::CudaResult failed = d.StreamCreate(&stream, jit::cuda::non_blocking);
      if (!failed) failed = d.StreamQuery(stream), d.StreamDestroy(stream);
      return failed;
    });
    return result == jit::cuda::success || result == jit::cuda::out_of_memory;
  }

  struct Tenant {
    const Occupant* occupant;
    std::weak_ptr<Occupant> handle;
  };
  struct Deferred {
    Given kind;
    std::uint64_t what;
  };
  bool has_deferred() const {
    const Lock lock(mutex_);
    return !deferred_.empty();
  }
  /// The caller holds `mutex_`.
  bool is_occupied() const {
    bool any = false;
    for (const Tenant& tenant : occupants_) any |= tenant.occupant->is_running();
    return any && lost_.empty();
  }

  std::string describe(jit::CudaResult result) const {
    const char *name = nullptr, *text = nullptr;
    driver_->GetErrorName(result, &name);
    driver_->GetErrorString(result, &text);
    return std::string(name ? name : "CUDA error " + std::to_string(result)) +
           (text ? " (" + std::string(text) + ")" : "");
  }

  std::shared_ptr<const jit::CudaDriver> driver_;
  mutable std::shared_ptr<const jit::Nvrtc> nvrtc_;
  mutable Mutex mutex_;
  mutable std::string lost_;
  mutable Vector<Tenant> occupants_;
  mutable Vector<Deferred> deferred_;
  mutable Vector<std::unique_ptr<Occupant>> left_behind_;
  mutable std::atomic<int> deferrals_{0};
  mutable std::atomic<jit::CudaHandle> own_[2]{};
  std::string name_;
  Gpu gpu_;
  int number_ = 0, device_ = 0;
  mutable std::atomic<jit::CudaHandle> context_;
  mutable std::atomic<bool> retained_{false};
  const std::uint32_t forks_ = runtime::forks().load(std::memory_order_relaxed);  // in which process it was made
};

/// Where pieces of a device's memory begin, as the driver gives it out: at multiples of so many bytes.
inline constexpr std::size_t device_alignment = 256;

inline constexpr std::size_t aligned(std::size_t bytes, std::size_t to = device_alignment) {
  return (bytes + to - 1) / to * to;
}

/// A piece of a device's memory, aligned to `device_alignment`; or of memory of someone else's, which is not given
/// back.
class CudaBlock {
 public:
  CudaBlock() = default;
  CudaBlock(std::shared_ptr<const CudaDevice> device, std::size_t bytes) : device_(std::move(device)), size_(bytes) {
    device_->call("cuMemAlloc of " + std::to_string(bytes) + " bytes", [&](const jit::CudaDriver& d) {
      return device_->with_room([&] { return d.MemAlloc(&at_, bytes); });
    });
  }
  static CudaBlock of_others(std::shared_ptr<const CudaDevice> device, jit::CudaPointer at, std::size_t bytes) {
    CudaBlock block;
    block.device_ = std::move(device), block.at_ = at, block.size_ = bytes, block.own_ = false;
    return block;
  }
  CudaBlock(CudaBlock&& other) noexcept
      : device_(std::move(other.device_)),
        at_(std::exchange(other.at_, 0)),
        size_(std::exchange(other.size_, 0)),
        own_(other.own_) {}
  CudaBlock& operator=(CudaBlock&& other) noexcept {
    std::swap(device_, other.device_), std::swap(at_, other.at_), std::swap(size_, other.size_);
    std::swap(own_, other.own_);
    return *this;
  }
  ~CudaBlock() {
    if (at_ && own_) device_->give_back(CudaDevice::Given::memory, at_);
  }
  jit::CudaPointer at() const { return at_; }
  std::size_t size() const { return size_; }
  const std::shared_ptr<const CudaDevice>& device() const { return device_; }

 private:
  std::shared_ptr<const CudaDevice> device_;
  jit::CudaPointer at_ = 0;
  std::size_t size_ = 0;
  bool own_ = true;
};

/// Memory of the host that the device copies from and to without help, and whose addresses are the device's too.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  PinnedBlock(std::shared_ptr<const CudaDevice> device, std::size_t bytes) : device_(std::move(device)), size_(bytes) {
    device_->refuse_if_lost(), device_->context();
    const jit::CudaResult failed = device_->in_context(
        [&](const jit::CudaDriver& d) { return device_->with_room([&] { return d.MemHostAlloc(&data_, bytes, 0); }); });
    device_->check(failed, "cuMemHostAlloc of " + std::to_string(bytes) + " bytes", "the host");
  }
  PinnedBlock(PinnedBlock&& other) noexcept
      : device_(std::move(other.device_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    std::swap(device_, other.device_), std::swap(data_, other.data_), std::swap(size_, other.size_);
    return *this;
  }
  ~PinnedBlock() {
    if (data_) device_->give_back(CudaDevice::Given::pinned, reinterpret_cast<std::uint64_t>(data_));
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }

 private:
  std::shared_ptr<const CudaDevice> device_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The devices of a machine that answer.
struct CudaDevices {
  Vector<std::shared_ptr<const CudaDevice>> all;
  std::string why;  // there are none, or some are missing; empty if all are here
};

/// The device of a context of the caller's. Throws `Error{invalid_argument}` if it is none.
inline std::shared_ptr<const CudaDevice> cuda_device_of(const std::shared_ptr<const jit::CudaDriver>& driver,
                                                        jit::CudaHandle context,
                                                        const std::shared_ptr<const jit::Nvrtc>& nvrtc = nullptr) {
  int number = 0;
  jit::CudaResult failed = context ? driver->CtxPushCurrent(context) : 1;
  if (!failed) {
    failed = driver->CtxGetDevice(&number);
    jit::CudaHandle old = nullptr;
    driver->CtxPopCurrent(&old);
  }
  if (failed) throw Error(Code::invalid_argument, "what is given as a context of CUDA is none");
  return std::make_shared<const CudaDevice>(driver, nvrtc, number, context);
}

inline CudaDevices cuda_devices(const std::shared_ptr<const jit::CudaDriver>& driver,
                                const std::shared_ptr<const jit::Nvrtc>& nvrtc = nullptr) {
  CudaDevices result;
  int count = 0;
  if (const jit::CudaResult failed = driver->Init(0)) {
    const char* text = nullptr;
    driver->GetErrorString(failed, &text);
    result.why = std::string("the NVIDIA driver does not start: ") + (text ? text : "error " + std::to_string(failed));
    return result;
  }
  if (driver->DeviceGetCount(&count) || count == 0) {
    result.why = "the NVIDIA driver finds no device";
    return result;
  }
  for (int n = 0; n < count; ++n) {
    try {
      result.all.push_back(std::make_shared<const CudaDevice>(driver, nvrtc, n));
    } catch (const Error& error) {  // the others can be used
      result.why += (result.why.empty() ? "device " : "; device ") + std::to_string(n) + ": " + error.message;
    }
  }
  return result;
}

}  // namespace cortex::runtime
