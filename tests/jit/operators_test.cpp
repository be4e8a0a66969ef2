#include <algorithm>
#include <limits>

#include "cortex/base/half.hpp"
#include "kernels.hpp"

using namespace cortex;
using namespace cortex::ir;
using namespace cortex::test;

namespace {

/// 48 pairs of numbers: ordinary ones, both zeros, infinities, NaN, each against others.
template <class T>
struct Samples {
  std::vector<T> x, y, z;
  Samples() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values;
    if constexpr (std::is_floating_point_v<T>)
      values = {T(0),
                T(-0.0),
                T(1),
                T(-1),
                T(0.3),
                T(-2.5),
                T(3.5),
                T(17.25),
                Limits::infinity(),
                -Limits::infinity(),
                Limits::quiet_NaN(),
                T(1e-30)};
    else
      values = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};
    for (int i = 0; i < 48; ++i) {
      x.push_back(values[std::size_t(i % 12)]);
      y.push_back(values[std::size_t((i + i / 12 * 5) % 12)]);
      z.push_back(values[std::size_t((i * 7 + 3) % 12)]);
    }
  }
};

/// Checks a binary operator against its meaning in C++, on scalars and on vectors.
template <class T, class F>
void check(BinaryOp op, F&& meaning, codegen::Limits limits = codegen::Limits::by_llvm) {
  const Samples<T> s;
  for (const int lanes : {1, 4, 16}) {
    const auto got = map<T>(
        lanes, s.x, s.y, s.z, [&](Expr a, Expr b, Expr) { return Binary::make(op, a, b); }, limits);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("operator " << int(op) << ", lanes " << lanes << ", of " << s.x[i] << " and " << s.y[i] << ": " << got[i]);
      CHECK(same<T>(got[i], meaning(s.x[i], s.y[i])));
    }
  }
}

template <class T, class F>
void check(UnaryOp op, F&& meaning, std::vector<T> x = Samples<T>().x) {
  for (const int lanes : {1, 4, 16}) {
    const auto got = map<T>(lanes, x, x, x, [&](Expr a, Expr, Expr) { return Unary::make(op, a); });
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("operator " << int(op) << ", lanes " << lanes << ", of " << x[i] << ": " << got[i]);
      CHECK(same<T>(got[i], meaning(x[i])));
    }
  }
}

template <class T>
T smaller(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}

template <class T>
T larger(T a, T b) {
  return -smaller(-a, -b);
}

}  // namespace

TEMPLATE_TEST_CASE("arithmetic of floats rounds as C++ does", "[llvm_jit]", float, double) {
  using T = TestType;
  check<T>(BinaryOp::add, [](T a, T b) { return a + b; });
  check<T>(BinaryOp::sub, [](T a, T b) { return a - b; });
  check<T>(BinaryOp::mul, [](T a, T b) { return a * b; });
  check<T>(BinaryOp::div, [](T a, T b) { return a / b; });
  check<T>(BinaryOp::mod, [](T a, T b) { return std::fmod(a, b); });
}

TEMPLATE_TEST_CASE("min and max give NaN for NaN and tell the zeros apart", "[llvm_jit]", float, double) {
  using T = TestType;
  using codegen::Limits;
  const bool ternary = jit::host_target().features.find("+avx512vl") != std::string::npos;
  for (const Limits limits : {Limits::by_llvm, Limits::by_logic, Limits::by_ternary_logic}) {
    if (limits == Limits::by_ternary_logic && !ternary) continue;
    INFO("found in way " << int(limits));
    check<T>(
        BinaryOp::min, [](T a, T b) { return smaller(a, b); }, limits);
    check<T>(
        BinaryOp::max, [](T a, T b) { return larger(a, b); }, limits);
  }
}

TEMPLATE_TEST_CASE("unary operators of floats mean what they mean in C++", "[llvm_jit]", float, double) {
  using T = TestType;
  check<T>(UnaryOp::neg, [](T a) { return -a; });
  check<T>(UnaryOp::abs, [](T a) { return std::abs(a); });
  check<T>(UnaryOp::sqrt, [](T a) { return std::sqrt(a); });
  check<T>(UnaryOp::round, [](T a) { return std::nearbyint(a); });
  check<T>(UnaryOp::floor, [](T a) { return std::floor(a); });
}

