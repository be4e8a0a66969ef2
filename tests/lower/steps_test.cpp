// The steps of lowering: versions of the body, what is absent at leaves, reductions apart, work that leaves the
// recursion.
#include <catch2/catch.hpp>

#include "one_state.hpp"

using namespace cortex;
using namespace cortex::test;
using graphs::tanh_of;

namespace {

/// From the loop over leaves to the loop over inner nodes' batches.
std::string leaves_of(const std::string& text) {
  const std::size_t begin = text.find("leaf_batch_size");
  return text.substr(begin, text.find("num_internal_batches") - begin);
}

}  // namespace

// ---- versions ----

TEST_CASE("an operator needed under two conditions is computed under neither", "[lower]") {
  OneState g;
  const int x = g.compute("x", {g.H}, [&](auto& n, auto& i) { return tanh_of(g.emb(n, i[0])); });
  const int twice = g.compute("twice", {g.H}, [&](auto& n, auto& i) {
    return g.at(x, {n, i[0]}) * odd::Odd::number(2);
  });
  const int kids = g.compute("kids", {g.H}, [&](auto& n, auto& i) {
    return g.at(x, {n, i[0]}) + g.sum_of_kids(n, i[0]);
  });
  const ra::Graph graph = g.with(g.if_then_else(
      "body", [&](auto& n) { return odd::Odd::even(g.word_of(n)); }, twice, kids));
  const std::string text = lowered(graph, together);
  CHECK(text.find("x[node,i] = tanh(") < text.find("if word(node) % 2"));
  CHECK(difference(graph, together) == "");
}

TEST_CASE("both sides of a branch that is decided at each node have the sum that both read", "[lower][equality]") {
  OneState g;
  const auto sum = [&](auto& n, auto& i) {
    return g.product(i[0], [&](auto& r) { return g.sum_of_kids(n, r) + g.emb(n, r); });
  };
  const int a = g.compute("one", {g.H}, [&](auto& n, auto& i) { return tanh_of(sum(n, i)); });
  const int b = g.compute("other", {g.H}, [&](auto& n, auto& i) { return sum(n, i) * odd::Odd::number(2); });
  const ra::Graph graph = g.with(g.if_then_else(
      "body", [&](auto& n) { return odd::Odd::even(g.word_of(n)); }, a, b));
  CHECK(difference(graph, together) == "");
}

TEST_CASE("a copy of a branch that needs the children on its other side stays behind it", "[lower][equality]") {
  OneState g;
  const auto even = [&](auto& n) { return odd::Odd::even(g.word_of(n)); };
  const auto product = [&](const char* name, double by) {
    return g.compute(name, {g.H}, [&](auto& n, auto& i) {
      return g.product(i[0], [&](auto& r) { return g.emb(n, r) * odd::Odd::number(by); });
    });
  };
  const int a = product("one", 1), c = product("other", 2);
  const int r = g.compute("r", {g.H}, [&](auto& n, auto& i) { return g.sum_of_kids(n, i[0]); });
  const int y = g.if_then_else("y", even, a, r), x = g.if_then_else("x", even, a, c);
  const ra::Graph graph = g.with(g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(y, {n, i[0]}) * odd::Odd::number(0.5) + g.at(x, {n, i[0]}));
  }));
  CHECK(difference(graph, together) == "");
  CHECK(difference(graph, apart) == "");
}

// ---- absent children ----

