// A driver and an NVRTC without a GPU: memory is the host's, sources are compiled by the host's compiler, kernels run
// in the emulation. All may be called by any thread. The machine is here, what its driver's functions do with it in
// fake_driver.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cortex/codegen/cuda_text.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "support/cuda_emulation.hpp"
#include "support/fake_memory.hpp"
#include "support/fake_nvrtc.hpp"
#include "support/fake_streams.hpp"
#include "support/host_kernel.hpp"

namespace cortex::test {

/// One machine with GPUs. While it lives, its driver and NVRTC work; there is one at a time.
class FakeCuda {
 public:
  FakeCuda() {
    current() = this;
    streams_.go_on_resident = [this](FakeResident& resident) { return go_on(resident); };
    streams_.pass = [this](double ms) { pass(ms, false); };
    streams_.found = [this](const std::string& what) { found(what); };
  }
  ~FakeCuda() {
    streams_.clear();  // before the memory that kernels which stay have
    current() = nullptr;
  }
  FakeCuda(const FakeCuda&) = delete;

  // What the machine is like, and what shall go wrong.
  Gpu gpu = Gpu::of(90);
  int devices = 1;
  int driver_version = 13000;                       // as the driver says it: of CUDA 13.0
  std::size_t memory_limit = std::size_t(1) << 30;  // of each device
  Interleaving order;
  static constexpr double copy_ms = 0.25, kernel_ms = 2;  // that each takes by the device's clock
  int missing_block = -1;
  int launch_error = 0;                            // of the next kernel, when it runs
  std::function<std::string(std::string)> change;  // of a source before it is compiled
  bool deaf = false;                               // kernels that stay do not go on: others have the device
  bool vanish = false;                             // they are gone, without a word
  int query_error = 0;                             // of each cuStreamQuery
  int nameless = -1;                               // the number of a device that does not answer
  int refusing = -1;                               // the number of a device that gives no context
  bool cooperates = true;                          // blocks of a launch may wait for each other
  bool modes_without_context = true;               // a thread has a mode of captures before it has a context

  // What has happened.
  int compilations = 0, launches = 0, uploads = 0, downloads = 0, allocations = 0, waits = 0, stream_waits = 0;
  std::size_t last_upload = 0;  // bytes
  void* last_context = nullptr;
  std::string problem;         // that the emulation found first
  std::uint64_t meetings = 0;  // at a lock-free barrier in memory, of the first group, until the last launch ended
  std::vector<jit::cuda::LaunchAttribute> attributes;  // of the last launch
  int stalls() const { return streams_.stalls; }
  /// The first call that was made though a capture forbids it, which has spoilt that.
  const std::string& forbidden() const { return streams_.forbidden; }

  /// The call of the driver that is made after so many others fails with `error`, where that may happen to it: not
  /// what gives back, which leaves nothing to do. One that poisons a context does so.
  void fail(int after, int error) { calls_ = 0, fail_after_ = after, fail_with_ = error, failed_.clear(); }
  /// The function that has failed, "" if none has.
  const std::string& failed() const { return failed_; }
  /// The device works again, as in a new context.
  void recover() { lost_.clear(), fail_after_ = -1; }
  /// Every call on a device fails from now on.
  void lose(int device, int error) { lost_[device] = error; }

  /// The driver shuts down, as at the end of the process: its calls fail, and the memory of the host that it gave is
  /// none.
  void end_driver() {
    streams_.clear();
    ended_ = true;
    memory_.unmap_pinned();
  }

  /// Time passes for kernels that stay, and they see it if `look`.
  void pass(double ms, bool look = true) {
    resident_clock_ns_ += std::uint64_t(ms * 1e6);
    if (!look) return;
    const std::lock_guard lock(mutex_);
    streams_.each_resident([&](FakeStreams::Stream& stream, FakeResident&) { streams_.run_first(stream, false); });
  }

  std::size_t used_memory(int device = 0) const { return memory_.used(device); }
  /// What has been made and not given back: memory of devices and of the host, events, modules, contexts.
  int alive() const { return int(memory_.pieces()) + objects_ - users_; }

  /// Memory of the user's on a device.
  std::uint64_t users_memory(int device, std::size_t bytes) {
    ++users_;
    return memory_.place(device, bytes);
  }
  template <class T>
  std::uint64_t users_values(int device, const std::vector<T>& values) {
    const std::uint64_t at = users_memory(device, values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(at), values.data(), values.size() * sizeof(T));
    memory_.written(at, values.size() * sizeof(T));
    return at;
  }
  void give_back_users(std::uint64_t at) {
    --users_;
    memory_.release(at);
  }
  /// What a stream of a device is given after all that it has been given.
  void enqueue_users(int device, void* stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    streams_.enqueue(device, stream, std::move(work), true);
  }
  /// Waits as the user does for a stream.
  void users_wait(int device, void* stream) {
    const std::lock_guard lock(mutex_);
    streams_.flush(*streams_.at(device, stream));
  }
  /// The user destroys a stream: who gives its handle to the driver hears of a context that is destroyed.
  void destroy_users(int device, void* stream) {
    const std::lock_guard lock(mutex_);
    streams_.destroy(device, stream);
  }

