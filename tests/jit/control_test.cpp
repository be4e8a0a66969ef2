#include <array>
#include <barrier>
#include <numeric>
#include <thread>

#include "kernels.hpp"

using namespace cortex;
using namespace cortex::ir;
using namespace cortex::test;

namespace {

std::vector<float> counting(int n) {
  std::vector<float> result(std::size_t(n), 0.0f);
  std::iota(result.begin(), result.end(), 0.0f);
  return result;
}

const Expr i = Var::make("i"), j = Var::make("j");
const Expr one = constant(1, {DType::f32});

}  // namespace

TEST_CASE("a loop of no iterations does nothing", "[llvm_jit]") {
  const Buffer counts = buffer("counts", DType::i32, Role::index), out = buffer("out", DType::f32);
  const Stmt body = loop(i, at(counts, imm(0)), loop(j, at(counts, imm(1)), set(out, i * 4 + j, one)));
  for (const auto [rows, columns, expected] :
       {std::array{0, 4, 0}, std::array{4, 0, 0}, std::array{-3, 4, 0}, std::array{2, 3, 6}}) {
    std::vector<std::int32_t> n{rows, columns};
    std::vector<float> result(16);
    run(program({counts, out}, body), {n.data(), result.data()});
    CHECK(std::accumulate(result.begin(), result.end(), 0.0f) == float(expected));
  }
}

TEST_CASE("a loop may have an extent of 64 bits, and a variable of them", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32);
  const Expr wide = Var::make("wide", {DType::i64, 1}), n = IntImm::make(5, DType::i64);
  std::vector<float> result(10);
  run(program({out}, Block::make({loop(i, n, set(out, i, one)), loop(wide, n, set(out, wide + 5, one + one))})),
      {result.data()});
  CHECK(result == std::vector<float>{1, 1, 1, 1, 1, 2, 2, 2, 2, 2});
}

TEST_CASE("a loop reads what its earlier iterations wrote", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32);
  std::vector<float> result(8, 1.0f);
  run(program({out}, loop(i, imm(7), set(out, i + 1, at(out, i) + at(out, i + 1)))), {result.data()});
  CHECK(result == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("nested conditionals take the branch of their element", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32);
  const auto less = [](std::int64_t n) { return Binary::make(BinaryOp::lt, i, imm(n)); };
  const auto put = [&](double v) { return set(out, i, constant(v, {DType::f32})); };
  const Stmt body = If::make(less(4), If::make(less(2), put(1), put(2)), If::make(less(6), put(3)));
  std::vector<float> result(8, 9.0f);
  run(program({out}, loop(i, imm(8), body)), {result.data()});
  CHECK(result == std::vector<float>{1, 1, 2, 2, 3, 3, 9, 9});
}

TEST_CASE("a let holds what memory held where it stands", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32);
  const Expr v = Var::make("v", {DType::f32, 1});
  std::vector<float> result{5, 0};
  run(program({out}, LetStmt::make(v, at(out, imm(0)), Block::make({set(out, imm(0), v + v), set(out, imm(1), v)}))),
      {result.data()});
  CHECK(result == std::vector<float>{10, 5});
}

TEST_CASE("a shared load sees the store between its two uses", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32);
  const Expr x = at(out, imm(0));
  std::vector<float> result{5, 0};
  run(program({out}, Block::make({set(out, imm(0), x + x), set(out, imm(1), x)})), {result.data()});
  CHECK(result == std::vector<float>{10, 10});
}

TEST_CASE("gathers and scatters reach the element of each lane", "[llvm_jit]") {
  const Buffer x = buffer("x", DType::f32), index = buffer("index", DType::i32, Role::index),
               out = buffer("out", DType::f32);
  std::vector<float> input = counting(64), result(64, -1.0f);
  std::vector<std::int32_t> where(16);
  for (int n = 0; n < 16; ++n) where[std::size_t(n)] = n * 37 % 64;
  const Expr lanes = at(index, Ramp::make(imm(0), 16)), reversed = constant(63, {DType::i32, 16}) - lanes;
  run(program({x, index, out}, set(out, reversed, at(x, lanes))), {input.data(), where.data(), result.data()});
  for (const int n : where) CHECK(result[std::size_t(63 - n)] == float(n));
}

