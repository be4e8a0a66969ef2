// Machine code that was compiled elsewhere and is a part of this program: an object file that it is linked with, or a
// shared library that it has loaded. Needs no LLVM.
#pragma once

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "cortex/base/config.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/names.hpp"
#include "cortex/base/target.hpp"
#include "cortex/codegen/kernel_abi.hpp"
#include "cortex/jit/code_cache.hpp"

namespace cortex::jit {

/// The name of the function that `text` becomes for `target`, of a level of CPUs: where it is found, nothing need be
/// compiled.
inline std::string name_of_code(std::string_view text, const Target& target) {
  const Fingerprint print =
      fingerprint("Cortex " CORTEX_VERSION "\n" + target.cpu + '\n' + target.features + '\n' + std::string(text));
  return "cortex_code_" + to_string(print);
}

/// The function of that name, if this program has one.
inline codegen::Kernel find_code(const std::string& name) {
  return reinterpret_cast<codegen::Kernel>(::dlsym(RTLD_DEFAULT, name.c_str()));
}

/// Whether this CPU has all that one of that level has, and the system lets programs use it.
inline bool has_level(const CpuLevel& level) {
#if defined(__x86_64__)
  if (level.name == "x86-64-v2") return __builtin_cpu_supports("x86-64-v2");
  if (level.name == "x86-64-v3") return __builtin_cpu_supports("x86-64-v3");
  if (level.name == "x86-64-v4") return __builtin_cpu_supports("x86-64-v4");
#endif
  return false;
}

}  // namespace cortex::jit

namespace cortex {

/// Loads a shared library made of object files that `Functor::write_code` has written, for as long as the process runs:
/// from now on `compile` takes the code of these models from there, and needs no LLVM for it. A name with a slash is a
/// path, another one is looked for as the loader does. Throws `Error{invalid_argument}` with the loader's words if that
/// fails. Code that a program is linked with itself need not be loaded.
inline void load_code(const std::string& library) {
  if (library.empty() || library.find('\0') != std::string::npos)
    throw Error(Code::invalid_argument,
                "load_code: " + in_quotes(library) + " names no library" +
                    (library.empty() ? "; code that the program is linked with itself need not be loaded" : ""));
  if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL)) return;
  const char* const words = ::dlerror();
  throw Error(Code::invalid_argument, "load_code: " + std::string(words ? words : library + " was not loaded"));
}

}  // namespace cortex
