// Generated CUDA sources compiled by the host's compiler, with the emulation in the place of the device.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "cortex/codegen/cuda_text.hpp"
#include "support/cuda_emulation.hpp"
#include "support/skip.hpp"

namespace cortex::test {

/// A kernel as the host's compiler made it.
class HostKernel {
 public:
  using Entry = void (*)(codegen::CudaLaunch);
  using Gather = void (*)(codegen::CudaGather);
  using Resident = void (*)(codegen::CudaService);

  /// Compiles a source in which the emulation stands for the device; its log in `log`, null if it is refused. What was
  /// compiled once is kept.
  static std::shared_ptr<const HostKernel> compile(const std::string& source, std::string& log) {
    static std::map<std::string, std::shared_ptr<const HostKernel>> known;
    std::shared_ptr<const HostKernel>& kernel = known[source];
    if (!kernel) kernel = build(source, int(known.size()), log);
    return kernel;
  }
  Entry entry = nullptr;
  Gather gather = nullptr;  // these null in a source without them
  Resident resident = nullptr;

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
    // That which has compiled the tests: Clang takes half as long as g++.
#ifdef CORTEX_TEST_COMPILER
    const std::string compiler = CORTEX_TEST_COMPILER;
#else
    const std::string compiler = "c++";
#endif
    const std::string command = compiler + " -std=c++17 -O0 -fPIC -shared -nostdlib -ffp-contract=off -I'" +
                                tests_directory().string() + "' -o " + stem + ".so " + stem + ".cpp >" + stem +
                                ".log 2>&1";
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
    kernel->gather = reinterpret_cast<Gather>(::dlsym(library, "cortex_gather"));
    kernel->resident = reinterpret_cast<Resident>(::dlsym(library, "cortex_resident"));
    return kernel;
  }
};

/// The source of a kernel as the emulation takes it.
inline std::string for_emulation(std::string source) {
  const std::size_t at = source.find(codegen::cuda_device_prelude);
  if (at == std::string::npos) return "#error no device prelude\n";
  return source.replace(at, codegen::cuda_device_prelude.size(), "#include \"support/cuda_emulation_device.hpp\"\n");
}

}  // namespace cortex::test
