#include "cortex/ir/interpret.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::ir;
using Catch::Matchers::Contains;

namespace {

const Dim H("hidden", 4), E("embedding", 3);
constexpr double inf = std::numeric_limits<double>::infinity(), nan_value = std::numeric_limits<double>::quiet_NaN();

Buffer tensor(const char* name, std::vector<Dim> dims, Role role = Role::temp, DType dtype = DType::f32) {
  return Buffer(BufferInfo{name, dtype, std::move(dims), role});
}
Buffer local(const char* name, std::vector<Dim> dims = {}, int lanes = 1) {
  BufferInfo info{name, DType::f32, std::move(dims)};
  info.scope = Scope::local;
  info.lanes = lanes;
  return Buffer(info);
}
Expr f32(double value) { return constant(value, {DType::f32, 1}); }
Expr at(const Buffer& buffer, std::vector<Expr> indices) { return Load::make(buffer, std::move(indices)); }

template <class F>
Stmt loop(const Dim& dim, const Expr& extent, F body, ForKind kind = ForKind::serial) {
  const Expr i = Var::make("i");
  return For::make(i, dim, extent, kind, body(i));
}
template <class F>
Stmt loop(const Dim& dim, F body, ForKind kind = ForKind::serial) {
  return loop(dim, imm(dim.extent()), body, kind);
}

/// What the interpreter makes of a scalar expression.
double value_of(const Expr& e, const StructureEnv& env = {}) {
  const Buffer out = tensor("out", {}, Role::temp, e.dtype());
  Storage storage;
  interpret(Program{"value", {out}, Store::make(out, {}, e), Level::loops}, env, storage);
  return storage.at("out").at(0);
}

std::vector<double> run(const Program& program, const StructureEnv& env = {}, Storage storage = {},
                        const InterpretOptions& options = {}) {
  interpret(program, env, storage, options);
  return storage.at(program.buffers.at(0));
}

std::string refusal(const Program& program, const StructureEnv& env = {}, Storage storage = {}) {
  try {
    interpret(program, env, storage);
  } catch (const Error& error) {
    CHECK(error.code == Code::internal);
    return error.message;
  }
  return "nothing was refused";
}

/// A node with two children, the second of which has one; and a tree of one node.
test::NodeTable small_forest() {
  test::NodeTable table;
  table.kids = {{1, 2}, {}, {3}, {}, {}};
  table.word = {5, 6, 7, 8, 9};
  return table;
}

Expr uf(UfKind kind, std::vector<Expr> args = {}, int accessor = 0) {
  return call(kind, "uf", std::move(args), accessor);
}

}  // namespace

TEST_CASE("numbers are computed in double", "[interpret]") {
  CHECK(value_of(f32(0.1) + f32(0.2)) == 0.1 + 0.2);
  CHECK(value_of(f32(3) / f32(7)) == 3.0 / 7.0);
  CHECK(value_of(Fma::make(f32(3), f32(5), f32(0.5))) == 15.5);
}

TEST_CASE("functions are those of the C library, exact or not", "[interpret]") {
  CHECK(value_of(Unary::make(UnaryOp::tanh, f32(0.3))) == std::tanh(0.3));
  CHECK(value_of(Unary::make(UnaryOp::sigmoid, f32(0.3))) == 1 / (1 + std::exp(-0.3)));
  CHECK(value_of(Unary::make(UnaryOp::exp, f32(0.3), true)) == std::exp(0.3));
  CHECK(value_of(Unary::make(UnaryOp::log, f32(0.3))) == std::log(0.3));
  CHECK(value_of(Unary::make(UnaryOp::sqrt, f32(0.3))) == std::sqrt(0.3));
  CHECK(value_of(Unary::make(UnaryOp::erf, f32(0.3))) == std::erf(0.3));
  CHECK(value_of(Unary::make(UnaryOp::sin, f32(0.3))) == std::sin(0.3));
  CHECK(value_of(Unary::make(UnaryOp::cos, f32(0.3))) == std::cos(0.3));
  CHECK(value_of(Unary::make(UnaryOp::log1p, f32(0.3))) == std::log1p(0.3));
  CHECK(value_of(Unary::make(UnaryOp::expm1, f32(0.3))) == std::expm1(0.3));
  CHECK(value_of(Unary::make(UnaryOp::floor, f32(-0.3))) == -1);
}

