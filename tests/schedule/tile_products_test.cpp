// Products for a CPU's matrix unit: which nests get them, what becomes of these, and that they compute the same. None
// of it needs such a CPU.
#include "cortex/schedule/tile_products.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

Target with_unit() {
  Target target = machine(64, 32);
  target.matrix_unit = true;
  return target;
}

Schedule stored() { return Schedule::standard().exact_activations().tabulate_nothing().store_weights(DType::bf16); }

/// The program after tiling has tile products in the place of so many sums.
int tile_products(const ra::Graph& graph, const Schedule& schedule, const Target& target = with_unit()) {
  int found = 0;
  ir::visit_with(program_after("tile_nests", graph, schedule, target).body,
                 [&](const ir::TileProduct& product) { found += !product.shape.more; });
  return found;
}

/// All states that `program` computes, as it leaves them.
std::vector<std::vector<double>> states_of(const Reference& reference, const ir::Program& program, int workers) {
  ir::Storage storage = reference.bound;
  ir::interpret(program, reference.env, storage, {workers});
  std::vector<std::vector<double>> states;
  for (const ra::State& state : reference.graph.states)
    states.push_back(storage.at(reference.graph.ops[std::size_t(state.placeholder)].name()));
  return states;
}

bool is_close(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  bool close = a.size() == b.size();
  for (std::size_t s = 0; close && s < a.size(); ++s) {
    close = a[s].size() == b[s].size();
    for (std::size_t i = 0; close && i < a[s].size(); ++i)
      close = std::isnan(a[s][i]) ? std::isnan(b[s][i]) : std::abs(a[s][i] - b[s][i]) <= 1e-6;
  }
  return close;
}

/// Holds the programs from `tile_weights` on against those that multiply with vectors, pass by pass.
void check_like_vectors(const ra::Graph& graph, const Reference& reference, const Schedule& schedule) {
  const std::vector<Snapshot> tiles = passes_of(graph, schedule, with_unit()),
                              vectors = passes_of(graph, schedule.multiply_in_vectors(), with_unit());
  int compared = 0;
  for (const Snapshot& s : tiles)
    for (const Snapshot& v : vectors) {
      if (s.pass != v.pass || (s.pass != "tile_nests" && s.pass != "read_in_place" && s.pass != "flatten_storage"))
        continue;
      INFO(graph.name << " after " << s.pass << "\n" << ir::print(s.program));
      for (int workers = 1; workers <= schedule.max_workers; ++workers)
        CHECK(is_close(states_of(reference, s.program, workers), states_of(reference, v.program, workers)));
      ++compared;
    }
  CHECK(compared >= 2);
}

}  // namespace

TEST_CASE("a nest over weights of bf16 takes its rows apart and multiplies tiles", "[schedule][golden]") {
  check_golden("schedule/tile_products/tree_fc.ilir",
               text_after("tile_nests", tree_fc(50).graph(), stored(), with_unit()));
}

TEST_CASE("sums of products of rows with bf16 are made in tiles, and no others", "[schedule]") {
  CHECK(tile_products(tree_fc(64).graph(), stored()) == 1);   // of two products
  CHECK(tile_products(tree_gru(64).graph(), stored()) == 3);  // two of them side by side
  CHECK(tile_products(tree_fc(64).graph(), stored().multiply_in_vectors()) == 0);
  CHECK(tile_products(tree_fc(64).graph(), stored().store_weights(DType::f32)) == 0);
  CHECK(tile_products(tree_fc(64).graph(), stored().store_weights(DType::f16)) == 0);
  CHECK(tile_products(tree_fc(64).graph(), stored().store("Wl", DType::f16)) == 0);
  CHECK(tile_products(tree_fc(64).graph(), stored(), machine(64, 32)) == 0);
  Target narrow = with_unit();
  narrow.vector_bytes = 32;
  CHECK(tile_products(tree_fc(64).graph(), stored(), narrow) == 0);
}

TEST_CASE("few products a row are made with vectors", "[schedule]") {
  CHECK(tile_products(tree_fc(46).graph(), stored()) > 0);  // two of 46 x 46
  CHECK(tile_products(tree_fc(45).graph(), stored()) == 0);
}

TEST_CASE("workers that have no columns take no rows apart", "[schedule]") {
  const auto guarded = [](int workers) {
    int found = 0;
    ir::visit_with(
        program_after("tile_nests", tree_fc(64).graph(), stored().workers(workers), with_unit()).body,
        [&](const ir::If& branch) { ir::visit_with(branch.then_body, [&](const ir::TileRows&) { ++found; }); });
    return found > 0;
  };
  CHECK_FALSE(guarded(4));  // four panels
  CHECK(guarded(5));
}