TEST_CASE("a broadcast index reads one element into every lane", "[llvm_jit]") {
  const Buffer x = buffer("x", DType::f64), out = buffer("out", DType::f64);
  std::vector<double> input{1, 2, 3, 4}, result(8);
  run(program({x, out}, set(out, Ramp::make(imm(0), 8), at(x, Broadcast::make(imm(2), 8)))),
      {input.data(), result.data()});
  CHECK(result == std::vector<double>(8, 3.0));
}

TEST_CASE("a ramp as a value counts up", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::i64);
  const Expr base = Var::make("base", {DType::i64, 1});
  std::vector<std::int64_t> result(16);
  run(program({out}, loop(base, imm(2), set(out, Ramp::make(base * 8, 8), Ramp::make(base * 100, 8)))),
      {result.data()});
  CHECK(result == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 104, 105, 106, 107});
}

TEST_CASE("local buffers hold scalars, vectors and arrays of both", "[llvm_jit]") {
  const Buffer x = buffer("x", DType::f32), out = buffer("out", DType::f32);
  const Buffer scalar = local("scalar", {DType::f32, 1}), vector = local("vector", {DType::f32, 8});
  const Buffer scalars = local("scalars", {DType::f32, 1}, {Dim("five", 5)}),
               vectors = local("vectors", {DType::f32, 8}, {Dim("two", 2), Dim("three", 3)});
  const Expr row = Ramp::make(i * 8, 8), sum = Load::make(vector, {}) + at(vectors, i) +
                                               Broadcast::make(Load::make(scalar, {}) + at(scalars, imm(4)), 8);
  Stmt body = Block::make({Store::make(scalar, {}, one), set(scalars, imm(4), one + one),
                           Store::make(vector, {}, at(x, row)), set(vectors, i, at(x, row)), set(out, row, sum)});
  for (const Buffer& b : {scalar, vector, scalars, vectors}) body = Alloc::make(b, body);
  std::vector<float> input = counting(48), result(48);
  run(program({x, out}, loop(i, imm(6), body)), {input.data(), result.data()});
  for (std::size_t n = 0; n < 48; ++n) CHECK(result[n] == 2 * float(n) + 3);
}

TEST_CASE("a local scalar stored to a vector is in all its lanes", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::f32), t = local("t", {DType::f32, 4});
  std::vector<float> result(4);
  run(program({out}, Alloc::make(t, Block::make({Store::make(t, {}, one),
                                                 set(out, Ramp::make(imm(0), 4), Load::make(t, {}))}))),
      {result.data()});
  CHECK(result == std::vector<float>(4, 1.0f));
}

TEST_CASE("one worker alone needs no barrier", "[llvm_jit]") {
  const Buffer out = buffer("out", DType::i32);
  std::vector<std::int32_t> result(2);
  const Stmt body = Block::make({Barrier::make(), set(out, imm(0), call(UfKind::num_workers, "num_workers")),
                                 Barrier::make(), set(out, imm(1), call(UfKind::worker, "worker") + 7)});
  run(program({out}, body), {result.data()});
  CHECK(result == std::vector<std::int32_t>{1, 7});
}

TEST_CASE("two workers see across a barrier what the other wrote before it", "[llvm_jit]") {
  const Buffer state = buffer("state", DType::i32, Role::state), scratch = buffer("scratch", DType::i32);
  const Expr me = call(UfKind::worker, "worker"), other = Var::make("other");
  // Each step a worker takes the other's number and one more: after an even number of steps each has grown its own.
  const Stmt step = LetStmt::make(
      other, at(state, imm(1) - me),
      Block::make({set(scratch, me, other + 1), Barrier::make(), set(state, me, at(scratch, me)), Barrier::make()}));
  const Stmt steps = loop(i, imm(1000), step);
  const jit::Compiled compiled = compile(program({state, scratch}, steps));
  std::vector<std::int32_t> numbers{0, 50000}, room(2);
  void* buffers[] = {numbers.data(), room.data()};
  std::barrier meeting(2);
  const auto worker = [&](std::int32_t w) {
    const auto wait = [](void* m) { static_cast<std::barrier<>*>(m)->arrive_and_wait(); };
    const codegen::KernelArgs args{buffers, wait, &meeting, w, 2};
    compiled.kernel(&args);
  };
  std::thread second(worker, 1);
  worker(0);
  second.join();
  CHECK(numbers == std::vector<std::int32_t>{1000, 51000});
}
