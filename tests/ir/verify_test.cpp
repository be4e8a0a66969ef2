#include "cortex/ir/verify.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "cortex/ir/build.hpp"
#include "cortex/ir/tile_product.hpp"

using namespace cortex;
using namespace cortex::ir;
using Catch::Matchers::Contains;

namespace {

const Dim H("hidden", 8), E("embedding", 9), V("vocabulary");

struct Sample {
  Buffer x{BufferInfo{"x", DType::f32, {dims::node, H}, Role::weight}}, y{BufferInfo{"y", DType::f32, {dims::node, H}}};
  Expr n = Var::make("n"), i = Var::make("i");
  Expr value = Load::make(x, {n, i});

  /// for n over nodes: for i over `dim`: y[n,i] = value
  Stmt nest(ForKind kind = ForKind::serial, const Dim& dim = H) const {
    return For::make(n, dims::batch, call(UfKind::num_nodes, "num_nodes"), ForKind::serial, inner(kind, dim));
  }
  Stmt inner(ForKind kind, const Dim& dim) const {
    return For::make(i, dim, imm(8), kind, Store::make(y, {n, i}, value));
  }
  Program program(const Stmt& body, Level level = Level::loops) const { return {"sample", {y, x}, body, level}; }
};

std::string refusal(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.code == Code::internal);
    return error.message;
  }
  return "nothing was refused";
}

template <class T>
std::string refusal(const T& node, Level level) {
  return refusal([&] { verify(node, level); });
}

Buffer local(const char* name, int lanes = 1) {
  BufferInfo info{name, DType::f32, {}};
  info.scope = Scope::local;
  info.lanes = lanes;
  return Buffer(info);
}

Expr one() { return constant(1, {DType::f32, 1}); }
Expr condition() { return binary(BinaryOp::lt, call(UfKind::worker, "worker"), imm(1)); }

}  // namespace

TEST_CASE("a nest of serial loops is legal at levels loops and scheduled", "[verify]") {
  const Sample s;
  CHECK_NOTHROW(verify(s.program(s.nest()), Level::loops));
  CHECK_NOTHROW(verify(s.program(s.nest(ForKind::parallel)), Level::scheduled));
}

TEST_CASE("an expression of the operator graph has no vectors", "[verify]") {
  CHECK_NOTHROW(verify(Sample().value, Level::ra));
  CHECK_THAT(refusal(Broadcast::make(imm(3), 4), Level::ra),
             Contains("verify(ra): there are no vectors before loops are vectorized: x4(3)"));
}

TEST_CASE("the operator graph has no statements", "[verify]") {
  CHECK_THAT(refusal(Sample().nest(), Level::ra), Contains("no statements in the operator graph"));
}

TEST_CASE("reductions are legal in the operator graph alone", "[verify]") {
  const Expr k = Var::make("k");
  const Expr sum = Reduce::make(ReduceOp::sum, {k, H, imm(8)}, Cast::make(DType::f32, k));
  CHECK_NOTHROW(verify(sum, Level::ra));
  CHECK_THAT(refusal(sum, Level::loops), Contains("reductions have become loops: sum(k = 0:8, f32(k))"));
}

TEST_CASE("a vector at level loops is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(For::make(s.n, dims::batch, imm(2), ForKind::serial,
                               Store::make(s.y, {s.n, Ramp::make(imm(0), 8)}, Broadcast::make(one(), 8))),
                     Level::loops),
             Contains("no vectors before loops are vectorized"));
}

TEST_CASE("a parallel loop at level loops is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(s.nest(ForKind::parallel), Level::loops),
             Contains("verify(loops): loops are serial: parallel for i = 0:8:  # hidden"));
}

TEST_CASE("a loop that is not serial is refused at device level", "[verify]") {
  CHECK_THAT(refusal(For::make(Var::make("i"), H, imm(8), ForKind::unrolled, Block::make({})), Level::device),
             Contains("loops are serial"));
}

TEST_CASE("a vectorized or unrolled loop of variable extent is refused", "[verify]") {
  const Sample s;
  for (const ForKind kind : {ForKind::vectorized, ForKind::unrolled})
    CHECK_THAT(refusal(For::make(s.n, dims::batch, call(UfKind::num_nodes, "num_nodes"), kind, Block::make({})),
                       Level::scheduled),
               Contains("has a constant extent"));
}

