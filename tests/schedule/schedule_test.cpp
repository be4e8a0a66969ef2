// The schedule primitives: splitting loops, unroll and jam, packed weights, register tiles, work for each worker.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"
#include "support/odd_models.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Schedule standard = Schedule::standard().tabulate_nothing().exact_activations();

struct Small {
  Dim H{"hidden", 4};
  ir::Expr i = var("i"), j = var("j"), n = var("n"), node = var("node");
  ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state), w = buffer("w", {H}, ir::Role::weight),
             W = buffer("W", {H, H}, ir::Role::weight);
  ir::Buffer a = buffer("a", {dims::node, H});
};

/// A counter over the nodes that a loop visits, as a program: visits[x] += 1, marks[x] = how many were visited
/// together.
struct Visits {
  Dim X{"x", 40};
  ir::Buffer visits = buffer("visits", {X}, ir::Role::state), marks = buffer("marks", {X}, ir::Role::state);

  ir::Stmt visit(const ir::Expr& x, int together) const {
    std::vector<ir::Stmt> stmts;
    for (int each = 0; each < together; ++each) {
      stmts.push_back(store(visits, {x + each}, load(visits, {x + each}) + number(1)));
      stmts.push_back(store(marks, {x + each}, number(together)));
    }
    return block(stmts);
  }

  /// How many are visited together, by element; 0 where none is. Each element below `extent` once, no other ever.
  std::vector<int> run(const ir::Stmt& body, int extent) const {
    const ir::Expr x = var("x");
    const ir::Stmt clear = loop(x, X, block({store(visits, {x}, number(0)), store(marks, {x}, number(0))}));
    ir::Storage storage;
    ir::StructureEnv env;
    env.num_nodes = extent;
    ir::interpret({"visits", {visits, marks}, block({clear, body})}, env, storage);
    for (int e = 0; e < 40; ++e) CHECK(storage["visits"][std::size_t(e)] == (e < extent));
    return std::vector<int>(storage["marks"].begin(), storage["marks"].begin() + extent);
  }
};

const ir::Expr num_nodes = ir::call(ir::UfKind::num_nodes, "num_nodes");

ir::Stmt split_visits(const Visits& v, const ir::Expr& extent, int factor, int multiple = 1) {
  return schedule::split(
      extent, factor, v.X, [&](const ir::Expr& first) { return v.visit(first, factor); },
      [&](const ir::Expr& x) { return v.visit(x, 1); },
      [&](const ir::Expr& first, int count) { return v.visit(first, count); }, multiple);
}

}  // namespace

// ---- split ----

TEST_CASE("a loop of known extent splits into tiles and one rest", "[schedule][equality]") {
  const Visits v;
  for (const int extent : {0, 1, 3, 4, 5, 8, 11}) {
    const std::vector<int> together = v.run(split_visits(v, ir::imm(extent), 4), extent);
    for (int e = 0; e < extent; ++e) CHECK(together[std::size_t(e)] == (e < extent / 4 * 4 ? 4 : extent % 4));
  }
}

TEST_CASE("a loop of unknown extent splits into tiles and halves of them", "[schedule][equality]") {
  const Visits v;
  for (const int extent : {0, 1, 4, 6, 11}) {
    const std::vector<int> together = v.run(split_visits(v, num_nodes, 4), extent);
    for (int e = 0; e < extent; ++e)
      CHECK(together[std::size_t(e)] == (e < extent / 4 * 4 ? 4 : e < extent / 2 * 2 ? 2 : 1));
  }
}

TEST_CASE("a loop of unknown extent splits into tiles of three and single iterations", "[schedule][equality]") {
  const Visits v;
  for (const int extent : {0, 1, 3, 11}) {
    const std::vector<int> together = v.run(split_visits(v, num_nodes, 3), extent);
    for (int e = 0; e < extent; ++e) CHECK(together[std::size_t(e)] == (e < extent / 3 * 3 ? 3 : 1));
  }
}

