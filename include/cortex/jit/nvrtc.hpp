// CUDA C++ compiled at run time by NVRTC, which is opened when it is first needed: to machine code for the device's
// architecture, or, for one that this NVRTC does not know, to PTX, which the driver compiles.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

#include "cortex/base/error.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/jit/code_cache.hpp"
#include "cortex/jit/dynlib.hpp"

namespace cortex::jit {

/// The functions of NVRTC that are used, or a test's in their place.
struct Nvrtc {
  using Program = void*;
  using Result = int;  // 0: success
  const char* (*GetErrorString)(Result);
  Result (*Version)(int*, int*);
  Result (*GetNumSupportedArchs)(int*);
  Result (*GetSupportedArchs)(int*);
  Result (*CreateProgram)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  Result (*DestroyProgram)(Program*);
  Result (*CompileProgram)(Program, int, const char* const*);
  Result (*GetProgramLogSize)(Program, std::size_t*);
  Result (*GetProgramLog)(Program, char*);
  Result (*GetCUBINSize)(Program, std::size_t*);
  Result (*GetCUBIN)(Program, char*);
  Result (*GetPTXSize)(Program, std::size_t*);
  Result (*GetPTX)(Program, char*);
};

/// Where NVRTC is looked for.
struct NvrtcPlaces {
  std::string chosen;           // a file or a folder, and nowhere else; "": the loader's own places and `folders`
  Vector<std::string> folders;  // of installs of CUDA

