#include "cortex/runtime/interpret_kernel.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace cortex;
using namespace cortex::ir;

namespace {

const Dim N("n", 8);

Buffer flat(const char* name, DType dtype, Role role = Role::temp) {
  BufferInfo info{name, dtype, {N}, role};
  info.layout = Layout{{{0, 1, 0, 1}}, 8, 0};
  return Buffer(info);
}

Expr at(const Buffer& buffer, const Expr& i) { return Load::make(buffer, {i}); }

struct Call {
  std::vector<void*> pointers;
  int barriers = 0;
  codegen::KernelArgs args(int worker = 0, int workers = 1) {
    return {pointers.data(), [](void* count) { ++*static_cast<int*>(count); }, &barriers, worker, workers};
  }
};

/// for i = 0:8: out[i] = value(i)
template <class F>
Program elementwise(const Buffer& out, std::vector<Buffer> others, F value) {
  const Expr i = Var::make("i");
  others.insert(others.begin(), out);
  return {"p", others, For::make(i, N, imm(8), ForKind::serial, Store::make(out, {i}, value(i))), Level::device};
}

}  // namespace

TEST_CASE("a kernel interpreted reads and writes floats and computes in double", "[kernel]") {
  const Buffer x = flat("x", DType::f32, Role::weight), out = flat("out", DType::f32);
  const Program program = elementwise(out, {x}, [&](auto& i) {
    return at(x, i) * at(x, i) + constant(1e-9, {DType::f32, 1});
  });
  std::vector<float> in{0, 1, 2, 3, 4, 5, 6, 7.5f}, result(8);
  Call call{{result.data(), in.data()}};
  runtime::interpret_kernel(program, call.args());
  for (int i = 0; i < 8; ++i)
    CHECK(result[std::size_t(i)] == float(double(in[std::size_t(i)]) * in[std::size_t(i)] + 1e-9));
}

TEST_CASE("a kernel interpreted reads integers and doubles of every width", "[kernel]") {
  const Buffer a = flat("a", DType::i32, Role::index), b = flat("b", DType::i64, Role::index),
               c = flat("c", DType::f64, Role::weight), out = flat("out", DType::f64);
  const Program program =
      elementwise(out, {a, b, c}, [&](auto& i) { return at(c, at(a, i)) + Cast::make(DType::f64, at(b, i)); });
  std::vector<std::int32_t> ints{7, 6, 5, 4, 3, 2, 1, 0};
  std::vector<std::int64_t> longs{std::int64_t(1) << 40, 1, 2, 3, 4, 5, 6, 7};
  std::vector<double> doubles{0, 1, 2, 3, 4, 5, 6, 7}, result(8);
  Call call{{result.data(), ints.data(), longs.data(), doubles.data()}};
  runtime::interpret_kernel(program, call.args());
  CHECK(result[0] == double(std::int64_t(1) << 40) + 7);
  CHECK(result[7] == 7);
}

TEST_CASE("a kernel interpreted knows its worker and waits at barriers if there are others", "[kernel]") {
  const Buffer out = flat("out", DType::i32);
  const Expr worker = call(UfKind::worker, "worker"), workers = call(UfKind::num_workers, "num_workers");
  const Program program{"p",
                        {out},
                        Block::make({Store::make(out, {worker}, workers), Barrier::make(),
                                     Store::make(out, {worker + 4}, worker), Barrier::make()}),
                        Level::device};
  std::vector<std::int32_t> result(8);
  Call call{{result.data()}};
  runtime::interpret_kernel(program, call.args(0, 1));
  CHECK(call.barriers == 0);
  runtime::interpret_kernel(program, call.args(2, 3));
  CHECK(call.barriers == 2);
  CHECK(result == std::vector<std::int32_t>{1, 0, 3, 0, 0, 0, 2, 0});
}

TEST_CASE("a kernel interpreted loads, gathers and stores vectors", "[kernel]") {
  const Buffer x = flat("x", DType::f32, Role::weight), a = flat("a", DType::i32, Role::index),
               out = flat("out", DType::f32);
  const Expr all = Ramp::make(imm(0), 8);
  const Program program{
      "p", {out, x, a}, Store::make(out, {all}, at(x, at(a, all)) + Broadcast::make(at(x, imm(1)), 8)), Level::device};
  std::vector<float> in{0, 1, 2, 3, 4, 5, 6, 7}, result(8);
  std::vector<std::int32_t> reverse{7, 6, 5, 4, 3, 2, 1, 0};
  Call call{{result.data(), in.data(), reverse.data()}};
  runtime::interpret_kernel(program, call.args());
  CHECK(result == std::vector<float>{8, 7, 6, 5, 4, 3, 2, 1});
}

TEST_CASE("a program above device level is no kernel", "[kernel]") {
  Program program = elementwise(flat("out", DType::f32), {}, [](auto&) { return constant(1, {DType::f32, 1}); });
  program.level = Level::scheduled;
  Call call;
  CHECK_THROWS_WITH(runtime::interpret_kernel(program, call.args()),
                    Catch::Matchers::Contains("is not at device level"));
}

TEST_CASE("a kernel that stores to a weight is refused", "[kernel]") {
  const Program program = elementwise(flat("W", DType::f32, Role::weight), {}, [](auto&) {
    return constant(1, {DType::f32, 1});
  });
  std::vector<float> memory(8);
  Call call{{memory.data()}};
  CHECK_THROWS_WITH(runtime::interpret_kernel(program, call.args()),
                    Catch::Matchers::Contains("a store to 'W', which a call only reads"));
}
