// The cost model: what it takes time for, and what it thinks faster than what.
#include "cortex/schedule/cost.hpp"

#include <catch2/catch.hpp>

#include "cortex/schedule/choose_groups.hpp"

using namespace cortex;
using schedule::CallShape;
using schedule::CostTerms;

namespace {

/// AVX-512, with round numbers: 100 GFLOP/s, and 50 GB/s from a second-level cache of 1 MB.
Target target() {
  Target result;
  result.vector_bytes = 64, result.vector_registers = 32;
  return result;
}
schedule::MachineModel machine() {
  schedule::MachineModel result = schedule::nominal_machine(target());
  result.flops = 100e9;
  result.levels = {{32e3, 400e9}, {1e6, 50e9}, {32e6, 20e9}, {HUGE_VAL, 10e9}};
  result.barrier = 1e-6, result.activation = 1e-9, result.library = 10e-9, result.remote_line = 0, result.node = 0;
  result.nest = result.row = result.group_node = 0;
  return result;
}

/// A product with a matrix of 512 KB at each inner node, level by level, and a tanh of each of its 256 elements.
std::vector<ir::WorkItem> product() {
  using Kind = ir::WorkItem::Kind;
  using Unit = ir::WorkUnit::Kind;
  ir::BufferInfo weight;
  weight.name = "U", weight.dims = {Dim("h", 256), Dim("k", 512)}, weight.role = ir::Role::weight;
  ir::WorkItem leaves, loop, nest, barrier;
  leaves.unit.kind = Unit::leaf;  // they have code of their own, so that levels begin above them
  loop.kind = Kind::loop, loop.unit.kind = Unit::level;
  nest.depth = barrier.depth = 1, nest.unit.kind = Unit::inner_node, nest.gates = 1;
  nest.operations = {{{Unit::inner_node}, 2.0 * 256 * 512, 256}};
  nest.weights = {{ir::Buffer(weight), {Unit::level}, 4.0 * 256 * 512}};
  barrier.kind = Kind::barrier;
  return {leaves, loop, nest, barrier};
}

CostTerms cost(const Schedule& schedule, const std::vector<CallShape::Level>& levels) {
  return schedule::predict(product(), schedule, target(), machine(), CallShape{levels, 1});
}

/// Forty leaves below so many levels of so many nodes.
std::vector<CallShape::Level> levels(int count, double nodes) {
  std::vector<CallShape::Level> result(std::size_t(count) + 1, {nodes, 2 * nodes});
  result[0] = {40, 0};
  return result;
}

const Schedule standard = Schedule::standard();

}  // namespace

TEST_CASE("bandwidth sinks from level to level", "[cost]") {
  const schedule::MachineModel m = machine();
  CHECK(m.bandwidth(1e3) == 400e9);
  CHECK(m.bandwidth(50e3) == 50e9);
  CHECK(m.bandwidth(600e3) == 50e9);
  CHECK(m.bandwidth(8e6) == 20e9);
  CHECK(m.bandwidth(1e9) == 10e9);
  CHECK(m.bandwidth(1.2e6) > 20e9);
  CHECK(m.bandwidth(1.2e6) < 50e9);
  for (double bytes = 1e3; bytes < 1e9; bytes *= 1.3) CHECK(m.bandwidth(bytes * 1.3) <= m.bandwidth(bytes));
}

TEST_CASE("a level of one node waits for weights, and one of many for arithmetic", "[cost]") {
  const double bytes = 4.0 * 256 * 512, flops = 2.0 * 256 * 512;
  const CostTerms one = cost(standard, levels(1, 1));
  CHECK(one.arithmetic + one.weights == Approx(bytes / 50e9).epsilon(0.05));
  CHECK(one.weights > one.arithmetic);
  const CostTerms many = cost(standard, levels(1, 1000));
  CHECK(many.arithmetic == Approx(1000 * flops / 100e9));
  CHECK(many.weights > 0);
  CHECK(many.weights < 0.05 * many.arithmetic);
  CHECK(cost(standard, levels(5, 1)).total() == Approx(5 * one.total()));
}

TEST_CASE("tiles of more rows read weights less often", "[cost]") {
  const auto weights = [](int rows) { return cost(standard.tile_rows(rows), levels(1, 24)).weights; };
  CHECK(weights(1) > weights(2));
  CHECK(weights(2) > weights(4));
  // More sums than there are registers live in memory.
  CHECK(cost(standard.tile_rows(24).tile_vectors(1), levels(1, 480)).arithmetic <
        cost(standard.tile_rows(24).tile_vectors(1), levels(1, 490)).arithmetic);
  const auto gates_of = [](int gates) {
    auto items = product();
    items[2].gates = gates;
    return schedule::predict(items, standard.tile_rows(8), target(), machine(), CallShape{levels(1, 80), 1}).arithmetic;
  };
  CHECK(gates_of(8) > 1.5 * gates_of(2));
}