TEST_CASE("an extent that is known to be a multiple leaves out the rests that are empty", "[schedule][equality]") {
  const Visits v;
  for (const auto& [multiple, factor, loops] :
       {std::array{8, 4, 0}, {4, 4, 0}, {2, 4, 1}, {1, 4, 2}, {6, 4, 1}, {6, 3, 0}}) {
    INFO("a multiple of " << multiple << " by " << factor);
    const ir::Stmt split = split_visits(v, num_nodes, factor, multiple);
    CHECK(count(ir::print(split), "if ") == loops);
    for (int extent = 0; extent < 30; extent += multiple)
      for (const int together : v.run(split, extent)) CHECK(together > 0);
  }
}

TEST_CASE("tiles of one iteration leave no rest", "[schedule]") {
  const Visits v;
  CHECK(count(ir::print(split_visits(v, num_nodes, 1)), "for o") == 1);
}

TEST_CASE("what splits reads like this", "[schedule][golden]") {
  const Visits v;
  check_golden("schedule/split/unknown_extent.ilir", ir::print(split_visits(v, num_nodes, 2)));
}

// ---- split_evenly ----

TEST_CASE("even tiles are the fewest, of sizes that differ by at most one", "[schedule][equality]") {
  const Visits v;
  const ir::Stmt tiled =
      schedule::split_evenly(num_nodes, 5, 5, v.X, [&](const ir::Expr& base, int rows) { return v.visit(base, rows); });
  for (int extent = 0; extent <= 23; ++extent) {
    const std::vector<int> together = v.run(tiled, extent);
    const int tiles = (extent + 4) / 5;
    for (const int rows : together) CHECK((rows == extent / tiles || rows == extent / tiles + (extent % tiles > 0)));
  }
}

TEST_CASE("even tiles are one where that holds all rows, and else of the usual size", "[schedule][equality]") {
  const Visits v;
  for (const auto& [most, usual] : {std::pair(10, 6), std::pair(5, 3), std::pair(7, 4), std::pair(4, 4)}) {
    const ir::Stmt tiled = schedule::split_evenly(num_nodes, most, usual, v.X,
                                                  [&](const ir::Expr& base, int rows) { return v.visit(base, rows); });
    for (int extent = 0; extent <= 30; ++extent) {
      const std::vector<int> together = v.run(tiled, extent);
      const int tiles = extent <= most ? 1 : (extent + usual - 1) / usual;
      INFO(extent << " rows, at most " << most << ", usually " << usual);
      for (const int rows : together) {
        CHECK((rows == extent / tiles || rows == extent / tiles + (extent % tiles > 0)));
        CHECK((rows <= usual || extent <= most));
      }
    }
  }
}

TEST_CASE("tiles of at most one row are single rows", "[schedule][equality]") {
  const Visits v;
  CHECK(v.run(schedule::split_evenly(num_nodes, 1, 1, v.X,
                                     [&](const ir::Expr& base, int rows) { return v.visit(base, rows); }),
              3) == std::vector<int>{1, 1, 1});
}

TEST_CASE("even tiles read like this", "[schedule][golden]") {
  const Visits v;
  const auto single = [&](const ir::Expr& base, int rows) { return store(v.marks, {base}, number(rows)); };
  check_golden("schedule/split_evenly/three_sizes.ilir",
               ir::print(schedule::split_evenly(num_nodes, 3, 3, v.X, single)));
}

// ---- unroll_and_jam ----

TEST_CASE("iterations side by side share the loop inside them", "[schedule][golden]") {
  const Small p;
  const ir::Stmt row = sum_over(
      p.H,
      [&](auto& r) {
        return load(p.w, {r}) * load(p.a, {p.i, r});
      },
      [&](auto& sum) {
        return store(p.h, {p.i, ir::imm(0)}, sum);
      });
  check_golden("schedule/unroll_and_jam/dot_products.ilir",
               ir::print(schedule::unroll_and_jam(row, p.i, ir::imm(0), 2)));
}

TEST_CASE("one iteration alone is the body itself", "[schedule]") {
  const Small p;
  const ir::Stmt body = store(p.h, {ir::imm(0), ir::imm(1)}, number(1));
  CHECK(schedule::unroll_and_jam(body, p.i, ir::imm(0), 1).same_as(body));
}

