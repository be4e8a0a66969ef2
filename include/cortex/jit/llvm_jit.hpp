// LLVM IR text -> machine code for this process, through LLVM's C API: parse, optimise for the target, emit an object
// to memory, link it with ORC. With `llvm_handles.hpp` the only place that knows LLVM; works with LLVM 19.1 to 22.
#pragma once

#include <dlfcn.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/clock.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/function_ref.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/codegen/kernel_abi.hpp"
#include "cortex/codegen/llvm_modules.hpp"
#include "cortex/jit/code_cache.hpp"
#include "cortex/jit/llvm_handles.hpp"

namespace cortex::jit {

struct LlvmOptions {
  bool sanitize_address = false;  // for a process that runs under AddressSanitizer, and functions that ask for it
};

/// A kernel, the owner of its code, and what it cost to make.
struct Compiled {
  codegen::Kernel kernel = nullptr;
  std::shared_ptr<const void> code;                   // the kernel may be called while this lives
  double parse_ms = 0, optimize_ms = 0, emit_ms = 0;  // of all parts, which may have been compiled at the same time
  double link_ms = 0;
  std::size_t object_bytes = 0;
  bool from_cache = false;  // of code that was compiled before
};

/// The version of the LLVM that this process runs, `19.1.7`.
inline std::string llvm_version() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

namespace detail {

/// Throws where a program is linked with another LLVM than the one whose headers this has read, or with two: each
/// function is then the first library's that has one of its name, and LLVM 14 has no LLVMGetVersion. Both functions
/// are of one library even where LLVM is many.
inline void require_one_llvm() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  Dl_info first{}, second{};
  ::dladdr(reinterpret_cast<const void*>(&LLVMGetVersion), &first);
  ::dladdr(reinterpret_cast<const void*>(&LLVMContextCreate), &second);
  if (major == LLVM_VERSION_MAJOR && first.dli_fbase == second.dli_fbase) return;
  throw Error(Code::unavailable, "Cortex is built for LLVM " + std::to_string(LLVM_VERSION_MAJOR) +
                                     ", and this program takes functions of another one: link Cortex and its LLVM "
                                     "before whatever brings the other");
}

/// Makes the host's code generator known to LLVM, once for each LLVM in the process: two plugins may have one each. A
/// static variable of an inline function that all see is one for both where g++ has compiled it.
[[gnu::visibility("hidden")]] inline void initialize_llvm() {
  static const bool works = (require_one_llvm(), !LLVMInitializeNativeTarget()) && !LLVMInitializeNativeAsmPrinter() &&
                            !LLVMInitializeNativeAsmParser();
  if (!works) throw Error(Code::unavailable, "this LLVM cannot generate code for the machine that it runs on");
}

inline bool has_feature(std::string_view features, std::string_view name) {
  const std::string item = "+" + std::string(name);
  for (std::size_t at = features.find(item); at != std::string_view::npos; at = features.find(item, at + 1)) {
    const std::size_t end = at + item.size();
    if ((at == 0 || features[at - 1] == ',') && (end == features.size() || features[end] == ',')) return true;
  }
  return false;
}

/// The widest vectors that LLVM's feature string allows, how many registers there are of them, and whether there is a
/// matrix unit.
inline void set_vectors(Target& target, std::string_view triple) {
  const auto has = [&](std::string_view name) { return has_feature(target.features, name); };
  const bool arm = triple.starts_with("aarch64") || triple.starts_with("arm64");
  target.vector_bytes = 16;
  target.vector_registers = arm ? 32 : 16;
  if (has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw")) {
    target.vector_bytes = 64;
    target.vector_registers = 32;
    target.matrix_unit = has("amx-tile") && has("amx-bf16") && has("avx512bf16");
  } else if (has("avx2") && has("fma")) {
    target.vector_bytes = 32;
  }
}

class Stopwatch {
 public:
  /// Milliseconds since the last call, or since construction.
  double lap() {
    const std::int64_t now = now_ns(), before = std::exchange(since_, now);
    return double(now - before) / 1e6;
  }

 private:
  std::int64_t since_ = now_ns();
};

/// Throws `Error{out_of_memory}` where the process may not have `bytes` more. LLVM ends the process when it gets no
/// memory, so it is asked for beforehand, and given back.
inline void demand_memory(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) no_memory(double(bytes), "free memory: LLVM may need so much to compile the model");
  ::munmap(memory, bytes);
}

/// More than LLVM takes for text of so many bytes: a few MB to begin with, and some 10 bytes for each.
inline std::size_t memory_to_compile(std::size_t text_bytes) { return (std::size_t(16) << 20) + 16 * text_bytes; }