TEST_CASE("a positive number is taken apart about 1", "[interpret]") {
  for (const double x : {1.0, 0.66, 0.67, 1.33, 1.34, 100.0, 3e-30}) {
    const double exponent = value_of(Unary::make(UnaryOp::exponent, f32(x)));
    const double significand = value_of(Unary::make(UnaryOp::significand, f32(x)));
    CHECK(significand * std::exp2(exponent) == x);
    CHECK(significand >= 2.0 / 3);
    CHECK(significand < 4.0 / 3);
  }
}

TEST_CASE("rounding is to the nearest even integer", "[interpret]") {
  CHECK(value_of(Unary::make(UnaryOp::round, f32(2.5))) == 2);
  CHECK(value_of(Unary::make(UnaryOp::round, f32(-1.5))) == -2);
}

TEST_CASE("minimum, maximum and relu keep NaN", "[interpret]") {
  for (const BinaryOp op : {BinaryOp::min, BinaryOp::max}) {
    CHECK(std::isnan(value_of(Binary::make(op, f32(nan_value), f32(1)))));
    CHECK(std::isnan(value_of(Binary::make(op, f32(1), f32(nan_value)))));
  }
  CHECK(std::isnan(value_of(Unary::make(UnaryOp::relu, f32(nan_value)))));
  CHECK(value_of(Binary::make(BinaryOp::max, f32(-inf), f32(1))) == 1);
}

TEST_CASE("integers divide towards zero, by 0 as by 1", "[interpret]") {
  const auto op = [](BinaryOp o, int a, int b) { return value_of(Binary::make(o, imm(a), imm(b))); };
  CHECK(op(BinaryOp::div, 17, 5) == 3);
  CHECK(op(BinaryOp::mod, 17, 5) == 2);
  CHECK(op(BinaryOp::div, 17, 0) == 17);
  CHECK(op(BinaryOp::mod, 17, 0) == 0);
}

TEST_CASE("ldexp multiplies by a power of two", "[interpret]") {
  CHECK(value_of(Binary::make(BinaryOp::ldexp, f32(1.5), f32(-3))) == 1.5 / 8);
}

TEST_CASE("casts to integers truncate", "[interpret]") {
  CHECK(value_of(Cast::make(DType::i32, f32(2.9))) == 2);
  CHECK(value_of(Cast::make(DType::f32, imm(3))) == 3);
  const auto rounded = [](DType type, float x) { return value_of(Cast::make(DType::f32, Cast::make(type, f32(x)))); };
  CHECK(rounded(DType::bf16, 1 + 0x1p-7f + 0x1p-8f) == 1 + 0x1p-6);  // ties to even
  CHECK(rounded(DType::f16, 1 + 0x1p-11f) == 1);
  CHECK(rounded(DType::tf32, 1 + 0x1p-11f) == 1 + 0x1p-10);  // ties away from zero
  CHECK(rounded(DType::tf32, -1 - 0x1p-12f) == -1);
}

TEST_CASE("a select reads only the side that it takes", "[interpret]") {
  const Buffer t = tensor("t", {H});
  const Expr unset = at(t, {imm(0)}), yes = IntImm::make(1, DType::boolean);
  const Buffer out = tensor("out", {});
  CHECK(run(Program{"p", {out, t}, Store::make(out, {}, Select::make(yes, f32(2), unset))}).at(0) == 2);
}