TEST_CASE("loops of different extents are not shared", "[schedule]") {
  const Small p;
  const auto kids = [&](const ir::Expr& extent) {
    return ir::print(schedule::unroll_and_jam(
        ir::For::make(p.j, dims::child, extent, ir::ForKind::serial, store(p.h, {p.i, p.j}, number(1))), p.i,
        ir::imm(0), 2));
  };
  CHECK(count(kids(ir::call(ir::UfKind::num_children, "num_children", {p.i}, 0)), "for j") == 2);
  CHECK(count(kids(ir::imm(3)), "for j") == 1);
}

// ---- pack_weights ----

TEST_CASE("weights lie in panels of one vector of outputs, transposed or not, of three dimensions too",
          "[schedule][golden]") {
  check_golden("schedule/pack_weights/matrix_state.ilir",
               text_after("pack_weights", odd::matrix_state(6), Schedule{}.exact_activations()));
  check_golden("schedule/pack_weights/tree_gru.ilir", text_after("pack_weights", tree_gru(6).graph(), standard));
}

TEST_CASE("no two elements of a packed weight share a place, and all lie inside it", "[schedule]") {
  const Dim A("a", 5), B("b", 7), C("c", 3), V("vocabulary");
  const auto check = [](const std::vector<Dim>& dims, int panel, int lanes) {
    const ir::Layout layout = schedule::panel_layout(dims, panel, lanes, DType::f32);
    std::vector<std::int64_t> extents, index(dims.size());
    for (const Dim& dim : dims) extents.push_back(dim.kind() == DimKind::open ? 4 : dim.extent());
    const std::int64_t size = layout.fixed_size ? layout.fixed_size : 4 * layout.row_size;
    std::vector<int> taken(std::size_t(size), 0);
    for (bool more = true; more;) {
      std::int64_t offset = 0;
      for (const ir::Axis& axis : layout.axes) {
        const std::int64_t part = index[std::size_t(axis.source)] / axis.divisor;
        offset += (axis.modulus ? part % axis.modulus : part) * axis.stride;
      }
      REQUIRE(offset < size);
      ++taken[std::size_t(offset)];
      std::size_t d = dims.size();
      while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
      more = d > 0;
    }
    CHECK(*std::max_element(taken.begin(), taken.end()) == 1);
  };
  for (const int lanes : {2, 4, 16}) {
    for (const int panel : {0, 1}) check({A, B}, panel, lanes), check({C, A}, panel, lanes);
    for (const int panel : {0, 1, 2}) check({A, B, C}, panel, lanes);
    for (const int panel : {1, 2}) check({V, B, C}, panel, lanes);
  }
}

TEST_CASE("biases, embeddings and matrices read along a diagonal are not packed", "[schedule]") {
  const Small p;
  const ir::Buffer Emb = buffer("Emb", {Dim("vocabulary"), p.H}, ir::Role::weight);
  const ir::Expr word = ir::call(ir::UfKind::field, "word", {p.node}, 0);
  const ir::Expr value = load(p.w, {p.i}) + load(Emb, {word, p.i}) + load(p.W, {p.i, p.i});
  const ir::Stmt s = for_nodes(p.node, loop(p.i, p.H, store(p.h, {p.node, p.i}, value)));
  CHECK(ir::equal(schedule::pack_weights(s, machine(16)), s));
}

TEST_CASE("a matrix that is added is packed where lanes read it a row apart, but not among what blocks keep",
          "[schedule]") {
  const Small p;
  const Dim J("outer", 3);
  const ir::Buffer M = buffer("M", {dims::node, J, p.H}, ir::Role::state), B = buffer("B", {p.H, J}, ir::Role::weight),
                   C = buffer("C", {J, p.H}, ir::Role::weight);
  const ir::Expr value = load(B, {p.i, p.j}) + load(C, {p.j, p.i});
  const ir::Stmt s = for_nodes(p.node, loop(p.j, J, loop(p.i, p.H, store(M, {p.node, p.j, p.i}, value))));
  Target gpu = machine(16);
  gpu.backend = Backend::cuda;
  CHECK(ir::print(schedule::pack_weights(s, machine(16))).find("= B_packed[i,j] + C[j,i]") != std::string::npos);
  CHECK(schedule::pack_weights(s, gpu).same_as(s));
}

