// Races in programs made by hand: a barrier that is missing is found wherever it is missing, whatever order the workers
// take their turns in.
#include "cortex/ir/races.hpp"

#include <catch2/catch.hpp>

#include "support/handmade.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Dim H("hidden", 6);
const auto parallel = ir::ForKind::parallel;

/// Tensors over the hidden dimension, and rows of two, of which iterations take turns.
struct Tensors {
  ir::Expr i = var("i"), j = var("j"), k = var("k"), n = var("n_idx");
  ir::Buffer x = buffer("x", {H}), y = buffer("y", {H}), z = buffer("z", {Dim("turn", 2), H});

  /// `parallel for i: to[i] = value(i)`, with a loop variable of its own.
  template <class F>
  static ir::Stmt each(const ir::Buffer& to, F value) {
    const ir::Expr own = var("i");
    return loop(own, H, store(to, {own}, value(own)), parallel);
  }
  static ir::Expr turned(const ir::Expr& own) { return ir::imm(H.extent() - 1) - own; }
  static ir::Stmt barrier(bool there) { return there ? ir::Barrier::make() : ir::Stmt(); }

  ir::Program program(std::vector<ir::Stmt> stmts) const {
    return {"handmade", {x, y, z}, block(std::move(stmts)), ir::Level::scheduled};
  }
};

std::optional<ir::Race> race(const ir::Program& program, int workers = 2, const ir::StructureEnv& env = {}) {
  ir::Storage storage;
  return ir::find_race(program, env, storage, workers);
}

/// `for n_idx in sequence of 5: stmts`.
ir::Stmt five_times(const ir::Expr& n, std::vector<ir::Stmt> stmts) {
  return ir::For::make(n, dims::sequence, ir::imm(5), ir::ForKind::serial, block(std::move(stmts)));
}

}  // namespace

TEST_CASE("a clock knows what a barrier, or a signal that was waited for, is before", "[races]") {
  ir::VectorClocks clocks(3);
  const auto first = clocks.now(0);
  CHECK_FALSE(clocks.ordered(0, first, 1));
  clocks.barrier();
  CHECK(clocks.ordered(0, first, 1));
  const auto second = clocks.now(0);
  ir::VectorClocks::Clock signal;
  clocks.release(0, signal);
  const auto third = clocks.now(0);
  clocks.acquire(1, signal);
  CHECK(clocks.ordered(0, second, 1));
  CHECK_FALSE(clocks.ordered(0, third, 1));
  CHECK_FALSE(clocks.ordered(0, second, 2));
  ir::VectorClocks::Clock onward;
  clocks.release(1, onward);
  clocks.acquire(2, onward);
  CHECK(clocks.ordered(0, second, 2));  // by way of worker 1
}

TEST_CASE("reading what another worker writes is a race unless a barrier stands between", "[races]") {
  const Tensors t;
  for (const bool there : {false, true}) {
    const auto write = t.each(t.x, [](auto&) { return number(1); });
    const auto read = t.each(t.y, [&](auto& i) { return load(t.x, {t.turned(i)}); });
    for (const int workers : {2, 3, 6, 8}) CHECK(!race(t.program({write, t.barrier(there), read}), workers) == there);
  }
}

TEST_CASE("writing what another worker reads is a race unless a barrier stands between", "[races]") {
  const Tensors t;
  for (const bool there : {false, true}) {
    const auto write = t.each(t.x, [](auto&) { return number(1); });
    const auto read = t.each(t.y, [&](auto& i) { return load(t.x, {t.turned(i)}); });
    CHECK(!race(t.program({read, t.barrier(there), write})) == there);
  }
}

TEST_CASE("two writes, even of one value, are a race unless a barrier stands between", "[races]") {
  const Tensors t;
  for (const bool there : {false, true}) {
    const auto write = t.each(t.x, [](auto&) { return number(1); });
    const auto turned = loop(t.j, H, store(t.x, {t.turned(t.j)}, number(1)), parallel);
    CHECK(!race(t.program({write, t.barrier(there), turned})) == there);
  }
}

TEST_CASE("a serial loop that every worker runs races with itself where it writes what is shared", "[races]") {
  const Tensors t;
  CHECK(race(t.program({loop(t.i, H, store(t.x, {t.i}, number(1)))})));
  ir::BufferInfo own = *t.x;
  own.scope = ir::Scope::worker;
  const ir::Buffer mine(own);
  CHECK_FALSE(race({"own", {mine}, loop(t.i, H, store(mine, {t.i}, number(1))), ir::Level::scheduled}));
}

TEST_CASE("a worker alone, and workers that keep to their slices, have no race", "[races]") {
  const Tensors t;
  const auto write = t.each(t.x, [](auto&) { return number(1); });
  const auto read = [&](bool own) { return t.each(t.y, [&](auto& i) { return load(t.x, {own ? i : t.turned(i)}); }); };
  CHECK_FALSE(race(t.program({write, read(true)}), 4));
  CHECK_FALSE(race(t.program({write, read(false)}), 1));
}