TEST_CASE("over no children, the greatest is minus infinity and the product one", "[lower][equality]") {
  OneState g;
  const auto fold = [&](const ir::Expr& n, const ir::Expr& i, ir::ReduceOp op) {
    return g.over_kids(
        n,
        [&](auto kid) {
          return g.at(g.h, {kid, i});
        },
        op);
  };
  const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
    const ir::Expr top = ir::binary(ir::BinaryOp::max, fold(n, i[0], ir::ReduceOp::max), odd::Odd::number(-2));
    return tanh_of(top + fold(n, i[0], ir::ReduceOp::prod) + g.emb(n, i[0]));
  });
  const ra::Graph graph = g.with(body);
  CHECK(leaves_of(lowered(graph, apart)).find("num_children") == std::string::npos);
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("a sum, a product, the greatest and the least of zeros over a dimension vanish from leaves",
          "[lower][equality]") {
  OneState g;
  const int s = g.compute("s", {g.H}, [&](auto& n, auto& i) { return g.sum_of_kids(n, i[0]); });
  const auto of_zeros = [&](const char* name, ir::ReduceOp op) {
    return g.compute(name, {g.H}, [&](auto& n, auto& i) {
      const ir::Expr r = ir::Var::make("r");
      return ir::Reduce::make(op, {r, g.H, ir::imm(4)}, g.at(g.W, {i[0], r}) * g.at(s, {n, r}));
    });
  };
  const int sum = of_zeros("sum", ir::ReduceOp::sum), product = of_zeros("product", ir::ReduceOp::prod);
  const int most = of_zeros("most", ir::ReduceOp::max), least = of_zeros("least", ir::ReduceOp::min);
  const ra::Graph graph = g.with(g.compute("body", {g.H}, [&](auto& n, auto& i) {
    ir::Expr all = g.emb(n, i[0]) + g.at(sum, {n, i[0]}) / odd::Odd::number(4);  // the mean
    for (const int op : {product, most, least}) all = all + g.at(op, {n, i[0]});
    return tanh_of(all);
  }));
  const std::string leaves = leaves_of(lowered(graph, apart));
  CHECK(leaves.find("] = tanh(Emb[") != std::string::npos);
  CHECK(leaves.find(" + ") == std::string::npos);
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("a zero that the user wrote is a number like others", "[lower]") {
  OneState g;
  const ra::Graph graph = g.with(g.compute(
      "body", {g.H}, [&](auto& n, auto& i) { return odd::Odd::number(0) * g.emb(n, i[0]) + g.sum_of_kids(n, i[0]); }));
  CHECK(leaves_of(lowered(graph, apart)).find("0.0 * Emb") != std::string::npos);
}

TEST_CASE("whether a node is a leaf is known in its version", "[lower]") {
  OneState g;
  const ra::Graph graph = g.with(g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return ir::Select::make(g.is_leaf(n), g.emb(n, i[0]), g.sum_of_kids(n, i[0]));
  }));
  CHECK(count(lowered(graph, apart), "is_leaf(") == 0);
  CHECK(count(lowered(graph, together), "is_leaf(") == 1);
}

TEST_CASE("the first of gates that lie one after the other is read by the loop over one gate", "[lower][equality]") {
  OneState m;
  const Dim G("gates", 8);
  const int W = m.input("both", {G, m.H});
  const int z = m.compute("z", {G}, [&](auto n, auto g) {
    return m.dot(m.H, [&](auto& r) { return m.at(W, {g[0], r}) * m.sum_of_kids(n, r); });
  });
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    const ir::Expr first = ir::Binary::make(ir::BinaryOp::add, i[0], ir::imm(0));
    return tanh_of(m.emb(n, i[0]) + m.at(z, {n, first}) * m.at(z, {n, i[0] + 4}));
  });
  const ra::Graph graph = m.with(body);
  CHECK(count(lowered(graph, apart), "z[node.2,i") == 3);  // stored, and read twice
  CHECK(difference(graph, apart) == "");
}

// ---- reductions ----

TEST_CASE("a sum over two dimensions is one nest with one accumulator", "[lower]") {
  const std::string text = lowered(odd::tensor_product(4), together);
  CHECK(count(text, "local both_sum_acc[]") == 1);  // what no sum changes is outside of both
}

TEST_CASE("a sum that is read twice is computed once", "[lower][equality]") {
  OneState m;
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    const ir::Expr once = m.product(i[0], [&](auto& r) { return m.sum_of_kids(n, r); });
    return m.emb(n, i[0]) + once * tanh_of(once);
  });
  const ra::Graph graph = m.with(body);
  const std::string text = lowered(graph, together);
  CHECK(count(text, "W[") == 2);  // declared, and read
  CHECK(difference(graph, together) == "");
}

