// Instructions of LLVM IR: one function per operation of the expression language, on operands that are text already.
// Every rounding is spelled out, and no instruction carries a fast-math flag: results are what the program says.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/codegen/llvm_spelling.hpp"

namespace cortex::codegen {

/// How the greater and the lesser of vectors are found.
enum class Limits {
  by_llvm,          // one instruction, as on ARM, or what LLVM makes of it
  by_logic,         // by those of x86, whose second operand is the result where two do not compare
  by_ternary_logic  // the same, and AVX-512's instruction for any function of three bits
};

/// Appends instructions to a text and gives their results' names.
class LlvmOps {
 public:
  std::string text;                  // the instructions so far
  Vector<std::string> declarations;  // of the functions they call, in an order that does not depend on theirs
  bool converts_f16 = false;         // the machine has an instruction for it
  Limits limits = Limits::by_llvm;

  void declare(const std::string& function) {
    const auto at = std::lower_bound(declarations.begin(), declarations.end(), function);
    if (at == declarations.end() || *at != function) declarations.insert(at, function);
  }

  /// The instructions of a function, and how many names it has.
  struct Function {
    std::string text;
    int names;
  };

  /// Begins another function; returns the one that was begun before.
  Function enter(Function function = {}) {
    return {std::exchange(text, std::move(function.text)), std::exchange(next_, function.names)};
  }

  std::string fresh(std::string_view stem = "v") {
    std::string name = "%";
    name += stem;
    return name += std::to_string(next_++);
  }

  /// One line without a result.
  template <class... Parts>
  void line(const Parts&... parts) {
    text += "  ";
    (append(parts), ...);
    text += '\n';
  }

  /// One instruction; returns its result's name.
  template <class... Parts>
  std::string value(const Parts&... parts) {
    std::string name = fresh();
    line(name, " = ", parts...);
    return name;
  }

  /// A scalar in every lane.
  std::string splat(const std::string& a, ir::Type type) {
    if (type.lanes == 1) return a;
    if (is_constant(a)) return llvm_splat(a, type);
    const std::string t = llvm_type(type);
    const std::string one = value("insertelement ", t, " poison, ", llvm_scalar(type.dtype), " ", a, ", i64 0");
    return value("shufflevector ", t, " ", one, ", ", t, " poison, ", llvm_type({DType::i32, type.lanes}),
                 " zeroinitializer");
  }

  /// base, base + 1, ...
  std::string ramp(const std::string& base, ir::Type type) {
    std::string steps = "<";
    for (int lane = 0; lane < type.lanes; ++lane) {
      if (lane) steps += ", ";
      steps.append(llvm_scalar(type.dtype)).append(" ").append(std::to_string(lane));
    }
    steps += ">";
    return base == "0" ? steps : value("add nsw ", llvm_type(type), " ", splat(base, type), ", ", steps);
  }

  std::string lane(const std::string& vector, ir::Type type, int lane) {
    return value("extractelement ", llvm_type(type), " ", vector, ", i64 ", std::to_string(lane));
  }

  std::string with_lane(const std::string& vector, ir::Type type, int lane, const std::string& scalar) {
    return value("insertelement ", llvm_type(type), " ", vector, ", ", llvm_scalar(type.dtype), " ", scalar, ", i64 ",
                 std::to_string(lane));
  }

