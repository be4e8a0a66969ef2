// A driver and an NVRTC without a GPU: memory is the host's, sources are compiled by the host's compiler, kernels run
// in the emulation. Streams do nothing until they are waited for, as a device that is slow.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cortex/codegen/cuda_text.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "support/cuda_emulation.hpp"
#include "support/skip.hpp"

namespace cortex::test {

/// A kernel as the host's compiler made it.
class HostKernel {
 public:
  using Entry = void (*)(codegen::CudaLaunch);

  /// Compiles a source in which the emulation stands for the device; its log in `log`, null if it is refused. What was
  /// compiled once is kept.
  static std::shared_ptr<const HostKernel> compile(const std::string& source, std::string& log) {
    static std::map<std::string, std::shared_ptr<const HostKernel>> known;
    std::shared_ptr<const HostKernel>& kernel = known[source];
    if (!kernel) kernel = build(source, int(known.size()), log);
    return kernel;
  }
  Entry entry = nullptr;

 private:
  struct Directory {
    std::filesystem::path path;
    Directory() {
      std::string name = (std::filesystem::temp_directory_path() / "cortex-kernels-XXXXXX").string();
      if (!::mkdtemp(name.data())) skip("no directory for kernels can be made");
      path = name;
    }
    ~Directory() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };

  static std::shared_ptr<const HostKernel> build(const std::string& source, int number, std::string& log) {
    static const Directory directory;
    const std::string stem = (directory.path / ("kernel" + std::to_string(number))).string();
    std::ofstream(stem + ".cpp") << source;
    const char* compiler = std::getenv("CXX");
    const std::string command = std::string(compiler && *compiler ? compiler : "c++") +
                                " -std=c++17 -O0 -fPIC -shared -ffp-contract=off -I'" + tests_directory().string() +
                                "' -o " + stem + ".so " + stem + ".cpp >" + stem + ".log 2>&1";
    const int status = std::system(command.c_str());
    std::ostringstream words;
    words << std::ifstream(stem + ".log").rdbuf();
    log = words.str();
    if (status != 0) return nullptr;
    void* library = ::dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      log = ::dlerror();
      return nullptr;
    }
    *static_cast<const EmulatorTable**>(::dlsym(library, "emulator")) = Emulation::table();
    auto kernel = std::make_shared<HostKernel>();
    kernel->entry = reinterpret_cast<Entry>(::dlsym(library, "cortex_kernel"));
    return kernel;
  }
};

/// The source of a kernel as the emulation takes it.
inline std::string for_emulation(std::string source) {
  const std::size_t at = source.find(codegen::cuda_device_prelude);
  if (at == std::string::npos) return "#error no device prelude\n";
  return source.replace(at, codegen::cuda_device_prelude.size(), "#include \"support/cuda_emulation_device.hpp\"\n");
}

/// One machine with GPUs. While it lives, its driver and NVRTC work; there is one at a time.
class FakeCuda {
 public:
  FakeCuda() { current() = this; }
  ~FakeCuda() {
    for (auto& [at, bytes] : allocated_) std::free(reinterpret_cast<void*>(at));
    current() = nullptr;
  }
  FakeCuda(const FakeCuda&) = delete;

  // What the machine is like, and what shall go wrong.
  Gpu gpu = Gpu::of(90);
  int devices = 1;
  std::size_t memory_limit = std::size_t(1) << 30;
  Interleaving order;
  static constexpr double copy_ms = 0.25, kernel_ms = 2;  // that each takes by the device's clock
  int missing_block = -1;
  int launch_error = 0;                            // of the next kernel, when it runs
  std::function<std::string(std::string)> change;  // of a source before it is compiled

  // What has happened.
  int compilations = 0, launches = 0, uploads = 0, downloads = 0, allocations = 0;
  std::size_t last_upload = 0;  // bytes
  void* last_context = nullptr;
  std::string problem;         // that the emulation found first
  std::uint64_t meetings = 0;  // at a lock-free barrier in memory, of the first group, until the last launch ended
  std::vector<jit::cuda::LaunchAttribute> attributes;  // of the last launch

  /// From here to `end_capture` what streams are given is kept, and nothing that a capture forbids is allowed.
  void begin_capture() { capturing_ = true; }
  void end_capture() { capturing_ = false; }
  void replay() {
    for (auto& work : captured_) queue_.push_back(work);
    flush();
  }

  runtime::CudaDevices devices_of() const { return runtime::cuda_devices(driver(), nvrtc()); }
  std::shared_ptr<const runtime::CudaDevice> device(int number = 0) const {
    return std::make_shared<const runtime::CudaDevice>(driver(), nvrtc(), number);
  }