TEST_CASE("a sum of several products is as many sums of one", "[lower][equality]") {
  // Products of W and U with two functions of a node, written in one sum and in a sum each.
  const auto graph_of = [](bool in_one, ir::BinaryOp joined) {
    OneState m;
    const int U = m.input("U", {m.H, m.H});
    const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
      const auto w = [&](auto& r) { return m.at(m.W, {i[0], r}) * m.sum_of_kids(n, r); };
      const auto u = [&](auto& r) { return m.at(U, {i[0], r}) * m.emb(n, r); };
      const ir::Expr sum = in_one ? m.dot(m.H, [&](auto& r) { return ir::binary(joined, w(r), u(r)); })
                                  : ir::binary(joined, m.dot(m.H, [&](auto& r) { return w(r); }),
                                               m.dot(m.H, [&](auto& r) { return u(r); }));
      return tanh_of(sum + m.at(m.b, {i[0]}));
    });
    return m.with(body);
  };
  for (const auto joined : {ir::BinaryOp::add, ir::BinaryOp::sub}) {
    CHECK(lowered(graph_of(true, joined), apart) == lowered(graph_of(false, joined), apart));
    CHECK(difference(graph_of(true, joined), apart) == "");
  }
}

TEST_CASE("what several products share is computed once, and so is their sum where it is read twice",
          "[lower][equality]") {
  OneState m;
  const int U = m.input("U", {m.H, m.H});
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    const ir::Expr once = m.dot(m.H, [&](auto& r) {
      return m.at(m.W, {i[0], r}) * m.sum_of_kids(n, r) + m.at(U, {i[0], r}) * m.sum_of_kids(n, r);
    });
    return m.emb(n, i[0]) + once * tanh_of(once);
  });
  const ra::Graph graph = m.with(body);
  const std::string text = lowered(graph, together);
  CHECK(count(text, "W[") == 2);  // declared, and read
  CHECK(count(text, "U[") == 2);
  CHECK(count(text, "num_children(") == 1);
  CHECK(difference(graph, together) == "");
}

TEST_CASE("sums of products of no matrix stay as they are", "[lower][equality]") {
  OneState m;
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    return tanh_of(m.dot(
        m.H, [&](auto& r) { return m.emb(n, r) * m.emb(n, i[0]) - m.sum_of_kids(n, r) * m.sum_of_kids(n, i[0]); }));
  });
  const ra::Graph graph = m.with(body);
  CHECK(count(lowered(graph, together), "_acc = 0.0") == 2);  // that sum, and that of the children
  CHECK(difference(graph, together) == "");
}

TEST_CASE("products of one weight are added up in one sum", "[lower][equality]") {
  OneState m;
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    return tanh_of(m.dot(m.H, [&](auto& r) {
      return m.at(m.W, {i[0], r}) * m.sum_of_kids(n, r) + m.at(m.W, {i[0], r}) * m.emb(n, r);
    }));
  });
  const ra::Graph graph = m.with(body);
  CHECK(count(lowered(graph, together), " = h_sum2_acc + (W[") == 1);
  CHECK(difference(graph, together) == "");
}

TEST_CASE("a product of each child with a matrix of its position is a product for each of a few positions",
          "[lower][equality]") {
  const auto graph_of = [](int most_children, auto value_of_child, ir::ReduceOp op = ir::ReduceOp::sum) {
    OneState m;
    m.graph.max_children = most_children;
    const int U = m.input("U", {Dim("position", most_children), m.H, m.H});
    const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
      return tanh_of(m.emb(n, i[0]) + m.sum_over_children(
                                          m.kids, n,
                                          [&](const ir::Expr& k) {
                                            const ir::Expr kid = m.kid_of(m.kids, n, k);
                                            return m.dot(m.H, [&](auto& r) {
                                              return m.at(U, {k, i[0], r}) * value_of_child(m, kid, r);
                                            });
                                          },
                                          op));
    });
    return m.with(body);
  };
  const auto state = [](const OneState& m, const ir::Expr& kid, const ir::Expr& r) { return m.at(m.h, {kid, r}); };
  const auto word = [](OneState& m, const ir::Expr& kid, const ir::Expr& r) {
    return m.at(m.h, {kid, r}) + m.emb(kid, r);
  };
  for (const Schedule& schedule : {apart, together}) {
    const std::string text = lowered(graph_of(3, state), schedule);
    CHECK(count(text, "U[") == 1 + 3);  // declared, and read
    CHECK(count(text, "k = 0:") == 0);
    CHECK(count(text, "select(2 < num_children(node") == 1);
    for (const auto op : {ir::ReduceOp::sum, ir::ReduceOp::prod, ir::ReduceOp::max, ir::ReduceOp::min})
      CHECK(difference(graph_of(3, state, op), schedule) == "");
    // Of many positions most are empty; and a child that is not there has no word.
    for (const ra::Graph& other : {graph_of(4, state), graph_of(3, word)}) {
      CHECK(count(lowered(other, schedule), "U[") == 1 + 1);
      CHECK(difference(other, schedule) == "");
    }
  }
}

