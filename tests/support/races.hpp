// The barriers of a program held against what several workers do on many forests.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cortex/ir/races.hpp"
#include "cortex/lower/unroll.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/structure/linearizer.hpp"
#include "support/lowering.hpp"
#include "support/random_models.hpp"

namespace cortex::test {

/// A model's calls on random forests, numbered as a schedule asks. The model names accessors as those of `VertexSet`
/// are numbered: children first 0 and second 1, container kids 0, fields word 0 and feature 1.
class Calls {
 public:
  Calls(const ra::Graph& graph, const Schedule& schedule, std::uint64_t seed, int count)
      : partition_(runtime::partition_of(graph, ra::questions(graph, schedule))) {
    for (const auto& [name, tensor] : weights_for(graph, vocabulary, unsigned(seed))) weights[name] = tensor.values;
    int depth = 0;
    for (const int levels : lower::unrolling(graph, schedule)) depth = std::max(depth, levels);
    for (int c = 0; c < count; ++c) {
      constexpr int sizes[] = {12, 4, 24, 2};
      Random random(seed * 100 + std::uint64_t(c));
      forests_.push_back(random_forest(random, graph.structure, sizes[c % 4]));
      workspaces_.push_back(std::make_unique<structure::Workspace>());
      structure::Workspace& workspace = *workspaces_.back();
      if (!partition_.empty()) workspace.set_partition(&partition_);
      workspace.set_subtree_depth(depth);
      using Linearizer = structure::Linearizer<Vertex, VertexSet>;
      const std::vector<structure::FieldCheck> checks(2);
      const Structure kind{structure::Kind(int(graph.structure))};
      envs.emplace_back(Linearizer::run(workspace, kind, checks, forests_.back().roots));
    }
  }

  std::vector<ir::StructureEnv> envs;
  ir::Storage weights;

 private:
  structure::Partition partition_;
  std::vector<Forest> forests_;
  std::vector<std::unique_ptr<structure::Workspace>> workspaces_;  // hold the arrays that `envs` point into
};

/// The first race of `program` in any of the calls, shared by 2 and 3 workers; "" if there is none.
inline std::string first_race(const ir::Program& program, const Calls& calls) {
  for (const ir::StructureEnv& env : calls.envs)
    for (const int workers : {2, 3}) {
      ir::Storage storage = calls.weights;
      if (const auto race = ir::find_race(program, env, storage, workers)) return ir::describe(*race, program);
    }
  return {};
}

/// Which state differs in any bit between some two orders in which 3 workers take their turns; "" if none does.
inline std::string order_matters(const ir::Program& program, const ir::StructureEnv& env, const ir::Storage& weights) {
  ir::Storage first = weights;
  ir::interpret(program, env, first, {3});
  for (const ir::InterpretOptions& options : {ir::InterpretOptions{3, true}, {3, false, 1}, {3, false, 2}}) {
    ir::Storage other = weights;
    ir::interpret(program, env, other, options);
    for (const ir::Buffer& buffer : program.buffers) {
      if (buffer->role != ir::Role::state || buffer->scope != ir::Scope::shared) continue;
      const std::vector<double>&a = first.at(buffer), &b = other.at(buffer);
      if (std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) != 0) return buffer->name;
    }
  }
  return {};
}

inline int count_barriers(const ir::Program& program) {
  int found = 0;
  ir::visit_with(program.body, [&](const ir::Barrier&) { ++found; });
  return found;
}

/// `program` without its `which`-th barrier.
inline ir::Program without_barrier(ir::Program program, int which) {
  int at = 0;
  program.body = ir::mutate_with(program.body, [&](auto&, const ir::Barrier& barrier) -> ir::Stmt {
    return at++ == which ? ir::Block::make({}) : ir::handle_of(barrier);
  });
  return program;
}

/// What came of holding many programs against many calls.
struct BarrierTally {
  int programs = 0, refused = 0, barriers = 0;
  std::vector<std::string> unneeded;  // barriers without which no call has a race
};

/// Whether a pass comes when workers already share the program.
inline bool is_shared_after(const std::string& pass) {
  for (const char* late : {"share_work", "insert_barriers", "pack_weights", "tile_nests", "share_loads",
                           "resolve_structure", "approximate_activations", "vectorize", "flatten_storage"})
    if (pass == late) return true;
  return false;
}

/// The program with its barriers, also where there are none, from what `passes_of` gives.
inline const ir::Program& with_barriers(const std::vector<Snapshot>& passes) {
  const Snapshot* found = &passes.front();
  for (const Snapshot& s : passes)
    if (s.pass == "share_work" || s.pass == "insert_barriers" || !is_shared_after(s.pass)) found = &s;
  return found->program;
}

}  // namespace cortex::test