TEST_CASE("what an 'and' does not need is not evaluated", "[interpret]") {
  const Buffer t = tensor("t", {H}, Role::temp, DType::i32), out = tensor("out", {});
  const Expr never = binary(BinaryOp::lt, imm(2), imm(1)), unset = Binary::make(BinaryOp::eq, at(t, {imm(0)}), imm(0));
  const Expr both = Binary::make(BinaryOp::logical_and, never, unset);
  CHECK(run(Program{"p", {out, t}, Store::make(out, {}, Select::make(both, f32(1), f32(2)))}).at(0) == 2);
}

TEST_CASE("a shared part is evaluated once, so that deep sharing takes no time", "[interpret]") {
  Expr e = f32(1);
  for (int i = 0; i < 60; ++i) e = e + e;
  CHECK(value_of(e) == std::ldexp(1.0, 60));
}

TEST_CASE("a let's variable stands for a value that is evaluated once", "[interpret]") {
  const Expr v = Var::make("v", {DType::f32, 1});
  CHECK(value_of(Let::make(v, f32(3) + f32(4), v * v)) == 49);
}

TEST_CASE("reductions over no elements are the identity", "[interpret]") {
  const auto over = [](ReduceOp op, int extent) {
    const Expr k = Var::make("k");
    return value_of(Reduce::make(op, {k, H, imm(extent)}, Cast::make(DType::f32, k) + f32(1)));
  };
  CHECK(over(ReduceOp::sum, 4) == 10);
  CHECK(over(ReduceOp::prod, 4) == 24);
  CHECK(over(ReduceOp::max, 4) == 4);
  CHECK(over(ReduceOp::min, 4) == 1);
  CHECK(over(ReduceOp::sum, 0) == 0);
  CHECK(over(ReduceOp::max, 0) == -inf);
}

TEST_CASE("all kinds of loops run all iterations", "[interpret]") {
  const Buffer out = tensor("out", {H});
  for (const ForKind kind : {ForKind::serial, ForKind::parallel, ForKind::vectorized, ForKind::unrolled}) {
    const Stmt body = loop(
        H, [&](auto& i) { return Store::make(out, {i}, Cast::make(DType::f32, i * i)); }, kind);
    CHECK(run(Program{"p", {out}, body, Level::scheduled}) == std::vector<double>{0, 1, 4, 9});
  }
}

TEST_CASE("a let statement keeps the value from before a store", "[interpret]") {
  const Buffer out = tensor("out", {H});
  const Expr old = Var::make("old", {DType::f32, 1});
  const Stmt body = Block::make({Store::make(out, {imm(0)}, f32(1)),
                                 LetStmt::make(old, at(out, {imm(0)}),
                                               Block::make({Store::make(out, {imm(0)}, f32(2)),
                                                            Store::make(out, {imm(1)}, old + at(out, {imm(0)}))}))});
  CHECK(run(Program{"p", {out}, body}).at(1) == 3);
}

TEST_CASE("a load is read again after a store, though its handle is shared", "[interpret]") {
  const Buffer out = tensor("out", {H});
  const Expr first = at(out, {imm(0)});
  const Stmt body = Block::make(
      {Store::make(out, {imm(0)}, f32(1)), loop(H, [&](auto&) { return Store::make(out, {imm(0)}, first + first); })});
  CHECK(run(Program{"p", {out}, body}).at(0) == 16);
}

TEST_CASE("conditionals take one side", "[interpret]") {
  const Buffer out = tensor("out", {H});
  const Stmt body = loop(H, [&](auto& i) {
    return If::make(
        binary(BinaryOp::lt, i, imm(2)), Store::make(out, {i}, f32(1)),
        If::make(Binary::make(BinaryOp::eq, i, imm(3)), Store::make(out, {i}, f32(3)), Store::make(out, {i}, f32(2))));
  });
  CHECK(run(Program{"p", {out}, body}) == std::vector<double>{1, 1, 2, 3});
}