TEST_CASE("a row that is read around its end is read from one of twice the length", "[lower][equality]") {
  using Index = ir::Expr (*)(const ir::Expr&, const ir::Expr&);
  const auto graph_of = [](Index at) {
    OneState m;
    const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
      return tanh_of(m.dot(m.H, [&](auto& j) { return m.sum_of_kids(n, j) * m.emb(n, at(i[0], j) % 4); }));
    });
    return m.with(body);
  };
  const Index forth = [](const ir::Expr&i, const ir::Expr&j) { return i + j; },
              back = [](const ir::Expr&i, const ir::Expr&j) { return i - j + 4; },
              far = [](const ir::Expr&i, const ir::Expr&j) { return i + j + 2; },
              own = [](const ir::Expr&i, const ir::Expr&) { return i + 2; },
              times = [](const ir::Expr&i, const ir::Expr&j) { return i * j; };
  for (const Index at : {forth, back}) {
    CHECK(count(lowered(graph_of(at), apart), "hidden_twice=8") > 0);
    // A copy that goes round stays where others are put in place of what reads them.
    const std::string tiled = ir::print(program_after("tile_nests", graph_of(at), apart, machine(16)));
    CHECK(count(tiled, "hidden_twice=8") > 0);
  }
  for (const Index at : {far, own, times}) CHECK(count(lowered(graph_of(at), apart), "hidden_twice") == 0);
  for (const Index at : {forth, back, far, own, times})
    for (const Schedule& schedule : {apart, together}) CHECK(difference(graph_of(at), schedule) == "");
}

