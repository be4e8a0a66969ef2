#include "cortex/pass/approximate_activations.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/print.hpp"
#include "support/float_tape.hpp"

namespace {

using namespace cortex;
using namespace cortex::test;
using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using ir::UnaryOp;

const std::vector<float> tanh_edges{0.0f, -0.0f, 8.5075531f, -8.5075531f, 0.125363931f, inf, -inf, smallest_normal};
const std::vector<float> exp_edges{0.0f, -0.0f, -87.3365402f, 88.7228394f, 0.693147182f, -0.693147182f, inf, -inf};
const std::vector<float> sigmoid_edges{0.0f, -0.0f, -87.3365402f, -88.7228394f, 32.0f, -6.93088293f, inf, -inf};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

ir::Buffer buffer(std::string name, DType dtype) {
  ir::BufferInfo info;
  info.name = std::move(name);
  info.dtype = dtype;
  info.dims = {Dim("i", 16)};
  return ir::Buffer(std::move(info));
}

Expr index(int lanes) { return lanes > 1 ? ir::Ramp::make(ir::imm(0), lanes) : ir::imm(0); }

/// A statement that stores `value`, of any number of lanes.
Stmt store(const Expr& value) { return ir::Store::make(buffer("h", value.dtype()), {index(value.lanes())}, value); }

/// An element of another buffer, or as many as `type` has lanes.
Expr load(ir::Type type = f32) { return ir::Load::make(buffer("a", type.dtype), {index(type.lanes)}); }

int transcendentals(const Stmt& stmt) {
  int count = 0;
  ir::visit_with(stmt, [&](const ir::Unary& n) {
    count += n.op == UnaryOp::tanh || n.op == UnaryOp::sigmoid || n.op == UnaryOp::exp;
  });
  return count;
}

}  // namespace

TEST_CASE("the approximate tanh is within 3.9 ULP everywhere", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_tanh);
  const auto [error, x] = worst(f, tanh_edges, [](double v) { return std::tanh(v); });
  CAPTURE(x);
  CHECK(error <= 3.9);
  CHECK(error >= 2);  // the measure measures
}

TEST_CASE("the approximate exp is within 1.5 ULP where the result is normal", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_exp);
  const auto [error, x] = worst(f, exp_edges, [](double v) { return std::exp(v); });
  CAPTURE(x);
  CHECK(error <= 1.5);
  CHECK(error >= 1);
}

TEST_CASE("the approximate sigmoid is within 3.8 ULP where the result is normal", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_sigmoid);
  const auto [error, x] = worst(f, sigmoid_edges, sigmoid);
  CAPTURE(x);
  CHECK(error <= 3.8);
  CHECK(error >= 2);
}

TEST_CASE("the approximate tanh keeps the sign and never leaves [-1, 1]", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_tanh);
  std::vector<float> outside;
  over_the_floats(f, tanh_edges, [&](float x, float y) {
    if (!std::isnan(x) && !(std::abs(y) <= 1 && std::signbit(x) == std::signbit(y))) outside.push_back(x);
  });
  CHECK(outside == std::vector<float>{});
}

TEST_CASE("the approximate tanh saturates at 1 and gives tiny arguments back", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_tanh);
  for (const float x : {8.5075531f, 9.0f, 100.0f, 1e30f, std::numeric_limits<float>::max(), inf}) {
    CAPTURE(x);
    CHECK(f(x) == 1.0f);
    CHECK(f(-x) == -1.0f);
  }
  const float denormal = std::numeric_limits<float>::denorm_min();
  for (const float x : {0.0f, denormal, 3 * denormal, smallest_normal, 1e-20f, 1e-5f, 0x1.fp-13f}) {
    CAPTURE(x);
    CHECK(std::bit_cast<std::uint32_t>(f(x)) == std::bit_cast<std::uint32_t>(x));
    CHECK(std::bit_cast<std::uint32_t>(f(-x)) == std::bit_cast<std::uint32_t>(-x));
  }
}

TEST_CASE("the approximate sigmoid stays in [0, 1] and meets its limits", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_sigmoid);
  std::vector<float> outside;
  over_the_floats(f, sigmoid_edges, [&](float x, float y) {
    if (!std::isnan(x) && !(y >= 0 && y <= 1)) outside.push_back(x);
  });
  CHECK(outside == std::vector<float>{});
  CHECK(f(0.0f) == 0.5f);
  CHECK(f(-0.0f) == 0.5f);
  for (const float x : {17.5f, 32.0f, 1e30f, inf}) CHECK(f(x) == 1.0f);
  for (const float x : {-88.73f, -1e30f, -inf}) CHECK(f(x) == 0.0f);
}

TEST_CASE("the approximate exp is 1 at 0, overflows to infinity, underflows to 0", "[pass][approximate_activations]") {
  Tape f = tape_of(pass::approximate_exp);
  std::vector<float> wrong;
  over_the_floats(f, exp_edges, [&](float x, float y) {
    if (x >= 88.7228394f && y != inf) wrong.push_back(x);
    if (x < -87.3365402f && y != 0) wrong.push_back(x);
    if (x < 88.7228394f && x >= -87.3365402f && !std::isnormal(y)) wrong.push_back(x);
  });
  CHECK(wrong == std::vector<float>{});
  CHECK(f(0.0f) == 1.0f);
  CHECK(f(-0.0f) == 1.0f);
  CHECK(f(inf) == inf);
  CHECK(f(-inf) == 0.0f);
}