TEST_CASE("vectors are computed lane by lane", "[interpret]") {
  const Buffer x = tensor("x", {Dim("n", 8)}, Role::weight), out = tensor("out", {Dim("n", 8)});
  const Expr even = Ramp::make(imm(0), 4) * constant(2, {DType::i32, 4});
  const Expr small = Binary::make(BinaryOp::lt, at(x, {even}), constant(2.5, {DType::f32, 4}));
  const Stmt body =
      Block::make({Store::make(out, {Ramp::make(imm(0), 4)}, at(x, {even}) + Broadcast::make(f32(10), 4)),
                   Store::make(out, {Ramp::make(imm(4), 4)},
                               Select::make(small, constant(1, {DType::f32, 4}), constant(0, {DType::f32, 4})))});
  Storage storage;
  storage["x"] = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(run(Program{"p", {out, x}, body, Level::scheduled}, {}, storage) ==
        std::vector<double>{10, 12, 14, 16, 1, 1, 0, 0});
}

TEST_CASE("local buffers of vectors hold a vector an element", "[interpret]") {
  const Buffer acc = local("acc", {Dim("tile", 2)}, 4), out = tensor("out", {Dim("n", 8)});
  const Stmt body =
      Alloc::make(acc, Block::make({Store::make(acc, {imm(0)}, f32(1)),
                                    Store::make(acc, {imm(1)}, Cast::make(DType::f32, Ramp::make(imm(5), 4))),
                                    Store::make(out, {Ramp::make(imm(0), 4)}, at(acc, {imm(1)})),
                                    Store::make(out, {Ramp::make(imm(4), 4)}, at(acc, {imm(0)}))}));
  CHECK(run(Program{"p", {out}, body, Level::scheduled}) == std::vector<double>{5, 6, 7, 8, 1, 1, 1, 1});
}

TEST_CASE("an index out of range is refused with buffer and index", "[interpret]") {
  const Buffer out = tensor("out", {E, H});
  CHECK_THAT(refusal(Program{"p",
                             {out},
                             loop(H,
                                  [&](auto& i) {
                                    return Store::make(out, {i, imm(1)}, f32(0));
                                  })}),
             Contains("program 'p': a store to 'out' [3,1], which has extents [3,4]"));
  CHECK_THAT(refusal(Program{"p", {out}, Store::make(out, {imm(0), imm(0)}, at(out, {imm(0), imm(-1)}))}),
             Contains("a load from 'out' [0,-1]"));
}

TEST_CASE("reading what nothing was stored to is refused with buffer and index", "[interpret]") {
  const Buffer out = tensor("out", {H}), t = tensor("t", {E, H});
  CHECK_THAT(refusal(Program{"p", {out, t}, Store::make(out, {imm(0)}, at(t, {imm(2), imm(1)}))}),
             Contains("a load from 't' [2,1], to which nothing has been stored"));
}

TEST_CASE("a local buffer holds nothing at the start of each iteration", "[interpret]") {
  const Buffer out = tensor("out", {H}), acc = local("acc");
  const Stmt body = loop(H, [&](auto& i) {
    const Stmt first = If::make(Binary::make(BinaryOp::eq, i, imm(0)), Store::make(acc, {}, f32(1)));
    return Alloc::make(acc, Block::make({first, Store::make(out, {i}, at(acc, {}))}));
  });
  CHECK_THAT(refusal(Program{"p", {out}, body}), Contains("a load from 'acc' [], to which nothing has been stored"));
}

TEST_CASE("a NaN that was stored may be read", "[interpret]") { CHECK(std::isnan(value_of(f32(nan_value) + f32(1)))); }

TEST_CASE("a variable outside of its scope is refused by name", "[interpret]") {
  const Buffer out = tensor("out", {H});
  CHECK_THAT(refusal(Program{"p", {out}, Store::make(out, {Var::make("node")}, f32(0))}),
             Contains("variable 'node' is used outside its scope"));
}

TEST_CASE("a buffer that is neither listed nor allocated is refused by name", "[interpret]") {
  CHECK_THAT(refusal(Program{"p", {}, Store::make(tensor("t", {}), {}, f32(0))}),
             Contains("buffer 't' is neither the program's nor allocated here"));
}