  static std::shared_ptr<const jit::CudaDriver> driver() {
    auto d = std::make_shared<jit::CudaDriver>();
    d->Init = [](unsigned) { return 0; };
    d->DriverGetVersion = [](int* v) { return *v = 13000, 0; };
    d->GetErrorName = [](int e, const char** text) {
      *text = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
      return 0;
    };
    d->GetErrorString = [](int, const char** text) { return *text = "as the test asked", 0; };
    d->DeviceGetCount = [](int* n) { return *n = now().devices, 0; };
    d->DeviceGet = [](int* device, int number) { return *device = number, number < now().devices ? 0 : 101; };
    d->DeviceGetName = [](char* name, int size, int number) {
      return std::snprintf(name, std::size_t(size), "emulated GPU %d", number), 0;
    };
    d->DeviceGetAttribute = [](int* value, int which, int) { return *value = now().attribute(which), 0; };
    d->DevicePrimaryCtxRetain = [](void** context, int number) {
      return *context = reinterpret_cast<void*>(std::intptr_t(number + 1)), 0;
    };
    d->DevicePrimaryCtxRelease = [](int) { return 0; };
    d->CtxPushCurrent = [](void* context) {
      now().last_context = context;
      return now().contexts_.push_back(context), 0;
    };
    d->CtxPopCurrent = [](void** context) {
      *context = now().contexts_.back();
      return now().contexts_.pop_back(), 0;
    };
    d->CtxGetDevice = [](int* number) { return *number = int(std::intptr_t(now().contexts_.back())) - 1, 0; };
    d->ModuleLoadData = [](void** module, const void* image) { return now().load(module, image); };
    d->ModuleUnload = [](void*) { return 0; };
    d->ModuleGetFunction = [](void** function, void* module, const char* name) {
      return *function = module, std::string(name) == "cortex_kernel" ? 0 : 500;
    };
    d->FuncSetAttribute = [](void*, int, int value) { return value <= now().gpu.shared_bytes ? 0 : 1; };
    d->FuncGetAttribute = [](int* value, int, void*) { return *value = 0, 0; };
    d->OccupancyMaxActiveBlocksPerMultiprocessor = [](int* count, void*, int threads, std::size_t shared) {
      *count = shared > std::size_t(now().gpu.shared_bytes) ? 0 : 2048 / threads > 1 && shared == 0 ? 2 : 1;
      return now().state();
    };
    d->OccupancyMaxActiveClusters = [](int* count, void*, const jit::cuda::LaunchConfig* config) {
      return *count = now().gpu.multiprocessors / int(config->attributes->cluster[0]), now().state();
    };
    d->LaunchKernelEx = [](const jit::cuda::LaunchConfig* config, void* function, void** arguments, void**) {
      return now().launch(*config, function, arguments);
    };
    d->MemAlloc = [](std::uint64_t* at, std::size_t bytes) { return now().allocate(at, bytes); };
    d->MemFree = [](std::uint64_t at) { return now().free(at); };
    d->MemHostAlloc = [](void** at, std::size_t bytes, unsigned) {
      return now().capturing_ ? 900 : (*at = std::malloc(bytes), 0);
    };
    d->MemFreeHost = [](void* at) { return std::free(at), 0; };
    d->MemcpyHtoDAsync = [](std::uint64_t to, const void* from, std::size_t bytes, void*) {
      ++now().uploads;
      now().last_upload = bytes;
      return now().enqueue([=] {
        now().clock_ms_ += copy_ms;
        std::memcpy(reinterpret_cast<void*>(to), from, bytes);
        now().memory_.written_by_host(reinterpret_cast<void*>(to), bytes);
      });
    };
    d->MemcpyDtoHAsync = [](void* to, std::uint64_t from, std::size_t bytes, void*) {
      ++now().downloads;
      return now().enqueue([=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
    };
    d->MemsetD8Async = [](std::uint64_t at, unsigned char value, std::size_t bytes, void*) {
      return now().enqueue([=] {
        std::memset(reinterpret_cast<void*>(at), value, bytes);
        now().memory_.written_by_host(reinterpret_cast<void*>(at), bytes);
      });
    };
    d->StreamSynchronize = [](void*) { return now().synchronise(); };
    d->EventCreate = [](void** event, unsigned) { return *event = new Event, 0; };
    d->EventDestroy = [](void* event) { return delete static_cast<Event*>(event), 0; };
    d->EventRecord = [](void* event, void*) {
      static_cast<Event*>(event)->done = false;
      return now().enqueue([=] { *static_cast<Event*>(event) = {true, now().clock_ms_}; });
    };
    d->EventQuery = [](void* event) {
      return now().lost_ ? now().lost_ : static_cast<Event*>(event)->done ? 0 : jit::cuda::not_ready;
    };
    d->EventSynchronize = [](void*) { return now().synchronise(); };
    d->EventElapsedTime = [](float* milliseconds, void* from, void* to) {
      *milliseconds = float(static_cast<Event*>(to)->at_ms - static_cast<Event*>(from)->at_ms);
      return 0;
    };
    return d;
  }

  static std::shared_ptr<const jit::Nvrtc> nvrtc() {
    struct Source {
      std::string text, log;
      std::shared_ptr<const HostKernel> kernel;
    };
    auto n = std::make_shared<jit::Nvrtc>();
    n->GetErrorString = [](int) { return "NVRTC_ERROR_COMPILATION"; };
    n->Version = [](int* a, int* b) { return *a = 13, *b = 0, 0; };
    n->GetNumSupportedArchs = [](int* count) { return *count = 4, 0; };
    n->GetSupportedArchs = [](int* all) { return all[0] = 75, all[1] = 80, all[2] = 90, all[3] = 100, 0; };
    n->CreateProgram = [](void** program, const char* text, const char*, int, const char* const*, const char* const*) {
      return *program = new Source{text, {}, {}}, 0;
    };
    n->DestroyProgram = [](void** program) { return delete static_cast<Source*>(*program), 0; };
    n->CompileProgram = [](void* program, int, const char* const*) {
      ++now().compilations;
      auto& source = *static_cast<Source*>(program);
      std::string text = for_emulation(source.text);
      if (now().change) text = now().change(text);
      source.kernel = HostKernel::compile(text, source.log);
      return source.kernel ? 0 : 6;
    };
    n->GetProgramLogSize = [](void* program, std::size_t* size) {
      return *size = static_cast<Source*>(program)->log.size() + 1, 0;
    };
    n->GetProgramLog = [](void* program, char* log) {
      const std::string& text = static_cast<Source*>(program)->log;
      return std::memcpy(log, text.c_str(), text.size() + 1), 0;
    };
    n->GetCUBINSize = [](void*, std::size_t* size) { return *size = sizeof(void*), 0; };
    n->GetCUBIN = [](void* program, char* image) {
      const HostKernel* kernel = static_cast<Source*>(program)->kernel.get();
      return std::memcpy(image, &kernel, sizeof kernel), 0;
    };
    n->GetPTXSize = n->GetCUBINSize;
    n->GetPTX = n->GetCUBIN;
    return n;
  }

 private:
  struct Event {
    bool done = true;
    double at_ms = 0;
  };

  static FakeCuda*& current() {
    static FakeCuda* fake = nullptr;
    return fake;
  }
  static FakeCuda& now() { return *current(); }

  int state() const { return lost_; }
  int attribute(int which) const {
    using A = jit::cuda::DeviceAttribute;
    switch (which) {
      case A::multiprocessors: return gpu.multiprocessors;
      case A::compute_major: return gpu.sm / 10;
      case A::compute_minor: return gpu.sm % 10;
      case A::registers_per_multiprocessor: return gpu.registers;
      case A::shared_bytes_optin: return gpu.shared_bytes;
      default: return 1;
    }
  }

  int load(void** module, const void* image) {
    std::memcpy(module, image, sizeof(void*));
    return lost_;
  }

  int allocate(std::uint64_t* at, std::size_t bytes) {
    if (lost_) return lost_;
    if (capturing_) return 900;
    if (used_ + bytes > memory_limit) return jit::cuda::out_of_memory;
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    memory_.add(memory, bytes);
    *at = reinterpret_cast<std::uint64_t>(memory);
    allocated_[*at] = bytes;
    used_ += bytes;
    ++allocations;
    return 0;
  }
  int free(std::uint64_t at) {
    synchronise();
    used_ -= allocated_[at];
    allocated_.erase(at);
    memory_.remove(reinterpret_cast<void*>(at));
    std::free(reinterpret_cast<void*>(at));
    return 0;
  }

  int enqueue(std::function<void()> work) {
    if (lost_) return lost_;
    (capturing_ ? captured_ : queue_).push_back(std::move(work));
    return 0;
  }
  int synchronise() {
    if (capturing_) return 900;
    flush();
    return lost_;
  }
  void flush() {
    std::vector<std::function<void()>> work;
    work.swap(queue_);
    for (auto& one : work)
      if (!lost_) one();
  }

  int launch(const jit::cuda::LaunchConfig& config, void* function, void** arguments) {
    const auto launch = *static_cast<const codegen::CudaLaunch*>(arguments[0]);
    attributes.assign(config.attributes, config.attributes + config.num_attributes);
    Emulation::Shape shape;
    shape.blocks = int(config.grid[0]), shape.threads = int(config.block[0]);
    shape.shared_bytes = config.shared_bytes;
    shape.missing_block = missing_block;
    for (const jit::cuda::LaunchAttribute& one : attributes)
      if (one.id == jit::cuda::LaunchAttribute::cluster_dimension) shape.cluster = int(one.cluster[0]);
    const auto entry = static_cast<const HostKernel*>(function)->entry;
    ++launches;
    return enqueue([this, shape, entry, launch] {
      if (launch_error) {
        lost_ = launch_error;
        return;
      }
      clock_ms_ += kernel_ms;
      Emulation emulation(memory_, shape, order);
      const std::string found = emulation.run([&] { entry(launch); });
      if (problem.empty()) problem = found;
      const auto block = allocated_.upper_bound(launch.words);
      if (block != allocated_.begin() && launch.words + 8 <= std::prev(block)->first + std::prev(block)->second)
        meetings = *reinterpret_cast<const std::uint64_t*>(launch.words);
    });
  }

  WatchedMemory memory_;
  std::map<std::uint64_t, std::size_t> allocated_;
  std::size_t used_ = 0;
  std::vector<void*> contexts_;
  std::vector<std::function<void()>> queue_, captured_;
  double clock_ms_ = 0;
  bool capturing_ = false;
  int lost_ = 0;
};

}  // namespace cortex::test