TEST_CASE("without weights worth a copy a program stays as it is", "[schedule]") {
  const Small p;
  const ir::Stmt s = for_nodes(p.node, loop(p.i, p.H, store(p.h, {p.node, p.i}, load(p.w, {p.i}))));
  CHECK(schedule::pack_weights(s, machine(16)).same_as(s));
}

// ---- alternate_sweeps ----

TEST_CASE("every other sweep over the panels of weights goes backwards", "[schedule][golden]") {
  const Schedule one_panel = standard.tile_rows(2).tile_vectors(1).alternate_sweeps();
  check_golden("schedule/alternate_sweeps/tree_gru.ilir",
               text_after("alternate_sweeps", tree_gru(12).graph(), one_panel));
}

TEST_CASE("sweeps that go there and back give the same, whoever makes them", "[schedule][equality]") {
  std::mt19937 random(4);
  const NodeTable table = random_table(20, 2, 9, random, true);
  const Linear linear(table, 2);
  const ra::Graph graph = tree_gru(40).graph();
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
  const Schedule swept = standard.workers(2).tile_rows(3).tile_vectors(2).alternate_sweeps();
  CHECK(first_difference(reference, swept, machine(16)) == "");
  CHECK(count(text_after("alternate_sweeps", graph, swept), "(b_idx + t") == 6);
}

TEST_CASE("sweeps alternate by themselves where a worker's slice of a level's weights is more than the cache keeps",
          "[schedule]") {
  // Three matrices of 40 x 40 in f32: 19200 bytes, three fifths of 32000.
  const ir::Stmt tiled = program_after("tile_nests", tree_gru(40).graph(), standard).body;
  const auto alternates = [&](const Schedule& schedule, double cache) {
    return schedule::alternates(schedule::alternate_sweeps(tiled, schedule, cache));
  };
  CHECK(alternates(standard, 31999));
  CHECK(!alternates(standard, 32001));
  for (const Schedule& pairs : {standard.workers(2).groups(1), standard.workers(4).groups(2)}) {
    CHECK(alternates(pairs, 15999));
    CHECK(!alternates(pairs, 16001));
  }
  CHECK(alternates(standard.workers(2), 31999));  // groups may be of one worker
  CHECK(!alternates(standard.sweep_forward(), 1));
  CHECK(alternates(standard.alternate_sweeps(), 1e9));
}

TEST_CASE("sums, elements without sums and outputs that depend on each other keep their order", "[schedule]") {
  const Small p;
  const Dim batches("d_all_batches", 0, DimKind::all_batches);
  ir::BufferInfo info = *p.W;
  info.packed_from = p.W;
  const ir::Buffer packed{info};
  const auto unchanged = [&](const ir::Stmt& each) {
    const ir::Stmt s = ir::For::make(p.n, batches, num_nodes, ir::ForKind::serial, loop(p.i, p.H, each));
    return schedule::alternate_sweeps(s, standard.alternate_sweeps(), 0).same_as(s);
  };
  const ir::Expr W = load(packed, {p.i, p.j});
  const auto sum = [&](const ir::Expr& more) {
    return loop(p.j, p.H, store(p.a, {p.n, p.i}, load(p.a, {p.n, p.i}) + more));
  };
  CHECK(!unchanged(sum(W)));
  CHECK(unchanged(store(p.a, {p.n, p.i}, load(packed, {p.i, p.i}))));
  CHECK(unchanged(sum(load(packed, {p.j, p.j}))));
  CHECK(unchanged(sum(load(p.W, {p.i, p.j}))));
  CHECK(unchanged(loop(p.j, p.H, store(p.a, {p.n, p.j}, load(p.a, {p.n, p.j}) + W))));
}

// ---- tile_nests ----

TEST_CASE("contractions run in register tiles of rows and vectors", "[schedule][golden]") {
  check_golden("schedule/tile_nests/dependency_rnn.ilir",
               text_after("tile_nests", dependency_rnn(6).graph(), standard, machine(16, 8)));
  // Columns side by side, and no rows, where each child has a matrix of its own.
  check_golden("schedule/tile_nests/own_matrices.ilir",
               text_after("tile_nests", odd::own_matrices_of_four(8), standard));
}