[[noreturn]] inline void throw_refusal(const std::string& what, const std::string& words,
                                       const std::string& diagnostics, const std::string& text) {
  throw Error(Code::compile_failed, "LLVM " + what + " the kernel: " + words +
                                        (diagnostics.empty() ? "" : "\n" + diagnostics) + "\n--- the text ---\n" +
                                        text);
}

/// One module on its way from text to an object. Everything of one compilation lives in one context, so any number of
/// threads may compile.
class LlvmModule {
 public:
  LlvmModule(const std::string& text, const Target& target, const LlvmOptions& options)
      : text_(text), options_(options), context_((initialize_llvm(), LLVMContextCreate())) {
    LLVMContextSetDiagnosticHandler(context_.get(), &LlvmModule::collect, &diagnostics_);
    make_machine(target);
  }
  LlvmModule(const LlvmModule&) = delete;
  LlvmModule& operator=(const LlvmModule&) = delete;

  void parse() {
    LLVMModuleRef module = nullptr;
    char* message = nullptr;
    // The parser takes the buffer over, which refers to the text without a copy.
    LLVMMemoryBufferRef source = LLVMCreateMemoryBufferWithMemoryRange(text_.c_str(), text_.size(), "kernel", true);
    const bool failed = LLVMParseIRInContext(context_.get(), source, &module, &message);
    module_.reset(module);
    const std::string words = llvm::taken(message);
    if (failed) fail("cannot parse", words);
    verify();
    LLVMSetTarget(module, llvm::taken(LLVMGetTargetMachineTriple(machine_.get())).c_str());
    const llvm::Layout layout(LLVMCreateTargetDataLayout(machine_.get()));
    LLVMSetModuleDataLayout(module, layout.get());
  }

  void optimize() {
    const llvm::PassOptions settings(LLVMCreatePassBuilderOptions());
    if (LLVMErrorRef error = LLVMRunPasses(module_.get(), passes().c_str(), machine_.get(), settings.get()))
      fail("cannot optimise", llvm::taken(error));
    check("cannot optimise");
  }

  /// All that the object depends on.
  Fingerprint key() const {
    std::string all = "LLVM " + llvm_version();
    all += '\n' + llvm::taken(LLVMGetTargetMachineTriple(machine_.get()));
    all += '\n' + llvm::taken(LLVMGetTargetMachineCPU(machine_.get()));
    all += '\n' + llvm::taken(LLVMGetTargetMachineFeatureString(machine_.get()));
    return fingerprint(all + '\n' + passes() + '\n' + text_);
  }

  /// The module as an object file or as assembly.
  llvm::Buffer generate(LLVMCodeGenFileType type) {
    LLVMMemoryBufferRef object = nullptr;
    char* message = nullptr;
    const bool failed = LLVMTargetMachineEmitToMemoryBuffer(machine_.get(), module_.get(), type, &message, &object);
    llvm::Buffer result(object);
    const std::string words = llvm::taken(message);
    if (failed) fail("cannot generate code for", words);
    check("cannot generate code for");
    return result;
  }

  /// The module as text.
  std::string print() const { return llvm::taken(LLVMPrintModuleToString(module_.get())); }

  [[noreturn]] void fail(const char* what, const std::string& words) const {
    throw_refusal(what, words, diagnostics_, text_);
  }

 private:
  static void collect(LLVMDiagnosticInfoRef info, void* diagnostics) {
    const LLVMDiagnosticSeverity severity = LLVMGetDiagInfoSeverity(info);
    const std::string words = llvm::taken(LLVMGetDiagInfoDescription(info));
    if (severity == LLVMDSError) *static_cast<std::string*>(diagnostics) += words + "\n";
  }

  /// Tiles come unrolled, vectorized and each in its function. What is left to do is to put sums into registers, to
  /// share addresses, and to take out of loops what does not change in them. LLVM's own O3 takes three times as long
  /// for code that is no faster.
  std::string passes() const {
    return std::string(
               "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
               "loop-mssa(licm),early-cse<memssa>,simplifycfg)") +
           (options_.sanitize_address ? ",asan" : "");
  }

  /// Errors that LLVM reports only to the context.
  void check(const char* what) const {
    if (!diagnostics_.empty()) fail(what, {});
  }

  void verify() const {
    char* message = nullptr;
    const bool broken = LLVMVerifyModule(module_.get(), LLVMReturnStatusAction, &message);
    const std::string words = llvm::taken(message);
    if (broken) fail("does not accept", words);
  }