TEMPLATE_TEST_CASE("a normal number is taken apart about 1", "[llvm_jit]", float, double) {
  using T = TestType;
  std::vector<T> x;
  for (int i = 0; i < 16; ++i) x.push_back(std::ldexp(T(1) + T(i) / 16, 13 * i - 100));
  const auto exponent = [](T a) { return std::floor(std::log2(a * T(1.5))); };
  check<T>(UnaryOp::exponent, exponent, x);
  check<T>(
      UnaryOp::significand, [&](T a) { return std::ldexp(a, -int(exponent(a))); }, x);
}

TEMPLATE_TEST_CASE("transcendental functions are the C library's", "[llvm_jit]", float, double) {
  using T = TestType;
  check<T>(UnaryOp::exp, [](T a) { return std::exp(a); });
  check<T>(UnaryOp::log, [](T a) { return std::log(a); });
  check<T>(UnaryOp::tanh, [](T a) { return std::tanh(a); });
  check<T>(UnaryOp::erf, [](T a) { return std::erf(a); });
  check<T>(UnaryOp::sin, [](T a) { return std::sin(a); });
  check<T>(UnaryOp::cos, [](T a) { return std::cos(a); });
  check<T>(UnaryOp::log1p, [](T a) { return std::log1p(a); });
  check<T>(UnaryOp::expm1, [](T a) { return std::expm1(a); });
  check<T>(UnaryOp::sigmoid, [](T a) { return 1 / (1 + std::exp(-a)); });
}

TEMPLATE_TEST_CASE("relu keeps NaN and the negative zero", "[llvm_jit]", float, double) {
  using T = TestType;
  check<T>(UnaryOp::relu, [](T a) { return a < 0 ? T(0) : a; });
}

TEMPLATE_TEST_CASE("a fused multiply-add rounds once", "[llvm_jit]", float, double) {
  using T = TestType;
  const T tiny = std::numeric_limits<T>::epsilon();
  const std::vector<T> a(16, 1 + tiny), b(16, 1 - tiny), c(16, T(-1));
  for (const int lanes : {1, 16}) {
    const auto got = map<T>(lanes, a, b, c, [](Expr x, Expr y, Expr z) { return Fma::make(x, y, z); });
    CHECK(got == std::vector<T>(16, -tiny * tiny));
  }
}

TEMPLATE_TEST_CASE("a product and a sum are not fused", "[llvm_jit]", float, double) {
  using T = TestType;
  const T tiny = std::numeric_limits<T>::epsilon();
  const std::vector<T> a(16, 1 + tiny), b(16, 1 - tiny), c(16, T(-1));
  for (const int lanes : {1, 16}) {
    const auto got = map<T>(lanes, a, b, c, [](Expr x, Expr y, Expr z) { return x * y + z; });
    CHECK(got == std::vector<T>(16, T(0)));
  }
}

TEMPLATE_TEST_CASE("ldexp multiplies by a power of two", "[llvm_jit]", float, double) {
  using T = TestType;
  std::vector<T> x, power;
  for (int i = 0; i < 16; ++i) x.push_back(T(1.375) * T(i - 5)), power.push_back(T(i * 16 - 122));
  for (const int lanes : {1, 16}) {
    const auto got =
        map<T>(lanes, x, power, x, [](Expr a, Expr b, Expr) { return Binary::make(BinaryOp::ldexp, a, b); });
    for (std::size_t i = 0; i < 16; ++i) CHECK(same(got[i], std::ldexp(x[i], int(power[i]))));
  }
}

