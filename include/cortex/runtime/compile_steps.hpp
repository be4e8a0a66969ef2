// What compiling for a CPU and for a GPU have in common, beside lowering and passes.
#pragma once

#include <string>

#include "cortex/base/clock.hpp"
#include "cortex/pass/pipeline.hpp"
#include "cortex/ra/recursions.hpp"
#include "cortex/runtime/executable.hpp"

namespace cortex::runtime::detail {

/// Milliseconds since `start`, of `now_ns`.
inline double since(std::int64_t start) { return double(now_ns() - start) / 1e6; }

inline void describe_tensors(Executable& executable) {
  const ra::Graph& graph = executable.graph;
  const Vector<bool> read = ra::operators_read(graph);
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    if (const ra::Op& op = graph.ops[i]; op.kind == ra::OpKind::input)
      executable.weights.push_back({op.name(), op.buffer->dtype, op.dims, read[i]});
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

  pass::PipelineOptions observing() { return {options_.verify, this, {}}; }

  void after(const char* pass, pass::Stage stage, const ir::Program& program) override {
    if (stage == pass::Stage::scheduled) executable_.scheduled = program;
    if (stage != pass::Stage::device) executable_.tiled = program;
    if (options_.observer) options_.observer->after(pass, stage, program);
  }

 private:
  Executable& executable_;
  const pass::PipelineOptions& options_;
};

/// A target may be the user's own description: what shapes of tiles and loops are divided by is held to what machines
/// have, or somewhat more.
inline void check_target(const Target& target) {
  const auto refuse = [](const std::string& what) {
    throw Error(Code::invalid_argument, "Target::" + what + "; host_target() describes the machine that this runs on");
  };
  if (target.backend != Backend::llvm && target.backend != Backend::interpreter && target.backend != Backend::cuda)
    refuse("backend is " + std::to_string(int(target.backend)) + ", which is none of Backend's");
  const int bytes = target.vector_bytes;
  if (bytes < 16 || bytes > 256 || (bytes & (bytes - 1)) != 0)
    refuse("vector_bytes is " + std::to_string(bytes) + ": it takes a power of two from 16 to 256");
  if (target.vector_registers < 1 || target.vector_registers > 1024)
    refuse("vector_registers is " + std::to_string(target.vector_registers) + ": it takes a number from 1 to 1024");
  if (target.backend != Backend::llvm || !target.matrix_unit || target.features.empty()) return;
  for (const char* const feature : {"amx-tile", "amx-bf16", "avx512bf16"})  // LLVM ends the process without
    if (("," + target.features + ",").find("," + ("+" + std::string(feature)) + ",") == std::string::npos)
      refuse("matrix_unit is set, but features lack +" + std::string(feature));
}

inline void check_tabulating(const Schedule& schedule) {
  if (schedule.tabulating != Tabulating::on) return;
  if (schedule.table_megabytes < 1 || schedule.table_megabytes > 65536)
    throw Error(Code::invalid_schedule, "tabulate: tables of at most " + std::to_string(schedule.table_megabytes) +
                                            " MB were asked for; give a number from 1 to 65536");
  if (schedule.by_hand)
    throw Error(Code::invalid_schedule,
                "tabulate: a loop schedule says how the loops of all that is computed run, and tables leave some of it "
                "out; leave out tabulate, or the loop schedule");
}

/// A number that a decision takes: from 1 to `most`, or 0 for the compiler's choice.
inline void check_count(const char* decision, int count, int most) {
  if (count < 0 || count > most)
    throw Error(Code::invalid_schedule, std::string(decision) + ": " + std::to_string(count) +
                                            " were asked for; give a number from 1 to " + std::to_string(most) +
                                            ", or 0 to leave it to the compiler");
}

/// A choice that is none of those there are, as a cast can make it.
template <class Choice>
void check_choice(const char* decision, Choice choice, Choice last) {
  if (choice > last)
    throw Error(Code::invalid_schedule,
                std::string(decision) + ": there is no choice of the number " + std::to_string(int(choice)));
}

/// What CPUs and GPUs both follow.
inline void check_common(const Schedule& schedule) {
  if (schedule.piece_nodes < 0 && schedule.piece_nodes != Schedule::by_the_caches)
    throw Error(Code::invalid_schedule, "pieces: pieces of " + std::to_string(schedule.piece_nodes) +
                                            " nodes were asked for; give a number from 1 on, or 0 for whole calls");
  check_choice("share_subtrees", schedule.sharing, Sharing::on);
  check_choice("sort_by_matrix", schedule.sorting, Sorting::on);
  check_choice("tabulate", schedule.tabulating, Tabulating::on);
  check_choice("alternate_sweeps", schedule.tiling.sweeps, Tiling::Sweeps::alternating);
  check_count("groups", schedule.num_groups, Schedule::most_workers);
  check_tabulating(schedule);
  if (schedule.by_hand && !schedule.fuses)
    throw Error(Code::invalid_schedule,
                "fuse_nothing() is about the compiler's own loops; with loops() nothing is fused but by their steps");
}

inline void check_schedule(const Schedule& schedule) {
  if (schedule.max_workers < 1 || schedule.max_workers > Schedule::most_workers)
    throw Error(Code::invalid_schedule, "workers: " + std::to_string(schedule.max_workers) +
                                            " workers were asked for; give a number from 1 to " +
                                            std::to_string(Schedule::most_workers));
  check_common(schedule);
  check_count("tile_rows", schedule.tiling.rows, 24);
  check_count("tile_vectors", schedule.tiling.vectors, 8);
  check_count("tile_gates", schedule.tiling.gates, 16);
  if (schedule.by_hand && schedule.tiling != Tiling{})
    throw Error(
        Code::invalid_schedule,
        "tile_rows, tile_vectors, tile_gates, alternate_sweeps and sweep_forward shape the compiler's own tiles; "
        "with loops() there are none");
}

}  // namespace cortex::runtime::detail
