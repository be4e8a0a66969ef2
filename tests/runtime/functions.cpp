// The functions of the front end as compiled programs compute them, beside the C library's in double: vectors and
// rests, with and without approximations, edges included.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cortex/cortex.hpp"
#include "support/compile.hpp"

using namespace cortex;

namespace {

constexpr int width = 37;
struct Row {
  std::array<float, width> x, y;
};

/// A function of x and y: its name, what it should give, and by how many times 2^-24 it may be off.
struct Function {
  const char* name;
  double (*exact)(double x, double y);
  double (*off)(double x, double y, double value);
};

double few(double, double, double value) { return 6 * std::abs(value); }
/// As `few`, of the larger one of what is added.
double of_x(double x, double, double value) { return 6 * std::max(std::abs(x), std::abs(value)); }

const Function functions[] = {
    {"erf", [](double x, double) { return std::erf(x); }, few},
    {"sin", [](double x, double) { return std::sin(x); }, few},
    {"cos", [](double x, double) { return std::cos(x); }, few},
    {"log", [](double x, double) { return std::log(x); }, few},
    {"log1p", [](double x, double) { return std::log1p(x); }, few},
    {"expm1", [](double x, double) { return std::expm1(x); }, few},
    {"floor", [](double x, double) { return std::floor(x); }, few},
    {"ceil", [](double x, double) { return std::ceil(x); }, few},
    {"rsqrt", [](double x, double) { return 1 / std::sqrt(x); }, few},
    {"silu", [](double x, double) { return x * (1 / (1 + std::exp(-x))); }, few},
    {"gelu", [](double x, double) { return x * (0.5 * (1 + std::erf(x * std::sqrt(0.5)))); }, of_x},
    {"softplus",
     [](double x, double) { return std::isnan(x) ? x : std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, few},
    {"elu", [](double x, double) { return x < 0 ? 1.5 * std::expm1(x) : x; }, few},
    {"leaky_relu", [](double x, double) { return x < 0 ? 0.125 * x : x; }, few},
    {"pow", [](double x, double y) { return std::pow(x, y); }, few},
    {"pow_33", [](double x, double) { return std::pow(x, 33); }, few},
    {"pow_infinity", [](double x, double) { return std::pow(x, INFINITY); }, few},
    {"pow_of_3", [](double x, double) { return std::pow(3.0, x); }, few},
    {"pow_of_minus_2", [](double x, double) { return std::pow(-2.0, x); }, few},
};

auto program() {
  const Dim W{"width", width};
  Model<Row> m("functions", cortex::sequence);
  auto x = m.field("x", cortex::field<&Row::x>, W);
  auto y = m.field("y", cortex::field<&Row::y>, W);
  const auto out = [&](const char* name, auto f) {
    return m.output<float>(name, W, [&](auto n, auto i) { return f(x(n, i), y(n, i)); });
  };
  return m.program(
      out("erf", [](auto a, auto) { return erf(a); }), out("sin", [](auto a, auto) { return sin(a); }),
      out("cos", [](auto a, auto) { return cos(a); }), out("log", [](auto a, auto) { return log(a); }),
      out("log1p", [](auto a, auto) { return log1p(a); }), out("expm1", [](auto a, auto) { return expm1(a); }),
      out("floor", [](auto a, auto) { return floor(a); }), out("ceil", [](auto a, auto) { return ceil(a); }),
      out("rsqrt", [](auto a, auto) { return rsqrt(a); }), out("silu", [](auto a, auto) { return silu(a); }),
      out("gelu", [](auto a, auto) { return gelu(a); }), out("softplus", [](auto a, auto) { return softplus(a); }),
      out("elu", [](auto a, auto) { return elu(a, 1.5); }),
      out("leaky_relu", [](auto a, auto) { return leaky_relu(a, 0.125); }),
      out("pow", [](auto a, auto b) { return pow(a, b); }), out("pow_33", [](auto a, auto) { return pow(a, 33); }),
      out("pow_infinity", [](auto a, auto) { return pow(a, INFINITY); }),
      out("pow_of_3", [](auto a, auto) { return pow(3, a); }),
      out("pow_of_minus_2", [](auto a, auto) { return pow(-2, a); }));
}

/// Rows of pairs: each of the edges with each, and numbers in between.
std::vector<Row> rows() {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> edges{0.0f,
                                 -0.0f,
                                 1.0f,
                                 -1.0f,
                                 0.5f,
                                 -0.5f,
                                 2.0f,
                                 3.0f,
                                 -3.0f,
                                 -2.0f,
                                 10.0f,
                                 -10.0f,
                                 88.0f,
                                 90.0f,
                                 1e-3f,
                                 -1e-3f,
                                 1e5f,
                                 -1e5f,
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::quiet_NaN(),
                                 1e-38f,
                                 -0.999f,
                                 2.5f};
  std::vector<std::pair<float, float>> pairs;
  for (const float a : edges)
    for (const float b : edges) pairs.emplace_back(a, b);
  pairs.emplace_back(-3.0f, Limits::denorm_min());  // whose half is 0
  for (int i = 0; i < 400; ++i) pairs.emplace_back(float(0.05 * (i - 150)), float(0.031 * (i % 97) - 1.3));
  std::vector<Row> all(pairs.size() / width + 1);
  for (std::size_t p = 0; p < pairs.size(); ++p)
    all[p / width].x[p % width] = pairs[p].first, all[p / width].y[p % width] = pairs[p].second;
  return all;
}

void check(const Schedule& schedule, const Target& target) {
  const auto model = compile(program(), schedule, CompileOptions{}.on(target));
  const std::string text = model.print("llvm");  // of approximations, none calls the C library
  CHECK((text.find(") #1") != std::string::npos) == (schedule.exact && !text.empty()));
  const std::vector<Row> all = rows();
  std::vector<const Row*> roots;
  for (const Row& row : all) roots.push_back(&row);
  const auto result = model(roots);
  for (const Function& f : functions)
    for (std::size_t r = 0; r < all.size(); ++r) {
      const std::span<const float> got = result.root(r, f.name);
      for (std::size_t i = 0; i < width; ++i) {
        const double x = all[r].x[i], y = all[r].y[i], value = f.exact(x, y);
        const bool close = std::abs(value) >= 0x1.fffffep127
                               ? double(got[i]) == value || std::abs(double(got[i])) >= 0x1.ffp127
                               : std::abs(got[i] - value) <= f.off(x, y, value) * 0x1p-24 + 0x1p-125 ||
                                     (std::abs(value) > 0x1.ffp127 && std::isinf(got[i]));
        const bool power = std::string(f.name).starts_with("pow");  // those of -0 and -inf have a sign of their own
        const bool same_sign = !power || std::signbit(value) == std::signbit(got[i]);
        const bool right = std::isnan(value) ? std::isnan(got[i]) : close && same_sign;
        INFO(f.name << " of " << x << " and " << y << ": " << got[i] << ", not " << value);
        if (!right) CHECK(right);
      }
    }
  CHECK(result.num_nodes() == all.size());
}

}  // namespace

TEST_CASE("functions are the C library's up to a few units, interpreted") {
  check(Schedule::standard(), Target::interpreter());
}

TEST_CASE("functions are the C library's up to a few units, compiled") {
  test::need_llvm();
  check(Schedule::standard(), host_target());
  check(Schedule::standard().exact_activations(), host_target());
}