  std::string unary(ir::UnaryOp op, ir::Type type, const std::string& a) {
    using ir::UnaryOp;
    const std::string t = llvm_type(type);
    if (op == UnaryOp::logical_not) return value("xor ", t, " ", a, ", ", llvm_splat("true", type));
    if (is_int(type.dtype)) return integer_unary(op, type, a);
    need(is_float(type.dtype), "arithmetic on booleans");
    switch (op) {
      case UnaryOp::neg: return value("fneg ", t, " ", a);
      case UnaryOp::abs: return intrinsic("fabs", type, {a});
      case UnaryOp::sqrt: return intrinsic("sqrt", type, {a});
      case UnaryOp::round: return intrinsic("rint", type, {a});
      case UnaryOp::relu: {  // an ordered comparison is false for NaN, which stays
        const std::string zero = llvm_constant(0, type);
        return select(type, value("fcmp olt ", t, " ", a, ", ", zero), zero, a);
      }
      case UnaryOp::floor: return intrinsic("floor", type, {a});
      case UnaryOp::exp: return library("exp", type, {a});
      case UnaryOp::log: return library("log", type, {a});
      case UnaryOp::tanh: return library("tanh", type, {a});
      case UnaryOp::erf: return library("erf", type, {a});
      case UnaryOp::sin: return library("sin", type, {a});
      case UnaryOp::cos: return library("cos", type, {a});
      case UnaryOp::log1p: return library("log1p", type, {a});
      case UnaryOp::expm1: return library("expm1", type, {a});
      case UnaryOp::exponent: return taken_apart(type, a, true);
      case UnaryOp::significand: return taken_apart(type, a, false);
      case UnaryOp::sigmoid: {
        const std::string one = llvm_constant(1, type), power = unary(UnaryOp::exp, type, unary(UnaryOp::neg, type, a));
        return value("fdiv ", t, " ", one, ", ", value("fadd ", t, " ", one, ", ", power));
      }
      case UnaryOp::logical_not: break;
    }
    throw Error(Code::internal, "LLVM text: a unary operator of an unknown kind");
  }

  // ---- a matrix unit's registers, 0 to 7 ----

  /// The address so many bytes after `pointer`.
  std::string at(const std::string& pointer, int bytes) {
    return bytes ? value("getelementptr i8, ptr ", pointer, ", i64 ", std::to_string(bytes)) : pointer;
  }
  void zero_tile(int to) {
    declare("declare void @llvm.x86.tilezero(i8 immarg)");
    line("call void @llvm.x86.tilezero(i8 ", std::to_string(to), ")");
  }
  void load_tile(int to, const std::string& pointer, int bytes) {
    declare("declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)");
    line("call void @llvm.x86.tileloadd64(i8 ", std::to_string(to), ", ptr ", at(pointer, bytes), ", i64 64)");
  }
  void store_tile(int from, const std::string& pointer, int bytes) {
    declare("declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)");
    line("call void @llvm.x86.tilestored64(i8 ", std::to_string(from), ", ptr ", at(pointer, bytes), ", i64 64)");
  }
  void multiply_tiles(int sum, int rows, int weights) {
    declare("declare void @llvm.x86.tdpbf16ps(i8 immarg, i8 immarg, i8 immarg)");
    line("call void @llvm.x86.tdpbf16ps(i8 ", std::to_string(sum), ", i8 ", std::to_string(rows), ", i8 ",
         std::to_string(weights), ")");
  }

  /// `type` is that of the operands. `wraps`: integers that may be any.
  std::string binary(ir::BinaryOp op, ir::Type type, const std::string& a, const std::string& b, bool wraps = false) {
    using ir::BinaryOp;
    if (ir::is_comparison(op)) return compare(op, type, a, b);
    if (op == BinaryOp::logical_and) return value("and ", llvm_type(type), " ", a, ", ", b);
    if (op == BinaryOp::logical_or) return value("or ", llvm_type(type), " ", a, ", ", b);
    need(type.dtype != DType::boolean, "arithmetic on booleans");
    const bool real = is_float(type.dtype);
    const std::string t = llvm_type(type);
    switch (op) {
      case BinaryOp::min: return real ? least(type, a, b) : intrinsic("smin", type, {a, b});
      case BinaryOp::max: return real ? greatest(type, a, b) : intrinsic("smax", type, {a, b});
      case BinaryOp::ldexp: return ldexp(type, a, b);
      case BinaryOp::pow: return library("pow", type, {a, b});
      case BinaryOp::ratio: return value(real_opcode(BinaryOp::div), " ", t, " ", a, ", ", b);
      case BinaryOp::div:
      case BinaryOp::mod:
        if (!real) return wraps ? divide(op, type, a, b) : value(opcode(op), " ", t, " ", a, ", ", divisor(type, b));
        [[fallthrough]];
      default: return value(real ? real_opcode(op) : opcode(op), real || wraps ? " " : " nsw ", t, " ", a, ", ", b);
    }
  }

