#include "support/races.hpp"

#include <algorithm>
#include <cstring>

#include "cortex/ir/races.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/lower/unroll.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/structure/linearizer.hpp"

namespace cortex::test {

Calls::Calls(const ra::Graph& graph, const Schedule& schedule, std::uint64_t seed, int count)
    : partition_(runtime::partition_of(graph, ra::questions(graph, schedule), lower::lower(graph, schedule))) {
  for (const auto& [name, tensor] : weights_for(graph, num_words, unsigned(seed))) weights[name] = tensor.values;
  int depth = 0;
  for (const int levels : lower::unrolling(graph, schedule)) depth = std::max(depth, levels);
  for (int c = 0; c < count; ++c) {
    constexpr int sizes[] = {12, 4, 24, 2};
    Random random(seed * 100 + std::uint64_t(c));
    forests_.push_back(random_forest(random, graph, sizes[c % 4]));
    workspaces_.push_back(std::make_unique<structure::Workspace>());
    structure::Workspace& workspace = *workspaces_.back();
    if (!partition_.empty()) workspace.set_partition(&partition_);
    workspace.set_subtree_depth(depth);
    workspace.fill_levels(1 + c % 3);  // programs have to be right for all
    using Linearizer = structure::Linearizer<Vertex, VertexSet>;
    const std::vector<structure::FieldCheck> checks(2);
    const Structure kind{structure::Kind(int(graph.structure))};
    envs.emplace_back(Linearizer::run(workspace, kind, checks, forests_.back().roots));
  }
}

std::vector<std::int32_t> Calls::numbers(int call) const {
  std::vector<std::int32_t> result;
  for (const auto& vertex : forest(call).all) result.push_back(workspaces_[std::size_t(call)]->find(vertex.get()));
  return result;
}

std::string first_race(const ir::Program& program, const Calls& calls) {
  for (const ir::StructureEnv& env : calls.envs)
    for (const int workers : {2, 3}) {
      ir::Storage storage = calls.weights;
      if (const auto race = ir::find_race(program, env, storage, workers)) return ir::describe(*race, program);
    }
  return {};
}

std::string order_matters(const ir::Program& program, const ir::StructureEnv& env, const ir::Storage& weights) {
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

int count_barriers(const ir::Program& program) {
  int found = 0;
  ir::visit_with(program.body, [&](const ir::Barrier&) { ++found; });
  return found;
}

ir::Program without_barrier(ir::Program program, int which) {
  int at = 0;
  program.body = ir::mutate_with(program.body, [&](auto&, const ir::Barrier& barrier) -> ir::Stmt {
    return at++ == which ? ir::Block::make({}) : ir::handle_of(barrier);
  });
  return program;
}

}  // namespace cortex::test
