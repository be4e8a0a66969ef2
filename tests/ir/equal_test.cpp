#include "cortex/ir/equal.hpp"

#include <catch2/catch.hpp>

#include "cortex/ir/build.hpp"

using namespace cortex;
using namespace cortex::ir;

namespace {

const Dim H("hidden", 8), E("embedding", 8);
const Buffer x{BufferInfo{"x", DType::f32, {H}, Role::weight}}, y{BufferInfo{"y", DType::f32, {H}}};

Expr at(const Buffer& buffer, const Expr& i) { return Load::make(buffer, {i}); }

/// for i: y[i] = x[i] + x[i]
Stmt copy_loop(const char* name, ForKind kind = ForKind::serial, const Dim& dim = H) {
  const Expr i = Var::make(name);
  return For::make(i, dim, imm(8), kind, Store::make(y, {i}, at(x, i) + at(x, i)));
}

Expr sum_over(const char* name, const std::function<Expr(const Expr&)>& body, ReduceOp op = ReduceOp::sum) {
  const Expr k = Var::make(name);
  return Reduce::make(op, {k, H, imm(8)}, body(k));
}

Buffer local(const char* name, int lanes = 1) {
  BufferInfo info{name, DType::f32, {}};
  info.scope = Scope::local;
  info.lanes = lanes;
  return Buffer(info);
}

Stmt accumulator(const Buffer& acc) {
  return Alloc::make(acc, Block::make({Store::make(acc, {}, constant(0, {DType::f32, 1})),
                                       Store::make(y, {imm(0)}, Load::make(acc, {}))}));
}

}  // namespace

TEST_CASE("loops that differ by the variable's name are equal", "[equal]") {
  CHECK(equal(copy_loop("i"), copy_loop("other")));
}

TEST_CASE("loops of different kinds are not equal", "[equal]") {
  CHECK_FALSE(equal(copy_loop("i"), copy_loop("i", ForKind::parallel)));
}

TEST_CASE("loops over different dimensions of one extent are not equal", "[equal]") {
  CHECK_FALSE(equal(copy_loop("i"), copy_loop("i", ForKind::serial, E)));
}

TEST_CASE("free variables of one name are different", "[equal]") {
  const Expr a = Var::make("a"), b = Var::make("a");
  CHECK(equal(a + 1, a + 1));
  CHECK_FALSE(equal(a + 1, b + 1));
}

TEST_CASE("reductions are equal under a renaming of their axis", "[equal]") {
  CHECK(equal(sum_over("j", [](auto& k) { return at(x, k); }), sum_over("k", [](auto& k) { return at(x, k); })));
  CHECK_FALSE(equal(sum_over("j", [](auto& k) { return at(x, k); }),
                    sum_over(
                        "k", [](auto& k) { return at(x, k); }, ReduceOp::max)));
}

TEST_CASE("a bound variable is not equal to a free one, from either side", "[equal]") {
  const Expr free = Var::make("k");
  const Expr of_bound = sum_over("k", [](auto&k) { return at(x, k); }),
             of_free = sum_over("k", [&](auto&) { return at(x, free); });
  CHECK_FALSE(equal(of_bound, of_free));
  CHECK_FALSE(equal(of_free, of_bound));
}

TEST_CASE("variables bound in swapped order are not mixed up", "[equal]") {
  const auto nested = [](bool swapped) {
    return sum_over("a", [&](auto& a) {
      return sum_over("b", [&](auto& b) { return at(x, swapped ? b : a) - at(x, swapped ? a : b); });
    });
  };
  CHECK(equal(nested(false), nested(false)));
  CHECK_FALSE(equal(nested(false), nested(true)));
}

TEST_CASE("one handle under different bindings is not equal to itself", "[equal]") {
  const Expr i = Var::make("i"), j = Var::make("j");
  const Stmt body = Store::make(y, {i}, at(x, i));  // bound on the left, free on the right
  CHECK_FALSE(equal(For::make(i, H, imm(8), ForKind::serial, body), For::make(j, H, imm(8), ForKind::serial, body)));
}

TEST_CASE("lets are equal under a renaming", "[equal]") {
  const auto let = [](const char* name, int value) {
    const Expr v = Var::make(name);
    return Let::make(v, imm(value), v * v);
  };
  CHECK(equal(let("a", 3), let("b", 3)));
  CHECK_FALSE(equal(let("a", 3), let("a", 4)));
}

TEST_CASE("let statements are equal under a renaming", "[equal]") {
  const auto let = [](const char* name) {
    const Expr v = Var::make(name);
    return LetStmt::make(v, call(UfKind::leaf_node, "leaf_batch", {imm(0)}), Store::make(y, {v}, at(x, v)));
  };
  CHECK(equal(let("node"), let("other")));
}

TEST_CASE("local buffers are equal under a renaming and others are not", "[equal]") {
  CHECK(equal(accumulator(local("acc")), accumulator(local("sum"))));
  CHECK_FALSE(equal(accumulator(local("acc")), accumulator(local("acc", 4))));
  const Buffer x2{BufferInfo(*x)};
  CHECK_FALSE(equal(at(x, imm(0)), at(x2, imm(0))));
}

TEST_CASE("constants are equal by type and bits", "[equal]") {
  CHECK(equal(constant(1.5, {DType::f32, 1}), constant(1.5, {DType::f32, 1})));
  CHECK_FALSE(equal(constant(1.5, {DType::f32, 1}), constant(1.5, {DType::f64, 1})));
  CHECK_FALSE(equal(constant(0.0, {DType::f32, 1}), constant(-0.0, {DType::f32, 1})));
}

TEST_CASE("uninterpreted functions are equal by kind and accessor, whatever their names", "[equal]") {
  const Expr n = Var::make("n");
  CHECK(equal(call(UfKind::child, "left", {n}, 0), call(UfKind::child, "l", {n}, 0)));
  CHECK_FALSE(equal(call(UfKind::child, "left", {n}, 0), call(UfKind::child, "left", {n}, 1)));
}

TEST_CASE("an exact function is not its approximation", "[equal]") {
  const Expr a = at(x, imm(0));
  CHECK_FALSE(equal(Unary::make(UnaryOp::tanh, a, true), Unary::make(UnaryOp::tanh, a, false)));
}

TEST_CASE("a conditional with an empty else is not one with a full one", "[equal]") {
  const Stmt s = Store::make(y, {imm(0)}, at(x, imm(0)));
  const Expr c = binary(BinaryOp::lt, Var::make("i"), imm(3));
  CHECK(equal(If::make(c, s), If::make(c, s)));
  CHECK_FALSE(equal(If::make(c, s), If::make(c, s, s)));
}