  std::string fma(ir::Type type, const std::string& a, const std::string& b, const std::string& c) {
    return intrinsic("fma", type, {a, b, c});
  }

  std::string select(ir::Type type, const std::string& condition, const std::string& a, const std::string& b) {
    const std::string t = llvm_type(type);
    return value("select ", llvm_type({DType::boolean, type.lanes}), " ", condition, ", ", t, " ", a, ", ", t, " ", b);
  }

  std::string cast(ir::Type from, DType to, const std::string& a) {
    if (from.dtype == to) return a;
    if (is_narrow(from.dtype)) return widen(from, to, a);
    if (to == DType::bf16 && from.dtype == DType::f32) return narrow_to_bf16(from.lanes, a);
    const std::string f = llvm_type(from), t = llvm_type({to, from.lanes});
    if (to == DType::boolean)
      return value(is_float(from.dtype) ? "fcmp une " : "icmp ne ", f, " ", a, ", ", llvm_constant(0, from));
    return value(conversion(from.dtype, to), " ", f, " ", a, " to ", t);
  }

 private:
  void append(std::string_view part) { text += part; }

  static void need(bool condition, const char* what) {
    if (!condition) throw Error(Code::internal, std::string("LLVM text: ") + what);
  }

  static constexpr std::string_view conversion(DType from, DType to) {
    if (from == DType::boolean) return is_float(to) ? "uitofp" : "zext";
    if (is_int(from) && is_int(to)) return to == DType::i64 ? "sext" : "trunc";
    if (is_int(from)) return "sitofp";
    if (is_int(to)) return "fptosi";
    return to == DType::f64 ? "fpext" : "fptrunc";
  }

  static std::string_view real_opcode(ir::BinaryOp op) {
    constexpr std::string_view names[] = {"fadd", "fsub", "fmul", "fdiv", "frem"};
    return names[std::size_t(op)];
  }

  /// Indices and counts do not overflow, which `nsw` tells LLVM, so that it may widen them. Fields may be negative, and
  /// are divided as in C++.
  static std::string_view opcode(ir::BinaryOp op) {
    constexpr std::string_view names[] = {"add", "sub", "mul", "sdiv", "srem"};
    return names[std::size_t(op)];
  }

  /// Both arms of a select are evaluated, so a division by zero that is not chosen must be harmless: it divides by 1.
  std::string divisor(ir::Type type, const std::string& b) {
    if (is_constant(b) && b != llvm_constant(0, type)) return b;
    const std::string is_zero = value("icmp eq ", llvm_type(type), " ", b, ", ", llvm_constant(0, type));
    return select(type, is_zero, llvm_constant(1, type), b);
  }

  /// A quotient or remainder of any numbers. The least number divided by -1 would trap as division by 0 does: it wraps.
  std::string divide(ir::BinaryOp op, ir::Type type, const std::string& a, const std::string& b) {
    const std::string t = llvm_type(type), zero = llvm_constant(0, type), one = llvm_constant(1, type);
    const std::string above = value("add ", t, " ", b, ", ", one);
    const std::string safe = select(type, value("icmp ult ", t, " ", above, ", ", llvm_constant(2, type)), one, b);
    const std::string result = value(opcode(op), " ", t, " ", a, ", ", safe);
    if (op == ir::BinaryOp::mod) return result;
    const std::string negative = value("sub ", t, " ", zero, ", ", a);
    return select(type, value("icmp eq ", t, " ", above, ", ", zero), negative, result);
  }