TEMPLATE_TEST_CASE("ldexp of NaN by NaN is NaN, even of constants", "[llvm_jit]", float, double) {
  using T = TestType;
  const std::vector<T> x(16, std::numeric_limits<T>::quiet_NaN());
  const Expr nan = FloatImm::make(std::numeric_limits<double>::quiet_NaN(), dtype_of<T>);
  CHECK(std::isnan(map<T>(16, x, x, x, [](Expr a, Expr b, Expr) { return Binary::make(BinaryOp::ldexp, a, b); })[3]));
  CHECK(std::isnan(map<T>(1, x, x, x, [&](Expr, Expr, Expr) { return Binary::make(BinaryOp::ldexp, nan, nan); })[3]));
}

TEMPLATE_TEST_CASE("arithmetic of integers", "[llvm_jit]", std::int32_t, std::int64_t) {
  using T = TestType;
  check<T>(BinaryOp::add, [](T a, T b) { return a + b; });
  check<T>(BinaryOp::sub, [](T a, T b) { return a - b; });
  check<T>(BinaryOp::mul, [](T a, T b) { return a * b; });
  check<T>(BinaryOp::div, [](T a, T b) { return a / b; });
  check<T>(BinaryOp::mod, [](T a, T b) { return a % b; });
  check<T>(BinaryOp::min, [](T a, T b) { return std::min(a, b); });
  check<T>(BinaryOp::max, [](T a, T b) { return std::max(a, b); });
}

TEMPLATE_TEST_CASE("a division by zero that a select does not choose does no harm", "[llvm_jit]", std::int32_t,
                   std::int64_t) {
  using T = TestType;
  const std::vector<T> x(16, T(7)), zero(16, T(0));
  for (const int lanes : {1, 16}) {
    const auto got = map<T>(lanes, x, zero, x, [](Expr a, Expr b, Expr c) {
      const Expr none = constant(0, b.type());
      return Select::make(Binary::make(BinaryOp::eq, b, none), c, a / b + Binary::make(BinaryOp::mod, a, b));
    });
    CHECK(got == x);
  }
}

TEMPLATE_TEST_CASE("unary operators of integers", "[llvm_jit]", std::int32_t, std::int64_t) {
  using T = TestType;
  std::vector<T> x;
  for (int i = -8; i < 8; ++i) x.push_back(T(i * 1000));
  check<T>(
      UnaryOp::neg, [](T a) { return -a; }, x);
  check<T>(
      UnaryOp::abs, [](T a) { return std::abs(a); }, x);
  check<T>(
      UnaryOp::relu, [](T a) { return std::max(a, T(0)); }, x);
}

TEMPLATE_TEST_CASE("comparisons are false with NaN, except that it differs from everything", "[llvm_jit]", float,
                   double, std::int32_t, std::int64_t) {
  using T = TestType;
  const Samples<T> s;
  const auto meaning = [](BinaryOp op, T a, T b) {
    switch (op) {
      case BinaryOp::eq: return a == b;
      case BinaryOp::ne: return a != b;
      case BinaryOp::lt: return a < b;
      case BinaryOp::le: return a <= b;
      case BinaryOp::gt: return a > b;
      default: return a >= b;
    }
  };
  for (const BinaryOp op : {BinaryOp::eq, BinaryOp::ne, BinaryOp::lt, BinaryOp::le, BinaryOp::gt, BinaryOp::ge})
    for (const int lanes : {1, 16}) {
      const auto got = map<std::int32_t>(
          lanes, s.x, s.y, s.z, [&](Expr a, Expr b, Expr) { return Cast::make(DType::i32, Binary::make(op, a, b)); });
      for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("operator " << int(op) << ", lanes " << lanes << ", of " << s.x[i] << " and " << s.y[i]);
        CHECK(got[i] == int(meaning(op, s.x[i], s.y[i])));
      }
    }
}

TEST_CASE("logical operators and select", "[llvm_jit]") {
  const Samples<float> s;
  const auto less = [](Expr a, Expr b) { return Binary::make(BinaryOp::lt, a, b); };
  for (const int lanes : {1, 16}) {
    const auto got = map<float>(lanes, s.x, s.y, s.z, [&](Expr a, Expr b, Expr c) {
      const Expr both = Binary::make(BinaryOp::logical_and, less(a, b), less(b, c));
      const Expr neither =
          Unary::make(UnaryOp::logical_not, Binary::make(BinaryOp::logical_or, less(a, b), less(b, c)));
      return Select::make(both, a, Select::make(neither, b, c));
    });
    for (std::size_t i = 0; i < got.size(); ++i) {
      const float a = s.x[i], b = s.y[i], c = s.z[i];
      CHECK(same(got[i], a < b && b < c ? a : !(a < b || b < c) ? b : c));
    }
  }
}

