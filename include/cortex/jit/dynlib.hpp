// Shared libraries opened at run time, so that one binary serves machines that have them and machines that do not.
#pragma once

#include <dlfcn.h>
#include <sys/stat.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "cortex/base/vector.hpp"

namespace cortex::jit {

/// An open library, or none with the reason. It stays open for as long as the process runs: drivers do not like to be
/// unloaded.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;

  /// The first of `names` that the loader finds; a name with a slash is a path.
  static DynamicLibrary open(const Vector<std::string>& names) {
    DynamicLibrary library;
    for (const std::string& name : names) {
      library.handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library.handle_) {
        library.why_.clear();
        return library;
      }
      const char* error = ::dlerror();
      library.why_ += (library.why_.empty() ? "" : "; ") + std::string(error ? error : name + " was not opened");
    }
    return library;
  }

  explicit operator bool() const { return handle_ != nullptr; }
  /// The loader's words on each name.
  const std::string& why() const { return why_; }

  /// The address of a symbol; null if the library lacks it.
  void* find(const char* symbol) const { return handle_ ? ::dlsym(handle_, symbol) : nullptr; }

  /// Fills `function` with the address of `symbol`; a symbol that is not there is added to `missing`.
  template <class Function>
  void bind(Function*& function, const char* symbol, std::string& missing) const {
    function = reinterpret_cast<Function*>(find(symbol));
    if (!function) missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  }

  /// The directory that `symbol`'s library was loaded from, with a slash at its end; empty if the loader does not say.
  static std::string directory_of(const void* symbol) {
    Dl_info info{};
    if (!::dladdr(symbol, &info) || !info.dli_fname) return {};
    const std::string_view path = info.dli_fname;
    return std::string(path.substr(0, path.rfind('/') + 1));
  }

  /// What tells `symbol`'s library from others of its version: which file it is, whose name often ends with a patch's
  /// number, its size, and when it was written, which some installers set to the same for all files. Empty if unknown.
  static std::string edition_of(const void* symbol) {
    Dl_info info{};
    struct stat about {};
    char file[PATH_MAX];
    if (!::dladdr(symbol, &info) || !info.dli_fname || !::realpath(info.dli_fname, file) || ::stat(file, &about) != 0)
      return {};
    return std::string(file) + " " + std::to_string(about.st_size) + " " + std::to_string(about.st_mtime);
  }

 private:
  void* handle_ = nullptr;
  std::string why_;
};

}  // namespace cortex::jit