TEST_CASE("workers tile the panels of their slices, and the last one what is left over", "[schedule][golden]") {
  check_golden("schedule/tile_nests/two_workers.ilir",
               text_after("tile_nests", tree_rnn(10).graph(), standard.workers(2)));
}

TEST_CASE("what fills no vector has no code for whole ones, for any number of workers", "[schedule]") {
  const auto stores = [](const Schedule& schedule) {
    int count = 0;
    const Target here = machine(64, 32);  // vectors of 16 elements
    ir::visit_with(program_after("tile_nests", dependency_rnn(9).graph(), schedule, here).body,
                   [&](const ir::Store&) { ++count; });
    return count;
  };
  CHECK(stores(standard) > 0);
  CHECK(stores(standard.workers(3)) == stores(standard));
}

TEST_CASE("a nest over no dimension stays as it is", "[schedule]") {
  const Small p;
  const ir::Buffer one = buffer("one", {dims::node}, ir::Role::state);
  const ir::Stmt s = for_nodes(p.node, store(one, {p.node}, number(1)));
  CHECK(schedule::tile_nests(s, machine(16)).same_as(s));
}

TEST_CASE("levels of many nodes are tiled by six where the second cache holds a level's only weights", "[schedule]") {
  const Target here = machine(64, 32);
  const auto by_six = [&](const ra::Graph& graph, double second_cache, const Tiling& tiling = {}) {
    const ir::Stmt packed = program_after("pack_weights", graph, standard, here).body;
    const std::string text = ir::print(schedule::tile_nests(packed, here, tiling, {.second = second_cache}));
    return text.find("tiles = min((rows_total + 5) / 6,max(1,rows_total - 9))") != std::string::npos;
  };
  CHECK(by_six(tree_fc(64).graph(), 1 << 20));
  CHECK_FALSE(by_six(tree_fc(64).graph(), 32 << 10));  // two matrices of 16 KB
  CHECK_FALSE(by_six(tree_fc(64).graph(), 1 << 20, {.rows = 10}));
  CHECK_FALSE(by_six(tree_fc(32).graph(), 1 << 20));   // two vectors are all that there is
  CHECK_FALSE(by_six(tree_gru(64).graph(), 1 << 20));  // two products a level
}

TEST_CASE("matrices at nodes are swept over once in panels of four vectors where the first cache holds their weights",
          "[schedule]") {
  const Target here = machine(64, 32);
  const ir::Stmt packed = program_after("pack_weights", mv_phrases(64).graph(), standard, here).body;
  const auto widest_panel = [&](double first_cache, const Tiling& tiling = {}) {
    const std::string text = ir::print(schedule::tile_nests(packed, here, tiling, {.first = first_cache}));
    return text.find("W_packed[48 + lane") != std::string::npos ? 4 : 2;
  };
  CHECK(widest_panel(48 << 10) == 4);  // of 128 steps: 32 KB
  CHECK(widest_panel(40 << 10) == 2);
  CHECK(widest_panel(48 << 10, Tiling{8, 0, 0}) == 2);  // what the schedule asks for
}

TEST_CASE("the rows of a matrix are divided into equal tiles where these have three quarters of the rows, or 16 sums",
          "[schedule]") {
  const auto tile_of = [](int hidden, const Target& target, const Tiling& tiling = {}) {
    const ir::Stmt packed = program_after("pack_weights", mv_phrases(hidden).graph(), standard, target).body;
    const std::string text = ir::print(schedule::tile_nests(packed, target, tiling, {.first = 48 << 10}));
    for (int rows = 10; rows > 1; --rows)  // the last row of M[left(node)] that a tile has
      if (text.find(" * " + std::to_string(rows) + " + " + std::to_string(rows - 1) + ",") != std::string::npos)
        return rows;
    return 1;
  };
  const Target wide = machine(64, 32), narrow = machine(32, 16);
  CHECK(tile_of(64, wide) == 4);  // of four vectors, and not 6, which leave 4 of 64 rows over
  CHECK(tile_of(48, wide) == 6);  // which divides it
  CHECK(tile_of(50, wide) == 5);
  CHECK(tile_of(62, wide) == 6);  // 2 rows have 8 sums
  CHECK(tile_of(64, wide, Tiling{10, 0, 0}) == 8);
  CHECK(tile_of(64, narrow) == 6);
}

