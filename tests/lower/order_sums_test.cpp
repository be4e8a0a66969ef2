// Nested sums of products in the order in which they take least.
#include <catch2/catch.hpp>

#include "one_state.hpp"

using namespace cortex;
using namespace cortex::test;
using graphs::tanh_of;

TEST_CASE("a product with each child is one with the sum of the children", "[lower][equality]") {
  // Written with the product inside of the fold over children, and the other way round.
  const auto graph_of = [](bool of_each, double by) {
    OneState m;
    const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
      const auto times = [&](const ir::Expr& e) { return by == 1 ? e : odd::Odd::number(by) * e; };
      const ir::Expr sum =
          of_each ? m.over_kids(n,
                                [&](auto kid) {
                                  return m.product(i[0], [&](auto& r) { return times(m.at(m.h, {kid, r})); });
                                })
                  : m.product(i[0], [&](auto& r) {
                      return m.over_kids(n, [&](auto kid) { return times(m.at(m.h, {kid, r})); });
                    });
      return tanh_of(m.emb(n, i[0]) + sum);
    });
    return m.with(body);
  };
  CHECK(lowered(graph_of(true, 1), apart) == lowered(graph_of(false, 1), apart));
  CHECK(count(lowered(graph_of(true, 1), apart), "d_edge") == 0);
  for (const double by : {1.0, 0.5})
    for (const Schedule& schedule : {apart, together}) CHECK(difference(graph_of(true, by), schedule) == "");
}

TEST_CASE("a bilinear form makes the product with the matrix first, however it is written", "[lower][equality]") {
  const auto graph_of = [](int outputs, bool nested) {
    OneState m;
    const Dim Q("outputs", outputs);
    const int B = m.input("B", {Q, m.H, m.H}), G = m.input("G", {m.H, Q});
    const int form = m.compute("form", {Q}, [&](auto n, auto q) {
      return m.dot(m.H, [&](auto& i) {
        const ir::Expr left = m.sum_of_kids(n, i);
        const auto product = [&](auto& j) { return m.at(B, {q[0], i, j}) * m.emb(n, j); };
        return nested ? left * m.dot(m.H, product) : m.dot(m.H, [&](auto& j) { return left * product(j); });
      });
    });
    const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
      return tanh_of(m.sum_of_kids(n, i[0]) + m.dot(Q, [&](auto& q) {
        return m.at(G, {i[0], q}) * m.at(form, {n, q});
      }));
    });
    return m.with(body);
  };
  for (const int outputs : {1, 15, 16}) {
    CHECK(lowered(graph_of(outputs, false), apart) == lowered(graph_of(outputs, true), apart));
    for (const Schedule& schedule : {apart, together}) CHECK(difference(graph_of(outputs, false), schedule) == "");
  }
}

TEST_CASE("a matrix that is a sum of few with a node's weights is not made for each node", "[lower][equality]") {
  enum Form { matrix_first, products_first, of_own_node, beside_a_score };
  const auto graph_of = [](Form form) {
    OneState m;
    const Dim F("few", 3);
    const int X = m.input("X", {m.V, F}), T = m.input("T", {F, m.H, m.H});
    const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
      const auto weighed = [&](auto& node, auto& f) { return m.at(X, {m.word_of(node), f}); };
      const auto matrix = [&](auto& node, auto& j) {
        return m.dot(F, [&](auto& f) { return weighed(node, f) * m.at(T, {f, i[0], j}); });
      };
      const ir::Expr score = m.dot(m.H, [&](auto& j) { return m.emb(n, j) * m.sum_of_kids(n, j); });
      if (form == beside_a_score)
        return tanh_of(m.dot(m.H, [&](auto& j) { return matrix(n, j) * (score * m.sum_of_kids(n, j)); }) +
                       m.emb(n, i[0]));
      if (form == of_own_node)
        return tanh_of(m.dot(m.H, [&](auto& j) { return matrix(n, j) * m.sum_of_kids(n, j); }) + m.emb(n, i[0]));
      return tanh_of(m.emb(n, i[0]) + m.over_kids(n, [&](auto kid) {
        if (form == matrix_first) return m.dot(m.H, [&](auto& j) { return matrix(kid, j) * m.at(m.h, {kid, j}); });
        return m.dot(F, [&](auto& f) {
          return weighed(kid, f) * m.dot(m.H, [&](auto& j) { return m.at(T, {f, i[0], j}) * m.at(m.h, {kid, j}); });
        });
      }));
    });
    return m.with(body);
  };
  for (const Form form : {matrix_first, products_first, of_own_node, beside_a_score})
    for (const Schedule& schedule : {apart, together}) {
      const ra::Graph graph = graph_of(form);
      const std::string text = lowered(graph, schedule);
      INFO(text);
      CHECK(count(text, ",hidden=4,hidden=4] f32 temp") == 0);
      CHECK(count(text, "[d_edge,few") == 0);  // one sum of the children, then the product
      CHECK(difference(graph, schedule) == "");
    }
}

