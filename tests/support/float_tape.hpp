// Evaluates scalar f32 expressions float by float, over floats of the whole range, to hold approximations against the
// functions that they approximate.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cortex/ir/print.hpp"

namespace cortex::test {

inline constexpr float inf = std::numeric_limits<float>::infinity();
inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
inline constexpr float smallest_normal = std::numeric_limits<float>::min();

/// A scalar f32 expression of one or two variables as a list of instructions, each run over a block of values: the
/// arithmetic that the printers emit, float by float.
class Tape {
 public:
  static constexpr std::size_t block = 256;
  using Values = std::array<float, block>;

  Tape(const ir::Expr& x, const ir::Expr& body) {
    registers_.emplace_back();
    known_[x.get()] = 0;
    result_ = compile(body);
  }

  Tape(const ir::Expr& x, const ir::Expr& y, const ir::Expr& body) {
    registers_.resize(2);
    known_[x.get()] = 0, known_[y.get()] = 1;
    result_ = compile(body);
  }

  const Values& operator()(const Values& x) {
    registers_[0] = x;
    for (const Step& step : steps_) run(step);
    return registers_[result_];
  }
  const Values& operator()(const Values& x, const Values& y) {
    registers_[1] = y;
    return (*this)(x);
  }

  float operator()(float x) {
    Values all;
    all.fill(x);
    return (*this)(all)[0];
  }

  /// Whether all exponents given to ldexp so far were integral and in the normal range.
  bool exponents_normal() const { return exponents_normal_; }

 private:
  enum class Code { add, sub, mul, div, lt, eq, ldexp, round, floor, neg, abs, exponent, significand, fma, select };
  struct Step {
    Code code;
    std::size_t to, a, b, c;
  };

  std::size_t compile(const ir::Expr& e) {
    if (const auto found = known_.find(e.get()); found != known_.end()) return found->second;
    if (const auto* n = e.as<ir::Let>()) {
      known_[n->var.get()] = compile(n->value);
      return compile(n->body);
    }
    if (const auto* n = e.as<ir::FloatImm>()) {
      CHECK((std::isnan(n->value) || double(float(n->value)) == n->value));
      registers_.emplace_back().fill(float(n->value));
      return registers_.size() - 1;
    }
    if (const auto* n = e.as<ir::Fma>()) return emit(Code::fma, compile(n->a), compile(n->b), compile(n->c));
    if (const auto* n = e.as<ir::Select>())
      return emit(Code::select, compile(n->condition), compile(n->then_value), compile(n->else_value));
    if (const auto* n = e.as<ir::Unary>()) {
      using enum ir::UnaryOp;
      const std::unordered_map<ir::UnaryOp, Code> codes{{round, Code::round},       {ir::UnaryOp::floor, Code::floor},
                                                        {neg, Code::neg},           {ir::UnaryOp::abs, Code::abs},
                                                        {exponent, Code::exponent}, {significand, Code::significand}};
      return emit(codes.at(n->op), compile(n->a));
    }
    if (const auto* n = e.as<ir::Binary>()) {
      using enum ir::BinaryOp;
      const std::unordered_map<ir::BinaryOp, Code> codes{{add, Code::add}, {sub, Code::sub},    {mul, Code::mul},
                                                         {div, Code::div}, {ratio, Code::div},  {lt, Code::lt},
                                                         {eq, Code::eq},   {ldexp, Code::ldexp}};
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

  void run(const Step& step);

  std::vector<Values> registers_;
  std::vector<Step> steps_;
  std::unordered_map<const ir::ExprNode*, std::size_t> known_;
  std::size_t result_ = 0;
  bool exponents_normal_ = true;
};

inline const ir::Type f32{DType::f32, 1};

inline Tape tape_of(ir::Expr (*approximate)(ir::Expr)) {
  const ir::Expr x = ir::Var::make("x", f32);
  return Tape(x, approximate(x));
}

/// The distance of `y` from `exact` in units in the last place of a float of the size of `exact`.
inline double ulps(float y, double exact) {
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

}  // namespace cortex::test