TEST_CASE("a matrix unit takes as long for one row as for eight, and each worker takes all rows apart", "[cost]") {
  std::vector<ir::WorkItem> items = product();
  ir::BufferInfo tiles = *items[2].weights[0].weight, state;
  tiles.tiles = true;
  state.name = "h", state.dims = {Dim("node"), Dim("h", 256)}, state.role = ir::Role::state;
  items[2].weights[0] = {ir::Buffer(tiles), {ir::WorkUnit::Kind::level}, 2.0 * 256 * 512};
  items[2].stored = {ir::Buffer(state)};
  const auto cycles = [&](double rows, int workers = 1) {
    const Schedule schedule = standard.workers(workers);
    return schedule::predict(items, schedule, target(), machine(), {levels(1, rows), 1}).arithmetic * 100e9 / 64;
  };
  const double products = 16 * 16 * 40 * 1.25, apart = 512 / 16 * 12;
  CHECK(cycles(1) == Approx(products + apart));
  CHECK(cycles(8) == Approx(products + 8 * apart));
  CHECK(cycles(16) == Approx(1.4 * products + 16 * apart));
  CHECK(cycles(17) > 2 * products + 17 * apart);
  CHECK(cycles(160) == Approx(10 * cycles(16)));
  CHECK(cycles(8, 2) == Approx(products / 2 + 8 * apart));
}

TEST_CASE("workers share arithmetic and weights, and meet", "[cost]") {
  const CostTerms one = cost(standard, levels(4, 1)), two = cost(standard.workers(2), levels(4, 1));
  CHECK(one.barriers == 0);
  CHECK(two.barriers == Approx(4e-6));
  CHECK(two.functions == Approx(one.functions / 2));
  CHECK(two.arithmetic + two.weights == Approx((one.arithmetic + one.weights) / 2));
}

TEST_CASE("workers beyond the vectors of a state have no part in it", "[cost]") {
  std::vector<ir::WorkItem> items = product();
  ir::BufferInfo state;
  state.name = "h", state.dims = {Dim("node"), Dim("h", 80)}, state.role = ir::Role::state;  // five vectors
  items[2].stored = {ir::Buffer(state)};
  const auto arithmetic = [&](int workers) {
    return schedule::predict(items, standard.workers(workers), target(), machine(), {levels(10, 40), 1}).arithmetic;
  };
  CHECK(arithmetic(2) == Approx(arithmetic(1) * 3 / 5));
  CHECK(arithmetic(4) == Approx(arithmetic(1) * 2 / 5));
  CHECK(arithmetic(5) == Approx(arithmetic(1) / 5));
  CHECK(arithmetic(64) == Approx(arithmetic(5)));
}

TEST_CASE("workers pay for the lines that they read of each other's, and not for the rest", "[cost]") {
  std::vector<ir::WorkItem> items = product();
  ir::BufferInfo h, c;
  h.name = "h", h.dims = {Dim("node"), Dim("h", 256)}, h.role = ir::Role::state;
  c = h, c.name = "c";
  items[2].stored = {ir::Buffer(h), ir::Buffer(c)};
  schedule::MachineModel slow = machine();
  slow.barrier = 0, slow.remote_line = 1e-6;
  const auto waits = [&](int workers) {
    return schedule::predict(items, standard.workers(workers), target(), slow, {levels(10, 40), 1}).barriers;
  };
  CHECK(waits(2) == 0);
  items[2].exchanged = {items[2].stored[0]};
  CHECK(waits(1) == 0);
  CHECK(waits(2) == Approx(10 * 40 * (256 * 4 / 64) / 2 * 1e-6));
}

TEST_CASE("what a loop reads again and again need not share the cache with what a call reads once", "[cost]") {
  std::vector<ir::WorkItem> items = product();
  const auto weights_of_levels = [&] {
    return schedule::predict_nests(items, standard, target(), machine(), {levels(10, 1), 1})[1].terms.weights;
  };
  const double alone = weights_of_levels();
  ir::WorkItem ahead = items[2];  // of as many bytes as the cache has, for all leaves at once
  ahead.depth = 0, ahead.unit.kind = ir::WorkUnit::Kind::leaf;
  ahead.weights[0].unit.kind = ir::WorkUnit::Kind::call, ahead.weights[0].bytes = 1e6;
  items[0] = ahead;
  CHECK(weights_of_levels() == Approx(alone));
  items[3] = items[2];  // a second product at each level
  items[3].weights[0].bytes = 1e6;
  CHECK(weights_of_levels() > 1.2 * alone);
}

