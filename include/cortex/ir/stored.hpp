// The elements of a weight as they are stored: rounded to 16-bit floats, or to whole numbers times scales.
//
//   bf16, f16   the nearest, ties to even; infinity and NaN stay
//   tf32        the nearest, ties away from zero; for tensor cores alone
//   i8          s * q, q in [-127, 127] the nearest to w / s, ties to even, with one scale s a channel: a power of two
//               if with it all of the channel are exact, else the channel's largest |w| / 127
//
// Whoever fills such memory asks here, so that machine code and interpreters read the same numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "cortex/base/half.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/buffer.hpp"

namespace cortex::ir {

/// The number of the first element that `dtype` cannot hold: for bf16 and f16 a finite one that would become infinite,
/// for i8 one that is not finite.
inline std::optional<std::size_t> unstorable(DType dtype, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const bool finite = is_finite(values[i]);
    const bool stays = dtype == DType::bf16  ? is_finite(from_bf16(to_bf16(values[i])))
                       : dtype == DType::f16 ? is_finite(from_f16(to_f16(values[i])))
                                             : finite;
    if (dtype == DType::i8 ? !finite : finite && !stays) return i;
  }
  return {};
}

/// The number of the channel of each element of a tensor of `extents`; `count` becomes how many there are.
inline Vector<std::size_t> channels_of(const Vector<std::int64_t>& extents, std::uint32_t channels,
                                       std::size_t& count) {
  Vector<std::size_t> result{0};
  count = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const bool apart = channels >> d & 1u;
    const auto extent = std::size_t(extents[d]);
    Vector<std::size_t> next;
    next.reserve(result.size() * extent);
    for (const std::size_t outer : result)
      for (std::size_t i = 0; i < extent; ++i) next.push_back(apart ? outer * extent + i : outer);
    if (apart) count *= extent;
    result = std::move(next);
  }
  return result;
}

namespace detail {

/// One scale for each channel.
inline Vector<float> scales_of(const float* values, const Vector<std::size_t>& channel, std::size_t count) {
  Vector<float> scales(count, 0);
  for (std::size_t i = 0; i < channel.size(); ++i)
    scales[channel[i]] = std::max(scales[channel[i]], std::abs(values[i]));
  constexpr float least = std::numeric_limits<float>::min();
  Vector<float> power(count);
  for (std::size_t c = 0; c < count; ++c) {
    int exponent = 0;  // the least with largest <= 127 * 2^exponent
    const float fraction = std::frexp(scales[c] / 127, &exponent);
    power[c] = std::max(std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent), least);
    scales[c] = std::max(scales[c] / 127, least);
    if (!is_finite(scales[c] * 127)) scales[c] = std::nextafter(scales[c], 0.0f);
  }
  Vector<char> exact(count, 1);
  for (std::size_t i = 0; i < channel.size(); ++i) {
    const double q = double(values[i]) / double(power[channel[i]]);
    exact[channel[i]] &= q == std::nearbyint(q) && std::abs(q) <= 127;
  }
  for (std::size_t c = 0; c < count; ++c)
    if (exact[c]) scales[c] = power[c];
  return scales;
}

}  // namespace detail

/// The extents of `buffer`, the scales of a weight of `extents`.
inline Vector<std::int64_t> extents_of_scales(const BufferInfo& buffer, const Vector<std::int64_t>& extents) {
  Vector<std::int64_t> own;
  for (std::size_t d = 0; d < extents.size(); ++d)
    if (buffer.channels >> d & 1u) own.push_back(extents[d]);
  if (own.empty()) own.push_back(1);
  return own;
}

/// The elements of `buffer`, a copy of the weight whose row-major elements of `extents` are `values`: each is a number
/// of the buffer's type. For scales these, else as many as there are values.
inline Vector<float> stored_elements(const BufferInfo& buffer, const float* values,
                                     const Vector<std::int64_t>& extents) {
  std::size_t size = 1, count = 1;
  for (const std::int64_t extent : extents) size *= std::size_t(extent);
  Vector<float> result(values, values + size);
  if (buffer.dtype == DType::bf16)
    for (float& x : result) x = from_bf16(to_bf16(x));
  if (buffer.dtype == DType::f16)
    for (float& x : result) x = from_f16(to_f16(x));
  if (buffer.dtype == DType::tf32)
    for (float& x : result) x = round_tf32(x);
  if (buffer.dtype != DType::i8 && !buffer.is_scales) return result;
  const Vector<std::size_t> channel = channels_of(extents, buffer.channels, count);
  const Vector<float> scales = detail::scales_of(values, channel, count);
  if (buffer.is_scales) return scales;
  for (std::size_t i = 0; i < size; ++i)
    result[i] = float(std::clamp(std::nearbyint(double(values[i]) / double(scales[channel[i]])), -127.0, 127.0));
  return result;
}

}  // namespace cortex::ir
