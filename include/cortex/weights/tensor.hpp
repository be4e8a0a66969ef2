// Tensors as files of weights hold them: element types, views, and elements read as C++ numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cortex/base/error.hpp"
#include "cortex/base/half.hpp"
#include "cortex/base/names.hpp"
#include "cortex/base/usual_arithmetic.hpp"

namespace cortex {

/// The element types that files hold, under the names that safetensors gives them.
enum class TensorType : std::uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL };

namespace weights {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr TypeFacts type_facts[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                           {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
                                           {"U16", 2}, {"U8", 1},  {"BOOL", 1}};

constexpr bool is_floating(TensorType type) { return type <= TensorType::BF16; }

/// The type of a file's elements that are `T` in memory.
template <class T>
constexpr TensorType tensor_type() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, long double>, "the elements of a tensor are numbers");
  constexpr int size = sizeof(T) == 8 ? 0 : sizeof(T) == 4 ? 1 : sizeof(T) == 2 ? 2 : 3;
  if constexpr (std::is_same_v<T, bool>) return TensorType::BOOL;
  if constexpr (std::is_floating_point_v<T>) return TensorType(int(TensorType::F64) + size);
  return TensorType(int(std::is_signed_v<T> ? TensorType::I64 : TensorType::U64) + size);
}

}  // namespace weights

/// "BF16"
constexpr std::string_view to_string(TensorType type) { return weights::type_facts[std::size_t(type)].name; }

/// Bytes of one element in a file.
constexpr std::size_t size_of(TensorType type) { return weights::type_facts[std::size_t(type)].bytes; }

/// A tensor in a file: its elements are `bytes`, little-endian and in row-major order of `shape`. A scalar has no
/// dimensions and one element; a tensor with a dimension of 0 has none. `bytes` may be unaligned.
struct TensorView {
  std::string name;
  TensorType type = TensorType::F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  std::int64_t size() const { return std::int64_t(bytes.size() / size_of(type)); }
};

namespace weights {

[[noreturn]] inline void refuse(const std::string& source, const std::string& what) {
  throw Error(Code::invalid_weights, source + ": " + what);
}

/// A whole path, which systems keep short.
inline std::string quoted_path(const std::filesystem::path& path) {
  return in_quotes(path.native(), std::string_view::npos);
}

/// "[4, 256]"
inline std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

template <class From>
From element(const std::byte* at, std::size_t i) {
  From value;
  std::memcpy(&value, at + i * sizeof(From), sizeof(From));
  return value;
}

/// Every element of `tensor` as a `To`, which must be a type that `reads_as` allows. Rounds once, from double to float,
/// to the nearest whatever the thread does otherwise.
template <class To>
void convert(const TensorView& tensor, std::span<To> out) {
  const UsualArithmetic usual;
  const std::byte* const at = tensor.bytes.data();
  if (tensor.type == tensor_type<To>()) {
    if (!out.empty()) std::memcpy(out.data(), at, out.size_bytes());
    return;
  }
  const auto all = [&](auto read) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<To>(read(at, i));
  };
  switch (tensor.type) {
    case TensorType::F64: return all(element<double>);
    case TensorType::F32: return all(element<float>);
    case TensorType::F16: return all([](auto... from) { return from_f16(element<std::uint16_t>(from...)); });
    case TensorType::BF16: return all([](auto... from) { return from_bf16(element<std::uint16_t>(from...)); });
    case TensorType::I64: return all(element<std::int64_t>);
    case TensorType::I32: return all(element<std::int32_t>);
    case TensorType::I16: return all(element<std::int16_t>);
    case TensorType::I8: return all(element<std::int8_t>);
    case TensorType::U64: return all(element<std::uint64_t>);
    case TensorType::U32: return all(element<std::uint32_t>);
    case TensorType::U16: return all(element<std::uint16_t>);
    case TensorType::U8:
    case TensorType::BOOL: return all(element<std::uint8_t>);
  }
}

/// Whether elements of `type` are read as `To`: floating-point types as floating-point types, and integers as the
/// integer types that hold all their values. Booleans are integers of 8 bits.
template <class To>
constexpr bool reads_as(TensorType type) {
  if (std::is_floating_point_v<To> || is_floating(type)) return std::is_floating_point_v<To> && is_floating(type);
  const bool is_signed = type >= TensorType::I64 && type <= TensorType::I8;
  return (std::is_signed_v<To> || !is_signed) &&
         8 * int(size_of(type)) - int(is_signed) <= std::numeric_limits<To>::digits;
}

}  // namespace weights
}  // namespace cortex
