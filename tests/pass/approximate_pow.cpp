#include "cortex/pass/approximate_pow.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "support/float_tape.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

Tape tape() {
  const ir::Expr a = ir::Var::make("a", f32), b = ir::Var::make("b", f32);
  return Tape(a, b, pass::approximate_pow(a, b));
}

struct Worst {
  double error = 0;
  float a = 0, b = 0;
};

/// The largest error in ULP over `blocks` blocks of pairs that `draw(random numbers)` gives, of those whose power is a
/// normal float.
template <class Draw>
Worst worst_of(Tape& f, int blocks, Draw draw) {
  std::mt19937 engine(7);
  Worst result;
  Tape::Values a, b;
  for (int block = 0; block < blocks; ++block) {
    for (std::size_t i = 0; i < a.size(); ++i) std::tie(a[i], b[i]) = draw(engine);
    const Tape::Values& got = f(a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double exact = std::pow(double(a[i]), double(b[i]));
      if (!(exact >= smallest_normal && exact < 0x1p128)) continue;
      const double error = ulps(got[i], exact);
      if (!(error <= result.error)) result = {error, a[i], b[i]};
    }
  }
  return result;
}

/// An exponent for which a^b is e^x, x over the whole range of powers that are normal floats.
float exponent_for(float a, std::mt19937& engine) {
  std::uniform_real_distribution<double> of_power(-87.4, 88.8);
  return float(of_power(engine) / std::log(double(a)));
}

}  // namespace

TEST_CASE("the approximate power is within 3.6 ULP", "[pass][approximate_functions]") {
  Tape f = tape();
  const Worst anywhere = worst_of(f, 40000, [](std::mt19937& engine) {
    const float a = std::bit_cast<float>(std::uniform_int_distribution<std::uint32_t>(1, 0x7f7fffff)(engine));
    return std::pair(a, exponent_for(a, engine));
  });
  CAPTURE(anywhere.a, anywhere.b);
  CHECK(anywhere.error <= 3.6);
  CHECK(anywhere.error >= 1.5);
  // Where the logarithm is the difference of ln 2 and nearly as much, and at the other end of what f is.
  const Worst near = worst_of(f, 40000, [](std::mt19937& engine) {
    const float edge = engine() % 2 ? 2.0f / 3 : 4.0f / 3;
    const float a = edge * std::uniform_real_distribution<float>(0.98f, 1.02f)(engine);
    return std::pair(a, exponent_for(a, engine));
  });
  CAPTURE(near.a, near.b);
  CHECK(near.error <= 3.6);
  CHECK(near.error >= 2.2);
  const Worst close_to_1 = worst_of(f, 20000, [](std::mt19937& engine) {
    const float a = 1 + float(std::uniform_int_distribution<int>(-70000, 70000)(engine)) * 0x1p-24f;
    return std::pair(a, exponent_for(a, engine));
  });
  CAPTURE(close_to_1.a, close_to_1.b);
  CHECK(close_to_1.error <= 3.6);
  // The worst that a search has found.
  const Worst known = worst_of(f, 1, [](std::mt19937& engine) {
    const std::pair<float, float> pairs[] = {{0x1.5583fep+0f, 0x1.316b82p+8f},
                                             {0x1.556cb4p+0f, 0x1.319ce6p+8f},
                                             {0x1.558ccep+0f, 0x1.3152aap+8f},
                                             {0x1.557756p+0f, -0x1.2ccdc2p+8f}};
    return pairs[engine() % 4];
  });
  CHECK(known.error <= 3.6);
  CHECK(known.error >= 3.4);
  CHECK(f.exponents_normal());
}

TEST_CASE("the approximate power has C's values at edges", "[pass][approximate_functions]") {
  const float largest = std::numeric_limits<float>::max(), denormal = std::numeric_limits<float>::denorm_min();
  std::vector<float> edges{0,     1,          0.5f,     2,        3,      1.5f, inf, denormal, smallest_normal,
                           1e10f, 8388607.5f, 16777215, 16777216, largest};
  for (std::size_t i = edges.size(); i-- > 0;) edges.push_back(-edges[i]);
  edges.push_back(not_a_number);
  Tape f = tape();
  Tape::Values a, b;
  for (const float x : edges)
    for (const float y : edges) {
      a.fill(x), b.fill(y);
      const float got = f(a, b)[0], right = std::pow(x, y);
      CAPTURE(x, y, got, right);
      if (std::isnan(right)) {
        CHECK(std::isnan(got));
        continue;
      }
      CHECK(std::signbit(got) == std::signbit(right));
      if (std::isinf(right)) {
        CHECK(got == right);
      } else {
        CHECK((std::abs(right) < smallest_normal ? std::abs(got) <= smallest_normal : ulps(got, right) <= 3.6));
      }
    }
}
