#include "cortex/pass/approximate_functions.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/float_tape.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr float largest = std::numeric_limits<float>::max(), denormal = std::numeric_limits<float>::denorm_min();

const std::vector<float> zeros{0.0f, -0.0f, smallest_normal, -smallest_normal};
const std::vector<float> log_edges{0.0f, 1.0f, 2.0f / 3, 4.0f / 3, 2.0f, smallest_normal, inf, -0.0f, 1.5f};
const std::vector<float> log1p_edges{0.0f, -0.0f, -1.0f, 1.0f, 16777216.0f, -1.0f / 3, 1.0f / 3, inf, 0x1p126f, 1e-8f};
const std::vector<float> expm1_edges{0.0f, -0.0f, 88.7228394f, -17.4f, -25.0f, 0.34657359f, -0.34657359f, inf, -inf};
const std::vector<float> erf_edges{0.0f, -0.0f, 3.92f, 4.0f, -4.0f, 0.3f, inf, -inf};
const std::vector<float> sine_edges{0.0f,        -0.0f,     1.57079637f, 3.14159274f, -3.14159274f,
                                    6.28318548f, 131000.0f, 131072.0f,   -131072.0f,  4.71238899f,
                                    355.0f,      103993.0f, inf,         -inf};

bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

/// The floats where `holds` fails.
template <class Holds>
std::vector<float> where_not(ir::Expr (*approximate)(ir::Expr), const std::vector<float>& edges, Holds holds) {
  Tape f = tape_of(approximate);
  std::vector<float> found;
  over_the_floats(f, edges, [&](float x, float y) {
    if (!std::isnan(x) && !holds(x, y)) found.push_back(x);
  });
  return found;
}

/// Of one function: how far it is off, and that it multiplies by powers of 2 that are normal floats.
void check(ir::Expr (*approximate)(ir::Expr), const std::vector<float>& edges, double (*exact)(double), double bound) {
  Tape f = tape_of(approximate);
  const auto [error, x] = worst(f, edges, [&](double v) { return exact(v); });
  CAPTURE(x, error);
  CHECK(error <= bound);
  CHECK(error >= bound - 0.5);  // the measure measures, and the bound says no more than it has to
  CHECK(f.exponents_normal());
}

}  // namespace

TEST_CASE("the approximate log is within 0.9 ULP everywhere", "[pass][approximate_functions]") {
  check(
      pass::approximate_log, log_edges, [](double x) { return x > 0 ? std::log(x) : 0; }, 0.9);
}

TEST_CASE("the approximate log1p is within 1.6 ULP everywhere", "[pass][approximate_functions]") {
  check(
      pass::approximate_log1p, log1p_edges, [](double x) { return x > -1 ? std::log1p(x) : 0; }, 1.6);
}

TEST_CASE("the approximate expm1 is within 1.5 ULP everywhere", "[pass][approximate_functions]") {
  check(
      pass::approximate_expm1, expm1_edges, [](double x) { return std::expm1(x); }, 1.5);
}

TEST_CASE("the approximate erf is within 3.2 ULP everywhere", "[pass][approximate_functions]") {
  check(
      pass::approximate_erf, erf_edges, [](double x) { return std::erf(x); }, 3.2);
}

TEST_CASE("the approximate sine and cosine are within 2.3 ULP up to 2^17", "[pass][approximate_functions]") {
  check(
      pass::approximate_sin, sine_edges, [](double x) { return std::abs(x) <= pass::sine_limit ? std::sin(x) : 0; },
      2.3);
  check(
      pass::approximate_cos, sine_edges, [](double x) { return std::abs(x) <= pass::sine_limit ? std::cos(x) : 0; },
      2.3);
}

TEST_CASE("the approximate log and log1p meet their limits", "[pass][approximate_functions]") {
  Tape log = tape_of(pass::approximate_log), log1p = tape_of(pass::approximate_log1p);
  CHECK(log(0.0f) == -inf);
  CHECK(log(-0.0f) == -inf);
  CHECK(same_bits(log(1.0f), 0.0f));
  CHECK(log(inf) == inf);
  CHECK(log(denormal) == float(std::log(double(denormal))));
  for (const float x : {-denormal, -1.0f, -inf}) CHECK(std::isnan(log(x)));
  CHECK(log1p(-1.0f) == -inf);
  CHECK(log1p(inf) == inf);
  CHECK(log1p(largest) == float(std::log1p(double(largest))));
  for (const float x : {0.0f, -0.0f, denormal, -denormal, 1e-20f, -1e-9f}) CHECK(same_bits(log1p(x), x));
  for (const float x : {std::nextafter(-1.0f, -2.0f), -2.0f, -inf}) CHECK(std::isnan(log1p(x)));
}

TEST_CASE("the approximate expm1 meets its limits", "[pass][approximate_functions]") {
  Tape f = tape_of(pass::approximate_expm1);
  for (const float x : {0.0f, -0.0f, 1e-20f, -1e-9f, smallest_normal}) CHECK(same_bits(f(x), x));
  for (const float x : {-17.4f, -25.0f, -1e30f, -inf}) CHECK(f(x) == -1.0f);
  for (const float x : {88.7228394f, 1e30f, inf}) CHECK(f(x) == inf);
  CHECK(std::isfinite(f(88.7228317f)));
  CHECK(where_not(pass::approximate_expm1, expm1_edges, [](float x, float y) {
          return y >= -1 && (y < 0 || std::signbit(x) == std::signbit(y));
        }) == std::vector<float>{});
}

TEST_CASE("the approximate erf keeps the sign and never leaves [-1, 1]", "[pass][approximate_functions]") {
  CHECK(where_not(pass::approximate_erf, erf_edges, [](float x, float y) {
          return std::abs(y) <= 1 && std::signbit(x) == std::signbit(y) && (std::abs(x) < 3.92f || std::abs(y) == 1);
        }) == std::vector<float>{});
}

TEST_CASE("the approximate sine and cosine never leave [-1, 1]", "[pass][approximate_functions]") {
  const auto inside = [](float x, float y) { return std::isinf(x) ? std::isnan(y) : std::abs(y) <= 1; };
  CHECK(where_not(pass::approximate_sin, sine_edges, inside) == std::vector<float>{});
  CHECK(where_not(pass::approximate_cos, sine_edges, inside) == std::vector<float>{});
  Tape sin = tape_of(pass::approximate_sin);
  for (const float x : {0.0f, -0.0f, denormal, -smallest_normal, 1e-5f, -1e-20f}) CHECK(same_bits(sin(x), x));
  CHECK(tape_of(pass::approximate_cos)(0.0f) == 1.0f);
}

TEST_CASE("the approximations of functions of NaN are NaN", "[pass][approximate_functions]") {
  for (const auto approximate : {pass::approximate_log, pass::approximate_log1p, pass::approximate_expm1,
                                 pass::approximate_erf, pass::approximate_sin, pass::approximate_cos}) {
    Tape f = tape_of(approximate);
    CHECK(std::isnan(f(not_a_number)));
    CHECK(std::isnan(f(-not_a_number)));
    const ir::Expr wide = ir::Var::make("x", {DType::f64, 1});
    CHECK_THROWS_WITH(approximate(wide), Catch::Contains("another type than f32"));
  }
}