TEST_CASE("a weight without value is refused by name", "[interpret]") {
  const Buffer out = tensor("out", {}), W = tensor("W", {H}, Role::weight);
  CHECK_THAT(refusal(Program{"p", {out, W}, Store::make(out, {}, at(W, {imm(0)}))}),
             Contains("nothing is stored under the name 'W'"));
}

TEST_CASE("the row behind the last node is zero, and nothing is stored there", "[interpret]") {
  const auto table = small_forest();
  const test::Linear nodes(table);
  const Buffer h = tensor("h", {dims::node, H}, Role::state), out = tensor("out", {});
  CHECK(run(Program{"p", {out, h}, Store::make(out, {}, at(h, {uf(UfKind::num_nodes), imm(3)}))}, nodes.arrays).at(0) ==
        0);
  CHECK_THAT(refusal(Program{"p", {h}, Store::make(h, {uf(UfKind::num_nodes), imm(3)}, f32(1))}, nodes.arrays),
             Contains("a store to 'h' [5,3], which has extents [5,4]"));
}

TEST_CASE("temporaries of one name are told apart as in print", "[interpret]") {
  const Buffer a = tensor("t", {}), b = tensor("t", {});
  Storage storage;
  interpret(Program{"p", {a, b}, Block::make({Store::make(a, {}, f32(1)), Store::make(b, {}, f32(2))})}, {}, storage);
  CHECK(storage.at("t").at(0) == 1);
  CHECK(storage.at("t.2").at(0) == 2);
}

TEST_CASE("an open dimension has the extent of what is bound", "[interpret]") {
  const Buffer out = tensor("out", {}), emb = tensor("Emb", {Dim("vocabulary"), E}, Role::weight);
  Storage storage;
  storage["Emb"] = {1, 2, 3, 4, 5, 6};
  CHECK(run(Program{"p", {out, emb}, Store::make(out, {}, at(emb, {imm(1), imm(2)}))}, {}, storage).at(0) == 6);
  CHECK_THAT(refusal(Program{"p", {out, emb}, Store::make(out, {}, at(emb, {imm(2), imm(0)}))}, {}, storage),
             Contains("a load from 'Emb' [2,0], which has extents [2,3]"));
}

TEST_CASE("functions give counts and the linearizer's numbering", "[interpret]") {
  const auto table = small_forest();
  const test::Linear nodes(table);  // 0 the root; 1 its inner child; 2, 3, 4 leaves
  const auto value = [&](UfKind kind, std::vector<Expr> args = {}) {
    return value_of(uf(kind, std::move(args)), nodes.arrays);
  };
  CHECK(value(UfKind::num_nodes) == 5);
  CHECK(value(UfKind::num_leaves) == 3);
  CHECK(value(UfKind::num_internal) == 2);
  CHECK(value(UfKind::num_batches) == 3);
  CHECK(value(UfKind::num_internal_batches) == 2);
  CHECK(value(UfKind::leaf_node, {imm(1)}) == 3);
  CHECK(value(UfKind::all_node, {imm(1)}) == 1);
  CHECK(value(UfKind::internal_node, {imm(1)}) == 1);
  CHECK(value(UfKind::sequence_node, {imm(0)}) == 4);
  CHECK(value(UfKind::internal_sequence_node, {imm(0)}) == 1);
  CHECK(value(UfKind::batch_node, {imm(0), imm(2)}) == 4);
  CHECK(value(UfKind::batch_length, {imm(0)}) == 3);
  CHECK(value(UfKind::internal_batch_node, {imm(1), imm(0)}) == 0);
  CHECK(value(UfKind::internal_batch_length, {imm(1)}) == 1);
  CHECK(value(UfKind::is_leaf, {imm(1)}) == 0);
  CHECK(value(UfKind::is_leaf, {imm(2)}) == 1);
}