TEST_CASE("a schedule that may leave workers out takes the least of what teams take", "[cost][groups]") {
  const CallShape shape{levels(20, 1), 1};
  const auto seconds = [&](const Schedule& schedule) {
    schedule::MachineModel slow = machine();
    slow.barrier = 20e-6;
    return schedule::least_in_groups(product(), schedule, target(), slow, shape, 1);
  };
  const double one = seconds(standard.workers(1)), eight = seconds(standard.workers(8));
  CHECK(eight > 2 * one);
  CHECK(seconds(standard.workers(8).workers_where_they_pay()) == one);
}

TEST_CASE("each worker takes time to begin a nest and its rows", "[cost]") {
  schedule::MachineModel slow = machine();
  const auto loops = [&](int workers) {
    return schedule::predict(product(), standard.workers(workers), target(), slow, {levels(3, 20), 1}).loops;
  };
  CHECK(loops(1) == 0);
  slow.nest = 1;
  CHECK(loops(1) == Approx(3 + 1));  // one of the leaves
  slow.nest = 0, slow.row = 1;
  CHECK(loops(1) == Approx(3 * 20 + 40));
  CHECK(loops(2) == Approx(3 * 20 + 40));
}

TEST_CASE("rows of a node's matrix are rows of tiles, however few nodes a level has", "[cost]") {
  std::vector<ir::WorkItem> items = product();
  items[2].matrix_rows = 40;
  const auto of = [&](double nodes) {
    return schedule::predict(items, standard, target(), machine(), {levels(1, nodes), 1}).arithmetic;
  };
  CHECK(of(20) == Approx(20 * of(1)));
}

TEST_CASE("functions of the C library cost more than approximations", "[cost]") {
  const double approximated = cost(standard, levels(1, 10)).functions;
  CHECK(approximated == Approx(10 * 256 * 1e-9));
  CHECK(cost(standard.exact_activations(), levels(1, 10)).functions == Approx(10 * approximated));
}

TEST_CASE("a call has so many of what work is counted for each of", "[cost]") {
  using Unit = ir::WorkUnit::Kind;
  const auto functions = [](const ir::WorkUnit& unit, const Schedule& schedule = standard) {
    std::vector<ir::WorkItem> items(3);  // the others tell that there are two parts
    items[0].operations = {{unit, 0, 1}};
    items[1].unit = {Unit::part_node, 0}, items[2].unit = {Unit::part_node, 7, {}, " where x"};
    const CallShape shape{{{40, 0}, {12, 26}, {6, 14}}, 5};
    return schedule::predict(items, schedule, target(), machine(), shape).functions / machine().activation;
  };
  for (const Unit once : {Unit::call, Unit::level, Unit::subtree_level, Unit::iteration})
    CHECK(functions({once}) == Approx(1));
  CHECK(functions({Unit::root}) == Approx(5));
  CHECK(functions({Unit::below_root}) == Approx(58));
  CHECK(functions({Unit::node}) == Approx(58));
  CHECK(functions({Unit::leaf}) == Approx(40));
  CHECK(functions({Unit::inner_node}) == Approx(18));
  CHECK(functions({Unit::part_node, 7}) == Approx(58.0 / 2));
  CHECK(functions({Unit::edge}) == Approx(40));
  CHECK(functions({Unit::edge, 0, "leaf"}) == Approx(40));
  CHECK(functions({Unit::part_edge, 7}) == Approx(40.0 / 2));
  CHECK(functions({Unit::subtree_top}, standard.unroll("m", 2)) == Approx(18.0 / 3));
  CHECK(functions({Unit::below_top}, standard.unroll("m", 2)) == Approx(18.0 * 2 / 3));
  CHECK(functions({Unit::inner_node, 0, {}, " where x where y"}) == Approx(9));
}

TEST_CASE("what each nest takes adds up to what the call takes", "[cost]") {
  const auto items = product();
  const CallShape shape{levels(3, 7), 1};
  double sum = 0;
  const auto nests = schedule::predict_nests(items, standard.workers(2), target(), machine(), shape);
  for (const schedule::NestCost& nest : nests) sum += nest.terms.total();
  REQUIRE(nests.size() == 3);  // all but the loop
  CHECK(nests[1].item == 2);
  CHECK(nests[1].rows == 10);
  CHECK(nests[1].vectors == 2);
  CHECK(sum == Approx(schedule::predict(items, standard.workers(2), target(), machine(), shape).total()));
}

