// How types, constants and operations are written in CUDA C++. Every rounding is spelled out, by the prelude's
// functions where C++ does not say which: results are what the program says, with `-fmad=false`.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "cortex/codegen/memo.hpp"
#include "cortex/ir/expr.hpp"

namespace cortex::codegen {

constexpr std::string_view cuda_scalar(DType type) {
  switch (type) {
    case DType::boolean: return "bool";
    case DType::i32: return "int";
    case DType::i64: return "long long";
    case DType::f32:
    case DType::tf32: return "float";
    case DType::f64: return "double";
    case DType::bf16:
    case DType::f16: return "unsigned short";  // bits; `cuda_cast` makes numbers of them
    case DType::i8: return "signed char";
  }
  return "?";
}

inline std::string cuda_int(std::int64_t value, DType type) {
  if (type == DType::boolean) return value ? "true" : "false";
  std::string text = std::to_string(value);
  if (type == DType::i64) text += "ll";
  return value < 0 ? "(" + text + ")" : text;
}

/// The shortest usual spelling that gives exactly the value back.
inline std::string cuda_float(double value, DType type) {
  const bool narrow = type == DType::f32;
  if (narrow) value = double(float(value));
  if (std::isnan(value)) return narrow ? "bits_to_real(0x7fc00000)" : "bits_to_real(0x7ff8000000000000ll)";
  if (std::isinf(value)) {
    const std::string bits = narrow ? "bits_to_real(0x7f800000)" : "bits_to_real(0x7ff0000000000000ll)";
    return value < 0 ? "(-" + bits + ")" : bits;
  }
  char digits[40];  // with a point in any locale
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, narrow ? 9 : 17);
  std::string text(digits, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (narrow) text += 'f';
  return std::signbit(value) ? "(" + text + ")" : text;
}

[[noreturn]] inline void refuse_cuda(const std::string& what) { throw Error(Code::internal, "CUDA text: " + what); }

/// `wraps`: of integers that may be any.
inline std::string cuda_unary(ir::UnaryOp op, DType type, const std::string& a, bool wraps = false) {
  using ir::UnaryOp;
  if (op == UnaryOp::logical_not) return "!" + a;
  const std::string minus_a = wraps && type == DType::i32 ? "sub_(0, " + a + ")" : "-" + a;
  if (op == UnaryOp::neg) return minus_a;
  if (is_int(type)) {
    if (op == UnaryOp::relu) return a + " < 0 ? 0 : " + a;
    if (op == UnaryOp::abs) return a + " < 0 ? " + minus_a + " : " + a;
    if (op == UnaryOp::round) return a;
    refuse_cuda("a transcendental function of integers");
  }
  if (!is_float(type)) refuse_cuda("arithmetic on booleans");
  constexpr std::string_view names[] = {"",         "abs_",  "exp_",   "log_",   "sqrt_",     "tanh_",
                                        "sigmoid_", "relu_", "round_", "",       "floor_",    "erf_",
                                        "sin_",     "cos_",  "log1p_", "expm1_", "exponent_", "significand_"};
  return std::string(names[std::size_t(op)]) + "(" + a + ")";
}

inline std::string cuda_cast(DType to, DType from, const std::string& a) {
  if (from == DType::bf16) return "from_bf16(" + a + ")";  // weights as they are stored: to f32, exactly
  if (from == DType::f16) return "from_f16(" + a + ")";
  if (to == DType::boolean) return a + " != 0";
  return "(" + std::string(cuda_scalar(to)) + ")" + a;
}

/// `type` is that of the operands, which are made of `of`. What counts are subtracted from may be negative.
inline std::string cuda_binary(ir::BinaryOp op, DType type, const std::string& a, const std::string& b, MadeOf of) {
  using ir::BinaryOp;
  if (type == DType::boolean && op < BinaryOp::eq) refuse_cuda("arithmetic on booleans");
  const bool divides = op == BinaryOp::div || op == BinaryOp::mod;
  const bool any = of == MadeOf::anything || (divides && of == MadeOf::counts);
  if (any && type == DType::i32 && op <= BinaryOp::mod) {
    constexpr std::string_view names[] = {"add_", "sub_", "mul_", "quotient_", "remainder_"};
    return std::string(names[std::size_t(op)]) + "(" + a + ", " + b + ")";
  }
  if (op == BinaryOp::mod && is_float(type)) refuse_cuda("a remainder of floating-point numbers");
  if (op == BinaryOp::min || op == BinaryOp::max || op >= BinaryOp::ldexp || (divides && is_int(type))) {
    const char* name = op == BinaryOp::min     ? "min_("
                       : op == BinaryOp::max   ? "max_("
                       : op == BinaryOp::div   ? "div_("
                       : op == BinaryOp::mod   ? "mod_("
                       : op == BinaryOp::ldexp ? "ldexp_("
                       : op == BinaryOp::pow   ? "pow_("
                                               : "ratio_(";
    return name + a + ", " + b + ")";
  }
  constexpr std::string_view signs[] = {"+", "-", "*", "/", "%", "", "", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
  return a + " " + std::string(signs[std::size_t(op)]) + " " + b;
}

}  // namespace cortex::codegen