  std::string integer_unary(ir::UnaryOp op, ir::Type type, const std::string& a) {
    const std::string t = llvm_type(type);
    switch (op) {
      case ir::UnaryOp::neg: return value("sub ", t, " ", llvm_constant(0, type), ", ", a);
      case ir::UnaryOp::relu: return intrinsic("smax", type, {a, llvm_constant(0, type)});
      case ir::UnaryOp::round: return a;
      case ir::UnaryOp::abs:
        declare("declare " + t + " @llvm.abs." + llvm_suffix(type) + "(" + t + ", i1)");
        return value("call ", t, " @llvm.abs.", llvm_suffix(type), "(", t, " ", a, ", i1 false)");
      default: throw Error(Code::internal, "LLVM text: a transcendental function of integers");
    }
  }

  /// Comparisons of floats are ordered, except that NaN differs from everything.
  std::string compare(ir::BinaryOp op, ir::Type type, const std::string& a, const std::string& b) {
    const std::size_t which = std::size_t(op) - std::size_t(ir::BinaryOp::eq);
    constexpr std::string_view reals[] = {"oeq", "une", "olt", "ole", "ogt", "oge"};
    constexpr std::string_view integers[] = {"eq", "ne", "slt", "sle", "sgt", "sge"};
    constexpr std::string_view booleans[] = {"eq", "ne", "ult", "ule", "ugt", "uge"};
    const auto& names = is_float(type.dtype) ? reals : is_int(type.dtype) ? integers : booleans;
    return value(is_float(type.dtype) ? "fcmp " : "icmp ", names[which], " ", llvm_type(type), " ", a, ", ", b);
  }

  /// The f32 that an element of 16 bits or 8 stands for: exact.
  std::string widen(ir::Type from, DType to, const std::string& a) {
    need(to == DType::f32, "a stored element becomes an f32");
    const std::string f = llvm_type(from), t = llvm_type({to, from.lanes}), i = llvm_type({DType::i32, from.lanes});
    if (from.dtype == DType::i8) return value("sitofp ", f, " ", a, " to ", t);
    if (from.dtype == DType::f16) return converts_f16 ? widen_by_machine(from, a) : widen_f16(from.lanes, a);
    const std::string bits = value("zext ", f, " ", a, " to ", i);
    return value("bitcast ", i, " ", shifted(bits, 16, from.lanes), " to ", t);
  }

  /// For machines that have an instruction for it, as those with a matrix unit do: without, LLVM would call a function
  /// that is not there.
  std::string narrow_to_bf16(int lanes, const std::string& a) {
    const std::string brain = lanes == 1 ? "bfloat" : "<" + std::to_string(lanes) + " x bfloat>";
    const std::string rounded = value("fptrunc ", llvm_type({DType::f32, lanes}), " ", a, " to ", brain);
    return value("bitcast ", brain, " ", rounded, " to ", llvm_type({DType::bf16, lanes}));
  }

  std::string widen_by_machine(ir::Type from, const std::string& a) {
    const std::string half = from.lanes == 1 ? "half" : "<" + std::to_string(from.lanes) + " x half>";
    return value("fpext ", half, " ", value("bitcast ", llvm_type(from), " ", a, " to ", half), " to ",
                 llvm_type({DType::f32, from.lanes}));
  }