  /// Of the calling thread; null if it has none.
  static void* current_context() { return contexts().empty() ? nullptr : contexts().back(); }

  /// From here to `end_capture` what the stream of the first device is given is kept, and nothing that a capture
  /// forbids is allowed. The calling thread captures.
  void begin_capture(void* stream, FakeStreams::Mode mode = FakeStreams::global) {
    const std::lock_guard lock(mutex_);
    streams_.begin_capture(0, stream, mode);
  }
  void end_capture() {
    const std::lock_guard lock(mutex_);
    graph_ = streams_.end_capture();
  }
  void replay() {
    for (const auto& work : graph_) work();
  }
  /// On a stream, which does it later.
  void replay(void* stream) {
    const std::lock_guard lock(mutex_);
    for (const auto& work : graph_) streams_.enqueue(0, stream, work, true);
  }

  runtime::CudaDevices devices_of() const { return runtime::cuda_devices(driver(), nvrtc()); }
  std::shared_ptr<const runtime::CudaDevice> device(int number = 0) const {
    return std::make_shared<const runtime::CudaDevice>(driver(), nvrtc(), number);
  }

  static std::shared_ptr<const jit::CudaDriver> driver() {
    auto d = std::make_shared<jit::CudaDriver>();
    about_devices(*d);
    about_code(*d);
    about_memory(*d);
    about_streams(*d);
    return d;
  }

  static std::shared_ptr<const jit::Nvrtc> nvrtc() {
    return fake_nvrtc([](const std::string& source, std::string& log) {
      const std::lock_guard lock(now().mutex_);
      ++now().compilations;
      std::string text = for_emulation(source);
      if (now().change) text = now().change(text);
      return HostKernel::compile(text, log);
    });
  }

 private:
  struct Event {
    FakeStreams::Point recorded;
    bool captured = false;
    double at_ms = 0;
  };
  struct Function {
    const HostKernel* kernel;
    const char* name;
  };
  struct Module {
    Function functions[4];
  };

  // Errors that are named where they are returned.
  enum : int { invalid_value = 1, invalid_image = 200, invalid_context = 201, context_destroyed = 709 };

  static FakeCuda*& current() {
    static FakeCuda* fake = nullptr;
    return fake;
  }
  static FakeCuda& now() { return *current(); }
  static std::vector<void*>& contexts() {
    static thread_local std::vector<void*> stack;
    return stack;
  }
  /// Of the thread's context: a primary one is its number plus 1, and those of users are the first device's.
  static int device_now() {
    const int number = contexts().empty() ? -1 : int(reinterpret_cast<std::intptr_t>(contexts().back())) - 1;
    return number >= now().devices ? 0 : number;
  }

  /// One call of the driver in a context, which holds the machine for its time.
  struct Call {
    explicit Call(const char* name) : lock(now().mutex_) {
      FakeCuda& fake = now();
      if (contexts().empty()) {
        error = invalid_context;
      } else if (fake.lost_.count(device_now())) {
        error = fake.lost_[device_now()];
      } else if (fake.calls_++ == fake.fail_after_) {
        error = fake.fail_with_;
        fake.failed_ = name;
        if (jit::cuda::is_sticky(error)) fake.lost_[device_now()] = error;
      }
    }
    /// The same on a stream.
    Call(const char* name, void* stream) : Call(name) {
      if (!error && now().streams_.is_gone(device_now(), stream)) error = context_destroyed;
    }
    /// What may be unsafe while a stream is captured.
    Call& not_captured(const char* name) {
      if (!error && now().streams_.forbids(name)) error = FakeStreams::capture_forbids;
      return *this;
    }
    std::lock_guard<std::recursive_mutex> lock;
    int error = 0;
  };

  // The functions of the driver, in fake_driver.hpp.
  static void about_devices(jit::CudaDriver& d);
  static void about_code(jit::CudaDriver& d);
  static void about_memory(jit::CudaDriver& d);
  static void about_streams(jit::CudaDriver& d);

  int state() {
    const auto lost = lost_.find(device_now());
    return lost == lost_.end() ? 0 : lost->second;
  }
  int attribute(int which) const {
    using A = jit::cuda::DeviceAttribute;
    switch (which) {
      case A::multiprocessors: return gpu.multiprocessors;
      case A::compute_major: return gpu.sm / 10;
      case A::compute_minor: return gpu.sm % 10;
      case A::registers_per_multiprocessor: return gpu.registers;
      case A::shared_bytes_optin: return gpu.shared_bytes;
      case A::cooperative_launch: return cooperates;
      default: return 1;
    }
  }

  // ---- copies ----

