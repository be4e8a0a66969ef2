// Elements as weights are stored: how far from what was bound, and what stays exactly that.
#include "cortex/ir/stored.hpp"

#include <catch2/catch.hpp>
#include <random>

using namespace cortex;
using namespace cortex::ir;

namespace {

const Dim rows("rows", 6), columns("columns", 40);

BufferInfo buffer_of(DType type, std::uint32_t channels = 1) {
  BufferInfo info;
  info.name = "W", info.dtype = type, info.dims = {rows, columns}, info.role = Role::weight, info.channels = channels;
  return info;
}
BufferInfo scales_of(std::uint32_t channels) {
  BufferInfo info = buffer_of(DType::f32, channels);
  info.is_scales = true;
  return info;
}

const std::vector<std::int64_t> shape{6, 40};

std::vector<float> stored(const BufferInfo& buffer, const std::vector<float>& values) {
  return stored_elements(buffer, values.data(), shape);
}

/// What the stored elements stand for.
std::vector<float> read_back(DType type, const std::vector<float>& values, std::uint32_t channels = 1) {
  std::vector<float> elements = stored(buffer_of(type, channels), values);
  if (type != DType::i8) return elements;
  const std::vector<float> scales = stored(scales_of(channels), values);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] *= scales[i / 40];
  return elements;
}

/// Rows of very different size.
std::vector<float> random_values() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> values(240);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::ldexp(draw(random), int(i / 40) * 4 - 10);
  return values;
}

}  // namespace

TEST_CASE("a stored element is within the unit roundoff of its type", "[ir][stored]") {
  const std::vector<float> values = random_values();
  for (const DType type : {DType::bf16, DType::f16, DType::i8}) {
    const std::vector<float> got = read_back(type, values), scales = stored(scales_of(1), values);
    INFO(to_string(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i], bf16 = 0x1p-8 * std::abs(x), f16 = 0x1p-11 * std::abs(x) + 0x1p-25;
      const double half_a_step = double(scales[i / 40]) / 2 * (1 + 0x1p-20);  // s * q is rounded to f32 here
      REQUIRE(std::abs(double(got[i]) - x) <= (type == DType::bf16 ? bf16 : type == DType::f16 ? f16 : half_a_step));
    }
  }
}

TEST_CASE("a channel's scale is its largest element over 127", "[ir][stored]") {
  const std::vector<float> values = random_values(), scales = stored(scales_of(1), values);
  REQUIRE(scales.size() == 6);
  for (std::size_t r = 0; r < 6; ++r) {
    float largest = 0;
    for (std::size_t c = 0; c < 40; ++c) largest = std::max(largest, std::abs(values[40 * r + c]));
    CHECK(scales[r] == largest / 127);
  }
  CHECK(stored(scales_of(2), values).size() == 40);
  CHECK(stored(scales_of(3), values).size() == 240);
  CHECK(stored(scales_of(0), values).size() == 1);
}

TEST_CASE("whole numbers up to 127 are exact in every type, and so are their multiples by a power of two",
          "[ir][stored]") {
  std::vector<float> values(240);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(float(int(i * 37 % 255) - 127), int(i / 40) - 7);  // one row 0 to 127, others less
  for (std::size_t c = 0; c < 40; ++c) values[c] = 0;
  for (const DType type : {DType::bf16, DType::f16, DType::i8}) {
    INFO(to_string(type));
    CHECK(read_back(type, values) == values);
  }
}

TEST_CASE("small and large channels have scales that numbers of f32 hold", "[ir][stored]") {
  std::vector<float> values(240, 0x1p-149f);
  for (std::size_t c = 0; c < 40; ++c) values[c] = std::numeric_limits<float>::max();
  const std::vector<float> got = read_back(DType::i8, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO(i);
    CHECK(std::abs(double(got[i]) - values[i]) <= (i < 40 ? 0x1p-20 * values[i] : 0x1p-127));
  }
}

TEST_CASE("infinity and NaN stay in 16 bits, and what a type cannot hold is found", "[ir][stored]") {
  std::vector<float> values(240, 1);
  values[7] = std::numeric_limits<float>::infinity(), values[8] = std::numeric_limits<float>::quiet_NaN();
  for (const DType type : {DType::bf16, DType::f16}) {
    const std::vector<float> got = read_back(type, values);
    CHECK((got[7] == values[7] && std::isnan(got[8]) && got[9] == 1));
    CHECK_FALSE(unstorable(type, values.data(), 240));
  }
  CHECK(unstorable(DType::i8, values.data(), 240) == 7u);
  CHECK(unstorable(DType::i8, &values[8], 4) == 0u);
  values[3] = 65519.9f;
  CHECK_FALSE(unstorable(DType::f16, values.data(), 240));
  values[3] = -65520;
  CHECK(unstorable(DType::f16, values.data(), 240) == 3u);
  CHECK_FALSE(unstorable(DType::bf16, values.data(), 240));
  values[5] = 0x1.fefffep127f;
  CHECK_FALSE(unstorable(DType::bf16, values.data(), 240));
  CHECK(read_back(DType::bf16, values)[5] == 0x1.fep127f);
  values[5] = -0x1.ffp127f;
  CHECK(unstorable(DType::bf16, values.data(), 240) == 5u);
  CHECK_FALSE(unstorable(DType::f32, values.data(), 240));
}
