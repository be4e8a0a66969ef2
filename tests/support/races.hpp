// The barriers of a program held against what several workers do on many forests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortex/ir/races.hpp"
#include "cortex/lower/unroll.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/structure/linearizer.hpp"
#include "support/lowering.hpp"
#include "support/random_models.hpp"

namespace cortex::test {

/// A model's calls on forests of random sizes, numbered as a schedule asks.
class Calls {
 public:
  Calls(const ra::Graph& graph, const Schedule& schedule, std::uint64_t seed, int count)
      : partition_(runtime::partition_of(graph, ra::questions(graph, schedule))) {
    for (const auto& [name, tensor] : weights_for(graph, vocabulary, unsigned(seed))) weights[name] = tensor.values;
    int depth = 0;
    for (const int levels : lower::unrolling(graph, schedule)) depth = std::max(depth, levels);
    for (int c = 0; c < count; ++c) {
      Random random(seed * 100 + std::uint64_t(c));
      constexpr int sizes[] = {12, 4, 24, 2};
      forests_.push_back(random_forest(random, graph.structure, sizes[c % 4]));
      workspaces_.push_back(std::make_unique<structure::Workspace>());
      structure::Workspace& workspace = *workspaces_.back();
      if (!partition_.empty()) workspace.set_partition(&partition_);
      workspace.set_subtree_depth(depth);
      using Linearizer = structure::Linearizer<Vertex, VertexSet>;
      const std::vector<structure::FieldCheck> checks(2);
      envs.emplace_back(Linearizer::run(workspace, Structure{structure::Kind(int(graph.structure))}, checks,
                                        forests_.back().roots));
    }
  }

  std::vector<ir::StructureEnv> envs;
  ir::Storage weights;

 private:
  structure::Partition partition_;
  std::vector<Forest> forests_;
  std::vector<std::unique_ptr<structure::Workspace>> workspaces_;
};

/// The first race of `program` in any of the calls, shared by 2, 3 or 4 workers; "" if there is none.
inline std::string first_race(const ir::Program& program, const Calls& calls, int most_workers = 3) {
  for (const ir::StructureEnv& env : calls.envs)
    for (int workers = 2; workers <= most_workers; ++workers) {
      ir::Storage storage = calls.weights;
      if (const auto race = ir::find_race(program, env, storage, workers)) return ir::describe(*race, program);
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

}  // namespace cortex::test