TEST_CASE("an iteration that overwrites what the last one read is a race unless a barrier ends the loop", "[races]") {
  const Tensors t;
  for (const bool there : {false, true}) {
    const auto write = t.each(t.x, [](auto&) { return number(1); });
    const auto read = t.each(t.y, [&](auto& i) { return load(t.x, {t.turned(i)}); });
    const auto body = std::vector{write, ir::Barrier::make(), read, t.barrier(there)};
    CHECK(!race(t.program({five_times(t.n, body)})) == there);
  }
}

TEST_CASE("iterations that take turns with two copies need no barrier at the loop's end, but one inside", "[races]") {
  const Tensors t;
  const auto turns = [&](const ir::Expr& turn, bool inside) {
    const auto write = loop(t.i, H, store(t.z, {turn, t.i}, number(1)), parallel);
    const auto read = loop(t.j, H, store(t.y, {t.j}, load(t.z, {turn, t.turned(t.j)})), parallel);
    return t.program({five_times(t.n, {write, t.barrier(inside), read})});
  };
  CHECK_FALSE(race(turns(t.n % 2, true)));
  CHECK(race(turns(t.n % 2, false)));
  CHECK(race(turns(ir::imm(0), true)));
}

TEST_CASE("two loops that both take turns race where one ends and the other begins on one copy", "[races]") {
  const Tensors t;
  for (const bool there : {false, true}) {
    const auto turns = [&] {
      const ir::Expr n = var("n_idx"), i = var("i"), j = var("j");
      const auto write = loop(i, H, store(t.z, {n % 2, i}, number(1)), parallel);
      const auto read = loop(j, H, store(t.y, {j}, load(t.z, {n % 2, t.turned(j)})), parallel);
      return five_times(n, {write, ir::Barrier::make(), read});
    };
    CHECK(!race(t.program({turns(), t.barrier(there), turns()})) == there);
  }
}

TEST_CASE("a child's state that another worker wrote is a race unless a barrier stands between batches", "[races]") {
  const Linear linear(chain_table(6), 1);
  const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);
  const auto program = [&](bool there) {
    const ir::Expr n = var("n_idx"), node = var("node"), i = var("i");
    const ir::Expr child = ir::call(ir::UfKind::child, "left", {node}, 0);
    const auto nodes = loop(i, H, store(h, {node, i}, load(h, {child, Tensors::turned(i)}) + number(1)), parallel);
    const auto let = ir::LetStmt::make(node, ir::call(ir::UfKind::sequence_node, "nodes", {n}),
                                       block({nodes, Tensors::barrier(there)}));
    const auto count = ir::call(ir::UfKind::num_nodes, "num_nodes");
    return ir::Program{
        "chain", {h}, ir::For::make(n, dims::sequence, count, ir::ForKind::serial, let), ir::Level::scheduled};
  };
  CHECK_FALSE(race(program(true), 2, linear.arrays));
  const auto found = race(program(false), 2, linear.arrays);
  REQUIRE(found);
  CHECK(found->buffer == "h");
  CHECK(found->element == std::vector<std::int64_t>{5, 3});
}

TEST_CASE("a race is told with the element, the workers, and where both stand", "[races]") {
  const Tensors t;
  const auto write = t.each(t.x, [](auto&) { return number(1); });
  const auto read = t.each(t.y, [&](auto& i) { return load(t.x, {t.turned(i)}); });
  const auto program = t.program({write, five_times(t.n, {read})});
  const auto found = race(program);
  REQUIRE(found);
  CHECK(ir::describe(*found, program) ==
        "race on 'x' [3]: worker 0 reads it in\n  for n_idx: parallel for i: y[i] = x[5 - i]\n"
        "and worker 1 writes it in\n  parallel for i: x[i] = 1.0\nwith nothing to order them\n");
}

TEST_CASE("lanes of a vector are elements like any other", "[races]") {
  const Tensors t;
  const auto six = [](const ir::Expr& value) { return ir::Broadcast::make(value, 6); };
  const ir::Expr first = ir::binary(ir::BinaryOp::eq, ir::call(ir::UfKind::worker, "worker"), ir::imm(0));
  const auto whole = ir::If::make(first, store(t.x, {ir::Ramp::make(ir::imm(0), 6)}, six(number(1))));
  const auto read = t.each(t.y, [&](auto& i) { return load(t.x, {i}); });
  const auto found = race(t.program({whole, read}));
  REQUIRE(found);
  CHECK(found->element == std::vector<std::int64_t>{3});
}

TEST_CASE("workers that meet different numbers of barriers are a deadlock, and said to be", "[races][refusal]") {
  const Tensors t;
  const ir::Expr some = ir::call(ir::UfKind::worker, "worker") + 1;
  const auto program = t.program({ir::For::make(t.n, dims::sequence, some, ir::ForKind::serial, ir::Barrier::make())});
  CHECK_THROWS_WITH(race(program, 3), Catch::Contains("deadlock: some workers wait at a barrier that others do not "
                                                      "reach: waiting 1 2, at the end 0"));
}

TEST_CASE("a program without race leaves its results", "[races]") {
  const Tensors t;
  const auto write = t.each(t.x, [](auto& i) { return ir::Cast::make(DType::f32, i); });
  ir::Storage storage;
  CHECK_FALSE(ir::find_race(t.program({write}), {}, storage, 4));
  CHECK(storage.at("x") == std::vector<double>{0, 1, 2, 3, 4, 5});
}
