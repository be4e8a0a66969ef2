// What stands behind the compile seam: check, lower, schedule, print, compile.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/config.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/pass/pipeline.hpp"
#include "cortex/ra/check.hpp"
#include "cortex/ra/print.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/interpret_kernel.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/runtime/plan_checks.hpp"
#if CORTEX_LLVM
#include "cortex/codegen/llvm_text.hpp"
#include "cortex/jit/llvm_jit.hpp"
#endif

namespace cortex::runtime {

namespace detail {

inline double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

inline void describe_tensors(Executable& executable) {
  for (const ra::Op& op : executable.graph.ops)
    if (op.kind == ra::OpKind::input) executable.weights.push_back({op.name(), op.buffer->dtype, op.dims});
  int position = 0;  // states stand first among the program's buffers, in this order
  for (const ra::State& state : executable.graph.states) {
    const ra::Op& op = executable.graph.ops[std::size_t(state.placeholder)];
    const bool at_roots = executable.graph.ops[std::size_t(state.body)].at_roots;
    executable.states.push_back({op.name(), op.buffer->dtype, op.dims, position++, at_roots});
  }
}

/// Keeps the programs that people look at; `options` then observes each pass.
class Keeper final : public pass::PassObserver {
 public:
  Keeper(Executable& executable, const pass::PipelineOptions& options) : executable_(executable), options_(options) {}

  pass::PipelineOptions observing() { return {options_.verify, this}; }

  void after(const char* pass, const ir::Program& program) override {
    const std::string_view name = pass;
    tiling_ |= name == "tile_nests" || name == "share_threads" || name == "share_loads";
    resolved_ |= name == "resolve_structure" || name == "approximate_activations" || name == "vectorize" ||
                 name == "flatten_storage";
    if (!tiling_ && !resolved_) executable_.scheduled = program;
    if (!resolved_) executable_.tiled = program;
    if (options_.observer) options_.observer->after(pass, program);
  }

 private:
  Executable& executable_;
  const pass::PipelineOptions& options_;
  bool tiling_ = false, resolved_ = false;
};

inline void check_schedule(const Schedule& schedule) {
  if (schedule.max_workers < 1 || schedule.max_workers > 1024)
    throw Error(Code::invalid_schedule, "workers: " + std::to_string(schedule.max_workers) +
                                            " workers were asked for; give a number from 1 to 1024");
}

/// Printed as LLVM IR and compiled to machine code.
inline void compile_to_machine_code([[maybe_unused]] Executable& executable) {
#if CORTEX_LLVM
#if defined(__SANITIZE_ADDRESS__)
  constexpr bool sanitize = true;
#else
  constexpr bool sanitize = false;
#endif
  auto start = std::chrono::steady_clock::now();
  codegen::LlvmTextOptions text;
  text.symbol = "cortex_kernel";
  text.vector_bytes = executable.target.vector_bytes;
  text.sanitize_address = sanitize;
  executable.llvm_text = codegen::llvm_text(executable.program, text);
  executable.times.codegen = since(start);
  start = std::chrono::steady_clock::now();
  jit::LlvmOptions options;
  options.sanitize_address = sanitize;
  jit::Compiled compiled = jit::compile_llvm(executable.llvm_text, text.symbol, executable.target, options);
  executable.kernel = compiled.kernel;
  executable.code = std::move(compiled.code);
  executable.times.llvm = since(start);
#else
  throw Error(
      Code::unavailable,
      "this build has no LLVM (CORTEX_LLVM=OFF): compile for Target::interpreter(), or build with LLVM 19.1 to 22");
#endif
}

}  // namespace detail

/// What `compile_graph` does; `options` let tests look at and verify each pass.
inline std::shared_ptr<const Executable> build_executable(const ra::Graph& graph, const Schedule& schedule,
                                                          const Target& target,
                                                          const pass::PipelineOptions& options = {}) {
  const auto start = std::chrono::steady_clock::now();
  ra::check(graph);
  detail::check_schedule(schedule);
  auto executable = std::make_shared<Executable>();
  executable->graph = graph;
  executable->schedule = schedule;
  executable->target = target;
  executable->lowered = lower::lower(graph, schedule);
  detail::Keeper keeper(*executable, options);
  executable->program = pass::run_pipeline(executable->lowered, schedule, target, keeper.observing());
  executable->partition = partition_of(graph, ra::questions(graph, schedule));
  for (const int depth : lower::unrolling(graph, schedule))
    executable->subtree_depth = std::max(executable->subtree_depth, depth);
  plan_checks(*executable);
  detail::describe_tensors(*executable);
  executable->times.lower = detail::since(start);
  if (target.backend == Backend::llvm)
    detail::compile_to_machine_code(*executable);
  else
    executable->code = std::make_shared<const KernelInterpreter>(executable->program);
  executable->interpret = [](const void* code, const codegen::KernelArgs& args) {
    (*static_cast<const KernelInterpreter*>(code))(args);
  };
  return executable;
}

/// What `text_of` does.
inline std::string text_of_form(const Executable& executable, std::string_view form) {
  if (form == "ra") return ra::print(executable.graph);
  if (form == "ilir") return ir::print(executable.lowered);
  if (form == "scheduled") return ir::print(executable.scheduled);
  if (form == "tiled") return ir::print(executable.tiled);
  if (form == "llvm") return executable.llvm_text;
  throw Error(Code::invalid_argument, "print: there is no form '" + std::string(form) +
                                          "' of a model; there are 'ra', 'ilir', 'scheduled', 'tiled' and 'llvm'");
}

/// What `host_target` does.
inline Target this_machine() {
#if CORTEX_LLVM
  return jit::host_target();
#else
  throw Error(
      Code::unavailable,
      "this build has no LLVM (CORTEX_LLVM=OFF): compile for Target::interpreter(), or build with LLVM 19.1 to 22");
#endif
}

}  // namespace cortex::runtime
