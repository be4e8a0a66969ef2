// Recursions of several states that become several in sequence, and states that later recursions read in place of what
// they are made of.
#include "cortex/lower/split_recursions.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "cortex/pass/loops.hpp"
#include "support/every_node.hpp"
#include "support/lowering.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto first = cortex::optional_child<&Vertex::first>;
constexpr auto word = cortex::field<&Vertex::word>;
constexpr int hidden = 8;

const Schedule standard = Schedule::standard();

/// A model of `structure`, with embeddings and as many square matrices as are asked for.
struct Cell : Model<Vertex> {
  explicit Cell(Structure structure = cortex::tree) : Model<Vertex>("cell", structure) {}
  Dim V{"vocabulary"}, H{"hidden", hidden};
  decltype(std::declval<Model<Vertex>&>().input<float>("", Dim("", 1), Dim("", 1))) Emb = input<float>("Emb", V, H);

  auto matrix(const char* name) { return input<float>(name, H, H); }
  auto state(const char* name) { return placeholder<float>(name, H); }
};

/// The product of matrix `W` with the row `x`.
template <class Matrix, class Row>
auto times(const Dim& H, const Matrix& W, Row x) {
  return [H, W, x](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * x(n, j); }); };
}

/// What recursion each state is in, by the names of states: "x:0 h:1 c:1".
template <class Program>
std::string recursions(const Program& program, const Schedule& schedule = standard) {
  const ra::Graph graph = lower::split_recursions(program.graph(), schedule);
  std::string text;
  for (const ra::State& state : graph.states)
    text += graph.ops[std::size_t(state.placeholder)].name() + ":" + std::to_string(state.recursion) + " ";
  return text;
}

/// Everywhere: x = Emb(word), h = tanh(sum over children of W x + U h); only h is asked for.
auto input_as_state(Structure structure) {
  Cell m(structure);
  auto W = m.matrix("W"), U = m.matrix("U");
  auto x = m.state("x"), h = m.state("h");
  auto x_body = m.compute("x_body", m.H, [&](auto n, auto i) { return m.Emb(word(n), i); });
  auto h_body = m.compute("h_body", m.H, [&](auto n, auto i) {
    return tanh(x_body(n, i) + sum(kids(n), [&](auto k) {
                  return sum(m.H, [&](auto j) { return W(i, j) * x(k, j) + U(i, j) * h(k, j); });
                }));
  });
  return m.recursion_op(h, h_body, x, x_body);
}

/// Two layers, the second of which reads what the first computes at the node: an operator, as it is written.
auto stack(Structure structure) {
  Cell m(structure);
  auto W = m.matrix("W"), U = m.matrix("U"), X = m.matrix("X");
  auto a = m.state("a"), b = m.state("b");
  const auto from_kids = [&](auto state) {
    return [state](auto n, auto j) { return sum(kids(n), [&](auto k) { return state(k, j); }); };
  };
  auto a_body = m.compute("a_body", m.H,
                          [&](auto n, auto i) { return tanh(m.Emb(word(n), i) + times(m.H, W, from_kids(a))(n, i)); });
  auto gate = m.compute("gate", m.H, [&](auto n, auto i) { return sigmoid(a_body(n, i)); });
  auto b_body = m.compute("b_body", m.H, [&](auto n, auto i) {
    return gate(n, i) * tanh(times(m.H, X, [&](auto at, auto j) { return a_body(at, j); })(n, i) +
                             times(m.H, U, from_kids(b))(n, i));
  });
  return m.recursion_op(b, b_body, a, a_body);
}

}  // namespace

TEST_CASE("an input that a model keeps as a state is a recursion of its own", "[lower][recursions]") {
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence}) {
    const auto program = input_as_state(structure);
    CHECK(recursions(program) == "h:1 x:0 ");
    check_at_every_node(program);
    check_at_every_node(program, standard.workers(3).tabulate_nothing());
    check_at_every_node(program, Schedule{}.dynamic_batch());
  }
}

TEST_CASE("the layers of a stack are recursions in sequence, whose products are made once", "[lower][recursions]") {
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence}) {
    const auto program = stack(structure);
    CHECK(recursions(program) == "b:1 a:0 ");
    const std::string text = ir::print(lower::lower(lower::split_recursions(program.graph(), standard), standard));
    INFO(text);
    for (const char* matrix : {"fma(W[", "fma(U[", "fma(X["}) CHECK(count(text, matrix) == 1);
    check_at_every_node(program);
    check_at_every_node(program, standard.workers(2).groups(2));
    check_at_every_node(program, standard.share_subtrees().fill_levels(4));
    check_at_every_node(program, Schedule{}.dynamic_batch().specialize_leaves());
  }
}

