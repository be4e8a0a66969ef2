// What stands behind the compile seam: check, lower, schedule, print, compile.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/clock.hpp"
#include "cortex/base/config.hpp"
#include "cortex/codegen/llvm_text.hpp"
#include "cortex/jit/linked_code.hpp"
#include "cortex/jit/matrix_unit.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/lower/split_recursions.hpp"
#include "cortex/pass/overwrite_children.hpp"
#include "cortex/ra/check.hpp"
#include "cortex/ra/print.hpp"
#include "cortex/ra/share_subtrees.hpp"
#include "cortex/runtime/caches.hpp"
#include "cortex/runtime/compile_steps.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/group_rules.hpp"
#include "cortex/runtime/interpret_kernel.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/runtime/plan_checks.hpp"
#include "cortex/runtime/store_weight.hpp"
#include "cortex/runtime/workers.hpp"
#include "cortex/schedule/tile_products.hpp"
#if CORTEX_LLVM
#include "cortex/base/replacement_file.hpp"
#include "cortex/jit/llvm_jit.hpp"
#endif

namespace cortex::runtime {

namespace detail {

[[noreturn]] inline void no_llvm() {
  throw Error(Code::unavailable,
              "this build has no LLVM (CORTEX_LLVM=OFF; without CMake, -DCORTEX_LLVM=1, in every file of the program, "
              "says that there is one): compile for Target::interpreter(), for a Target::x86_64() whose code the "
              "program is linked with (Functor::write_code), or build with LLVM 19.1 to 22");
}

inline constexpr bool sanitizes = CORTEX_ADDRESS_SANITIZER;

/// The model as LLVM IR, a function `symbol`; `is_weak`: one of that name is the same function wherever it comes from.
inline std::string llvm_text_of(const Executable& executable, std::string symbol, bool is_weak = false) {
  codegen::LlvmTextOptions text;
  text.symbol = std::move(symbol), text.is_weak = is_weak;
  text.vector_bytes = executable.target.vector_bytes;
  text.sanitize_address = sanitizes;
  const auto has = [&](const char* feature) { return executable.target.features.find(feature) != std::string::npos; };
  text.converts_f16 = has("+f16c") || has("+avx512f");
  if (has("+sse") || has("+avx"))
    text.limits = has("+avx512vl") ? codegen::Limits::by_ternary_logic : codegen::Limits::by_logic;
  return codegen::llvm_text(executable.program, text);
}

inline constexpr const char* usual_symbol = "cortex_kernel";

/// Takes machine code that the program has for that text already; false where it has none. Throws `Error{unavailable}`
/// where this CPU does not run it.
inline bool take_linked_code(Executable& executable) {
  const CpuLevel* level = executable.target.level();
  if (!level) return false;
  executable.kernel = jit::find_code(jit::name_of_code(executable.llvm_text, executable.target));
  if (!executable.kernel) return false;
  if (!jit::has_level(*level))
    throw Error(Code::unavailable, "code for " + std::string(level->name) + " does not run on this machine");
  executable.is_linked = true;
  return true;
}

/// Printed as LLVM IR and compiled to machine code, unless the program has that already.
inline void compile_to_machine_code(Executable& executable) {
  std::int64_t start = now_ns();
  executable.llvm_text = llvm_text_of(executable, usual_symbol);
  executable.times.codegen = since(start);
  start = now_ns();
  if (!take_linked_code(executable)) {
#if CORTEX_LLVM
    jit::LlvmOptions options;
    options.sanitize_address = sanitizes;
    jit::Compiled compiled =
        jit::compile_llvm(executable.llvm_text, usual_symbol, executable.target, options, on_all_cores);
    executable.kernel = compiled.kernel;
    executable.code = std::move(compiled.code);
#else
    if (!executable.target.level()) no_llvm();
    throw Error(Code::unavailable,
                "this build has no LLVM, and the program no code of model '" + executable.graph.name + "' for " +
                    executable.target.cpu +
                    " under this schedule: write it where there is LLVM (Functor::write_code), of the same model, "
                    "schedule and target, and link the program with it and -rdynamic, or give it to load_code");
#endif
  }
  executable.times.llvm = since(start);
}

inline void check(const ra::Graph& graph, const Schedule& schedule) {
  ra::check(graph);
  check_schedule(schedule);
  schedule::check_stored(graph, schedule);
  schedule::check_level_fill(graph, schedule);
}

/// The target, with its matrix unit only where the schedule has a use for it and the process is given it.
inline Target with_units_granted(Target target, const Schedule& schedule) {
  target.matrix_unit =
      target.backend == Backend::llvm && schedule::uses_matrix_unit(target, schedule) && jit::may_use_matrix_unit();
  return target;
}

}  // namespace detail

/// What `work_of` does.
inline Vector<ir::WorkItem> count_scheduled_work(const ra::Graph& written, const Schedule& schedule,
                                                 const Target& asked) {
  detail::check_target(asked);
  detail::check(written, schedule);
  const ra::Graph graph = lower::split_recursions(written, schedule);
  const Target target = detail::with_units_granted(asked, schedule);
  Executable planned;
  planned.graph = graph, planned.target = target, planned.schedule = schedule;
  planned.program = pass::before_tiles(lower::lower(graph, schedule), schedule, target);
  plan_checks(planned);
  return detail::work_of_calls(planned.program);
}

/// What `compile_graph` does; `options` let tests look at and verify each pass.
inline std::shared_ptr<const Executable> build_executable(const ra::Graph& written, const Schedule& schedule,
                                                          const Target& asked,
                                                          const pass::PipelineOptions& options = {}) {
  detail::check_target(asked);
  if (asked.backend == Backend::cuda)
    throw Error(Code::unavailable, "for a GPU compile with cortex::cuda::compile, of cortex/cuda.hpp");
  const std::int64_t start = now_ns();
  detail::check(written, schedule);
  const ra::Graph graph = lower::split_recursions(written, schedule);
  auto executable = std::make_shared<Executable>();
  executable->graph = graph;
  executable->schedule = schedule;
  executable->target = detail::with_units_granted(asked, schedule);
  const Target& target = executable->target;
  executable->shares_subtrees = ra::shares_subtrees(graph, schedule);
  executable->lowered = lower::lower(graph, schedule);
  const schedule::MachineModel machine = machine_model(target);
  detail::Keeper keeper(*executable, options);
  pass::PipelineOptions of_machine = keeper.observing();
  of_machine.caches = {machine.levels[0].bytes, machine.levels[1].bytes, machine.levels[2].bytes};
  executable->program = pass::run_pipeline(executable->lowered, schedule, target, of_machine);
  const bool recycles = any_of(executable->program.buffers, [](const ir::Buffer& b) { return b->recycled; });
  if (recycles) {
    const bool shared = schedule.max_workers > 1;
    executable->rows_apart = shared ? structure::apart_of_workers : structure::apart_of_one;
    executable->overwrites_children = pass::may_overwrite_children(executable->scheduled.body, shared);
  }
  executable->partition = partition_of(graph, ra::questions(graph, schedule), executable->program);
  for (const int depth : lower::unrolling(graph, schedule))
    executable->subtree_depth = std::max(executable->subtree_depth, depth);
  plan_checks(*executable);
  choose_for_calls(*executable, machine);
  detail::describe_tensors(*executable);
  executable->times.lower = detail::since(start);
  if (target.backend == Backend::llvm)
    detail::compile_to_machine_code(*executable);
  else
    executable->code = std::make_shared<const KernelInterpreter>(executable->program);
  executable->store = store_weight;
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

/// What `Functor::write_code` does.
inline void write_code_of([[maybe_unused]] const Executable& executable, [[maybe_unused]] const std::string& path) {
  const Target& target = executable.target;
  if (target.backend != Backend::llvm)
    throw Error(Code::invalid_argument, "write_code: the model is interpreted, and has no machine code");
  if (!target.level())
    throw Error(
        Code::invalid_argument,
        "write_code: the model is compiled for this CPU, and may not run on another one: compile it for all of a "
        "level, as in CompileOptions{}.on(Target::x86_64(3))");
#if CORTEX_LLVM
  const std::string name = jit::name_of_code(executable.llvm_text, target);
  jit::LlvmOptions options;
  options.sanitize_address = detail::sanitizes;
  const std::string object = jit::to_object(detail::llvm_text_of(executable, name, true), target, options);
  ReplacementFile file(path, Code::invalid_argument, "write_code: '" + path + "'");
  file.write(object.data(), object.size());
  file.commit();
#else
  detail::no_llvm();
#endif
}

/// What `host_target` does.
inline Target this_machine() {
#if CORTEX_LLVM
  return jit::host_target();
#else
  detail::no_llvm();
#endif
}

}  // namespace cortex::runtime