TEST_CASE("parts of a sum are as many in every call", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(For::make(s.n, dims::batch, call(UfKind::num_nodes, "num_nodes"), ForKind::parts, Block::make({})),
                     Level::scheduled),
             Contains("a sum has a constant number of parts"));
}

TEST_CASE("verify refuses a variable outside of its scope by name", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(s.inner(ForKind::serial, H), Level::loops), Contains("a variable is used inside its scope: n"));
}

TEST_CASE("an expression alone may have free variables", "[verify]") {
  CHECK_NOTHROW(verify(Sample().value, Level::loops));
}

TEST_CASE("a variable that is bound again inside its own scope is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(For::make(s.n, dims::batch, imm(2), ForKind::serial, s.nest()), Level::loops),
             Contains("not bound inside its own scope"));
}

TEST_CASE("one variable may be bound by loops side by side", "[verify]") {
  const Sample s;
  CHECK_NOTHROW(verify(s.program(Block::make({s.nest(), s.nest()})), Level::loops));
}

TEST_CASE("a local buffer outside of its allocation is refused", "[verify]") {
  const Buffer acc = local("acc");
  const Stmt use = Store::make(acc, {}, one());
  CHECK_NOTHROW(verify(Alloc::make(acc, use), Level::loops));
  CHECK_THAT(refusal(use, Level::loops), Contains("a local buffer is used inside its allocation: acc = 1.0"));
}

TEST_CASE("an access with fewer indices than dimensions is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(Store::make(s.y, {imm(0)}, one()), Level::loops), Contains("one index a dimension: y[0] = 1.0"));
}

TEST_CASE("a dense dimension indexed by the loop of another is refused by both names", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(s.nest(ForKind::serial, E), Level::loops),
             Contains("dimension 'hidden' of 'x' is not indexed by a loop over 'embedding'") ||
                 Contains("dimension 'hidden' of 'y' is not indexed by a loop over 'embedding'"));
}

TEST_CASE("the first elements of a longer dimension are indexed by the loop of a shorter one", "[verify]") {
  const Dim short_one("gate", 5);
  const Buffer out{BufferInfo{"out", DType::f32, {H}}};
  const Expr j = Var::make("j");
  CHECK_NOTHROW(verify(For::make(j, short_one, imm(5), ForKind::serial, Store::make(out, {j}, one())), Level::loops));
}

TEST_CASE("an open dimension indexed by a dense loop is refused", "[verify]") {
  const Buffer table{BufferInfo{"Emb", DType::f32, {V}, Role::weight}}, out{BufferInfo{"out", DType::f32, {H}}};
  const Expr i = Var::make("i");
  CHECK_THAT(
      refusal(For::make(i, H, imm(8), ForKind::serial, Store::make(out, {i}, Load::make(table, {i}))), Level::loops),
      Contains("dimension 'vocabulary' of 'Emb' is not indexed by a loop over 'hidden'"));
}

TEST_CASE("an index computed from another dimension's loop is legal", "[verify]") {
  const Buffer out{BufferInfo{"out", DType::f32, {H}}};
  const Expr j = Var::make("j");
  CHECK_NOTHROW(verify(For::make(j, E, imm(7), ForKind::serial, Store::make(out, {j + 1}, one())), Level::loops));
}

TEST_CASE("a buffer that the program does not list is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(Program{"p", {s.y}, s.nest()}, Level::loops), Contains("a buffer is among the program's: x[n,i]"));
}

TEST_CASE("a buffer that the program lists twice is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(Program{"p", {s.y, s.x, s.y}, s.nest()}, Level::loops), Contains("a buffer is listed once: y"));
}

TEST_CASE("a local buffer in the program's list is refused", "[verify]") {
  CHECK_THAT(refusal(Program{"p", {local("acc")}, Block::make({})}, Level::loops),
             Contains("a local buffer is not among the program's: acc"));
}

TEST_CASE("a store to a weight is refused", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(Store::make(s.x, {imm(0), imm(0)}, one()), Level::loops),
             Contains("a call does not store to its inputs: x[0,0] = 1.0"));
}