TEST_CASE("rows that would fill the second-level cache when taken apart are multiplied with vectors", "[schedule]") {
  CHECK(tile_products(tree_fc(1024).graph(), stored()) == 1);
  CHECK(tile_products(tree_fc(2048).graph(), stored()) == 0);
}

TEST_CASE("a sum that does not begin at zero is made with vectors", "[schedule]") {
  const ir::Stmt body = program_after("store_weights", tree_fc(64).graph(), stored(), with_unit()).body;
  const auto starting_at = [&](double start) {
    return ir::mutate_with(body, [&](auto& self, const ir::Store& store) -> ir::Stmt {
      if (!store.value.template as<ir::FloatImm>()) return self.children(store);
      return ir::Store::make(store.buffer, store.indices, ir::FloatImm::make(start, DType::f32));
    });
  };
  const auto tiles = [&](const ir::Stmt& s) { return !schedule::tile_weights(s, with_unit(), stored()).same_as(s); };
  CHECK(tiles(starting_at(0)));
  CHECK_FALSE(tiles(starting_at(1)));
}

TEST_CASE("it is said why vectors multiply what the unit does not", "[schedule]") {
  const auto reasons = [](const ra::Graph& graph, const Schedule& schedule) {
    const std::vector<Snapshot> passes = passes_of(graph, schedule, with_unit());
    std::size_t tiled = 0;
    while (passes[tiled].pass != "tile_nests") ++tiled;
    std::string text;
    schedule::for_each_nest(passes[tiled - 1].program.body, [&](const schedule::Nest& nest) {
      const char* const reason = schedule::why_vectors(nest);
      if (reason) text += std::string(text.empty() ? "" : "; ") + reason;
    });
    return text;
  };
  CHECK(reasons(tree_fc(64).graph(), stored()) == "");
  CHECK(reasons(tree_fc(64).graph(), stored().store_weights(DType::f32)) == "");
  CHECK(reasons(tree_fc(45).graph(), stored()) == "a row has so few products that vectors make them sooner");
  CHECK(reasons(tree_fc(2048).graph(), stored()) == "its rows are too long to be taken apart");
  CHECK(reasons(tree_fc(64).graph(), stored().store("Wl", DType::f32)) ==
        "a sum is not of products of rows with matrices of bf16 alone");
  CHECK(reasons(tree_fc(64).graph(), Schedule{}.dynamic_batch().store_weights(DType::bf16)) ==
        "it is under a condition of each node");
  CHECK_THAT(reasons(mv_phrases(64).graph(), stored()),
             Catch::Contains("it is not a vector at each of a level's nodes"));
}

TEST_CASE("products in tiles are those of vectors after every pass", "[schedule][equality]") {
  std::mt19937 random(5);
  const NodeTable table = random_table(24, 2, 9, random, true);
  const Linear linear(table, 2);
  for (const int extent : {50, 65}) {
    const auto check = [&](const ra::Graph& graph) {
      const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
      for (const int workers : {1, 3}) check_like_vectors(graph, reference, stored().workers(workers));
    };
    check(tree_fc(extent).graph());
    check(tree_gru(extent).graph());
    check(tree_lstm(extent).graph());
  }
}

TEST_CASE("a tile's layout has each element of the matrix once, and is as large as its tiles", "[schedule]") {
  for (const auto& [outputs, summed] : {std::pair(16, 32), std::pair(1, 1), std::pair(40, 70), std::pair(17, 31)}) {
    const ir::Layout layout = schedule::tile_layout({Dim("i", outputs), Dim("k", summed)}, 0, 1);
    std::set<std::int64_t> places;
    for (std::int64_t i = 0; i < outputs; ++i)
      for (std::int64_t k = 0; k < summed; ++k) {
        std::int64_t at = 0;
        for (const ir::Axis& axis : layout.axes) {
          const std::int64_t part = (axis.source == 0 ? i : k) / axis.divisor;
          at += (axis.modulus ? part % axis.modulus : part) * axis.stride;
        }
        // as the unit reads it: pairs of k, of one output after the other
        const std::int64_t steps = (summed + 31) / 32, panel = steps * 512 + 32;
        CHECK(at == i / 16 * panel + k / 32 * 512 + k % 32 / 2 * 32 + i % 16 * 2 + k % 2);
        places.insert(at);
      }
    CHECK(places.size() == std::size_t(outputs) * std::size_t(summed));
    CHECK(*places.rbegin() < layout.fixed_size);
    CHECK(layout.fixed_size == (outputs + 15) / 16 * ((summed + 31) / 32 * 512 + 32));
  }
}
