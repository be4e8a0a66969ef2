// Weights as they are stored, in bytes: behind the compile seam, since most models have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/stored.hpp"

namespace cortex::runtime {

namespace detail {

/// "element [3, 17] is 70000, which f16, as which the schedule stores it, does not hold"
inline std::string not_held(DType type, float value, std::size_t number, const Vector<std::int64_t>& extents) {
  std::string place;
  for (std::size_t d = extents.size(); d-- > 0; number /= std::size_t(extents[d]))
    place = std::to_string(number % std::size_t(extents[d])) + (place.empty() ? "" : ", ") + place;
  char text[32];
  std::snprintf(text, sizeof text, "%g", double(value));
  return "element [" + place + "] is " + text + ", which " + std::string(to_string(type)) +
         ", as which the schedule stores it, does not hold" +
         (type == DType::f16    ? ": its largest is 65504"
          : type == DType::bf16 ? ": its largest is 3.38953e+38"
                                : "");
}

template <class Stored, class Convert>
Vector<std::byte> bytes_of(const Vector<float>& elements, Convert convert) {
  Vector<std::byte> bytes(elements.size() * sizeof(Stored));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Stored element = convert(elements[i]);
    std::memcpy(&bytes[i * sizeof(Stored)], &element, sizeof(Stored));
  }
  return bytes;
}

}  // namespace detail

/// `Executable::store`.
inline Vector<std::byte> store_weight(const ir::BufferInfo& buffer, const float* values, Vector<std::int64_t>& extents,
                                      std::string& fault) {
  std::size_t count = 1;
  for (const std::int64_t extent : extents) count *= std::size_t(extent);
  const DType type = buffer.is_scales ? DType::i8 : buffer.dtype;
  if (const auto at = ir::unstorable(type, values, count)) {
    fault = detail::not_held(type, values[*at], *at, extents);
    return {};
  }
  const Vector<float> elements = ir::stored_elements(buffer, values, extents);
  if (buffer.is_scales) extents = ir::extents_of_scales(buffer, extents);
  switch (buffer.dtype) {
    case DType::bf16: return detail::bytes_of<std::uint16_t>(elements, to_bf16);
    case DType::f16: return detail::bytes_of<std::uint16_t>(elements, to_f16);
    case DType::i8: return detail::bytes_of<std::int8_t>(elements, [](float x) { return std::int8_t(x); });
    default: return detail::bytes_of<float>(elements, [](float x) { return x; });
  }
}

}  // namespace cortex::runtime