TEST_CASE("a product with each child that outputs weigh has a row per edge", "[lower][equality]") {
  OneState m;
  const int U = m.input("U", {m.H, m.H});
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    return tanh_of(m.emb(n, i[0]) + m.over_kids(n, [&](auto kid) {
      return m.dot(m.H, [&](auto& r) { return m.at(U, {i[0], r}) * (m.at(m.h, {kid, r}) * m.at(m.h, {kid, i[0]})); });
    }));
  });
  const ra::Graph graph = m.with(body);
  CHECK(count(lowered(graph, apart), "[d_edge,hidden=4]") >= 1);
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("what two folds ask of a child is computed once for it, and a function of it once and not for each output",
          "[lower][equality]") {
  // Attention: each child's score weighs it, and divides by the sum of all.
  OneState m;
  const int U = m.input("U", {m.H, m.H});
  const auto score = [&](const ir::Expr& kid) {
    return ir::Unary::make(ir::UnaryOp::exp, m.dot(m.H, [&](auto& r) {
      return m.at(m.b, {r}) * tanh_of(m.dot(m.H, [&](auto& q) { return m.at(U, {r, q}) * m.at(m.h, {kid, q}); }));
    }));
  };
  const int all = m.compute("all", {}, [&](auto n, auto&) { return m.over_kids(n, score); });
  const int body = m.compute("body", {m.H}, [&](auto n, auto i) {
    const ir::Expr weighed = m.over_kids(n, [&](auto kid) { return score(kid) * m.at(m.h, {kid, i[0]}); });
    return tanh_of(m.emb(n, i[0]) + weighed / (odd::Odd::number(1) + m.at(all, {n})));
  });
  const ra::Graph graph = m.with(body);
  const std::string text = lowered(graph, together);
  CHECK(count(text, "U[") == 2);    // declared, and read
  CHECK(count(text, "exp(") == 2);  // in the sum of all, and before what it weighs
  CHECK(count(text, "exp(all_sum") == 2);
  CHECK(difference(graph, together) == "");
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("a function that a row of outputs has in common is computed once for the row", "[lower][equality]") {
  for (const int width : {7, 8}) {  // of fewer it is not worth a loop of its own
    OneState m;
    const Dim P("heads", 2), D("width", width);
    const int A = m.input("A", {P, m.H}), O = m.input("O", {m.H, P, D}), V = m.input("values", {P, D, m.H});
    const auto score = [&](const ir::Expr& kid, const ir::Expr& p) {
      return ir::Unary::make(ir::UnaryOp::exp, m.dot(m.H, [&](auto& r) {
        return m.at(A, {p, r}) * m.at(m.h, {kid, r});
      }));
    };
    const int all = m.compute("all", {P}, [&](auto n, auto i) {
      return odd::Odd::number(1) + m.over_kids(n, [&](auto kid) { return score(kid, i[0]); });
    });
    const int context = m.compute("context", {P, D}, [&](auto n, auto i) {
      return m.over_kids(n, [&](auto kid) {
        return score(kid, i[0]) / m.at(all, {n, i[0]}) * m.dot(m.H, [&](auto& r) {
          return m.at(V, {i[0], i[1], r}) * m.at(m.h, {kid, r});
        });
      });
    });
    const ra::Graph graph = m.with(m.compute("body", {m.H}, [&](auto n, auto i) {
      return tanh_of(m.emb(n, i[0]) + m.dot(P, [&](auto& p) {
        return m.dot(D, [&](auto& d) { return m.at(O, {i[0], p, d}) * m.at(context, {n, p, d}); });
      }));
    }));
    const std::string text = lowered(graph, together);
    INFO(text);
    CHECK(count(text, "_pre[d_edge,heads=2] f32 temp") == (width == 8));
    CHECK(difference(graph, together) == "");
    CHECK(difference(graph, apart) == "");
  }
}

TEST_CASE("a reduction inside another kind of reduction has a row per edge", "[lower]") {
  const std::string text = lowered(odd::extremes(4), together);
  CHECK(count(text, "[d_edge,hidden=4]") >= 1);
}

TEST_CASE("a reduction inside another kind of reduction keeps its own kind", "[lower][equality]") {
  CHECK(difference(odd::extremes(4), together) == "");
  CHECK(difference(odd::extremes(4), apart) == "");
}

// ---- work that leaves the recursion ----

TEST_CASE("what is common to all leaves is not taken for what inner nodes compute", "[lower][equality]") {
  CHECK(difference(odd::free_at_leaves(4), apart) == "");
}

TEST_CASE("one side of a branch that no node changes is not taken for the other side", "[lower][equality]") {
  OneState g;
  const int same = g.compute("same", {g.H}, [&](auto&, auto& i) { return tanh_of(g.at(g.b, {i[0]})); });
  const int own = g.compute("own", {g.H}, [&](auto& n, auto& i) { return g.emb(n, i[0]); });
  const int either = g.if_then_else(
      "either", [&](auto& n) { return odd::Odd::even(g.word_of(n)); }, same, own);
  const ra::Graph graph = g.with(g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return g.at(either, {n, i[0]}) - g.sum_of_kids(n, i[0]);
  }));
  CHECK(difference(graph, together) == "");
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("a product is not computed ahead for all nodes of what leaves compute in the recursion",
          "[lower][equality]") {
  OneState g;
  const int t = g.compute("t", {g.H}, [&](auto& n, auto& i) {
    return ir::Select::make(g.is_leaf(n), g.emb(n, i[0]), tanh_of(g.emb(n, i[0])));
  });
  const int wt = g.compute("wt", {g.H}, [&](auto& n, auto& i) {
    return g.product(i[0], [&](auto& r) { return g.at(t, {n, r}); });
  });
  const ra::Graph graph = g.with(g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(wt, {n, i[0]}) + g.sum_of_kids(n, i[0]));
  }));
  CHECK(difference(graph, together) == "");
  CHECK(difference(graph, apart) == "");
}

TEST_CASE("a product that is one side of a branch stays with the side that needs the children", "[lower][equality]") {
  OneState g;
  const int product = g.compute(
      "product", {g.H}, [&](auto& n, auto& i) { return g.product(i[0], [&](auto& r) { return g.emb(n, r); }); });
  const int kids = g.compute("kids", {g.H}, [&](auto& n, auto& i) { return tanh_of(g.sum_of_kids(n, i[0])); });
  const int either = g.if_then_else(
      "either", [&](auto& n) { return odd::Odd::even(g.word_of(n)); }, product, kids);
  const ra::Graph graph = g.with(g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(either, {n, i[0]}) + g.emb(n, i[0]));
  }));
  CHECK(difference(graph, together) == "");
  CHECK(difference(graph, apart) == "");
}