  int upload(std::uint64_t to, const void* from, std::size_t bytes, void* to_stream) {
    ++uploads;
    last_upload = bytes;
    std::shared_ptr<std::vector<char>> staged;  // what is not pinned is taken at once, or as late as the copy is made
    if (!memory_.is_pinned(from, bytes)) {
      if (streams_.is_capturing(stream(to_stream)) && streams_.spoil("a copy from pageable memory"))
        return int(FakeStreams::capture_forbids);
      const char* const begin = static_cast<const char*>(from);
      staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    }
    return enqueue(to_stream, [=, this, device = device_now()] {
      clock_ms_ += copy_ms;
      if (!memory_.holds(device, to, bytes)) return found("a copy to memory that is not there");
      if (staged && std::memcmp(staged->data(), from, bytes) != 0)
        return found("a copy from memory of the host that is not left as it was until then");
      std::memcpy(reinterpret_cast<void*>(to), staged ? staged->data() : from, bytes);
      memory_.written(to, bytes);
    });
  }
  int copy(int to_device, std::uint64_t to, int from_device, std::uint64_t from, std::size_t bytes, void* stream) {
    return enqueue(stream, [=, this] {
      if (!memory_.holds(to_device, to, bytes) || !memory_.holds(from_device, from, bytes))
        return found("a copy between memories that are not there");
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
      memory_.written(to, bytes);
    });
  }
  void found(const std::string& what) {
    if (problem.empty()) problem = what;
  }

  // ---- streams ----

  FakeStreams::Stream* stream(void* handle) { return streams_.at(device_now(), handle); }

  int enqueue(void* handle, std::function<void()> work) {
    return streams_.enqueue(device_now(), handle, [this, device = device_now(), work = std::move(work)] {
      if (!lost_.count(device)) work();
    });
  }
  int synchronise(void* handle) {
    if (streams_.uses_default(device_now(), handle)) return FakeStreams::implicit;
    ++waits;
    streams_.flush(*stream(handle));
    return state();
  }

  // ---- kernels that stay ----

  bool go_on(FakeResident& resident) {
    if (lost_.count(resident.device) || vanish) return true;
    if (launch_error) return lost_[resident.device] = launch_error, true;
    if (deaf) return false;
    const bool ended = resident.go_on([&](const auto& touch) { memory_.each_pinned(touch); });
    found(resident.what_went_wrong());
    return ended;
  }
  void read_by_host(const void* at, std::size_t bytes) {
    streams_.each_resident([&](FakeStreams::Stream&, FakeResident& resident) { resident.read_by_host(at, bytes); });
  }

  int launch(const jit::cuda::LaunchConfig& config, const Function& function, const void* argument) {
    attributes.assign(config.attributes, config.attributes + config.num_attributes);
    Emulation::Shape shape;
    shape.blocks = int(config.grid[0]), shape.threads = int(config.block[0]);
    shape.shared_bytes = config.shared_bytes;
    shape.missing_block = missing_block;
    for (const jit::cuda::LaunchAttribute& one : attributes)
      if (one.id == jit::cuda::LaunchAttribute::cluster_dimension) shape.cluster = int(one.cluster[0]);
    ++launches;
    if (function.name == std::string("cortex_resident")) {
      if (memory_.is_pinned(reinterpret_cast<const void*>(static_cast<const codegen::CudaService*>(argument)->weights),
                            1))
        found("every warp of a kernel that stays reads where its weights are from memory of the host");
      // After all that the stream has to do before; it is run by nobody but who looks after the stream.
      FakeStreams::Stream& on = *stream(config.stream);
      streams_.flush(on);
      streams_.enqueue(on, std::make_shared<FakeResident>(
                               device_now(), memory_.of(device_now()), shape, order, function.kernel->resident,
                               *static_cast<const codegen::CudaService*>(argument), &resident_clock_ns_));
      return 0;
    }
    std::function<void()> body;
    const auto with = [&](auto entry, const auto& arguments) { body = [=] { entry(arguments); }; };
    const std::string name = function.name;
    std::uint64_t words = 0;
    if (name == "cortex_gather")
      with(function.kernel->gather, *static_cast<const codegen::CudaGather*>(argument));
    else
      with(function.kernel->entry, *static_cast<const codegen::CudaLaunch*>(argument)),
          words = static_cast<const codegen::CudaLaunch*>(argument)->words;
    return enqueue(config.stream, [this, shape, body, words, device = device_now()] {
      if (launch_error) {
        lost_[device] = launch_error;
        return;
      }
      clock_ms_ += kernel_ms;
      Emulation emulation(memory_.of(device), shape, order);
      emulation.stop_at_problems();
      found(emulation.run([&] { body(); }));
      if (words && memory_.holds(device, words, 8)) meetings = *reinterpret_cast<const std::uint64_t*>(words);
    });
  }

  std::recursive_mutex mutex_;
  FakeMemory memory_;
  FakeStreams streams_;
  std::map<int, int> lost_;  // [device] since which error
  std::vector<std::function<void()>> graph_;
  std::uint64_t resident_clock_ns_ = 1000;
  double clock_ms_ = 0;
  std::atomic<int> objects_ = 0;
  bool ended_ = false;
  int users_ = 0, calls_ = 0, fail_after_ = -1, fail_with_ = 0;
  std::string failed_;
};

}  // namespace cortex::test

#include "support/fake_driver.hpp"
