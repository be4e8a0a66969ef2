// One worker's run of a compiled program: its machine code, or the interpreter.
#pragma once

#include "cortex/base/usual_arithmetic.hpp"
#include "cortex/runtime/executable.hpp"

namespace cortex::runtime::detail {

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
