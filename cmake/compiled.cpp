// The one translation unit of the library `cortex::compiled`: the two functions of the compile seam, which users see
// only declared, and behind them the whole compiler.
#include "cortex/runtime/compile.hpp"
#include "cortex/runtime/compile_graph.hpp"

namespace cortex::runtime {

std::shared_ptr<const Executable> compile_graph(const ra::Graph& graph, const Schedule& schedule,
                                                const Target& target) {
  return build_executable(graph, schedule, target);
}

Target host_target() { return this_machine(); }

}  // namespace cortex::runtime
