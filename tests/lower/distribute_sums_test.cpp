// Weighed sums of products: which become products with one matrix of the children's weighed sum, and that all of them
// keep what they are.
#include <catch2/catch.hpp>

#include "support/lowering.hpp"
#include "support/odd_models.hpp"

using namespace cortex;
using namespace cortex::test;
using graphs::tanh_of;

namespace {

using E = ir::Expr;

/// h = tanh(Emb[word] + a fold over the children), hidden = 4, with two matrices U and W, a vector v, weights of an
/// edge, a = the child's word and b = the node's less the child's, and products of the states h or g of a child.
struct Weighed : odd::Odd {
  Weighed() : Odd("weighed", 4) {}
  int Emb = input("Emb", {V, H}), U = input("U", {H, H}), W = input("W", {H, H}), v = input("v", {H});
  int h = placeholder("h", {H});

  static E number_of(const E& integer) { return ir::Cast::make(DType::f32, integer); }
  E a(const E& kid) const { return number_of(word_of(kid) % 3); }
  E b(const E& n, const E& kid) const { return number_of(word_of(n) % 4 - word_of(kid) % 3); }
  template <class F>
  E sum(F body) const {
    return dot(H, body);
  }
  /// The graph with `fold(n, kid, i)` added up over the children.
  template <class F>
  ra::Graph with(F fold) {
    const int body = compute("body", {H}, [&](auto& n, auto& i) {
      return tanh_of(at(Emb, {word_of(n), i[0]}) + over_kids(n, [&](auto kid) { return fold(n, kid, i[0]); }));
    });
    recursion_op(h, body);
    return done();
  }
};

/// Node by node: in batches some products of a DAG are the child's.
std::string lowered(const ra::Graph& graph) {
  return ir::print(lower::lower(graph, Schedule{}.specialize_leaves()).body);
}

/// How often a loop over children holds a matrix; of the sums of all children: never.
int products_of_each_child(const std::string& text) {
  int found = 0;
  for (std::size_t at = text.find("  for k"); at != std::string::npos; at = text.find("  for k", at + 1)) {
    const std::size_t indent = at - text.rfind('\n', at) + 1;
    std::size_t line = text.find('\n', at) + 1;
    for (std::size_t end; line < text.size() && text.find_first_not_of(' ', line) - line > indent; line = end + 1) {
      end = text.find('\n', line);
      found += count(text.substr(line, end - line), "U[") + count(text.substr(line, end - line), "W[");
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a matrix that is weighed for each child multiplies the children's weighed sum", "[lower][equality]") {
  Weighed g;
  const ra::Graph interpolated = g.with([&](auto& n, auto kid, auto& i) {
    return g.sum([&](auto& r) {
      return (g.a(kid) * g.at(g.U, {i, r}) + g.b(n, kid) * g.at(g.W, {i, r})) * g.at(g.h, {kid, r});
    });
  });
  CHECK(products_of_each_child(lowered(interpolated)) == 0);
  CHECK(lowered_difference(interpolated) == "");
  Weighed f;
  const ra::Graph weighed = f.with([&](auto& n, auto kid, auto& i) {
    const E of_u = f.sum([&](auto& r) { return f.at(f.U, {i, r}) * f.at(f.h, {kid, r}); });
    const E of_w = f.sum([&](auto& r) { return f.at(f.h, {kid, r}) * f.at(f.W, {i, r}); });
    return ir::Unary::make(ir::UnaryOp::neg, f.a(kid) * of_u) -
           (of_w * f.b(n, kid) - f.at(f.h, {kid, i})) * Weighed::number(0.5);
  });
  CHECK(lowered_difference(weighed) == "");
}

TEST_CASE("weighed products of each child are one of their weighed sum, whatever is added to them",
          "[lower][equality]") {
  for (const bool with_states : {false, true}) {
    Weighed g;
    const ra::Graph graph = g.with([&](auto& n, auto kid, auto& i) {
      const E of_u = g.sum([&](auto& r) { return g.at(g.U, {i, r}) * g.at(g.h, {kid, r}); });
      const E of_w = g.sum([&](auto& r) { return g.at(g.h, {kid, r}) * g.at(g.W, {i, r}); });
      const E both = g.a(kid) * of_u - of_w * g.b(n, kid);
      return with_states ? both + tanh_of(g.at(g.h, {kid, i})) : both;
    });
    CHECK(products_of_each_child(lowered(graph)) == 0);
    CHECK(lowered_difference(graph) == "");
  }
}

TEST_CASE("products of each child that are added up are products of the children's sums", "[lower][equality]") {
  Weighed g;
  const ra::Graph graph = g.with([&](auto&, auto kid, auto& i) {
    const E of_u = g.sum([&](auto& r) { return g.at(g.U, {i, r}) * g.at(g.h, {kid, r}); });
    return of_u + g.sum([&](auto& r) { return g.at(g.W, {i, r}) * g.at(g.h, {kid, r}); });
  });
  CHECK(products_of_each_child(lowered(graph)) == 0);
  CHECK(lowered_difference(graph) == "");
}

TEST_CASE("what weighs each output by itself stays outside of the products", "[lower][equality]") {
  Weighed g;
  const ra::Graph gated = g.with([&](auto&, auto kid, auto& i) {
    const E of_u = g.sum([&](auto& r) { return g.at(g.U, {i, r}) * g.at(g.h, {kid, r}); });
    return tanh_of(g.at(g.h, {kid, i})) * of_u;
  });
  CHECK(products_of_each_child(lowered(gated)) > 0);
  CHECK(lowered_difference(gated) == "");
  Weighed f;
  const ra::Graph of_function = f.with([&](auto&, auto kid, auto& i) {
    const E of_u = f.sum([&](auto& r) { return f.at(f.U, {i, r}) * f.at(f.h, {kid, r}); });
    return f.a(kid) * tanh_of(of_u);
  });
  CHECK(lowered_difference(of_function) == "");
}

TEST_CASE("a matrix that stands twice in a sum is read once", "[lower][equality]") {
  Weighed g;
  const ra::Graph graph = g.with([&](auto& n, auto kid, auto& i) {
    return g.sum([&](auto& r) {
      return (g.a(kid) * g.at(g.U, {i, r}) + g.b(n, kid) * (g.at(g.U, {i, r}) + g.at(g.W, {i, r}))) *
             g.at(g.h, {kid, r});
    });
  });
  CHECK(products_of_each_child(lowered(graph)) > 0);  // as it stands there
  CHECK(lowered_difference(graph) == "");
}

TEST_CASE("a weighed sum of matrices of a node is two products, and one of weights alone is one", "[lower][equality]") {
  const auto of_node = [](bool weighed) {
    Weighed g;
    const int s = g.compute("s", {g.H}, [&](auto& n, auto& i) {
      return g.over_kids(n, [&](auto kid) { return g.at(g.h, {kid, i[0]}); });
    });
    const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
      const E by = weighed ? Weighed::number_of(g.word_of(n)) : Weighed::number(2);
      return tanh_of(g.at(g.Emb, {g.word_of(n), i[0]}) + g.sum([&](auto& r) {
        return (by * g.at(g.U, {i[0], r}) - g.at(g.W, {i[0], r})) * g.at(s, {n, r});
      }));
    });
    g.recursion_op(g.h, body);
    return g.done();
  };
  CHECK(lowered_difference(of_node(true)) == "");
  CHECK(lowered_difference(of_node(false)) == "");
  CHECK(count(lowered(of_node(true)), "_acc = fma(") == 2);
  CHECK(count(lowered(of_node(false)), "_acc = fma(") == 1);
}