namespace {

template <class From, class To>
void check_cast() {
  std::vector<From> x;
  for (int i = 0; i < 16; ++i) x.push_back(From((i - 8) * 1000.75));
  for (const int lanes : {1, 16}) {
    const auto got = map<To>(lanes, x, x, x, [](Expr a, Expr, Expr) { return Cast::make(dtype_of<To>, a); });
    const auto truth = map<To>(
        lanes, x, x, x, [](Expr a, Expr, Expr) { return Cast::make(dtype_of<To>, Cast::make(DType::boolean, a)); });
    for (std::size_t i = 0; i < 16; ++i) {
      CHECK(same(got[i], To(x[i])));
      CHECK(same(truth[i], To(bool(x[i]))));
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("casts between all types, booleans too", "[llvm_jit]", float, double, std::int32_t, std::int64_t) {
  check_cast<TestType, float>();
  check_cast<TestType, double>();
  check_cast<TestType, std::int32_t>();
  check_cast<TestType, std::int64_t>();
}

TEST_CASE("a let in an expression binds a scalar or a vector", "[llvm_jit]") {
  const std::vector<float> x(16, 3.0f);
  for (const int lanes : {1, 16}) {
    const auto got = map<float>(lanes, x, x, x, [](Expr a, Expr b, Expr) {
      const Expr v = Var::make("v", a.type());
      return Let::make(v, a + b, v * v);
    });
    CHECK(got == std::vector<float>(16, 36.0f));
  }
}

TEST_CASE("an element of 8 or 16 bits becomes the number that it stands for, with and without instructions for it",
          "[jit]") {
  std::vector<std::uint16_t> halves(0x10000);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = std::uint16_t(i);
  std::vector<std::int8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::int8_t(i);
  const Target host = jit::host_target();
  Target old = host;  // a machine without such instructions: LLVM must not call functions in their place
#if defined(__x86_64__)
  old.cpu = "x86-64-v2", old.features.clear();
#endif
  const bool has_f16 = host.features.find("+f16c") != std::string::npos;
  for (const DType type : {DType::bf16, DType::f16, DType::i8})
    for (const int lanes : {1, 16})
      for (const bool converts_f16 : {false, true}) {
        if (converts_f16 && !(type == DType::f16 && has_f16)) continue;
        INFO(to_string(type) << ", lanes " << lanes);
        const Target& target = converts_f16 ? host : old;
        const std::size_t count = type == DType::i8 ? bytes.size() : halves.size();
        const Buffer in = buffer("in", type, Role::weight), out = buffer("out", DType::f32);
        const Expr i = Var::make("i"), index = lanes_at(i * lanes, lanes);
        const ir::Program p = program({in, out}, loop(i, imm(std::int64_t(count) / lanes),
                                                      set(out, index, Cast::make(DType::f32, at(in, index)))));
        codegen::LlvmTextOptions options{"kernel", target.vector_bytes, sanitized, converts_f16};
        const jit::Compiled compiled = jit::compile_llvm(codegen::llvm_text(p, options), "kernel", target, {sanitized});
        std::vector<float> got(count);
        void* buffers[] = {type == DType::i8 ? static_cast<void*>(bytes.data()) : halves.data(), got.data()};
        const codegen::KernelArgs args{buffers, nullptr, nullptr, 0, 1};
        compiled.kernel(&args);
        std::size_t wrong = 0;
        for (std::size_t k = 0; k < count; ++k)
          wrong += !same(got[k], type == DType::i8     ? float(bytes[k])
                                 : type == DType::bf16 ? from_bf16(halves[k])
                                                       : from_f16(halves[k]));
        CHECK(wrong == 0);
      }
}
