// Products with a matrix, whichever way they are written: factors that leave the sum, and what is of weights alone.
#include <catch2/catch.hpp>

#include "support/lowering.hpp"
#include "support/odd_models.hpp"

using namespace cortex;
using namespace cortex::test;
using graphs::tanh_of;

namespace {

using E = ir::Expr;

/// h = tanh(Emb[word] + f(s, z)), s being the sum of the children's states and z = tanh(s), hidden = 4, with matrices
/// U and W, a vector v, and a row of diagonals.
struct Factored : odd::Odd {
  Factored() : Odd("factored", 4) {}
  int Emb = input("Emb", {V, H}), U = input("U", {H, H}), W = input("W", {H, H}), v = input("v", {H});
  int diagonals = input("diagonals", {Dim("places", 7)});
  int h = placeholder("h", {H});
  int s = compute("s", {H}, [&](auto& n, auto& i) {
    return over_kids(n, [&](auto kid) { return at(h, {kid, i[0]}); });
  });
  int z = compute("z", {H}, [&](auto& n, auto& i) { return tanh_of(at(s, {n, i[0]})); });

  /// The graph of `f(n, i)`.
  template <class F>
  ra::Graph with(F f) {
    const int body = compute("body", {H}, [&](auto& n, auto& i) {
      return tanh_of(at(Emb, {word_of(n), i[0]}) + f(n, i[0]));
    });
    recursion_op(h, body);
    return done();
  }
};

std::string lowered(const ra::Graph& graph) { return ir::print(lower::lower(graph, Schedule{}.dynamic_batch())); }

/// How often a line of a sum holds all of these.
int sums_of(const std::string& text, const std::vector<std::string>& parts) {
  int found = 0;
  for (std::size_t at = text.find("fma("); at != std::string::npos; at = text.find("fma(", at + 1)) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    bool all = true;
    for (const std::string& part : parts) all &= line.find(part) != std::string::npos;
    found += all;
  }
  return found;
}

}  // namespace

TEST_CASE("a factor that is the same for all that is summed leaves the sum", "[lower][equality]") {
  for (int order = 0; order < 4; ++order) {
    Factored g;
    const ra::Graph graph = g.with([&](auto& n, auto& i) {
      return g.dot(g.H, [&](auto& j) {
        const E u = g.at(g.U, {i, j}), x = g.at(g.s, {n, j}), z = g.at(g.z, {n, i});
        switch (order) {
          case 0: return z * u * x;
          case 1: return u * z * x;
          case 2: return u * x * z;
          default: return ir::binary(ir::BinaryOp::div, u * x, z + ir::constant(3, {DType::f32, 1}));
        }
      });
    });
    const std::string text = lowered(graph);
    INFO(text);
    CHECK(sums_of(text, {"fma(U[", "s[node"}) == 1);
    CHECK(sums_of(text, {"z["}) == 0);
    CHECK(lowered_difference(graph) == "");
  }
}

TEST_CASE("a factor of an element leaves the sums that are added up for it", "[lower][equality]") {
  Factored g;
  const int T = g.input("T", {g.H, g.H, g.H});
  const ra::Graph graph = g.with([&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) {
      const auto form = [&](int vector) {
        return g.dot(g.H, [&](auto& k) { return g.at(g.s, {n, r}) * g.at(T, {i, r, k}) * g.at(vector, {n, k}); });
      };
      return form(g.s) + form(g.z);
    });
  });
  const std::string text = lowered(graph);
  INFO(text);
  CHECK(sums_of(text, {"fma(T["}) == 2);
  CHECK(lowered_difference(graph) == "");
}

TEST_CASE("a matrix that multiplies each of the children leaves the sum over them", "[lower][equality]") {
  for (const bool alone : {false, true}) {
    Factored g;
    const ra::Graph graph = g.with([&](auto& n, auto& i) {
      return g.dot(g.H, [&](auto& j) {
        const E of_kids = g.over_kids(n, [&](auto kid) { return g.at(g.U, {i, j}) * g.at(g.h, {kid, j}); });
        return alone ? of_kids : g.at(g.W, {i, j}) * g.at(g.z, {n, j}) - of_kids;
      });
    });
    const std::string text = lowered(graph);
    INFO(text);
    CHECK(sums_of(text, {"fma(U["}) == 1);
    CHECK(count(text, "hidden=4,hidden=4] f32 temp") == 0);
    CHECK(lowered_difference(graph) == "");
  }
}

