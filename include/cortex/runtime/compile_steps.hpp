// What compiling for a CPU and for a GPU have in common, beside lowering and passes.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cortex/pass/pipeline.hpp"
#include "cortex/runtime/executable.hpp"

namespace cortex::runtime::detail {

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

}  // namespace cortex::runtime::detail
