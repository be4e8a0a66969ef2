// The one translation unit of the library `cortex::compiled`: the functions of the compile seam, which users see only
// declared, and after them the whole compiler.
#include "cortex/explain.hpp"
#include "cortex/ra/check.hpp"
#include "cortex/ra/shared_values.hpp"
#include "cortex/ra/well_formed.hpp"
#include "cortex/runtime/compile.hpp"
#include "cortex/runtime/compile_graph.hpp"
#include "cortex/runtime/cuda_compile.hpp"
#include "cortex/runtime/cuda_seam.hpp"
#include "cortex/runtime/explain.hpp"

namespace cortex::ra {

Vector<Op> shared_values(Op& op) { return take_out_shared_values(op); }
void require_op(const Graph& graph, int number) { check_op(graph, number); }
void require_states(const Graph& graph) { check_states(graph); }
void require_well_formed(const Graph& graph) { check(graph); }
void require_accessors(const Graph& graph, const Vector<const void*>& keys) { check_accessors(graph, keys); }
Vector<bool> operators_needed(const Graph& graph, int recursion) { return operators_of(graph, recursion); }

}  // namespace cortex::ra

namespace cortex::runtime {

std::shared_ptr<const Executable> compile_graph(const ra::Graph& graph, const Schedule& schedule, const Target& target,
                                                ThisAbi) {
  return build_executable(graph, schedule, target);
}

std::shared_ptr<const CudaExecutable> compile_cuda_graph(const ra::Graph& graph, const Schedule& schedule,
                                                         const Gpu& gpu, const CudaCompileOptions& options, ThisAbi) {
  return build_cuda_executable(graph, schedule, gpu, options);
}

Vector<ir::WorkItem> work_of(const ra::Graph& graph, const Schedule& schedule, const Target& target, ThisAbi) {
  return count_scheduled_work(graph, schedule, target);
}

Target host_target() { return this_machine(); }

void write_code(const Executable& executable, const std::string& path, ThisAbi) { write_code_of(executable, path); }

std::string text_of(const Executable& executable, std::string_view form, ThisAbi) {
  return text_of_form(executable, form);
}

std::string explanation(const Executable& executable, const std::string& residence, ThisAbi) {
  return explain_executable(executable, residence);
}

}  // namespace cortex::runtime