TEST_CASE("functions give children, edges and fields", "[interpret]") {
  const auto table = small_forest();
  const test::Linear nodes(table, 2);
  const auto value = [&](UfKind kind, std::vector<Expr> args) {
    return value_of(uf(kind, std::move(args)), nodes.arrays);
  };
  CHECK(value(UfKind::child, {imm(0)}) == 2);
  CHECK(value(UfKind::child, {imm(4)}) == 5);  // none: num_nodes
  CHECK(value(UfKind::kth_child, {imm(0), imm(1)}) == 1);
  CHECK(value(UfKind::kth_child, {imm(1), imm(1)}) == 5);
  CHECK(value(UfKind::num_children, {imm(0)}) == 2);
  CHECK(value(UfKind::edge, {imm(1), imm(0)}) == 2);
  CHECK(value(UfKind::edge_child, {imm(2)}) == 3);
  CHECK(value(UfKind::span_edges, {imm(0), imm(2)}) == 3);
  CHECK(value(UfKind::field, {imm(1)}) == 7);
}

TEST_CASE("a function of no node is refused with its arguments", "[interpret]") {
  const auto table = small_forest();
  const test::Linear nodes(table, 1);
  const Buffer out = tensor("out", {}, Role::temp, DType::i32);
  CHECK_THAT(refusal(Program{"p", {out}, Store::make(out, {}, call(UfKind::child, "left", {imm(5)}, 0))}, nodes.arrays),
             Contains("function 'left' has no value at (5)"));
}

TEST_CASE("index buffers are the linearizer's arrays", "[interpret]") {
  const auto table = small_forest();
  const test::Linear nodes(table, 1);
  const auto value = [&](int slot, int index) {
    BufferInfo info{"index", DType::i32, {dims::node}, Role::index};
    info.slot = slot;
    const Buffer array(info), out = tensor("out", {}, Role::temp, DType::i32);
    return run(Program{"p", {out, array}, Store::make(out, {}, at(array, {imm(index)})), Level::scheduled},
               nodes.arrays)
        .at(0);
  };
  CHECK(value(slot_of::counts, int(Count::internal)) == 2);
  CHECK(value(slot_of::batch_begin, 1) == 1);
  CHECK(value(slot_of::batch_length, 0) == 3);
  CHECK(value(slot_of::child, 0) == 2);
  CHECK(value(slot_of::edge_begin, 2) == 3);
  CHECK(value(slot_of::edge_child, 2) == 3);
  CHECK(value(slot_of::field, 1) == 7);
}

TEST_CASE("what lies past the end of an index array may be read but not used as an index", "[interpret]") {
  const auto table = small_forest();
  const test::Linear nodes(table, 1);
  BufferInfo info{"left", DType::i32, {dims::node}, Role::index};
  info.slot = slot_of::child;
  const Buffer left(info), h = tensor("h", {dims::node}, Role::state), out = tensor("out", {});
  const Expr past = at(left, {imm(6)});
  CHECK_NOTHROW(run(Program{"p", {out, left}, Store::make(out, {}, Cast::make(DType::f32, past))}, nodes.arrays));
  CHECK_THAT(refusal(Program{"p", {out, left, h}, Store::make(out, {}, at(h, {past}))}, nodes.arrays),
             Contains("a load from 'h' [-2147483648]"));
}

TEST_CASE("floating-point fields are read by rows", "[interpret]") {
  auto table = small_forest();
  for (int node = 0; node < 5; ++node) table.data.push_back({float(node), float(node) + 0.5f, 0});
  const test::Linear nodes(table);
  BufferInfo info{"x", DType::f32, {dims::node, E}, Role::field};
  info.slot = 1;
  const Buffer x(info), out = tensor("out", {});
  CHECK(run(Program{"p", {out, x}, Store::make(out, {}, at(x, {imm(1), imm(1)}))}, nodes.arrays).at(0) == 2.5);
}

TEST_CASE("workers each run their share of a parallel loop", "[interpret]") {
  const Buffer out = tensor("out", {H});
  const Stmt body = loop(
      H, [&](auto& i) { return Store::make(out, {i}, Cast::make(DType::f32, uf(UfKind::worker))); }, ForKind::parallel);
  CHECK(run(Program{"p", {out}, body, Level::scheduled}, {}, {}, {2}) == std::vector<double>{0, 0, 1, 1});
}