  /// By its bits, as `from_f16` does it: without the instruction, LLVM would call a function that is not there.
  std::string widen_f16(int lanes, const std::string& a) {
    const ir::Type bits{DType::i32, lanes}, real{DType::f32, lanes};
    const std::string i = llvm_type(bits), t = llvm_type(real);
    const auto constant = [&](double x) { return llvm_constant(x, bits); };
    const std::string all = value("zext ", llvm_type({DType::f16, lanes}), " ", a, " to ", i);
    const std::string magnitude = value("and ", i, " ", all, ", ", constant(0x7FFF));
    const std::string sign = shifted(value("and ", i, " ", all, ", ", constant(0x8000)), 16, lanes);
    const std::string placed = shifted(magnitude, 13, lanes);
    const std::string normal = value("add ", i, " ", placed, ", ", constant(112 << 23));
    const std::string special = value("add ", i, " ", placed, ", ", constant(224 << 23));  // infinity, NaN
    const std::string tiny =
        value("fmul ", t, " ", value("uitofp ", i, " ", magnitude, " to ", t), ", ", llvm_constant(0x1p-24, real));
    const std::string is_special = value("icmp uge ", i, " ", magnitude, ", ", constant(0x7C00)),
                      is_tiny = value("icmp ult ", i, " ", magnitude, ", ", constant(0x400));
    const std::string large = select(bits, is_special, special, normal);
    const std::string chosen = select(bits, is_tiny, value("bitcast ", t, " ", tiny, " to ", i), large);
    return value("bitcast ", i, " ", value("or ", i, " ", chosen, ", ", sign), " to ", t);
  }

  std::string shifted(const std::string& a, int by, int lanes) {
    const ir::Type bits{DType::i32, lanes};
    return value("shl ", llvm_type(bits), " ", a, ", ", llvm_constant(by, bits));
  }

  /// The exponent or the significand of a positive normal number: of what its bits lie above those of 2/3, the part
  /// that is the exponent's.
  std::string taken_apart(ir::Type type, const std::string& a, bool exponent) {
    const bool narrow = type.dtype == DType::f32;
    const ir::Type bits{narrow ? DType::i32 : DType::i64, type.lanes};
    const std::string t = llvm_type(type), i = llvm_type(bits);
    const auto constant = [&](std::int64_t x) { return llvm_splat(std::to_string(x), bits); };
    const std::string places = constant(narrow ? 23 : 52);
    const std::string all = value("bitcast ", t, " ", a, " to ", i);
    const std::string above = value("sub ", i, " ", all, ", ", constant(narrow ? 0x3f2aaaab : 0x3fe5555555555555));
    const std::string whole = value("ashr ", i, " ", above, ", ", places);
    if (exponent) return value("sitofp ", i, " ", whole, " to ", t);
    const std::string left = value("sub ", i, " ", all, ", ", value("shl ", i, " ", whole, ", ", places));
    return value("bitcast ", i, " ", left, " to ", t);
  }

  /// a * 2^b by building 2^b in the exponent's bits. For a NaN b, where the conversion gives nothing definite, a is NaN
  /// too: the freeze keeps the product from becoming indefinite with it.
  std::string ldexp(ir::Type type, const std::string& a, const std::string& b) {
    need(is_float(type.dtype), "ldexp of integers");
    const bool narrow = type.dtype == DType::f32;
    const ir::Type bits{narrow ? DType::i32 : DType::i64, type.lanes};
    const std::string t = llvm_type(type), i = llvm_type(bits);
    const std::string whole = value("freeze ", i, " ", value("fptosi ", t, " ", b, " to ", i));
    const std::string biased = value("add ", i, " ", whole, ", ", llvm_constant(narrow ? 127 : 1023, bits));
    const std::string placed = value("shl ", i, " ", biased, ", ", llvm_constant(narrow ? 23 : 52, bits));
    return value("fmul ", t, " ", a, ", ", value("bitcast ", i, " ", placed, " to ", t));
  }

  struct Both {
    std::string x, y;
  };
  /// What x86's minimum or maximum gives for two vectors, asked both ways round, as integers. They differ where the two
  /// do not compare: one has a NaN's bits, or they are the two zeros.
  Both both_ways(std::string_view order, ir::Type type, const std::string& a, const std::string& b) {
    const std::string t = llvm_type(type), i = llvm_type(bits_of(type));
    const auto second_of = [&](const std::string& x, const std::string& y) {
      const std::string chosen = select(type, value("fcmp ", order, " ", t, " ", x, ", ", y), x, y);
      return value("bitcast ", t, " ", chosen, " to ", i);
    };
    const std::string one = second_of(a, b);
    return {one, second_of(b, a)};
  }