TEST_CASE("matrices of the next node are asked for in the order of memory where the first cache does not hold one",
          "[schedule]") {
  const Target here = machine(64, 32);
  const ir::Stmt packed = program_after("pack_weights", mv_phrases(64).graph(), standard, here).body;  // 16 KB each
  const auto asks_for = [&](double first_cache, const char* element) {
    const std::string text = ir::print(schedule::tile_nests(packed, here, {}, {.first = first_cache}));
    return text.find(std::string("prefetch M[left(next_node),") + element) != std::string::npos;
  };
  CHECK(asks_for(16 << 10, "o.4 * 8 + 1,"));  // the second of a tile's rows
  CHECK_FALSE(asks_for(16 << 10, "0,"));
  CHECK(asks_for((16 << 10) - 1, "0,"));
  CHECK_FALSE(asks_for((16 << 10) - 1, "o.4 * 8 + 1,"));
}

TEST_CASE("tiles leave registers for what they multiply", "[schedule]") {
  for (const int registers : {16, 32})
    for (int gates = 1; gates <= registers / 5; ++gates) {
      const schedule::TileShape shape = schedule::tile_shape(machine(16, registers), gates);
      REQUIRE(shape.most_rows >= 1);
      for (int rows = 1; rows <= shape.most_rows; ++rows) CHECK(rows * gates * shape.vectors(rows) < registers);
    }
}

TEST_CASE("tiles have the rows, vectors and gates that a schedule asks for", "[schedule]") {
  const Target here = machine(64, 32);
  const schedule::TileShape asked = schedule::tile_shape(here, 1, Tiling{4, 2, 0});
  CHECK(asked.most_rows == 4);
  for (int rows = 1; rows <= 4; ++rows) CHECK(asked.vectors(rows) == 2);
  CHECK(schedule::tile_shape(here, 1).vectors(1) == 8);
  CHECK(schedule::tile_shape(here, 1, Tiling{24, 0, 0}).vectors(24) == 1);  // more than registers hold
  CHECK(schedule::most_gates(here, Tiling{0, 0, 3}) == 3);
  for (const Target& target : {machine(16, 16), machine(16, 32), machine(32, 16), machine(64, 32)}) {
    const int gates = schedule::most_gates(target);
    CHECK(schedule::tile_shape(target, gates).most_rows >= 4);
    CHECK(schedule::tile_shape(target, gates + 1).most_rows < 4);
  }

  const auto program = tree_lstm(32);
  const auto tiled = [&](const Schedule& schedule) { return text_after("tile_nests", program.graph(), schedule); };
  CHECK(count(tiled(standard.tile_rows(6)), "rows == 5") > 0);  // code for each number of rows up to six
  CHECK(count(tiled(standard.tile_rows(6)), "rows == 6") == 0);
  CHECK(count(tiled(standard.tile_rows(5)), "rows == 5") == 0);
  // Gates that do not fit side by side are nests of their own.
  CHECK(count(tiled(standard.tile_gates(1)), "d_batch") > count(tiled(standard), "d_batch"));
}