TEST_CASE("a barrier stands in no parallel loop, no conditional, and not at level loops", "[verify]") {
  const Expr i = Var::make("i");
  const Stmt inside = For::make(i, H, imm(8), ForKind::parallel, Barrier::make());
  CHECK_NOTHROW(verify(For::make(i, H, imm(8), ForKind::serial, Barrier::make()), Level::scheduled));
  CHECK_THAT(refusal(inside, Level::scheduled), Contains("no barrier stands inside a parallel or vectorized loop"));
  CHECK_THAT(refusal(If::make(condition(), Barrier::make()), Level::scheduled),
             Contains("no barrier stands inside a conditional"));
  CHECK_THAT(refusal(Barrier::make(), Level::loops), Contains("no barriers before work is shared"));
}

TEST_CASE("a barrier of threads stands where all threads of a block come", "[verify]") {
  const Expr i = Var::make("i"), t = Var::make("t"), thread = call(UfKind::thread, "thread");
  const Stmt meet = Barrier::make(Meeting::threads);
  const auto loop = [&](const Expr& extent, ForKind kind) { return For::make(i, H, extent, kind, meet); };
  CHECK_NOTHROW(verify(If::make(condition(), loop(imm(8), ForKind::parallel)), Level::scheduled));
  const auto first = [&](const Expr& number) { return If::make(binary(BinaryOp::eq, number, imm(0)), meet); };
  for (const Stmt& apart : {loop(imm(8), ForKind::threads), loop(thread, ForKind::serial), first(thread),
                            LetStmt::make(t, thread + 1, first(t)), LetStmt::make(t, thread, loop(t, ForKind::serial))})
    CHECK_THAT(refusal(apart, Level::scheduled), Contains("a barrier stands where all threads of a block come"));
}

TEST_CASE("an access of two indices, or without layout, is refused at device level", "[verify]") {
  const Sample s;
  CHECK_THAT(refusal(Store::make(s.y, {imm(0)}, one()), Level::device), Contains("a buffer has a layout: y[0] = 1.0"));
  BufferInfo info = *s.y;
  info.layout = Layout{{{0, 1, 0, 8}, {1, 1, 0, 1}}, 0, 8};
  const Buffer flat(info);
  CHECK_NOTHROW(verify(Store::make(flat, {imm(0)}, one()), Level::device));
  CHECK_THAT(refusal(Store::make(flat, {imm(0), imm(0)}, one()), Level::device),
             Contains("a buffer has one index, an offset"));
}

TEST_CASE("of the functions only the worker's number reaches device level", "[verify]") {
  CHECK_NOTHROW(verify(call(UfKind::worker, "worker"), Level::device));
  CHECK_THAT(refusal(call(UfKind::num_nodes, "num_nodes"), Level::device),
             Contains("uninterpreted functions have got their meaning: num_nodes"));
}

TEST_CASE("a vector stored to a scalar place is refused", "[verify]") {
  const Buffer acc = local("acc"), wide = local("wide", 4);
  const Expr four = Broadcast::make(one(), 4);
  CHECK_NOTHROW(verify(Alloc::make(wide, Store::make(wide, {}, four)), Level::scheduled));
  CHECK_NOTHROW(verify(Alloc::make(wide, Store::make(wide, {}, one())), Level::scheduled));
  CHECK_THAT(refusal(Alloc::make(acc, Store::make(acc, {}, four)), Level::scheduled),
             Contains("as many lanes as its place: acc = x4(1.0)"));
}

TEST_CASE("a product of tensor cores has four sums, weights that are loaded and operands that are rounded",
          "[verify]") {
  BufferInfo sums{"sums", DType::f32, {Dim("element", 4)}}, weights{"w", DType::bf16, {H, E}, Role::weight};
  sums.scope = Scope::local;
  const Buffer sum(sums), w(weights);
  const Expr tile = Load::make(w, {imm(0), imm(0)}), x = Cast::make(DType::bf16, one());
  const Stmt product = Mma::make(sum, tile, {x, x, x, x});
  CHECK_NOTHROW(verify(Alloc::make(sum, product), Level::scheduled));
  CHECK_THAT(refusal(product, Level::scheduled),
             Contains("a local buffer is used inside its allocation: sums += mma("));
  CHECK_THAT(refusal(Alloc::make(sum, product), Level::loops), Contains("there are no warps before work is shared"));
  CHECK_THAT(refusal([&] { Mma::make(local("a"), tile, {x, x, x, x}); }), Contains("no four elements of f32"));
  CHECK_THAT(refusal([&] { Mma::make(sum, x, {x, x, x, x}); }), Contains("weights that are not loaded"));
  CHECK_THAT(refusal([&] { Mma::make(sum, tile, {x, x}); }), Contains("a tile of another shape than its type's"));
  CHECK_THAT(refusal([&] { Mma::make(sum, tile, {x, x, x, one()}); }), Contains("operand is not rounded"));
}

