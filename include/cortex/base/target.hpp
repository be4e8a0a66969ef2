// The machine that a model is compiled for, as far as the compiler's choices depend on it.
#pragma once

#include <cstdint>
#include <string>

namespace cortex {

enum class Backend : std::uint8_t {
  llvm,         // machine code for this CPU, through LLVM
  interpreter,  // the ILIR interpreted in double: slow, needs nothing
};

/// A compilation target. `vector_bytes` is the width of a vector register to use and `vector_registers` how many
/// there are: register tiles are shaped by them.
struct Target {
  Backend backend = Backend::llvm;
  std::string cpu;       // LLVM's name of the CPU; empty: the host's
  std::string features;  // LLVM's feature string; empty with an empty cpu: the host's
  int vector_bytes = 16;
  int vector_registers = 16;

  /// The ILIR interpreter as target: every structure and model runs, in double, without LLVM.
  static Target interpreter() { return Target{Backend::interpreter, {}, {}, 16, 16}; }
};

}  // namespace cortex