TEST_CASE("states that need each other stay together, as do those that split no product off", "[lower][recursions]") {
  SECTION("each needs the other's") {
    Cell m;
    auto W = m.matrix("W"), U = m.matrix("U");
    auto h = m.state("h"), c = m.state("c");
    const auto row = [](auto state) {
      return [state](auto n, auto j) { return sum(kids(n), [&](auto k) { return state(k, j); }); };
    };
    auto c_body =
        m.compute("c_body", m.H, [&](auto n, auto i) { return m.Emb(word(n), i) + times(m.H, W, row(h))(n, i); });
    auto h_body =
        m.compute("h_body", m.H, [&](auto n, auto i) { return tanh(c_body(n, i) + times(m.H, U, row(c))(n, i)); });
    const auto program = m.recursion_op(h, h_body, c, c_body);
    CHECK(recursions(program) == "h:0 c:0 ");
    check_at_every_node(program);
  }
  SECTION("without a product of its own") {
    Cell m;
    auto W = m.matrix("W");
    auto h = m.state("h"), c = m.state("c");
    auto gate = m.compute("gate", m.H, times(m.H, W, [&](auto n, auto j) { return m.Emb(word(n), j); }));
    auto c_body = m.compute("c_body", m.H, [&](auto n, auto i) {
      return gate(n, i) + 0.5F * sum(kids(n), [&](auto k) { return c(k, i); });
    });
    auto h_body = m.compute("h_body", m.H, [&](auto n, auto i) { return sigmoid(gate(n, i)) * tanh(c_body(n, i)); });
    const auto program = m.recursion_op(h, h_body, c, c_body);
    CHECK(recursions(program) == "h:0 c:0 ");
    check_at_every_node(program);
  }
  SECTION("neither needs the other's") {
    Cell m;
    auto W = m.matrix("W"), U = m.matrix("U");
    auto a = m.state("a"), b = m.state("b");
    const auto body = [&](const char* name, auto matrix, auto state) {
      return m.compute(name, m.H, [&](auto n, auto i) {
        return tanh(m.Emb(word(n), i) +
                    sum(kids(n), [&](auto k) { return sum(m.H, [&](auto j) { return matrix(i, j) * state(k, j); }); }));
      });
    };
    auto a_body = body("a_body", W, a), b_body = body("b_body", U, b);
    const auto program = m.recursion_op(a, a_body, b, b_body);
    CHECK(recursions(program) == "a:0 b:0 ");
    check_at_every_node(program);
  }
}

TEST_CASE("states that need each other by way of others stay together", "[lower][recursions]") {
  Cell m;
  auto U = m.matrix("U"), W = m.matrix("W"), V = m.matrix("V");
  auto a = m.state("a"), b = m.state("b"), c = m.state("c");
  const auto body = [&](const char* name, auto matrix, auto of) {
    return m.compute(name, m.H, [&](auto n, auto i) {
      return tanh(m.Emb(word(n), i) + sum(kids(n), [&](auto k) { return times(m.H, matrix, of)(k, i); }));
    });
  };
  auto a_body = body("a_body", U, b), b_body = body("b_body", W, c), c_body = body("c_body", V, a);
  const auto program = m.recursion_op(a, a_body, b, b_body, c, c_body);
  CHECK(recursions(program) == "a:0 b:0 c:0 ");
  check_at_every_node(program);
}

TEST_CASE("a product with what a recursion computes is made for all nodes after it", "[lower][recursions]") {
  Cell m;
  auto W = m.matrix("W"), U = m.matrix("U");
  auto c = m.state("c"), h = m.state("h"), above = m.state("above");
  auto c_body = m.compute("c_body", m.H, [&](auto n, auto i) {
    return tanh(m.Emb(word(n), i) +
                sum(kids(n), [&](auto k) { return sum(m.H, [&](auto j) { return U(i, j) * c(k, j); }); }));
  });
  auto h_body = m.compute("h_body", m.H, times(m.H, W, [&](auto n, auto j) { return c_body(n, j); }));
  auto last = m.compute("last", m.H, [&](auto n, auto i) {  // needs a later one's states, and is no sooner
    return h(first(n), i) + times(m.H, W, [&](auto at, auto j) { return h(first(at), j); })(n, i);
  });
  const auto program = m.recursion_op(c, c_body, h, h_body, above, last);
  CHECK(recursions(program) == "c:0 h:1 above:2 ");
  check_at_every_node(program);
  check_at_every_node(program, standard.workers(2));
}

