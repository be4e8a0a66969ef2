// The back end that needs no compiler: a device-level program interpreted on the memory that a kernel would be given.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/codegen/kernel_abi.hpp"
#include "cortex/ir/machine.hpp"

namespace cortex::runtime {

/// A device-level program, ready to be interpreted any number of times, by several threads at once.
class KernelInterpreter {
 public:
  explicit KernelInterpreter(const ir::Program& program) : code_(ir::vm::Compiler(program).take()) {
    if (program.level != ir::Level::device)
      throw Error(Code::internal, "interpreter: program '" + program.name + "' is not at device level");
  }

  /// Runs one worker's share, as a kernel does: elements are converted where they are loaded and stored, arithmetic is
  /// in double. Offsets are not checked. Throws `Error{internal}` for a program that is none of device level.
  void operator()(const codegen::KernelArgs& args) const {
    Vector<ir::vm::Binding> bindings;
    for (int b = 0; b < code_.num_buffers; ++b) {
      const ir::BufferInfo& buffer = *code_.buffers[std::size_t(b)];
      bindings.push_back({buffer.dtype, args.buffers[b], {}, {1}});
      bindings.back().writable = ir::changes_in_calls(buffer);
    }
    ir::vm::Machine machine(code_, std::move(bindings), {}, args.worker, args.num_workers);
    while (machine.run())
      if (args.num_workers > 1) args.barrier(args.barrier_context);
  }

 private:
  ir::vm::Bytecode code_;
};

/// Runs `program` once for the worker of `args`: `Executable::interpret`.
inline void interpret_kernel(const ir::Program& program, const codegen::KernelArgs& args) {
  KernelInterpreter{program}(args);
}

}  // namespace cortex::runtime
