// Loops of which workers own pieces of more than one element, as cuts of a recursion make them, under loop schedules by
// hand: a step that makes such a loop anew keeps its pieces.
#include <catch2/catch.hpp>

#include "cortex/ir/races.hpp"
#include "cortex/loops.hpp"
#include "support/gru_models.hpp"
#include "support/lowering.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// Two workers own six of twelve elements each, which are no whole vectors.
Schedule by_hand(const std::string& steps) {
  return Schedule::standard().exact_activations().refactor("candidate").workers(2).loops(Loops::parse(steps));
}

constexpr const char* fused = "distribute_rows(); inline_temporaries(); remove_dead(); fuse_nests(); ";

}  // namespace

TEST_CASE("steps before and behind the barriers of a cut recursion keep each worker's pieces",
          "[schedule][loops][equality][races]") {
  const auto model = child_sum_gru<float, true>(12);
  const ra::Graph& graph = model.graph();
  std::mt19937 random(1);
  const NodeTable table = random_table(21, 2, 7, random, true);
  const Linear linear(table, 2);
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 7, 1));
  for (const char* steps : {
           "share_work(); insert_barriers()",
           "forward_stores(); share_work(); insert_barriers(); remove_dead()",
           "share_work(); insert_barriers(); share_loads()",
           "share_work(); insert_barriers(); pack_weights(); tile_nests(); share_loads()",
           "share_work(); fuse_nests(); distribute_rows(); index_densely(); insert_barriers()",
           "share_work(); insert_barriers(); split(b_idx, 2); unroll(b_idx.i)",
           "share_work(); insert_barriers(); hoist_conditions(); hoist_invariants(); simplify_guards()",
       }) {
    INFO(steps);
    const ir::Program program = passes_of(graph, by_hand(std::string(fused) + steps), machine(16)).back().program;
    for (const bool last_first : {false, true}) CHECK(reference.difference(program, {2, last_first}) == "");
    ir::Storage storage = reference.bound;
    const auto race = ir::find_race(program, linear.arrays, storage, 2);
    CHECK((race ? ir::describe(*race, program) : "") == "");
  }
}

TEST_CASE("what workers share is not computed beside what each has for itself", "[schedule][loops][refusal]") {
  const auto model = child_sum_gru<float, true>(12);
  CHECK_THROWS_WITH(
      passes_of(model.graph(), by_hand("share_work(); insert_barriers()"), machine(16)),
      Contains("loop schedule: insert_barriers(): what 'n_idx.2' does writes") &&
          Contains("which workers share, beside what each of them has for itself; distribute that first"));
}
