// The machine that a model is compiled for, as far as the compiler's choices depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "cortex/base/error.hpp"

namespace cortex {

enum class Backend : std::uint8_t {
  llvm,         // machine code for this CPU, through LLVM
  interpreter,  // the ILIR interpreted in double: slow, needs nothing
  cuda,         // CUDA C++ for an NVIDIA GPU, compiled at run time: `cortex/cuda.hpp`
};

/// An NVIDIA GPU, as far as the compiler's choices depend on it. Needs no device: describe the one that you compile
/// for.
struct Gpu {
  int sm = 90;                    // compute capability, 10 * major + minor: 75, 80, 90, 100
  int multiprocessors = 132;      // thread blocks that run at the same time, at one a multiprocessor
  int shared_bytes = 227 * 1024;  // of shared memory that one block can ask for
  int registers = 65536;          // of 32 bits, of one multiprocessor

  static constexpr int warp = 32;  // threads that run together

  /// Whether blocks of a cluster meet at a barrier in hardware.
  bool has_clusters() const { return sm >= 90; }
  /// A usual GPU of that compute capability, 70 for 7.0 and so on: T4; A100, and below 9.0 otherwise an A10 or L4; H100;
  /// B200, and from 12.0 on an RTX PRO 6000.
  static Gpu of(int sm) {
    if (sm < 80) return {sm, 40, 64 * 1024, 65536};
    if (sm == 80 || sm == 87) return {sm, sm == 80 ? 108 : 16, 163 * 1024, 65536};
    if (sm < 90) return {sm, sm == 89 ? 58 : 72, 99 * 1024, 65536};
    if (sm < 120) return {sm, sm < 100 ? 132 : 148, 227 * 1024, 65536};
    return {sm, 188, 99 * 1024, 65536};
  }
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// A compute capability of a GPU as NVIDIA writes it: "9.0" of 90.
inline std::string capability_text(int sm) { return std::to_string(sm / 10) + "." + std::to_string(sm % 10); }

/// A level of x86-64, as its psABI defines it: CPUs that have at least these features.
struct CpuLevel {
  std::string_view name, features;  // as LLVM writes them
  int vector_bytes, vector_registers;
};
inline constexpr std::array<CpuLevel, 3> cpu_levels = {
    {{"x86-64-v2", "+sse4.2,+popcnt,+cx16", 16, 16},
     {"x86-64-v3", "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe", 32, 16},
     {"x86-64-v4", "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl", 64,
      32}}};

/// The level of that name; null where it is none.
inline const CpuLevel* cpu_level(std::string_view name) {
  for (const CpuLevel& level : cpu_levels)
    if (level.name == name) return &level;
  return nullptr;
}

/// A compilation target. `vector_bytes` is the width of a vector register to use and `vector_registers` how many
/// there are: register tiles are shaped by them.
struct Target {
  Backend backend = Backend::llvm;
  std::string cpu;       // LLVM's name of the CPU; empty: the host's. Code for others can be looked at, and not run
  std::string features;  // LLVM's feature string; empty with an empty cpu: the host's
  int vector_bytes = 16;
  int vector_registers = 16;
  bool matrix_unit = false;  // Intel's AMX for bf16
  Gpu gpu{};                 // of Backend::cuda
  std::string triple;  // LLVM's name of the machine; empty: the host's. Code for others can be looked at, and not run

  /// The level of CPUs that it stands for; null where it stands for less, or for one CPU.
  const CpuLevel* level() const {
    const CpuLevel* named = backend == Backend::llvm && triple.empty() ? cpu_level(cpu) : nullptr;
    return named && named->features == features ? named : nullptr;
  }

  /// The ILIR interpreter as target: every structure and model runs, in double, without LLVM.
  static Target interpreter() { return Target{Backend::interpreter, {}, {}, 16, 16, false, {}, {}}; }
  /// Every CPU of x86-64's level 2 (since 2008), 3 (AVX2; 2013) or 4 (AVX-512), and not only the one that compiles: for
  /// `Functor::write_code`, and for results that are the same bits on all of them. Throws `Error{invalid_argument}` for
  /// another number.
  static Target x86_64(int level) {
    const CpuLevel* found = cpu_level("x86-64-v" + std::to_string(level));
    if (!found)
      throw Error(Code::invalid_argument,
                  "Target::x86_64: there is no level " + std::to_string(level) + " to compile for; give 2, 3 or 4");
    return {Backend::llvm,
            std::string(found->name),
            std::string(found->features),
            found->vector_bytes,
            found->vector_registers,
            false,
            {},
            {}};
  }
  /// A GPU: a vector is what the threads of a warp read side by side.
  static Target cuda(const Gpu& gpu = {}) { return Target{Backend::cuda, {}, {}, 128, 30, false, gpu, {}}; }
};

}  // namespace cortex