  /// By the environment: `CORTEX_NVRTC`, or `CUDA_HOME`, `CUDA_PATH` and CUDA's usual place.
  static NvrtcPlaces of_environment() {
    NvrtcPlaces places;
    if (const char* const chosen = std::getenv("CORTEX_NVRTC")) places.chosen = chosen;
    for (const char* const name : {"CUDA_HOME", "CUDA_PATH"})
      if (const char* const root = std::getenv(name); root && *root)
        places.folders.push_back(root + std::string("/lib64"));
    places.folders.push_back("/usr/local/cuda/lib64");
    return places;
  }
};

/// What the loader is asked for, in this order, where the driver is of CUDA `major` (0: there is none). A driver takes
/// the code of NVRTCs of its own major version and of older ones, but not of newer ones: these come last, as perhaps
/// there are no others, and the driver then says why it refuses their code.
inline Vector<std::string> nvrtc_names(int major, const NvrtcPlaces& places) {
  constexpr int oldest = 11, newest = 13;
  const int own = major ? std::max(major, oldest) : newest;
  const auto version = [](int of) { return of == 11 ? std::string(".11.2") : "." + std::to_string(of); };
  Vector<std::string> versions;
  for (int one = own; one >= oldest; --one) versions.push_back(version(one));
  versions.push_back("");
  for (int one = own + 1; one <= newest; ++one) versions.push_back(version(one));

  const bool anywhere = places.chosen.empty();
  struct stat chosen {};
  if (!anywhere && (::stat(places.chosen.c_str(), &chosen) != 0 || !S_ISDIR(chosen.st_mode))) return {places.chosen};
  Vector<std::string> names;
  for (const std::string& one : versions) {
    if (anywhere) names.push_back("libnvrtc.so" + one);
    for (const std::string& folder : anywhere ? places.folders : Vector<std::string>{places.chosen})
      if (const std::string path = folder + "/libnvrtc.so" + one; ::access(path.c_str(), F_OK) == 0)
        names.push_back(path);
  }
  return names;
}

/// "13.0", of CUDA.
inline std::string version_of(const Nvrtc& nvrtc) {
  int major = 0, minor = 0;
  nvrtc.Version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}
/// The same of a driver's version (`cuDriverGetVersion`): 13000.
inline std::string version_of_driver(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The architectures that an NVRTC compiles for, in ascending order.
inline Vector<int> architectures(const Nvrtc& nvrtc) {
  int count = 0;
  nvrtc.GetNumSupportedArchs(&count);
  Vector<int> result(std::size_t(std::max(count, 0)));
  if (count > 0) nvrtc.GetSupportedArchs(result.data());
  std::sort(result.begin(), result.end());
  return result;
}
/// The one to compile for where a device has compute capability `sm`: its own, or the newest before it, whose text the
/// driver compiles; 0: there is none. What CUDA 12 calls 10.1 is 11.0 since CUDA 13, and no part of 10.3.
inline int architecture_for(const Nvrtc& nvrtc, int sm) {
  int best = 0;
  for (const int one : architectures(nvrtc))
    if (one == sm || (one < sm && !(one == 101 && sm < 110))) best = one;
  return best;
}

/// The NVRTC that this name opens; null, with the reason in `why`, if it opens none.
inline std::shared_ptr<Nvrtc> open_nvrtc(const std::string& name, std::string& why) {
  const DynamicLibrary library = DynamicLibrary::open({name});
  if (!library) return why = library.why(), nullptr;
  auto nvrtc = std::make_shared<Nvrtc>();
  std::string missing;
  const auto bind = [&](auto*& function, const char* symbol) { library.bind(function, symbol, missing); };
  bind(nvrtc->GetErrorString, "nvrtcGetErrorString"), bind(nvrtc->Version, "nvrtcVersion");
  bind(nvrtc->GetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  bind(nvrtc->GetSupportedArchs, "nvrtcGetSupportedArchs");
  bind(nvrtc->CreateProgram, "nvrtcCreateProgram"), bind(nvrtc->DestroyProgram, "nvrtcDestroyProgram");
  bind(nvrtc->CompileProgram, "nvrtcCompileProgram");
  bind(nvrtc->GetProgramLogSize, "nvrtcGetProgramLogSize"), bind(nvrtc->GetProgramLog, "nvrtcGetProgramLog");
  bind(nvrtc->GetCUBINSize, "nvrtcGetCUBINSize"), bind(nvrtc->GetCUBIN, "nvrtcGetCUBIN");
  bind(nvrtc->GetPTXSize, "nvrtcGetPTXSize"), bind(nvrtc->GetPTX, "nvrtcGetPTX");
  if (!missing.empty()) return why = "NVRTC is older than CUDA 11.2: it lacks " + missing, nullptr;
  return nvrtc;
}

/// The first NVRTC of those places that compiles for compute capability `sm` (0: for any), for a driver of that major
/// version; `open(name, why)` opens one. Null with the reason in `why`.
template <class Open>
std::shared_ptr<const Nvrtc> choose_nvrtc(const NvrtcPlaces& places, int major, int sm, std::string& why,
                                          const Open& open) {
  std::string unfit, unopened;
  for (const std::string& name : nvrtc_names(major, places)) {
    std::string own;
    const std::shared_ptr<Nvrtc> nvrtc = open(name, own);
    if (nvrtc && (!sm || architecture_for(*nvrtc, sm))) return nvrtc;
    if (!nvrtc) unopened += (unopened.empty() ? "" : "; ") + own;
    if (nvrtc)
      unfit =
          "NVRTC of CUDA " + version_of(*nvrtc) + " does not compile for compute capability " + capability_text(sm) +
          (places.chosen.empty() ? ": install one that does beside it (that of CUDA 12 is the last for 7.0), or name "
                                   "it with CORTEX_NVRTC"
                                 : ", and CORTEX_NVRTC names no other: that of CUDA 12 is the last for 7.0");
  }
  if (unopened.empty()) unopened = "there is no libnvrtc.so";
  why = !unfit.empty()          ? unfit
        : places.chosen.empty() ? "NVRTC is not installed, or CORTEX_NVRTC has to say where: " + unopened
                                : "CORTEX_NVRTC says that NVRTC is " + places.chosen + ": " + unopened;
  return nullptr;
}

/// NVRTC of this machine, for a driver that says that it is of CUDA `driver_version` (`cuDriverGetVersion`; 0: there is
/// none) and a device of compute capability `sm` (0: any); null with the reason in `why`.
inline std::shared_ptr<const Nvrtc> find_nvrtc(std::string& why, int driver_version = 0, int sm = 0) {
  auto nvrtc = choose_nvrtc(NvrtcPlaces::of_environment(), driver_version / 1000, sm, why, open_nvrtc);
  if (!nvrtc) return nullptr;
  // It opens its built-in functions by name, which the loader finds once they are open.
  const std::string version = version_of(*nvrtc);
  const std::string directory = DynamicLibrary::directory_of(reinterpret_cast<const void*>(nvrtc->Version));
  DynamicLibrary::open({directory + "libnvrtc-builtins.so." + version, "libnvrtc-builtins.so." + version});
  return nvrtc;
}

/// What NVRTC made of a source.
struct CudaImage {
  std::string bytes;  // for `cuModuleLoadDataEx`
  bool ptx = false;   // text for the driver to compile, and not machine code
  std::string log;    // NVRTC's words, and those of its assembler if it was asked
};

struct NvrtcOptions {
  bool report = false;  // ask for registers, spills and shared memory in the log
  bool force_ptx = false;
  int least_sm = 0;  // the compute capability whose instructions the source has, such as those of a cluster
};

namespace detail {

inline std::string compile_log(const Nvrtc& nvrtc, Nvrtc::Program program) {
  std::size_t size = 0;
  nvrtc.GetProgramLogSize(program, &size);
  std::string log(size, '\0');
  if (size) nvrtc.GetProgramLog(program, log.data());
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

[[noreturn]] inline void refuse_architecture(const Nvrtc& nvrtc, int newest, int needed) {
  throw Error(Code::unavailable,
              "this NVRTC, of CUDA " + version_of(nvrtc) + ", compiles for compute capability " +
                  capability_text(newest) + " at most, but blocks of a cluster meet by instructions of " +
                  capability_text(needed) +
                  ": install NVRTC of CUDA 11.8 or newer, or let groups be blocks or grids by GpuSchedule::group, " +
                  "which is gpu_group in a schedule's text");
}

/// All that an image depends on. NVRTCs of one version may differ in their patches, which only their files say.
inline Fingerprint key_of(const Nvrtc& nvrtc, const Vector<std::string>& arguments, const std::string& source) {
  std::string all =
      "NVRTC " + version_of(nvrtc) + " " + DynamicLibrary::edition_of(reinterpret_cast<const void*>(nvrtc.Version));
  for (const std::string& argument : arguments) all += '\n' + argument;
  return fingerprint(all + '\n' + source);
}

}  // namespace detail

/// Compiles `source` for compute capability `sm`. Throws `Error{compile_failed}` with NVRTC's log and the source,
/// `Error{unavailable}` for an architecture older than all that this NVRTC knows, and where it knows none that has the
/// source's instructions. Looks into the process's cache first.
inline CudaImage compile_cuda(const Nvrtc& nvrtc, const std::string& source, int sm, const NvrtcOptions& options = {}) {
  CudaImage image;
  const int architecture = architecture_for(nvrtc, sm);
  if (!architecture)
    throw Error(Code::unavailable, "this NVRTC, of CUDA " + version_of(nvrtc) +
                                       ", does not compile for compute capability " + capability_text(sm) +
                                       ": it takes an older one");
  if (architecture < options.least_sm) detail::refuse_architecture(nvrtc, architecture, options.least_sm);
  image.ptx = architecture != sm || options.force_ptx;
  const std::string name = std::to_string(architecture);
  Vector<std::string> arguments{"--gpu-architecture=" + (image.ptx ? "compute_" + name : "sm_" + name), "-fmad=false",
                                "-std=c++17"};
  if (options.report) arguments.push_back("--ptxas-options=-v");
  Vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());

  const CodeCache cache = options.report ? CodeCache("") : code_cache();  // whose code comes without a report
  const Fingerprint key = cache.is_on() ? detail::key_of(nvrtc, arguments, source) : Fingerprint();
  if (auto kept = cache.find(key)) {
    image.bytes = std::move(*kept);
    return image;
  }
  Nvrtc::Program program = nullptr;
  Nvrtc::Result result = nvrtc.CreateProgram(&program, source.c_str(), "cortex.cu", 0, nullptr, nullptr);
  if (result == 0) result = nvrtc.CompileProgram(program, int(pointers.size()), pointers.data());
  if (program) image.log = detail::compile_log(nvrtc, program);
  std::size_t size = 0;
  if (result == 0) result = image.ptx ? nvrtc.GetPTXSize(program, &size) : nvrtc.GetCUBINSize(program, &size);
  image.bytes.resize(size);
  if (result == 0)
    result = image.ptx ? nvrtc.GetPTX(program, image.bytes.data()) : nvrtc.GetCUBIN(program, image.bytes.data());
  if (program) nvrtc.DestroyProgram(&program);
  if (result != 0)
    throw Error(Code::compile_failed, std::string("NVRTC refused a kernel: ") + nvrtc.GetErrorString(result) + "\n" +
                                          image.log + "\n--- the source ---\n" + source);
  cache.keep(key, image.bytes);
  return image;
}

}  // namespace cortex::jit