TEST_CASE("a barrier that is missing shows in one of the two orders of workers", "[interpret]") {
  const Buffer out = tensor("out", {H}), t = tensor("t", {H});
  const auto program = [&](bool barrier) {
    const Stmt first = loop(
        H, [&](auto& i) { return Store::make(t, {i}, Cast::make(DType::f32, i)); }, ForKind::parallel);
    const Stmt second = loop(
        H, [&](auto& i) { return Store::make(out, {i}, at(t, {imm(3) - i})); }, ForKind::parallel);
    return Program{"p", {out, t}, Block::make({first, barrier ? Barrier::make() : Stmt(), second}), Level::scheduled};
  };
  for (const bool last_first : {false, true}) {
    CHECK(run(program(true), {}, {}, {2, last_first}) == std::vector<double>{3, 2, 1, 0});
    CHECK_THROWS_AS(run(program(false), {}, {}, {2, last_first}), Error);
  }
}

TEST_CASE("a barrier that some workers do not reach is refused", "[interpret]") {
  const Buffer out = tensor("out", {});
  const Program program{"p",
                        {out},
                        Block::make({If::make(Binary::make(BinaryOp::eq, uf(UfKind::worker), imm(0)), Barrier::make()),
                                     Store::make(out, {}, f32(0))}),
                        Level::scheduled};
  CHECK_THROWS_WITH(run(program, {}, {}, {2}), Contains("some workers wait at a barrier"));
}

TEST_CASE("each worker has its own copy of a buffer of worker scope", "[interpret]") {
  BufferInfo info{"t", DType::f32, {}};
  info.scope = Scope::worker;
  const Buffer t(info), out = tensor("out", {H});
  const Stmt body = Block::make({Store::make(t, {}, Cast::make(DType::f32, uf(UfKind::worker))), Barrier::make(),
                                 loop(
                                     H, [&](auto& i) { return Store::make(out, {i}, at(t, {})); }, ForKind::parallel)});
  CHECK(run(Program{"p", {out, t}, body, Level::scheduled}, {}, {}, {2}) == std::vector<double>{0, 0, 1, 1});
}

TEST_CASE("a program of device level runs on the layouts that it asks for", "[interpret]") {
  // W [4, 3] in panels of two rows: element [i, j] at i / 2 * 8 + j * 2 + i % 2.
  BufferInfo packed{"W_packed", DType::f32, {H, E}, Role::weight};
  packed.packed_from = tensor("W", {H, E}, Role::weight);
  packed.layout = Layout{{{0, 1, 2, 1}, {1, 1, 0, 2}, {0, 2, 0, 8}}, 16, 0};
  BufferInfo result{"out", DType::f32, {H, E}};
  result.layout = Layout{{{0, 1, 0, 16}, {1, 1, 0, 1}}, 64, 0};
  const Buffer W(packed), out(result);
  const Expr i = Var::make("i"), j = Var::make("j");
  const Stmt store = Store::make(out, {i * 16 + j}, at(W, {i / 2 * 8 + j * 2 + i % 2}));
  const Program program{"p",
                        {out, W},
                        For::make(i, H, imm(4), ForKind::serial, For::make(j, E, imm(3), ForKind::serial, store)),
                        Level::device};
  Storage storage;
  for (int e = 0; e < 12; ++e) storage["W"].push_back(e);
  CHECK(run(program, {}, storage) == storage.at("W"));
}

TEST_CASE("an offset past a buffer's layout is refused at device level", "[interpret]") {
  BufferInfo info{"out", DType::f32, {H}};
  info.layout = Layout{{{0, 1, 0, 1}}, 4, 0};
  const Buffer out(info);
  CHECK_THAT(refusal(Program{"p", {out}, Store::make(out, {imm(4)}, f32(0)), Level::device}),
             Contains("a store to 'out' [4], which has extents [4]"));
}
