// From the operator graph and its schedule to the ILIR (paper section 4).
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/absent_children.hpp"
#include "cortex/lower/cut_sums.hpp"
#include "cortex/lower/distribute_sums.hpp"
#include "cortex/lower/drop_repeated.hpp"
#include "cortex/lower/emit_loops.hpp"
#include "cortex/lower/factor_sums.hpp"
#include "cortex/lower/hoist.hpp"
#include "cortex/lower/join_readers.hpp"
#include "cortex/lower/multiply_below.hpp"
#include "cortex/lower/refactor.hpp"
#include "cortex/lower/sort_by_matrix.hpp"
#include "cortex/lower/split_reductions.hpp"
#include "cortex/lower/unfold.hpp"
#include "cortex/lower/versions.hpp"
#include "cortex/ra/pieces.hpp"

namespace cortex::lower {

/// Every non-local buffer that `body` reads or writes, in order of first use; states first, in the graph's order, so
/// that results are found even if nothing else is.
inline Vector<ir::Buffer> buffers_of(const ra::Graph& graph, const ir::Stmt& body) {
  Vector<ir::Buffer> result;
  PointerSet seen;
  const auto add = [&](const ir::Buffer& buffer) {
    if (buffer->scope != ir::Scope::local && seen.insert(buffer.id())) result.push_back(buffer);
  };
  for (const ra::State& state : graph.states) add(graph.ops[std::size_t(state.placeholder)].buffer);
  ir::visit_with(
      body, [&](const ir::Load& load) { add(load.buffer); }, [&](const ir::Store& store) { add(store.buffer); });
  return result;
}

/// The program of the loops `body`, with what they take to be known of a call's nodes.
inline ir::Program program_of(const ra::Graph& graph, const Schedule& schedule, const ra::Questions& questions,
                              ir::Listed listed, const ir::Stmt& body) {
  ir::Program program;
  program.name = graph.name;
  program.buffers = buffers_of(graph, body);
  program.body = body;
  program.chains =
      graph.structure == ra::StructureKind::sequence && graph.children_named.size() == 1 &&
      !any_of(graph.containers, [](const ra::Accessor& c) { return c.relation == ra::Relation::children; });
  program.parts = questions.parts();
  program.listed = listed;
  program.results = graph.results;
  program.may_be_divided = ra::may_be_divided(graph, schedule);
  for (const ra::Accessor& child : graph.children_named) program.required_children.push_back(!child.optional);
  for (const ra::Accessor& field : graph.fields) program.field_components.push_back(field.components);
  return program;
}

/// The ILIR of a graph under `schedule`, at level `loops`: every temporary explicit, one row per node. The list of
/// steps:
inline ir::Program lower(const ra::Graph& written, const Schedule& schedule, Ahead ahead = Ahead::at_once) {
  const bool in_tiles = ahead == Ahead::apart && schedule.gpu.tensor_cores != GpuSchedule::TensorCores::off;
  const ra::Graph graph = cut_sums(written);  // L1: sums over what is put together become several
  // S2: what specialized branches ask of the nodes; the run time asks the same of the graph as it is written
  const ra::Questions questions = ra::questions(written, schedule);
  // L3: a body for each side of a specialized branch; L6: zero initial states and empty sums vanish from it
  Vector<Recursion> recursions = make_versions(graph, schedule, questions);
  join_readers(recursions, graph, schedule);  // L2: what reads a large state at its own node is computed beside it
  drop_repeated(recursions, schedule);        // L3: what a recursion has computed, later ones read
  multiply_below(recursions, graph, schedule, questions);  // products of a child's state are made there
  factor_sums(recursions);                                 // L1: products with a matrix are no more than that
  distribute_sums(recursions);                             // L1: weighed sums of products are sums of each
  unfold(recursions, graph);                               // L1: some folds over few children become terms
  split_reductions(recursions, graph, in_tiles);           // L1: every temporary explicit
  refactor(recursions, graph, schedule);                   // S4: the back edge moves to a contraction
  sort_by_matrix(recursions, schedule, questions);         // L3: products with a matrix that some nodes have in common
  // L5, O3: what does not depend on the recursion leaves it
  const Placement placement = hoist(std::move(recursions), ahead);
  const ir::Stmt body = emit_loops(placement, schedule.batched, questions);  // L2: loops over nodes or batches
  return program_of(graph, schedule, questions, placement.listed, body);
}

}  // namespace cortex::lower
