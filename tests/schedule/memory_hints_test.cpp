// What tiles ask for before they want it: weights that stream through them, and the rows along which they go.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Schedule standard = Schedule::standard().tabulate_nothing().exact_activations();
const Target wide = machine(64, 32);

/// For loops in `body` over a contraction, how many prefetches stand in each, in their order.
std::vector<int> prefetches_in_contractions(const ir::Stmt& body) {
  std::vector<int> counts;
  ir::visit_with(body, [&](const ir::For& loop) {
    if (loop.dim.kind() != DimKind::dense || loop.loop != ir::ForKind::serial) return;
    int sums = 0, wanted = 0;
    for (const ir::Stmt& s : schedule::stmts_of(loop.body)) {
      sums += s.as<ir::Store>() != nullptr || s.as<ir::LetStmt>() != nullptr;
      wanted += s.as<ir::Prefetch>() != nullptr;
    }
    if (sums && wanted) counts.push_back(wanted);
  });
  return counts;
}

}  // namespace

TEST_CASE("tiles ask for streaming weights two kilobytes ahead, and at each line of a row for the next one",
          "[schedule][golden]") {
  check_golden("schedule/memory_hints/two_workers.ilir",
               text_after("prefetch_rows", tree_fc(64).graph(),
                          standard.workers(2).tile_rows(2).tile_vectors(1).alternate_sweeps(), wide));
}

TEST_CASE("weights are asked for where a tile has several rows and the loop around passes over them once",
          "[schedule]") {
  constexpr double first_cache = 32 << 10;
  const auto counts = [](const auto& program, const Schedule& schedule) {
    const ir::Stmt tiled = program_after("tile_nests", program.graph(), schedule, wide).body;
    return prefetches_in_contractions(schedule::prefetch_weights(tiled, 64, first_cache));
  };
  // Tiles of one row have none; a GRU's gates stream three matrices, in two loops.
  const std::vector<int> gru = counts(tree_gru(64), standard.tile_rows(2).tile_vectors(1));
  CHECK(!gru.empty());
  CHECK(std::all_of(gru.begin(), gru.end(), [](int n) { return n == 1 || n == 2; }));
  CHECK(counts(tree_gru(64), standard.tile_rows(1)).empty());
  CHECK(counts(mv_phrases(64), standard).empty());  // a panel of weights stays while a node's rows go by
  const ir::Stmt tiled = program_after("tile_nests", tree_gru(64).graph(), standard, wide).body;
  CHECK(schedule::prefetch_weights(tiled, 32, first_cache).same_as(tiled));  // half a line a load
  CHECK(schedule::prefetch_weights(tiled, 64, 1 << 20).same_as(tiled));      // all weights stay
}

TEST_CASE("lines of rows are asked for where workers share a call and rows are longer than a line", "[schedule]") {
  const auto two = standard.workers(2).tile_rows(2).tile_vectors(1);
  const auto tiled = [&](int extent) { return program_after("tile_nests", tree_gru(extent).graph(), two, wide).body; };
  std::string asks;  // of each contraction, for how many rows
  ir::visit_with(schedule::prefetch_rows(tiled(64)), [&](const ir::For& loop) {
    const auto* ask = schedule::stmts_of(loop.body)[0].as<ir::If>();
    if (loop.dim.kind() != DimKind::dense || !ask) return;
    const auto turn = ir::binary(ir::BinaryOp::eq, loop.var % 16, ir::imm(0));
    CHECK(ir::equal(ask->condition, turn));
    asks += std::to_string(schedule::stmts_of(ask->then_body).size()) + " ";
  });
  CHECK(asks == "1 2 1 2 ");  // gates of the children's sum, then candidates: tiles of one row and of two
  const auto short_rows = tiled(16);
  CHECK(schedule::prefetch_rows(short_rows).same_as(short_rows));
  const auto alone = standard.workers(1).tile_rows(2).tile_vectors(1);
  CHECK(count(text_after("vectorize", tree_gru(64).graph(), alone, wide), "prefetch s[") == 0);
  CHECK(count(text_after("vectorize", tree_gru(64).graph(), two, wide), "prefetch s[") > 0);
}

TEST_CASE("prefetches change no result, whatever they ask for", "[schedule][equality]") {
  std::mt19937 random(4);
  const NodeTable table = random_table(20, 2, 9, random, true);
  const Linear linear(table, 2);
  const ra::Graph graph = tree_gru(40).graph();
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
  for (const Schedule& schedule : {standard.workers(2).tile_rows(3).tile_vectors(2), standard.tile_vectors(1)})
    CHECK(first_difference(reference, schedule, wide) == "");
}