TEST_CASE("a large state that no call gives out stays with what reads it", "[lower][recursions]") {
  // Whether it is read as an operator or at children, its rows serve other nodes.
  for (const bool listed : {false, true}) {
    Cell m(cortex::sequence);
    const Dim D("keys", 32);
    auto W = m.input<float>("W", m.H, D), U = m.matrix("U");
    auto x = m.state("x"), h = m.state("h");
    auto S = m.placeholder<float>("S", D, D);
    auto k = m.input<float>("k", m.V, D);
    auto x_body = m.compute("x_body", m.H, [&](auto n, auto i) { return m.Emb(word(n), i); });
    auto S_body = m.compute("S_body", D, D, [&](auto n, auto d, auto e) {
      return 0.5F * sum(kids(n), [&](auto kid) { return S(kid, d, e); }) + k(word(n), d) * k(word(n), e);
    });
    auto read = m.compute(
        "read", D, [&](auto n, auto e) { return sum(D, [&](auto d) { return k(word(n), d) * S_body(n, d, e); }); });
    auto h_body = m.compute("h_body", m.H, [&](auto n, auto i) {
      return tanh(sum(D, [&](auto e) { return W(i, e) * read(n, e); }) +
                  sum(kids(n), [&](auto kid) { return sum(m.H, [&](auto j) { return U(i, j) * x(kid, j); }); }));
    });
    if (listed) {
      auto [hs, Ss, xs] = m.recursion(h, h_body, S, S_body, x, x_body);
      CHECK(recursions(m.program(hs, Ss, xs)) == "h:1 S:0 x:0 ");
    } else {
      auto [hs, Ss, xs] = m.recursion(h, h_body, S, S_body, x, x_body);
      CHECK(recursions(m.program(hs)) == "h:1 S:1 x:0 ");
    }
  }
}

TEST_CASE("a product is no reason to split if the state leaves it", "[lower][recursions]") {
  Cell m;
  auto W = m.matrix("W");
  auto x = m.state("x"), y = m.state("y");
  auto x_body = m.compute("x_body", m.H, [&](auto n, auto i) {
    return tanh(m.Emb(word(n), i) + sum(kids(n), [&](auto k) { return x(k, i); }));
  });
  auto y_body = m.compute("y_body", m.H, [&](auto n, auto i) {
    return tanh(sum(m.H, [&](auto j) { return W(i, j) * x(first(n), i) * m.Emb(word(n), j); }));
  });
  const auto program = m.recursion_op(y, y_body, x, x_body);
  CHECK(recursions(program) == "y:0 x:0 ");
  check_at_every_node(program);
}

TEST_CASE("states that share a product beside a branch stay together", "[lower][recursions]") {
  for (const bool branches : {false, true}) {
    Cell m;
    auto W = m.matrix("W"), U = m.matrix("U");
    auto a = m.state("a"), b = m.state("b");
    auto shared = m.compute("shared", m.H, [&](auto n, auto i) {
      return sigmoid(sum(kids(n), [&](auto k) { return sum(m.H, [&](auto j) { return U(i, j) * a(k, j); }); }));
    });
    auto inner = m.compute("inner", m.H, [&](auto n, auto i) { return m.Emb(word(n), i) + shared(n, i); });
    auto leaf = m.compute("leaf", m.H, [&](auto n, auto i) { return m.Emb(word(n), i); });
    auto branch = m.if_then_else(
        "branch", [](auto n) { return is_leaf(n); }, leaf, inner);
    auto b_body = m.compute("b_body", m.H, [&](auto n, auto i) {
      return shared(n, i) * tanh(sum(m.H, [&](auto j) { return W(i, j) * a(first(n), j); }));
    });
    if (branches) {
      const auto program = m.recursion_op(b, b_body, a, branch);
      CHECK(recursions(program) == "b:0 a:0 ");
      check_at_every_node(program);
    } else {
      const auto program = m.recursion_op(b, b_body, a, inner);
      CHECK(recursions(program) == "b:1 a:0 ");
      check_at_every_node(program);
    }
  }
}

