// The benchmark's random gated cells: their three descriptions, as a program, as plain recursion and as a count of
// work, are of one thing; and what the compiler makes of them is that, too.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "../../bench/support/cell_program.hpp"
#include "../../bench/support/cortex_system.hpp"
#include "cortex/ra/interpret.hpp"

using namespace bench;

namespace {

constexpr int hidden = 5;

std::vector<Cell> cells_of(unsigned seed, std::size_t count) {
  std::mt19937 random(seed);
  std::vector<Cell> cells(count);
  for (Cell& cell : cells) cell = random_cell(random);
  return cells;
}

/// The nodes of one batch, by their numbers.
struct View : cortex::ra::NodeView {
  std::vector<const Node*> nodes;

  explicit View(const Batches& batches) {
    for (const Node& node : batches.nodes) nodes.push_back(&node);
  }
  int num_nodes() const override { return int(nodes.size()); }
  int child(int accessor, int n) const override {
    const Node* const node = nodes[std::size_t(n)];
    return node->left ? (accessor == 0 ? node->left : node->right)->index : -1;
  }
  std::vector<int> children(int, int n) const override {
    return nodes[std::size_t(n)]->left ? std::vector{child(0, n), child(1, n)} : std::vector<int>();
  }
  double field(int, int n, int) const override { return nodes[std::size_t(n)]->word; }
  bool is_leaf(int n) const override { return !nodes[std::size_t(n)]->left; }
};

cortex::ra::Weights bound(const cortex::ra::Graph& graph, const Weights& weights) {
  cortex::ra::Weights result;
  for (const auto& op : graph.ops) {
    if (op.kind != cortex::ra::OpKind::input) continue;
    const std::vector<float>& values = weights(op.name());
    cortex::ra::Tensor& tensor = result[op.name()];
    for (const cortex::Dim& dim : op.dims) tensor.shape.push_back(dim.extent());
    tensor.values.assign(values.begin(), values.end());
  }
  return result;
}

}  // namespace

TEST_CASE("the plain recursion of a random cell gives what its program's equations say", "[bench]") {
  const Batches batches = trees_of(9, 2, 1);
  std::size_t nary = 0;
  for (const Cell& cell : cells_of(1, 40)) {
    nary += cell.nary;
    const Weights weights = random_weights(cell, hidden);
    const std::vector<double> states = CellRecursion(cell, weights).states(batches)[0];
    with_program(cell, hidden, [&](const auto& program) {
      INFO(description(cell));
      const auto expected =
          cortex::ra::interpret<double>(program.graph(), View(batches), bound(program.graph(), weights));
      for (std::size_t r = 0; r < batches.roots[0].size(); ++r)
        for (std::size_t i = 0; i < hidden; ++i)
          REQUIRE(states[r * hidden + i] ==
                  Approx(expected[0][std::size_t(batches.roots[0][r]->index)][i]).epsilon(1e-9).margin(1e-12));
    });
  }
  CHECK((nary > 10 && nary < 30));
}

TEST_CASE("random cells compile to what their recursion gives", "[bench]") {
  const Batches batches = trees_of(9, 3, 2);
  for (const Cell& cell : cells_of(2, 4)) {
    INFO(description(cell));
    const Weights weights = random_weights(cell, 24);
    const CellRecursion recursion(cell, weights);
    const auto compiled_cell =
        with_program(cell, 24, [&](const auto& program) { return compiled(program, recipe_of("cortex", 1), weights); });
    const std::vector<std::vector<double>> expected = recursion.states(batches);
    std::vector<float> out(3 * 24);
    for (std::size_t b = 0; b < batches.roots.size(); ++b) {
      compiled_cell->run(batches.roots[b], out.data());
      for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(std::abs(out[i] - expected[b][i]) <= allowed_error(1, 24));
    }
  }
}

TEST_CASE("a seed gives the same cells again, another seed others, all of them with one to four gates", "[bench]") {
  std::set<std::string> seen;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const std::vector<Cell> cells = cells_of(seed, 5), again = cells_of(seed, 5);
    for (std::size_t c = 0; c < 5; ++c) {
      CHECK(description(cells[c]) == description(again[c]));
      CHECK((cells[c].gates.size() >= 1 && cells[c].gates.size() <= 4));
      seen.insert(description(cells[c]));
    }
  }
  CHECK(seen.size() > 80);
}

TEST_CASE("the work of a cell is counted as the zoo's, whose shape it may have", "[bench]") {
  constexpr double H = 64, nodes = 7;
  Cell cell;  // as a TreeLSTM, whose tanh of c it lacks
  cell.gates = {{false, false, true}, {true}, {false}};
  const Work lstm = work_of_level(Model::treelstm, H, false, nodes, 2 * nodes);
  Work own = work_of_level(cell, H, false, nodes);
  CHECK(own.flops == lstm.flops);
  CHECK(own.weight_bytes == lstm.weight_bytes);
  CHECK(own.activations == lstm.activations - H * nodes);
  CHECK(own.barriers == lstm.barriers);
  cell.nary = true, cell.candidate_of_m = true;  // as the fixed cell, which has no gate of children
  cell.gates = {{false}, {false, false, true}};
  const Work fixed = work_of_level(Model::gated, H, false, nodes, 2 * nodes);
  own = work_of_level(cell, H, false, nodes);
  CHECK(own.flops == fixed.flops);
  CHECK(own.weight_bytes == fixed.weight_bytes);
  CHECK(own.activations == fixed.activations);
  cell.gates[0].of_children = true;
  CHECK(work_of_level(cell, H, false, nodes).barriers == fixed.barriers);
}