namespace {

/// The groups that four workers are best divided into, for so many sequences of 100 nodes, with a product of `columns`
/// by as many at each.
int groups_of(std::int64_t columns, double roots, double barrier = 0.2e-6) {
  std::vector<ir::WorkItem> items = product();
  items[2].operations[0].flops = 2.0 * double(columns * columns);
  items[2].operations[0].functions = double(columns);
  items[2].weights[0].bytes = 4.0 * double(columns * columns);
  schedule::MachineModel m = machine();
  m.barrier = barrier;
  const CallShape shape{std::vector<CallShape::Level>(100, {roots, roots}), roots};
  return schedule::choose_groups(items, standard.workers(4), target(), m, shape);
}

}  // namespace

TEST_CASE("narrow models are divided among groups, and wide ones are not while weights are what a level waits for",
          "[cost][groups]") {
  CHECK(groups_of(64, 1) == 1);
  CHECK(groups_of(64, 40) == 4);
  CHECK(groups_of(2048, 8) == 1);     // 16 MB: a quarter of it is less to wait for
  CHECK(groups_of(512, 40, 0) == 1);  // nothing to wait for
  CHECK(groups_of(384, 40, 20e-6) == 4);
  CHECK(groups_of(512, 40, 20e-6) == 2);  // four would share weights, of which no cache keeps as many
  CHECK(groups_of(64, 2) == 2);           // a group has a root
}

TEST_CASE("a divided call takes as long as the group with the most roots, and a little more", "[cost][groups]") {
  const auto seconds = [](double roots, int groups) {
    const CallShape shape{std::vector<CallShape::Level>(20, {24 * roots, 24 * roots}), roots};
    return schedule::predict_in_groups(product(), standard.workers(2), target(), machine(), shape, groups).arithmetic;
  };
  CHECK(seconds(2, 2) > 1.15 * seconds(2, 1));  // a root each
  CHECK(seconds(4, 2) > 1.02 * seconds(4, 1));  // some choice
  CHECK(seconds(4, 2) < 1.1 * seconds(4, 1));
  CHECK(seconds(24, 2) < 1.01 * seconds(24, 1));
  CHECK(seconds(23, 2) == Approx(seconds(24, 2)));
}

TEST_CASE("groups take longer to number their nodes", "[cost][groups]") {
  const CallShape shape{levels(20, 4), 4};
  schedule::MachineModel m = machine();
  m.node = 1, m.group_node = 5;
  const auto nodes = [&](int groups) {
    return schedule::predict_in_groups(product(), standard.workers(2), target(), m, shape, groups).nodes;
  };
  CHECK(nodes(1) == Approx(shape.nodes()));
  CHECK(nodes(2) > 5 * shape.nodes() / 2);
  CHECK(nodes(2) < 6 * shape.nodes() / 2);
}

TEST_CASE("groups have weights of their own where the second-level cache keeps them, and else read more slowly",
          "[cost][groups]") {
  std::vector<ir::WorkItem> items = product();
  items[2].weights[0].bytes = 1.3e6;  // more than half of that cache for each of two workers
  CHECK(schedule::largest_slice(items, 2) == 0.65e6);
  CHECK(schedule::groups_have_weights(product(), 1, machine()));
  CHECK_FALSE(schedule::groups_have_weights(items, 2, machine()));
  CHECK(schedule::groups_have_weights(items, 3, machine()));

  const auto weights_in_two = [&](int workers, double shared_rate) {
    schedule::MachineModel m = machine();
    m.shared_rate = shared_rate;
    const CallShape shape{levels(20, 2), 2};
    return schedule::predict_in_groups(items, standard.workers(workers), target(), m, shape, 2).weights;
  };
  CHECK(weights_in_two(4, 0.5) > 1.9 * weights_in_two(4, 1));
  CHECK(weights_in_two(6, 0.5) == weights_in_two(6, 1));
}

TEST_CASE("an example call is of so many structures", "[cost][groups]") {
  for (const auto kind : {ra::StructureKind::sequence, ra::StructureKind::tree, ra::StructureKind::dag}) {
    const CallShape one = schedule::example_call(kind), seven = schedule::example_call(kind, 7);
    CHECK(seven.nodes() == 7 * one.nodes());
    CHECK(seven.levels.size() == one.levels.size());
    CHECK(seven.roots == 7);
  }
}
