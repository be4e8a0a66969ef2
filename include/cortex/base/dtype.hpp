// Element types of tensors and expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cortex {

/// Expressions are of the first five. The others are what weights can be stored as: they are widened to f32 where they
/// are read (`Schedule::store`). A cast of f32 to bf16, f16 or tf32 rounds what tensor cores multiply; tf32 is f32 with
/// the fraction of f16.
enum class DType : std::uint8_t { boolean, i32, i64, f32, f64, bf16, f16, i8, tf32 };

constexpr bool is_float(DType type) { return type == DType::f32 || type == DType::f64; }
constexpr bool is_int(DType type) { return type == DType::i32 || type == DType::i64; }
constexpr bool is_narrow(DType type) { return type >= DType::bf16; }

/// Bytes of one element in memory.
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::i8: return 1;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::i32:
    case DType::f32:
    case DType::tf32: return 4;
    case DType::i64:
    case DType::f64: return 8;
  }
  return 0;
}

constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::boolean: return "bool";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::i8: return "i8";
    case DType::tf32: return "tf32";
  }
  return "?";
}

template <class T>
struct dtype_of_t;
template <>
struct dtype_of_t<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of_t<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of_t<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of_t<std::int64_t> {
  static constexpr DType value = DType::i64;
};

/// The DType of a C++ arithmetic type: `dtype_of<float> == DType::f32`.
template <class T>
inline constexpr DType dtype_of = dtype_of_t<T>::value;

}  // namespace cortex