TEST_CASE("what is put together of two states is split as if each were multiplied alone", "[lower][recursions]") {
  Cell m;
  const Dim both("both", 2 * hidden);
  auto W = m.input<float>("W", m.H, both);
  auto x = m.state("x"), h = m.state("h");
  auto x_body = m.compute("x_body", m.H, [&](auto n, auto i) { return m.Emb(word(n), i); });
  auto h_body = m.compute("h_body", m.H, [&](auto n, auto i) {
    const auto of_kids = sum(kids(n), [&](auto k) { return h(k, i); });
    return tanh(of_kids + sum(both, [&](auto j) {
                  return W(i, j) * select(j < hidden, x(first(n), min(j, hidden - 1)), h(first(n), max(j - hidden, 0)));
                }));
  });
  const auto program = m.recursion_op(h, h_body, x, x_body);
  CHECK(recursions(program) == "h:1 x:0 ");
  check_at_every_node(program);
}

TEST_CASE("recursions that a schedule speaks of stay as they are", "[lower][recursions]") {
  const auto program = stack(cortex::tree);
  for (const Schedule& schedule : {Schedule{}, standard.unroll("cell", 2), standard.refactor("b_body")})
    CHECK(recursions(program, schedule) == "b:0 a:0 ");
  CHECK(recursions(program, standard.loops(cortex::Loops{})) == "b:0 a:0 ");
}

TEST_CASE("recursions after one that is split come after all of its pieces", "[lower][recursions]") {
  Cell m;
  auto W = m.matrix("W"), U = m.matrix("U");
  auto a = m.state("a"), b = m.state("b");
  auto a_body = m.compute("a_body", m.H, [&](auto n, auto i) {
    return tanh(m.Emb(word(n), i) + sum(kids(n), [&](auto k) { return a(k, i); }));
  });
  auto b_body = m.compute("b_body", m.H, [&](auto n, auto i) {
    return tanh(times(m.H, W, [&](auto at, auto j) { return a_body(at, j); })(n, i) +
                times(m.H, U, [&](auto at, auto j) { return b(first(at), j); })(n, i));
  });
  auto [first_layer, second_layer] = m.recursion(a, a_body, b, b_body);
  auto y =
      m.output<float>("y", m.H, [&](auto n, auto i) { return first_layer(n, i) - second_layer(n, i) + a_body(n, i); });
  const auto program = m.program(y, second_layer, first_layer);
  CHECK(recursions(program) == "y:2 b:1 a:0 ");
  check_at_every_node(program);
}

TEST_CASE("a later recursion reads the state of what an earlier one computes, also as a side of a branch",
          "[lower][recursions]") {
  for (const Schedule& schedule : {standard, standard.specialize_if_else(), Schedule{}.dynamic_batch()}) {
    Cell m;
    auto W = m.matrix("W");
    auto a = m.state("a"), b = m.state("b");
    auto a_body = m.compute("a_body", m.H, [&](auto n, auto i) {
      return tanh(m.Emb(word(n), i) + sum(kids(n), [&](auto k) { return a(k, i); }));
    });
    auto first_layer = m.recursion(a, a_body);
    auto inner = m.compute("inner", m.H, [&](auto n, auto i) {
      return times(m.H, W, [&](auto at, auto j) { return a_body(at, j); })(n, i) + b(first(n), i);
    });
    auto body = m.if_then_else(
        "body", [](auto n) { return is_leaf(n); }, a_body, inner);
    auto second_layer = m.recursion(b, body);
    const auto program = m.program(second_layer, first_layer);
    const std::string text = ir::print(lower::lower(program.graph(), schedule));
    INFO(text);
    CHECK(count(text, "= tanh(") == (schedule == Schedule{}.dynamic_batch() ? 1 : 2));  // leaves', and inner nodes'
    check_at_every_node(program, schedule);
  }
}

TEST_CASE("a side of a branch that is an earlier state is there before all else, whenever its placeholder was added",
          "[lower][recursions]") {
  for (const Schedule& schedule : {Schedule{}, Schedule{}.dynamic_batch(), standard}) {
    Cell m;
    auto W = m.matrix("W");
    auto body = m.compute("body", m.H, [&](auto n, auto i) { return tanh(m.Emb(word(n), i)); });
    auto other = m.compute("other", m.H, [&](auto n, auto i) { return m.Emb(word(n), i) - 1.0F; });
    auto branch = m.if_then_else(
        "branch", [](auto n) { return is_leaf(n); }, body, other);
    auto read = m.compute("read", m.H, times(m.H, W, [&](auto n, auto j) { return branch(n, j); }));
    auto a = m.state("a"), b = m.state("b");
    auto first_layer = m.recursion(a, body);
    auto b_body = m.compute("b_body", m.H, [&](auto n, auto i) {
      return read(n, i) + branch(n, i) + sum(kids(n), [&](auto k) { return b(k, i) + first_layer(k, i); });
    });
    check_at_every_node(m.program(m.recursion(b, b_body), first_layer), schedule);
  }
}
