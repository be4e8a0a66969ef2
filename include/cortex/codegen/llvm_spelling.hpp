// How types, constants and names are spelled in LLVM IR.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "cortex/ir/expr.hpp"

namespace cortex::codegen {

/// Of 16-bit floats the bits: LLVM's own types call functions that no library of the machine has.
constexpr std::string_view llvm_scalar(DType type) {
  switch (type) {
    case DType::boolean: return "i1";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::bf16:
    case DType::f16: return "i16";
    case DType::i8: return "i8";
    case DType::tf32: break;  // for tensor cores
  }
  return "?";
}

/// `float`, `<16 x float>`.
inline std::string llvm_type(ir::Type type) {
  const std::string scalar(llvm_scalar(type.dtype));
  return type.lanes == 1 ? scalar : "<" + std::to_string(type.lanes) + " x " + scalar + ">";
}

/// The end of an overloaded intrinsic's name: `f32`, `v16f32`.
inline std::string llvm_suffix(ir::Type type) {
  const std::string scalar(type.dtype == DType::boolean ? "i1" : to_string(type.dtype));
  return type.lanes == 1 ? scalar : "v" + std::to_string(type.lanes) + scalar;
}

/// A floating-point constant by its bits, so that the text says exactly the value: LLVM spells a float by the double
/// that equals it.
inline std::string llvm_float(double value, DType type) {
  const double exact = type == DType::f32 ? double(float(value)) : value;
  constexpr char digits[] = "0123456789ABCDEF";
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(std::bit_cast<std::uint64_t>(exact) >> shift) & 15];
  return text;
}

inline std::string llvm_int(std::int64_t value, DType type) {
  if (type == DType::boolean) return value ? "true" : "false";
  return std::to_string(value);
}

/// Whether an operand is a constant: what is computed has a name.
inline bool is_constant(std::string_view operand) { return operand.front() != '%'; }

/// A constant in every lane.
inline std::string llvm_splat(std::string_view constant, ir::Type type) {
  if (type.lanes == 1) return std::string(constant);
  std::string text = "splat (";
  text += llvm_scalar(type.dtype);
  text += ' ';
  text += constant;
  return text += ')';
}

/// The constant `value` of `type`, an integer if the type is one.
inline std::string llvm_constant(double value, ir::Type type) {
  return llvm_splat(is_float(type.dtype) ? llvm_float(value, type.dtype) : llvm_int(std::int64_t(value), type.dtype),
                    type);
}

constexpr bool is_plain(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// A user's name for a comment: whatever could end the comment or upset a reader becomes an underscore.
inline std::string sanitized(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (!is_plain(c)) c = '_';
  return text;
}

/// Whether `name` can be the name of a function without quotes, in the text and in an object's symbol table.
inline bool is_symbol(std::string_view name) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  for (const char c : name)
    if (!is_plain(c)) return false;
  return true;
}

}  // namespace cortex::codegen