TEST_CASE("a fold over children has several vectors at once, as registers hold, but of functions", "[schedule]") {
  const auto vectors = [](auto of_child, const Target& target, int extent) {  // of two folds in one nest
    Dim H{"hidden", extent};
    Model<Word> m("folds", tree);
    auto U = m.input<float>("U", H, H), Q = m.input<float>("Q", H, H);
    auto h = m.placeholder<float>("h", H);
    const auto fold = [&](auto value) {
      return [=](auto n, auto i) { return sum(kids(n), [&](auto k) { return value(h(k, i)); }); };
    };
    auto s = m.compute("s", H, fold(of_child)), q = m.compute("q", H, fold([](auto x) { return x * x; }));
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); }) +
                  sum(H, [&](auto j) { return Q(i, j) * q(n, j); }));
    });
    const auto program = m.recursion_op(h, body);
    std::size_t most = 0;
    ir::visit_with(program_after("tile_nests", program.graph(), standard, target).body, [&](const ir::For& loop) {
      if (loop.dim.kind() == DimKind::child) most = std::max(most, schedule::stmts_of(loop.body).size());
    });
    return most;
  };
  const auto itself = [](auto x) { return x + 1; };
  CHECK(vectors(itself, machine(64, 32), 128) == 8);
  CHECK(vectors(itself, machine(64, 32), 48) == 3);   // all there are
  CHECK(vectors(itself, machine(32, 16), 128) == 4);  // sixteen registers do not hold more of two sums
  CHECK(vectors([](auto x) { return tanh(x); }, machine(64, 32), 128) == 1);
}

TEST_CASE("workers whose slices differ by type do not read each other's without a barrier", "[schedule][equality]") {
  const Dim H("hidden", 8);
  const ir::Buffer x = buffer("x", {dims::node, H}), y = buffer("y", {dims::node, H}, ir::Role::state, DType::f64);
  const ir::Expr n = var("node"), m = var("node"), i = var("i"), j = var("i");
  const ir::Stmt write = for_nodes(n, loop(i, H, store(x, {n, i}, number(1))));
  const ir::Stmt read = for_nodes(m, loop(j, H, store(y, {m, j}, ir::Cast::make(DType::f64, load(x, {m, j})))));
  const ir::Stmt tiled =
      schedule::tile_nests(pass::insert_barriers(schedule::share_work(block({write, read}))), machine(16));
  ir::StructureEnv env;
  env.num_nodes = 1;
  for (const bool last_first : {false, true}) {
    ir::Storage storage;
    CHECK_NOTHROW(ir::interpret({"slices", {y, x}, tiled, ir::Level::scheduled}, env, storage, {3, last_first}));
  }
}

// ---- share_work ----

TEST_CASE("workers own slices of what is computed, and each computes folds that all read whole", "[schedule][golden]") {
  check_golden("schedule/share_work/tree_gru.ilir", text_after("share_work", tree_gru(8).graph(), standard.workers(2)));
}

TEST_CASE("a nest over no dimension is the first worker's", "[schedule][golden]") {
  check_golden("schedule/share_work/scalar_state.ilir",
               text_after("share_work", odd::scalar_state(), standard.workers(2)));
}

TEST_CASE("workers own rows of matrices, which tiles divide between them", "[schedule][golden]") {
  check_golden("schedule/share_work/matrix_rows.ilir",
               text_after("share_work", odd::matrix_rows(8), standard.workers(2)));
  check_golden("schedule/tile_nests/matrix_rows.ilir",
               text_after("tile_nests", odd::matrix_rows(8), standard.workers(2)));
}

TEST_CASE("a sum over the rows of a child's matrix is added up from slices of the rows that workers own",
          "[schedule][golden]") {
  check_golden("schedule/slice_contractions/matrix_rows.ilir",
               text_after("slice_contractions", odd::matrix_rows(32), standard));
  const std::string shared = text_after("insert_barriers", odd::matrix_rows(32), standard.workers(2));
  CHECK(count(shared, "\n  barrier") == 1);  // in the loop over levels
}

TEST_CASE("sums that are no sums over two slices of own rows stay whole", "[schedule]") {
  const auto same = [](const ra::Graph& graph, const Schedule& schedule) {
    const ir::Program p = lower::lower(graph, schedule);
    return schedule::slice_contractions(p.body).same_as(p.body);
  };
  CHECK(!same(odd::matrix_rows(48), standard));
  CHECK(same(odd::matrix_rows(16), standard));
  CHECK(same(odd::matrix_rows(40), standard));
  CHECK(same(tree_gru(32).graph(), standard));
  CHECK(same(odd::matrix_state(32), standard));  // over columns
}

TEST_CASE("what a matrix and a vector need of the same child is read for both at once", "[schedule][golden]") {
  check_golden("schedule/merge_rows/matrix_rows.ilir",
               text_after("merge_rows", odd::matrix_rows(4), standard.workers(2)));
}

