// What the tests of approximations spend their time in, over millions of floats: compiled by itself, to be optimised.
#include "support/float_tape.hpp"

namespace cortex::test {

namespace {

/// The bits of `x` above those of 2/3.
std::int32_t above(float x) {
  return std::int32_t(std::bit_cast<std::uint32_t>(x) - std::bit_cast<std::uint32_t>(2.0f / 3));
}

}  // namespace

void Tape::run(const Step& step) {
  const Values &a = registers_[step.a], &b = registers_[step.b], &c = registers_[step.c];
  Values& to = registers_[step.to];
  const auto each = [&](auto f) {
    for (std::size_t i = 0; i < block; ++i) to[i] = f(a[i], b[i], c[i]);
  };
  switch (step.code) {
    case Code::add: return each([](float x, float y, float) { return x + y; });
    case Code::sub: return each([](float x, float y, float) { return x - y; });
    case Code::mul: return each([](float x, float y, float) { return x * y; });
    case Code::div: return each([](float x, float y, float) { return x / y; });
    case Code::lt: return each([](float x, float y, float) { return x < y ? 1.0f : 0.0f; });
    case Code::eq: return each([](float x, float y, float) { return x == y ? 1.0f : 0.0f; });
    case Code::neg: return each([](float x, float, float) { return -x; });
    case Code::abs: return each([](float x, float, float) { return std::abs(x); });
    case Code::exponent: return each([](float x, float, float) { return float(above(x) >> 23); });
    case Code::significand:
      return each([](float x, float, float) {
        return std::bit_cast<float>(std::bit_cast<std::int32_t>(x) - (above(x) >> 23 << 23));
      });
    case Code::round: return each([](float x, float, float) { return std::nearbyintf(x); });
    case Code::floor: return each([](float x, float, float) { return std::floor(x); });
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

}  // namespace cortex::test
