// The formats that weights are stored in, in files and in memory, as numbers: IEEE binary16, bfloat16, and tf32.
#pragma once

#include <bit>
#include <cstdint>

namespace cortex {

/// Whether a number is no infinity and no NaN: by its bits, since g++ takes comparisons out where it is told that there
/// is neither (-ffinite-math-only, of -ffast-math). Clang then takes this out, too: see config.hpp.
inline bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7F800000u) != 0x7F800000u; }
inline bool is_finite(double value) {
  constexpr std::uint64_t exponent = 0x7FF0000000000000u;
  return (std::bit_cast<std::uint64_t>(value) & exponent) != exponent;
}

/// The value of a binary16; exact.
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u,
                      fraction = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);  // infinity, NaN
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = float(fraction) * 0x1p-24f;  // zero and subnormals
  return sign ? -magnitude : magnitude;
}

/// The nearest binary16, ties to even; beyond its range infinity, NaN stays NaN.
inline std::uint16_t to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), magnitude = bits & 0x7FFFFFFFu;
  const std::uint16_t sign = std::uint16_t((bits >> 16) & 0x8000u);
  if (magnitude > 0x7F800000u) return std::uint16_t(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x477FF000u) return std::uint16_t(sign | 0x7C00u);  // rounds to 65520 or more
  if (magnitude < 0x38800000u) {  // subnormal: the addition rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return std::uint16_t(sign | ((rounded - 0x38000000u) >> 13));
}

/// The value of a bfloat16; exact.
inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

/// The nearest bfloat16, ties to even; NaN stays NaN.
inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return std::uint16_t((bits >> 16) | 0x40u);
  return std::uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// The nearest number whose fraction has 10 bits, ties away from zero, as the hardware rounds to tf32; beyond the range
/// of f32 infinity, NaN stays NaN.
inline float round_tf32(float value) {
  if (value != value) return value;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1FFFu);
}

}  // namespace cortex