TEST_CASE("rows are merged only if they read the same and neither needs the other", "[schedule]") {
  const Small p;
  const ir::Expr other = var("other"), i = var("i");
  const ir::Buffer b{ir::BufferInfo(*p.a)};
  const auto rows = [&](const ir::Expr& node, const ir::Expr& at, const ir::Buffer& to, const ir::Buffer& from) {
    return for_nodes(node, loop(at, p.H, store(to, {node, at}, load(from, {node, at}))));
  };
  const auto merges = [&](const ir::Stmt& a, const ir::Stmt& b) {
    const ir::Stmt both = block({a, b});
    return !schedule::merge_rows(both).same_as(both);
  };
  CHECK(merges(rows(p.node, p.i, p.a, p.h), rows(other, i, b, p.h)));
  CHECK(!merges(rows(p.node, p.i, p.a, p.h), rows(other, i, b, p.a)));
  CHECK(!merges(rows(p.node, p.i, p.h, p.a), rows(other, i, p.a, b)));
  ir::BufferInfo in_a = *p.a;  // in a's memory, where its rows may lie elsewhere
  in_a.stored_in = p.a;
  const auto sums = [&](const ir::Buffer& x) {
    const ir::Expr sum = load(x, {p.node, p.i}) + load(p.h, {p.node, p.i});
    return for_nodes(p.node, loop(p.i, p.H, store(b, {p.node, p.i}, sum)));
  };
  CHECK(!merges(sums(ir::Buffer(in_a)), rows(other, i, p.a, p.h)));
  CHECK(merges(sums(ir::Buffer(ir::BufferInfo(*p.a))), rows(other, i, p.a, p.h)));
  CHECK(merges(rows(p.node, p.i, b, p.h), rows(other, i, ir::Buffer(in_a), p.h)));
}

TEST_CASE("work that is shared already stays as it is", "[schedule]") {
  const Small p;
  const ir::Stmt s =
      for_nodes(p.node, loop(p.i, p.H, store(p.h, {p.node, p.i}, load(p.w, {p.i})), ir::ForKind::parallel));
  CHECK(schedule::share_work(s).same_as(s));
}

TEST_CASE("results are never copied to each worker", "[schedule]") {
  const Small p;
  const ir::Expr node = var("node"), i = var("i");
  const ir::Stmt write = for_nodes(p.node, loop(p.i, p.H, store(p.h, {p.node, p.i}, load(p.w, {p.i}))));
  const ir::Stmt read = for_nodes(node, loop(i, p.H, store(p.a, {node, i}, load(p.h, {node, ir::imm(3) - i}))));
  CHECK(count(ir::print(schedule::share_work(block({write, read}))), "parallel") == 2);
}

TEST_CASE("what one nest computes in slices no other computes whole on each worker", "[schedule]") {
  const ir::Program p = program_after("share_work", odd::half_contracted(8), standard.workers(2));
  std::map<const void*, int> sliced, whole;
  schedule::for_each_nest(p.body, [&](const schedule::Nest& nest) {
    for (const schedule::Access& access : schedule::accesses_of(nest.inner))
      if (access.write) ++(nest.loops.back().kind == ir::ForKind::parallel ? sliced : whole)[access.buffer.id()];
  });
  for (const auto& [buffer, times] : whole) CHECK(sliced.count(buffer) == 0);
}

TEST_CASE("what is no nest is refused", "[schedule][refusal]") {
  const Small p;
  const ir::Stmt alone = ir::If::make(ir::IntImm::make(1, DType::boolean),
                                      block({store(p.h, {ir::imm(0), ir::imm(0)}, number(0)), ir::Barrier::make()}));
  CHECK_THROWS_WITH(schedule::share_work(alone), Catch::Contains("a statement outside of any nest"));
  CHECK_THROWS_WITH(schedule::tile_nests(alone, machine(16)), Catch::Contains("a statement outside of any nest"));
  CHECK_THROWS_WITH(schedule::pack_weights(alone, machine(16)), Catch::Contains("a statement outside of any nest"));
}