  /// NaN if either is, and -0 is less than 0.
  std::string least(ir::Type type, const std::string& a, const std::string& b) {
    if (limits == Limits::by_llvm || type.lanes == 1) return intrinsic("minimum", type, {a, b});
    const auto [x, y] = both_ways("olt", type, a, b);
    const std::string i = llvm_type(bits_of(type));
    return value("bitcast ", i, " ", value("or ", i, " ", x, ", ", y), " to ", llvm_type(type));
  }

  /// The same of the greater, whose sign bit is that of both and whose others are those of either.
  std::string greatest(ir::Type type, const std::string& a, const std::string& b) {
    if (limits == Limits::by_llvm || type.lanes == 1) return intrinsic("maximum", type, {a, b});
    const auto [x, y] = both_ways("ogt", type, a, b);
    const std::string i = llvm_type(bits_of(type)), all_but_sign = magnitude_mask(type);
    const int register_bits = type.lanes * int(size_of(type.dtype)) * 8;
    const bool whole = register_bits == 128 || register_bits == 256 || register_bits == 512;
    std::string bits;
    if (limits == Limits::by_ternary_logic && whole) {
      const std::string function = std::string("@llvm.x86.avx512.pternlog.") +
                                   (type.dtype == DType::f32 ? "d." : "q.") + std::to_string(register_bits);
      declare("declare " + i + " " + function + "(" + i + ", " + i + ", " + i + ", i32 immarg)");
      constexpr std::string_view majority = "232";  // what two of three say
      bits = value("call ", i, " ", function, "(", i, " ", x, ", ", i, " ", y, ", ", i, " ", all_but_sign, ", i32 ",
                   majority, ")");
    } else {
      const std::string either = value("and ", i, " ", value("or ", i, " ", x, ", ", y), ", ", all_but_sign);
      bits = value("or ", i, " ", value("and ", i, " ", x, ", ", y), ", ", either);
    }
    return value("bitcast ", i, " ", bits, " to ", llvm_type(type));
  }

  static ir::Type bits_of(ir::Type type) { return {type.dtype == DType::f32 ? DType::i32 : DType::i64, type.lanes}; }
  static std::string magnitude_mask(ir::Type type) {
    return llvm_splat(type.dtype == DType::f32 ? "2147483647" : "9223372036854775807", bits_of(type));
  }

  std::string intrinsic(std::string_view name, ir::Type type, std::initializer_list<std::string_view> operands) {
    const std::string t = llvm_type(type);
    std::string callee = " @llvm.", types, values;
    callee.append(name).append(".").append(llvm_suffix(type));
    for (const std::string_view operand : operands) {
      if (!types.empty()) types += ", ", values += ", ";
      types += t;
      values.append(t).append(" ").append(operand);
    }
    declare("declare " + t + callee + "(" + types + ")");
    return value("call ", t, callee, "(", values, ")");
  }

  /// A function of the C library, lane by lane. Attribute group 1 says that it has no effect but its result.
  std::string library(std::string name, ir::Type type, std::initializer_list<std::string_view> operands) {
    if (type.dtype == DType::f32) name += "f";
    const std::string scalar(llvm_scalar(type.dtype));
    std::string types;
    for (std::size_t i = 0; i < operands.size(); ++i) types += (i ? ", " : "") + scalar;
    declare("declare " + scalar + " @" + name + "(" + types + ") #1");
    const auto call_of = [&](int at) {
      std::string arguments;
      for (const std::string_view operand : operands)
        arguments += (arguments.empty() ? "" : ", ") + scalar + " " +
                     (type.lanes == 1 ? std::string(operand) : lane(std::string(operand), type, at));
      return value("call ", scalar, " @", name, "(", arguments, ")");
    };
    if (type.lanes == 1) return call_of(0);
    std::string result = "poison";
    for (int i = 0; i < type.lanes; ++i) result = with_lane(result, type, i, call_of(i));
    return result;
  }

  int next_ = 0;
};

}  // namespace cortex::codegen
