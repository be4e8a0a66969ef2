// How a thread rounds while the library computes: the same whatever the thread's owner has set.
#pragma once

#include <cstdint>

namespace cortex {

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

/// `x` as the nearest f32. The number passes through memory, so that no compiler moves the rounding elsewhere.
inline float nearest_float(double x) {
  const UsualArithmetic usual;
  const volatile double exact = x;
  const volatile float rounded = float(exact);
  return rounded;
}

}  // namespace cortex
