#include "cortex/pass/approximate_activations.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cortex/ir/print.hpp"

namespace {

using namespace cortex;
using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using ir::UnaryOp;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest_normal = std::numeric_limits<float>::min();

/// A scalar f32 expression of one variable as a list of instructions, each run over a block of values: the arithmetic
/// that the printers emit, float by float.
class Tape {
 public:
  static constexpr std::size_t block = 256;
  using Values = std::array<float, block>;

  Tape(const Expr& x, const Expr& body) {
    registers_.emplace_back();
    known_[x.get()] = 0;
    result_ = compile(body);
  }

  const Values& operator()(const Values& x) {
    registers_[0] = x;
    for (const Step& step : steps_) run(step);
    return registers_[result_];
  }

  float operator()(float x) {
    Values all;
    all.fill(x);
    return (*this)(all)[0];
  }

  /// Whether all exponents given to ldexp so far were integral and in the normal range.
  bool exponents_normal() const { return exponents_normal_; }

 private:
  enum class Code { add, mul, div, lt, ldexp, round, fma, select };
  struct Step {
    Code code;
    std::size_t to, a, b, c;
  };

  std::size_t compile(const Expr& e) {
    if (const auto found = known_.find(e.get()); found != known_.end()) return found->second;
    if (const auto* n = e.as<ir::Let>()) {
      known_[n->var.get()] = compile(n->value);
      return compile(n->body);
    }
    if (const auto* n = e.as<ir::FloatImm>()) {
      CHECK(double(float(n->value)) == n->value);
      registers_.emplace_back().fill(float(n->value));
      return registers_.size() - 1;
    }
    if (const auto* n = e.as<ir::Fma>()) return emit(Code::fma, compile(n->a), compile(n->b), compile(n->c));
    if (const auto* n = e.as<ir::Select>())
      return emit(Code::select, compile(n->condition), compile(n->then_value), compile(n->else_value));
    if (const auto* n = e.as<ir::Unary>(); n && n->op == UnaryOp::round) return emit(Code::round, compile(n->a));
    if (const auto* n = e.as<ir::Binary>()) {
      const std::unordered_map<BinaryOp, Code> codes{{BinaryOp::add, Code::add},
                                                     {BinaryOp::mul, Code::mul},
                                                     {BinaryOp::div, Code::div},
                                                     {BinaryOp::lt, Code::lt},
                                                     {BinaryOp::ldexp, Code::ldexp}};
      return emit(codes.at(n->op), compile(n->a), compile(n->b));
    }
    FAIL("no instruction for " << ir::print(e));
    return 0;
  }

  std::size_t emit(Code code, std::size_t a, std::size_t b = 0, std::size_t c = 0) {
    registers_.emplace_back();
    steps_.push_back({code, registers_.size() - 1, a, b, c});
    return registers_.size() - 1;
  }

  void run(const Step& step) {
    const Values &a = registers_[step.a], &b = registers_[step.b], &c = registers_[step.c];
    Values& to = registers_[step.to];
    const auto each = [&](auto f) {
      for (std::size_t i = 0; i < block; ++i) to[i] = f(a[i], b[i], c[i]);
    };
    switch (step.code) {
      case Code::add: return each([](float x, float y, float) { return x + y; });
      case Code::mul: return each([](float x, float y, float) { return x * y; });
      case Code::div: return each([](float x, float y, float) { return x / y; });
      case Code::lt: return each([](float x, float y, float) { return x < y ? 1.0f : 0.0f; });
      case Code::round: return each([](float x, float, float) { return std::nearbyintf(x); });
      case Code::fma: return each([](float x, float y, float z) { return std::fmaf(x, y, z); });
      case Code::select: return each([](float x, float y, float z) { return x != 0 ? y : z; });
      case Code::ldexp:
        return each([&](float x, float y, float) {
          if (!(y >= -126 && y <= 127 && y == std::nearbyintf(y))) {
            exponents_normal_ = false;
            return not_a_number;
          }
          return x * std::bit_cast<float>((std::int32_t(y) + 127) << 23);
        });
    }
  }

  std::vector<Values> registers_;
  std::vector<Step> steps_;
  std::unordered_map<const ir::ExprNode*, std::size_t> known_;
  std::size_t result_ = 0;
  bool exponents_normal_ = true;
};

const ir::Type f32{DType::f32, 1};

Tape tape_of(Expr (*approximate)(Expr)) {
  const Expr x = ir::Var::make("x", f32);
  return Tape(x, approximate(x));
}

/// The distance of `y` from `exact` in units in the last place of a float of the size of `exact`.
double ulps(float y, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::abs(y - exact) * std::ldexp(1.0, 24 - std::max(exponent, -125));
}

/// Calls `check(x, f(x))` for floats of the whole range a prime apart, and for all in the neighbourhood of `edges`.
template <class Check>
void over_the_floats(Tape& f, const std::vector<float>& edges, Check check) {
  Tape::Values xs;
  std::size_t filled = 0;
  const auto flush = [&] {
    const Tape::Values& ys = f(xs);
    for (std::size_t i = 0; i < filled; ++i) check(xs[i], ys[i]);
    filled = 0;
  };
  const auto visit = [&](std::uint32_t bits) {
    xs[filled++] = std::bit_cast<float>(bits);
    if (filled == xs.size()) flush();
  };
  constexpr std::uint64_t stride = 997, count = std::uint64_t(1) << 32;
  for (std::uint64_t bits = 0; bits < count; bits += stride) visit(std::uint32_t(bits));
  for (const float edge : edges)
    for (std::uint32_t i = 0; i < 8192; ++i) visit(std::bit_cast<std::uint32_t>(edge) + i - 4096);
  flush();
}

/// The largest error in ULP where `true_value` is a normal float, and the argument where it is.
template <class F>
std::pair<double, float> worst(Tape& f, const std::vector<float>& edges, F true_value) {
  std::pair<double, float> result{0.0, 0.0f};
  over_the_floats(f, edges, [&](float x, float y) {
    const double exact = true_value(double(x));
    if (std::isnan(x) || std::abs(exact) < smallest_normal || std::abs(exact) >= 0x1p128) return;
    const double error = ulps(y, exact);
    if (!(error <= result.first)) result = {error, x};
  });
  return result;
}

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
  ir::visit_with(result, [&](const ir::Binary& n) { divisions += n.op == BinaryOp::div; });
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
        "t * b / fma(b,b,t * (t * 0.25)))))))))\n");
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
