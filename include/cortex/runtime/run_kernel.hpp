// One worker's run of a compiled program: its machine code, or the interpreter.
#pragma once

#include <cstdint>

#include "cortex/runtime/executable.hpp"

namespace cortex::runtime::detail {

/// While it lives, this thread rounds to nearest, keeps subnormal numbers, and raises no signals for what overflows or
/// is no number: results then do not depend on whose thread computes them, nor on how many there are. What the thread
/// had comes back at the end.
class UsualArithmetic {
 public:
  UsualArithmetic() {
    if (kept_ != usual) set(usual);
  }
  ~UsualArithmetic() {
    if (kept_ != usual) set(kept_);
  }
  UsualArithmetic(const UsualArithmetic&) = delete;
  UsualArithmetic& operator=(const UsualArithmetic&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr std::uint32_t usual = 0x1f80;  // MXCSR, but for the flags of what has happened
  static std::uint32_t get() { return __builtin_ia32_stmxcsr() & ~0x3fu; }
  static void set(std::uint32_t value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t usual = 0;  // FPCR
  static std::uint64_t get() {
    std::uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set(std::uint64_t value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
  static constexpr int usual = 0;
  static int get() { return usual; }
  static void set(int) {}
#endif

  const decltype(get()) kept_ = get();
};

inline void run_kernel(const Executable& executable, const codegen::KernelArgs& args) {
  const UsualArithmetic usual;
  if (executable.kernel) [[likely]]
    return executable.kernel(&args);
  if (!executable.interpret)
    throw Error(Code::internal, "model '" + executable.graph.name + "' has neither machine code nor an interpreter");
  executable.interpret(executable.code.get(), args);
}

inline void no_barrier(void*) {}

}  // namespace cortex::runtime::detail