TEST_CASE("the approximations of NaN are NaN", "[pass][approximate_activations]") {
  for (const auto approximate : {pass::approximate_tanh, pass::approximate_sigmoid, pass::approximate_exp}) {
    Tape f = tape_of(approximate);
    CHECK(std::isnan(f(not_a_number)));
    CHECK(std::isnan(f(-not_a_number)));
  }
}

TEST_CASE("the approximations only ever ask for a normal power of 2", "[pass][approximate_activations]") {
  for (const auto approximate : {pass::approximate_sigmoid, pass::approximate_exp}) {
    Tape f = tape_of(approximate);
    over_the_floats(f, exp_edges, [](float, float) {});
    CHECK(f.exponents_normal());
  }
}

TEST_CASE("nested activations are all replaced, each operand evaluated once", "[pass][approximate_activations]") {
  const Expr inner = ir::Unary::make(UnaryOp::sigmoid, ir::Unary::make(UnaryOp::exp, load()));
  const Stmt result = pass::approximate_activations(store(ir::Unary::make(UnaryOp::tanh, inner)));
  int loads = 0, divisions = 0;
  ir::visit_with(result, [&](const ir::Load&) { ++loads; });
  ir::visit_with(result, [&](const ir::Binary& n) { divisions += n.op == BinaryOp::ratio; });
  CHECK(transcendentals(result) == 0);
  CHECK(loads == 1);
  CHECK(divisions == 2);
}

TEST_CASE("tanh becomes one quotient of polynomials of the clamped argument", "[pass][approximate_activations]") {
  CHECK(ir::print(pass::approximate_activations(store(ir::Unary::make(UnaryOp::tanh, load())))) ==
        "h[0] = (let x = a[0] in (let x.2 = select(8.5075531 < x,8.5075531,x) in "
        "(let x.3 = select(x.2 < -8.5075531,-8.5075531,x.2) in (let z = x.3 * x.3 in "
        "(let p = fma(fma(0.000115082272,z,0.0298113171),z,1.0) in (let t = x.3 * p in "
        "(let b = fma(z,fma(fma(1.24695214e-06,z,0.00109541777),z,0.083333306),p) in "
        "ratio(t * b,fma(b,b,t * (t * 0.25))))))))))\n");
}

TEST_CASE("a statement without activations is given back as it is", "[pass][approximate_activations]") {
  const Stmt stmt = store(ir::Unary::make(UnaryOp::relu, ir::Unary::make(UnaryOp::sqrt, load() + load())));
  CHECK(pass::approximate_activations(stmt).same_as(stmt));
}

TEST_CASE("exact activations and those of f64 stay", "[pass][approximate_activations]") {
  for (const UnaryOp op : {UnaryOp::tanh, UnaryOp::sigmoid, UnaryOp::exp}) {
    const Stmt exact = store(ir::Unary::make(op, load(), true));
    CHECK(pass::approximate_activations(exact).same_as(exact));
    const Stmt wide = store(ir::Unary::make(op, load({DType::f64, 1})));
    CHECK(pass::approximate_activations(wide).same_as(wide));
  }
}

TEST_CASE("the operand of an exact activation is still approximated", "[pass][approximate_activations]") {
  const Stmt stmt = store(ir::Unary::make(UnaryOp::tanh, ir::Unary::make(UnaryOp::sigmoid, load()), true));
  CHECK(transcendentals(pass::approximate_activations(stmt)) == 1);
}

TEST_CASE("on vectors every constant is a broadcast and every value has all lanes", "[pass][approximate_activations]") {
  for (const UnaryOp op : {UnaryOp::tanh, UnaryOp::sigmoid, UnaryOp::exp}) {
    const Stmt result = pass::approximate_activations(store(ir::Unary::make(op, load({DType::f32, 16}))));
    int narrow = 0, constants = 0;
    ir::visit_with(
        result, [&](const ir::Broadcast& n) { return constants += n.type.lanes == 16, false; },
        [&](const ir::FloatImm&) { ++narrow; }, [&](const ir::Fma& n) { narrow += n.type.lanes != 16; },
        [&](const ir::Binary& n) { narrow += n.type.lanes != 16; },
        [&](const ir::Var& n) { narrow += n.type.lanes != 16; });
    CHECK(transcendentals(result) == 0);
    CHECK(constants > 5);
    CHECK(narrow == 0);
  }
}

TEST_CASE("an approximation of another type than f32 is refused", "[pass][approximate_activations]") {
  const Expr wide = load({DType::f64, 1});
  for (const auto approximate : {pass::approximate_tanh, pass::approximate_sigmoid, pass::approximate_exp})
    CHECK_THROWS_WITH(approximate(wide), Catch::Contains("another type than f32"));
}