  void make_machine(const Target& target) {
    const std::string triple = target.triple.empty() ? llvm::taken(LLVMGetDefaultTargetTriple()) : target.triple;
    LLVMTargetRef found = nullptr;
    char* message = nullptr;
    if (LLVMGetTargetFromTriple(triple.c_str(), &found, &message))
      throw Error(Code::unavailable, "LLVM has no code generator for " + triple + ": " + llvm::taken(message));
    const bool host = target.cpu.empty() && target.triple.empty();
    const std::string cpu = host ? llvm::taken(LLVMGetHostCPUName()) : target.cpu.empty() ? "generic" : target.cpu;
    const std::string features =
        host && target.features.empty() ? llvm::taken(LLVMGetHostCPUFeatures()) : target.features;
    // Under AddressSanitizer to compile takes several times as long, and twice as long as this if registers are
    // allocated well. The small code model keeps constants and calls short; ORC puts stubs where the C library is too
    // far away. What LLVM calls the JIT's default is the large model.
    const auto level = options_.sanitize_address ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault;
    machine_.reset(LLVMCreateTargetMachine(found, triple.c_str(), cpu.c_str(), features.c_str(), level, LLVMRelocPIC,
                                           LLVMCodeModelSmall));
    if (!machine_) throw Error(Code::unavailable, "LLVM cannot generate code for " + triple + ", " + cpu);
  }

  const std::string& text_;
  const LlvmOptions options_;
  std::string diagnostics_;
  llvm::Context context_;
  llvm::Machine machine_;
  llvm::Module module_;
};

/// A module's code on its way into the process, and what it took.
struct Part {
  std::string object;
  double parse_ms = 0, optimize_ms = 0, emit_ms = 0;
  bool from_cache = false;
};

/// Compiles a module, or finds it among what was compiled before.
inline Part compile_part(const std::string& text, const Target& target, const LlvmOptions& options,
                         const CodeCache& cache, bool look) {
  Part part;
  Stopwatch watch;
  LlvmModule module(text, target, options);
  const Fingerprint key = cache.is_on() ? module.key() : Fingerprint();
  if (look)
    if (auto kept = cache.find(key)) {
      part.object = std::move(*kept);
      part.from_cache = true;
      return part;
    }
  module.parse();
  part.parse_ms = watch.lap();
  module.optimize();
  part.optimize_ms = watch.lap();
  const llvm::Buffer object = module.generate(LLVMObjectFile);
  part.object.assign(LLVMGetBufferStart(object.get()), LLVMGetBufferSize(object.get()));
  part.emit_ms = watch.lap();
  cache.keep(key, part.object);
  return part;
}

/// Whether the system lets this process make memory executable that it has written.
inline bool may_make_executable() {
  const std::size_t bytes = std::size_t(::sysconf(_SC_PAGESIZE));
  void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return true;  // for want of memory: it is not known
  const bool may = ::mprotect(page, bytes, PROT_READ | PROT_EXEC) == 0 || (errno != EACCES && errno != EPERM);
  ::munmap(page, bytes);
  return may;
}

/// Links the objects into this process and finds `symbol` there. ORC finds the process's own symbols, which the code
/// may call. `text` is for the error.
inline Compiled link(const Vector<Part>& parts, const std::string& symbol, const std::string& text) {
  Compiled result;
  Stopwatch watch;
  const auto fail = [&](LLVMErrorRef error, const std::string& complaints) {
    if (!may_make_executable()) {
      LLVMConsumeError(error);
      throw Error(Code::unavailable,
                  "the system does not let this process make memory executable, in which a model's code would run: "
                  "allow it (SELinux's execmem, systemd's MemoryDenyWriteExecute=no, a seccomp filter), or compile for "
                  "Target::interpreter()");
    }
    throw_refusal("cannot link", llvm::taken(error), complaints, text);
  };
  LLVMOrcLLJITRef jit = nullptr;
  if (LLVMErrorRef error = LLVMOrcCreateLLJIT(&jit, nullptr)) fail(error, {});
  auto session = std::make_shared<llvm::Session>(jit);
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit);
  for (const Part& part : parts) {
    result.parse_ms += part.parse_ms, result.optimize_ms += part.optimize_ms, result.emit_ms += part.emit_ms;
    result.object_bytes += part.object.size();
    // ORC names a sanitizer's initializers after the buffer: each needs a name of its own.
    const std::string name = "part " + std::to_string(&part - parts.data());
    LLVMMemoryBufferRef object =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(part.object.data(), part.object.size(), name.c_str());
    if (LLVMErrorRef error = LLVMOrcLLJITAddObjectFile(jit, library, object)) fail(error, {});
  }
  LLVMOrcExecutorAddress address = 0;
  if (LLVMErrorRef error = LLVMOrcLLJITLookup(session->get(), &address, symbol.c_str()))
    fail(error, session->complaints());
  result.kernel = reinterpret_cast<codegen::Kernel>(address);
  result.code = session;
  result.from_cache = all_of(parts, [](const Part& part) { return part.from_cache; });
  result.link_ms = watch.lap();
  return result;
}

}  // namespace detail