TEST_CASE("a product of a matrix unit has sums for its panels, weights that are loaded and rows in pieces",
          "[verify]") {
  const auto sums_of = [](std::int64_t count) {
    return Buffer(BufferInfo{"sums", DType::f32, {Dim("element", count)}, Role::temp, Scope::local});
  };
  const Buffer w(BufferInfo{"w", DType::bf16, {H, E}, Role::weight}),
      sums = sums_of(512), pieces(BufferInfo{"pieces", DType::bf16, {Dim("piece", 1536)}});
  const Expr tile = Load::make(w, {imm(0), imm(0)}), x = Load::make(pieces, {imm(0)}), rows = imm(7);
  const Stmt product = TileProduct::make(sums, {tile, tile}, x, rows, {.steps = 1});
  CHECK_NOTHROW(verify(Alloc::make(sums, product), Level::scheduled));
  CHECK_NOTHROW(verify(Alloc::make(sums, definition(*product.as<TileProduct>())), Level::scheduled));
  CHECK_THAT(
      refusal(product, Level::scheduled),
      Contains("a local buffer is used inside its allocation: sums = tiles(w[0,0],w[0,0],pieces[0]; 1 x 32 of 7"));
  CHECK_THAT(refusal(Alloc::make(sums, product), Level::loops), Contains("products are tiled when work is shared"));
  CHECK_THAT(refusal([&] {
               TileProduct::make(sums_of(256), {tile, tile}, x, rows, {.steps = 1});
             }),
             Contains("sums that are no local buffer of their size"));
  CHECK_THAT(refusal([&] { TileProduct::make(sums, {}, x, rows, {.steps = 1}); }), Contains("another shape"));
  CHECK_THAT(refusal([&] { TileProduct::make(sums, {tile}, x, rows, {}); }), Contains("another shape"));
  CHECK_THAT(refusal([&] { TileProduct::make(sums, {imm(0)}, x, rows, {.steps = 1}); }),
             Contains("weights that are not loaded"));
  CHECK_THAT(refusal([&] { TileProduct::make(sums, {tile}, tile, rows, {.steps = 1}); }),
             Contains("rows that are not loaded"));
  CHECK_THAT(refusal([&] { TileRows::make(one()); }), Contains("a number of rows that is no integer"));
}

TEST_CASE("a barrier of a warp may stand where not all threads of a block come", "[verify]") {
  const Expr first = binary(BinaryOp::eq, call(UfKind::thread, "thread"), imm(0));
  CHECK_NOTHROW(verify(If::make(first, Barrier::make(Meeting::warp)), Level::scheduled));
  CHECK_THAT(refusal(If::make(first, Barrier::make(Meeting::threads)), Level::scheduled),
             Contains("a barrier stands where all threads of a block come"));
}

TEST_CASE("a join adds what the threads of a warp have for themselves", "[verify]") {
  const auto own = [](Vector<Dim> dims) {
    return Buffer(BufferInfo{"own", DType::f32, std::move(dims), Role::temp, Scope::local});
  };
  const Buffer sum = own({}), two = own({Dim("row", 2)}), three = own({Dim("row", 3)});
  const Stmt join = Join::make(sum, two, 4);
  CHECK_NOTHROW(verify(Alloc::make(sum, Alloc::make(two, join)), Level::scheduled));
  CHECK_THAT(refusal(Alloc::make(sum, join), Level::scheduled),
             Contains("a local buffer is used inside its allocation: own = join(own.2 of 4 threads)"));
  CHECK_THAT(refusal(Alloc::make(sum, Alloc::make(two, join)), Level::loops),
             Contains("no warps before work is shared"));
  CHECK_THAT(refusal([&] { Join::make(two, sum, 4); }), Contains("a join of what threads do not have for themselves"));
  CHECK_THAT(refusal([&] { Join::make(sum, three, 4); }), Contains("no powers of two of a warp"));
  CHECK_THAT(refusal([&] { Join::make(sum, two, 64); }), Contains("no powers of two of a warp"));
  CHECK_THAT(refusal([&] { Join::make(sum, own({Dim("row", 8)}), 4); }), Contains("no powers of two of a warp"));
}
