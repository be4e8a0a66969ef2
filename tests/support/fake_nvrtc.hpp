// An NVRTC that gives kernels to the host's compiler: what it calls machine code is a pointer to what came of that.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "cortex/jit/nvrtc.hpp"
#include "support/host_kernel.hpp"

namespace cortex::test {

/// `compile(source, log)` is null, with the log, for what does not compile.
using CompileOnHost = std::shared_ptr<const HostKernel> (*)(const std::string& source, std::string& log);

inline std::shared_ptr<const jit::Nvrtc> fake_nvrtc(CompileOnHost compile) {
  static CompileOnHost compiler;
  compiler = compile;
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
    auto& source = *static_cast<Source*>(program);
    source.kernel = compiler(source.text, source.log);
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

}  // namespace cortex::test