/// This machine.
inline Target host_target() {
  Target target;
  target.cpu = llvm::taken(LLVMGetHostCPUName());
  target.features = llvm::taken(LLVMGetHostCPUFeatures());
  detail::set_vectors(target, llvm::taken(LLVMGetDefaultTargetTriple()));
  return target;
}

namespace detail {

/// Refuses code for another machine, for a feature that this CPU lacks, and for a CPU by name, of which LLVM does not
/// say what it has: what this CPU cannot run ends the process. Tuning features are no feature of a CPU's.
inline void require_runnable(const Target& target) {
  const auto fail = [](const std::string& what) {
    throw Error(Code::unavailable, "code for " + what + " does not run on this machine");
  };
  if (!target.triple.empty() && target.triple != llvm::taken(LLVMGetDefaultTargetTriple())) fail(target.triple);
  const std::string own = "," + llvm::taken(LLVMGetHostCPUFeatures()) + ",";
  const auto require = [&](std::string_view features) {  // "+avx2,-fma"
    while (!features.empty()) {
      const std::string_view feature = features.substr(0, features.find(','));
      features.remove_prefix(std::min(features.size(), feature.size() + 1));
      if (!feature.starts_with('+')) continue;
      const std::string name(feature.substr(1));
      if (own.find(",-" + name + ",") != std::string::npos) fail("CPUs with " + name);
    }
  };
  require(target.features);
  if (target.cpu.empty() || target.cpu == "generic" || target.cpu == "x86-64") return;
  if (const CpuLevel* level = cpu_level(target.cpu)) return require(level->features);
  const std::string host = llvm::taken(LLVMGetHostCPUName());
  if (target.cpu != host)
    throw Error(Code::unavailable, "code for the CPU '" + target.cpu + "' may need what this one, '" + host +
                                       "', lacks; leave the CPU empty, or name a level such as x86-64-v3");
}

}  // namespace detail

/// How parts of one compilation come about: `each(count, f)` calls f(0) to f(count - 1), in any order, on any threads.
using EachPart = void (*)(int count, FunctionRef<void(int part)> f);

inline void one_after_the_other(int count, FunctionRef<void(int part)> f) {
  for (int i = 0; i < count; ++i) f(i);
}

/// Compiles `text` for `target`, a long one in parts, and loads its function `symbol`. Throws Code::compile_failed,
/// with LLVM's words and the text, if LLVM refuses it, and Code::out_of_memory before LLVM meets it. Any number of
/// threads may call it. Looks into the process's cache first.
inline Compiled compile_llvm(const std::string& text, const std::string& symbol, const Target& target,
                             const LlvmOptions& options = {}, EachPart each = one_after_the_other) {
  detail::require_runnable(target);
  detail::demand_memory(detail::memory_to_compile(text.size()));
  constexpr std::size_t least_bytes = 100'000;  // 40 ms of LLVM's time, beside which a module's own 1 ms is little
  const Vector<std::string> modules = codegen::llvm_modules(text, least_bytes);
  const CodeCache cache = code_cache();
  const auto linked = [&](bool look) {
    Vector<detail::Part> parts(modules.size());
    each(int(modules.size()), [&](int i) {
      parts[std::size_t(i)] = detail::compile_part(modules[std::size_t(i)], target, options, cache, look);
    });
    try {
      return detail::link(parts, symbol, text);
    } catch (const Error&) {
      if (!any_of(parts, [](const detail::Part& part) { return part.from_cache; })) throw;
      return Compiled();  // what was kept may not be what it seems
    }
  };
  Compiled compiled = linked(true);
  if (!compiled.kernel) compiled = linked(false);
  return compiled;
}

/// The machine code that `text` becomes, as an object file.
inline std::string to_object(const std::string& text, const Target& target, const LlvmOptions& options = {}) {
  detail::demand_memory(detail::memory_to_compile(text.size()));
  return detail::compile_part(text, target, options, CodeCache(""), false).object;
}

/// The machine code that `text` becomes, as assembly.
inline std::string to_assembly(const std::string& text, const Target& target, const LlvmOptions& options = {}) {
  detail::LlvmModule module(text, target, options);
  module.parse();
  module.optimize();
  const llvm::Buffer assembly = module.generate(LLVMAssemblyFile);
  return std::string(LLVMGetBufferStart(assembly.get()), LLVMGetBufferSize(assembly.get()));
}

/// The text after LLVM's optimisations.
inline std::string optimized_llvm(const std::string& text, const Target& target, const LlvmOptions& options = {}) {
  detail::LlvmModule module(text, target, options);
  module.parse();
  module.optimize();
  return module.print();
}

}  // namespace cortex::jit