TEST_CASE("a sum of weights alone in a product with each child is one matrix", "[lower][equality]") {
  OneState m;
  const Dim F("few", 3);
  const int v = m.input("v", {F}), T = m.input("T", {F, m.H, m.H});
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    return tanh_of(m.emb(n, i[0]) + m.over_kids(n, [&](auto kid) {
      return m.dot(m.H, [&](auto& j) {
        return m.dot(F, [&](auto& f) { return m.at(v, {f}) * m.at(T, {f, i[0], j}); }) * m.at(m.h, {kid, j});
      });
    }));
  });
  const ra::Graph graph = m.with(body);
  const std::string text = lowered(graph, apart);
  INFO(text);
  CHECK(text.find("fma(v[") < text.find("for b"));  // before the loop over batches
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("a sum that is a factor twice stays one value", "[lower][equality]") {
  OneState m;
  const Dim F("few", 3);
  const int X = m.input("X", {m.V, F}), T = m.input("T", {F, m.H, m.H});
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    return tanh_of(m.emb(n, i[0]) + m.over_kids(n, [&](auto kid) {
      return m.dot(m.H, [&](auto& j) {
        const ir::Expr q = m.dot(F, [&](auto& f) { return m.at(X, {m.word_of(kid), f}) * m.at(T, {f, i[0], j}); });
        return q * (m.at(m.h, {kid, j}) * q);
      });
    }));
  });
  const ra::Graph graph = m.with(body);
  for (const Schedule& schedule : {apart, together}) CHECK(difference(graph, schedule) == "");

  for (const int between : {3, 4, 7}) {  // x sigmoid(x), of a product, in a product
    OneState mlp;
    const Dim B("between", between);
    const int D = mlp.input("D", {B, mlp.H}), L = mlp.input("L", {mlp.H, B});
    const ra::Graph inline_mlp = mlp.with(mlp.compute("body", {mlp.H}, [&](auto n, auto i) {
      return tanh_of(mlp.emb(n, i[0]) + mlp.dot(B, [&](auto& b) {
        const ir::Expr x = mlp.dot(mlp.H, [&](auto& j) { return mlp.at(D, {b, j}) * mlp.sum_of_kids(n, j); });
        return mlp.at(L, {i[0], b}) * (x * ir::Unary::make(ir::UnaryOp::tanh, x));
      }));
    }));
    for (const Schedule& schedule : {apart, together}) CHECK(difference(inline_mlp, schedule) == "");
  }
}

TEST_CASE("a sum without a matrix stays a factor of the products beside it", "[lower][equality]") {
  OneState m;
  const int a = m.input("a", {m.H});
  const ra::Graph graph = m.with(m.compute("body", {m.H}, [&](auto n, auto i) {
    return tanh_of(m.emb(n, i[0]) + m.over_kids(n, [&](auto kid) {
      return m.dot(m.H, [&](auto& f) {
        return m.at(a, {f}) * m.at(m.h, {kid, f});
      }) * m.product(i[0], [&](auto& r) {
        return m.at(m.h, {kid, r});
      });
    }));
  }));
  const std::string text = lowered(graph, apart);
  INFO(text);
  CHECK(count(text, "[d_edge,hidden") == 0);  // the matrix multiplies the children's sum
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("of two ways round the sum that is the same for all outputs is made", "[lower][equality]") {
  for (const bool inside : {false, true}) {
    OneState m;
    const Dim B("between", 3);
    const int T = m.input("T", {m.V, m.H, B}), Q = m.input("Q", {m.H, B});
    const ra::Graph graph = m.with(m.compute("body", {m.H}, [&](auto n, auto i) {
      const auto product = [&](auto& a, auto& b) {
        return m.at(Q, {a, b}) * m.sum_of_kids(n, a) * m.at(T, {m.word_of(n), i[0], b});
      };
      return tanh_of(m.emb(n, i[0]) +
                     (inside ? m.dot(B, [&](auto& b) { return m.dot(m.H, [&](auto& a) { return product(a, b); }); })
                             : m.dot(m.H, [&](auto& a) { return m.dot(B, [&](auto& b) { return product(a, b); }); })));
    }));
    const std::string text = lowered(graph, apart);
    INFO(text);
    CHECK(count(text, "[d_node,between=3]") == 1);
    CHECK(count(text, "hidden=4,hidden=4] f32 temp") == 0);
    CHECK(difference(graph, apart) == "");
  }
}

TEST_CASE("a number that is a sum over two axes is made the way it is written", "[lower][equality]") {
  OneState m;
  const Dim F("few", 3);
  const int X = m.input("X", {m.V, F}), Q = m.input("Q", {m.H, F});
  const int score = m.compute("score", {}, [&](auto n, auto) {  // what is of words alone leaves the recursion
    return m.dot(m.H, [&](auto& j) {
      return m.sum_of_kids(n, j) * m.dot(F, [&](auto& f) { return m.at(Q, {j, f}) * m.at(X, {m.word_of(n), f}); });
    });
  });
  const ra::Graph graph =
      m.with(m.compute("body", {m.H}, [&](auto n, auto i) { return tanh_of(m.emb(n, i[0]) + m.at(score, {n})); }));
  const std::string text = lowered(graph, apart);
  INFO(text);
  CHECK(text.find("fma(Q[") < text.find("for b"));
  CHECK(difference(graph, apart) == "");
}
