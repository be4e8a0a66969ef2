// The benchmark's floor, held against the same formula by hand, and the numbering that peers batch by.
#include "../../bench/support/floor.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace bench;

namespace {

/// 100 GFLOP/s a thread, 100 GB/s a thread, a barrier of a quarter of a microsecond.
Machine machine() {
  Machine m;
  m.threads = {1, 2};
  m.gflops = {100, 200};
  m.tile_gflops = {80, 150};
  m.slices = {1 << 20, 2 << 20};
  m.gigabytes = {{100, 50}, {200, 100}};
  m.barrier_us = 0.25;
  return m;
}

double floor_of(Model model, std::size_t hidden, int threads, const Roots& roots) {
  return floor_us(work_of(model, hidden, roots), threads, machine());
}

constexpr double activation_us = 0.235e-3;

}  // namespace

TEST_CASE("TreeFC's floor counts its inner nodes, and weights where a level has too few of them", "[bench]") {
  const Batches batches = batches_for(Model::treefc, 1);
  constexpr double H = 256;
  // Levels of 64, 32, ... 1 nodes, each 4 H^2 operations; weights of 8 H^2 bytes count once in each level.
  double expected = 0;
  for (const double nodes : {64, 32, 16, 8, 4, 2, 1}) expected += std::max(4 * H * H * nodes, 8 * H * H) / 100e3;
  CHECK(floor_of(Model::treefc, 256, 1, batches.roots[0]) == Approx(expected));
  CHECK(floor_of(Model::treefc, 256, 2, batches.roots[0]) == Approx(expected / 2 + 7 * 0.25));
  double in_tiles = 0;
  for (const double nodes : {64, 32, 16, 8, 4, 2, 1})
    in_tiles += std::max(4 * H * H * nodes / 150e3, 8 * H * H / 200e3) + 0.25;
  CHECK(floor_us(work_of(Model::treefc, 256, batches.roots[0]), 2, machine(), true) == Approx(in_tiles));
}

TEST_CASE("DAG-RNN's floor has 18 levels of products behind its first node", "[bench]") {
  const Batches batches = batches_for(Model::dagrnn, 1);
  constexpr double H = 256;
  double expected = 100 * H * activation_us;
  for (int level = 1; level < 19; ++level) {
    const double nodes = level < 10 ? level + 1 : 19 - level;
    expected += std::max(2 * H * H * nodes, 4 * H * H) / 100e3;
  }
  CHECK(floor_of(Model::dagrnn, 256, 1, batches.roots[0]) == Approx(expected));
}

TEST_CASE("the floors of TreeLSTM and TreeGRU count leaves by themselves, and the GRU's two barriers", "[bench]") {
  Batches batches;
  batches.begin_batch();
  const Node *a = batches.add(1), *b = batches.add(2);
  const Roots roots{batches.add(-1, a, b)};
  constexpr double H = 512;
  // 3 and 4 MB of weights, which are read at half the rate, take longer than the arithmetic of so few nodes. A leaf has
  // four activations, a node of two children six.
  const double expected = (12 + 16) * H * H / 50e3 + (2 * 4 + 6) * H * activation_us;
  CHECK(floor_of(Model::treelstm, 512, 1, roots) == Approx(expected));
  CHECK(work_of(Model::treelstm, 512, roots)[1].flops == 10 * H * H);
  const auto gru = work_of(Model::treegru, 512, roots);
  CHECK(gru[0].flops == 2 * 4 * H * H);
  CHECK(gru[1].flops == 6 * H * H);
  CHECK(gru[0].barriers + gru[1].barriers == 3);
}

TEST_CASE("the floors of LSTM and GRU count the inputs' products of all steps", "[bench]") {
  constexpr double H = 256;
  for (const auto& [model, gates, activations] : {std::tuple{Model::lstm, 4., 5.}, std::tuple{Model::gru, 3., 3.}}) {
    const Batches batches = batches_for(model, 1);
    const double steps = batches.mean_nodes();
    REQUIRE(steps == 100);
    const double weights = 4 * gates * H * H / 100e3;  // in us, which take longer than a step's products
    double expected = (steps - 1) * weights + 2 * gates * H * H * steps / 100e3;
    expected += steps * activations * H * activation_us;
    CHECK(floor_of(model, 256, 1, batches.roots[0]) == Approx(expected));
  }
}

TEST_CASE("bandwidth between two sizes lies between theirs, and small slices are as fast as the smallest", "[bench]") {
  CHECK(machine().bandwidth(1 << 10, 1) == 100);
  CHECK(machine().bandwidth(1.5 * (1 << 20), 1) < 100);
  CHECK(machine().bandwidth(1.5 * (1 << 20), 1) > 50);
  CHECK(machine().bandwidth(1e9, 2) == 100);
}

TEST_CASE("rows by level have children above their parents, each node once", "[bench]") {
  for (const Model model : {Model::dagrnn, Model::treelstm, Model::lstm}) {
    const Batches batches = batches_for(model, 3);
    for (std::size_t b = 0; b < batches.roots.size(); ++b) {
      LevelOrder order(model == Model::dagrnn);
      order.number(batches.roots[b]);
      REQUIRE(order.count() == batches.counts[b]);
      for (std::size_t l = 0; l < order.levels(); ++l)
        for (std::size_t row = order.begin(l); row < order.begin(l) + order.rows(l); ++row) {
          int highest = -1;
          for (const int child : {order.left(row), order.right(row)}) highest = std::max(highest, child);
          if (l == 0)
            CHECK(highest == -1);
          else
            CHECK(highest >= int(order.begin(l - 1)));
          CHECK(highest < int(order.begin(l)));
        }
      std::set<std::size_t> roots;
      for (std::size_t i = 0; i < batches.roots[b].size(); ++i) roots.insert(order.root(i));
      CHECK(roots.size() == batches.roots[b].size());
    }
  }
}