TEST_CASE("a matrix stays in a sum over children that is another one for each of its elements, and as a divisor",
          "[lower][equality]") {
  for (const bool divides : {false, true}) {
    Factored g;
    const ra::Graph graph = g.with([&](auto& n, auto& i) {
      return g.dot(g.H, [&](auto& j) {
        return g.over_kids(n, [&](auto kid) {
          const E u = g.at(g.U, {i, j}), h = g.at(g.h, {kid, j});
          return divides ? ir::binary(ir::BinaryOp::div, h, u) : u * h * g.at(g.h, {kid, i});
        });
      });
    });
    const std::string text = lowered(graph);
    INFO(text);
    CHECK(count(text, "hidden=4,hidden=4] f32 temp") == 0);
    CHECK(lowered_difference(graph) == "");
  }
}

TEST_CASE("a factor of each child, the same for all outputs, stays with what is multiplied", "[lower][equality]") {
  Factored g;
  const ra::Graph graph = g.with([&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) {
      return g.dot(g.H, [&](auto& j) {
        return ir::Cast::make(DType::f32, g.word_of(kid)) * g.at(g.U, {i, j}) * g.at(g.h, {kid, j});
      });
    });
  });
  CHECK(lowered_difference(graph) == "");
}

TEST_CASE("arithmetic on weights alone is done once, wherever it stands in a product", "[lower][equality]") {
  for (int form = 0; form < 6; ++form) {
    Factored g;
    const ra::Graph graph = g.with([&](auto& n, auto& i) {
      return g.dot(g.H, [&](auto& j) {
        const E u = g.at(g.U, {i, j}), w = g.at(g.W, {i, j}), x = g.at(g.s, {n, j});
        switch (form) {
          case 0: return (u + w) * x;
          case 1: return u * x * w;
          case 2: return (u - g.at(g.U, {j, i})) * x;
          case 3: return ir::Select::make(ir::binary(ir::BinaryOp::le, j, i), u, ir::constant(0, {DType::f32, 1})) * x;
          case 4: return x * g.at(g.diagonals, {i - j + 3});
          default: return g.at(g.v, {j}) * x * w;
        }
      });
    });
    const std::string text = lowered(graph), levels = text.substr(text.find("for b_idx"));
    INFO(text);
    for (const char* weight : {"U[", "W[", "v[", "diagonals["}) CHECK(count(levels, weight) == 0);
    CHECK(count(levels, "_of_weights[") == 1);
    CHECK(lowered_difference(graph) == "");
  }
}

TEST_CASE("what multiplies a vector of the node stays beside it where a weight goes to the matrix",
          "[lower][equality]") {
  Factored g;
  const int r = g.compute("r", {}, [&](auto& n, auto&) {
    return g.dot(g.H, [&](auto& j) { return g.at(g.s, {n, j}) * g.at(g.s, {n, j}); });
  });
  const ra::Graph graph = g.with([&](auto& n, auto& i) {  // a product of what is normed, with a gain
    return g.dot(g.H, [&](auto& j) { return g.at(g.U, {i, j}) * (g.at(g.s, {n, j}) * g.at(r, {n}) * g.at(g.v, {j})); });
  });
  const std::string text = lowered(graph);
  INFO(text);
  CHECK(sums_of(text, {"_of_weights[", "_pre["}) == 1);
  CHECK(lowered_difference(graph) == "");
}

TEST_CASE("a weight as it is, or less than nothing, and outer products that are large are read as they are",
          "[lower]") {
  const auto levels_of = [](auto product, int extent) {
    odd::Odd g("large", extent);
    const int U = g.input("U", {g.H, g.H}), v = g.input("v", {g.H});
    const int h = g.placeholder("h", {g.H});
    const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
      return g.dot(g.H, [&](auto& j) {
        return product(g.at(U, {i[0], j}), g.at(v, {i[0]}) + g.at(v, {j})) * g.over_kids(n, [&](auto kid) {
          return g.at(h, {kid, j});
        });
      });
    });
    g.recursion_op(h, body);
    const std::string text = lowered(g.done());
    return text.substr(text.find("for b_idx"));
  };
  const auto negative = [](const E& u, const E&) { return ir::Unary::make(ir::UnaryOp::neg, u); };
  CHECK(count(levels_of(negative, 4), "U[") == 1);
  const auto outer = [](const E&, const E& sum) { return sum; };
  CHECK(count(levels_of(outer, 4), "v[") == 0);
  CHECK(count(levels_of(outer, 1025), "v[") == 2);
}
