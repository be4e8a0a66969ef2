// Lowering of what goes beyond one recursion with leaves apart: branches on any of the structure, switches, recursions
// that go down, several in a row, outputs and readouts, unrolling.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using cortex::test::count;

namespace {

struct Item {
  int kind = 0;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto above = cortex::parents<kids>;
constexpr auto kind = cortex::field<&Item::kind>;

struct Parts {
  Dim H{"hidden", 4};
  Model<Item> m;
  Placeholder<Item, float, 1> h = m.placeholder<float>("h", H);
  explicit Parts(Structure structure = cortex::tree) : m("parts", structure) {}

  auto constant(const std::string& name, float value) {
    return m.compute(name, H, [&](auto, auto) { return cast<float>(value); });
  }
  auto children(const std::string& name) {
    return m.compute(name, H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  }
};

std::string lowered(const ra::Graph& graph, const Schedule& schedule) {
  return ir::print(lower::lower(graph, schedule).body);
}

std::string refusal(const ra::Graph& graph, const Schedule& schedule) {
  try {
    lower::lower(graph, schedule);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("a branch on the number of children makes a version for each side, over parts of the batches", "[lower]") {
  Parts p;
  auto body = p.m.if_then_else(
      "body", [](auto n) { return num_children(kids(n)) == 1; }, p.constant("one", 1), p.children("many"));
  const auto program = p.m.recursion_op(p.h, body);
  const std::string text = lowered(program.graph(), Schedule{}.dynamic_batch().specialize_if_else(body));
  CHECK(count(text, "if ") == 0);
  CHECK(count(text, "part_sizes(b_idx * 2)") == 1);
  CHECK(count(text, "part_sizes(b_idx * 2 + 1)") == 1);
}

TEST_CASE("a branch that is not specialized is checked at each node", "[lower]") {
  Parts p;
  auto body = p.m.if_then_else(
      "body", [](auto n) { return num_children(kids(n)) == 1; }, p.constant("one", 1), p.children("many"));
  const auto program = p.m.recursion_op(p.h, body);
  const std::string text = lowered(program.graph(), Schedule{}.dynamic_batch());
  CHECK(count(text, "if ") == 1);
  CHECK(count(text, "part_sizes") == 0);
}

TEST_CASE("a switch makes a version for each case, by default", "[lower]") {
  Parts p;
  auto cell = p.m.switch_(
      "cell", [](auto n) { return kind(n); }, when(3, p.constant("three", 3)), when(5, p.children("five")),
      when(7, p.constant("seven", 7)));
  const auto program = p.m.recursion_op(p.h, cell);
  const std::string text = lowered(program.graph(), Schedule::standard());
  CHECK(count(text, "if ") == 0);
  CHECK(count(text, "b_idx") > 0);
  CHECK(count(text, "part_sizes((b_idx + 1) * 3 + 2)") == 1);  // an inner node of kind 7
  CHECK(count(text, "part_sizes(2)") == 1);                    // a leaf of that kind
}

TEST_CASE("a case that is decided at each node is asked for alone, what is left for all before", "[lower]") {
  Parts p;
  auto cell = p.m.switch_(
      "cell", [](auto n) { return kind(n); }, when(3, p.constant("three", 3)), when(5, p.children("five")),
      when(7, p.constant("seven", 7)), otherwise(p.constant("other", 1)));
  const auto program = p.m.recursion_op(p.h, cell);
  const std::string text = lowered(program.graph(), Schedule{}.dynamic_batch());
  CHECK(count(text, "if ") == 4);
  CHECK(count(text, "== 3") == 2);
  CHECK(count(text, "== 5") == 2);
  CHECK(count(text, "== 7") == 2);
  CHECK(count(text, "not") == 3);
}

TEST_CASE("answers that exclude each other have no version", "[lower]") {
  Parts p;
  auto cell = p.m.switch_(
      "cell", [](auto n) { return kind(n); }, when(0, p.children("a")), when(1, p.constant("b", 1)));
  auto body = p.m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, p.constant("leaf", 0.5f), cell);
  const auto program = p.m.recursion_op(p.h, body);
  const std::string text = lowered(program.graph(), Schedule::standard());
  CHECK(count(text, "leaf_batch_size") == 1);  // leaves are not asked their kind: one version for all
  CHECK(count(text, "part_sizes") == 2);
}

TEST_CASE("more than 64 ways through the branches are refused", "[lower][refusal]") {
  Parts p;
  auto a = p.constant("a", 1);
  auto b = p.children("b");
  auto last = p.m.if_then_else(
      "b0", [](auto n) { return kind(n) == 0; }, a, b);
  auto b1 = p.m.if_then_else(
      "b1", [](auto n) { return kind(n) > 1; }, a, last);
  auto b2 = p.m.if_then_else(
      "b2", [](auto n) { return kind(n) > 2; }, a, b1);
  auto b3 = p.m.if_then_else(
      "b3", [](auto n) { return kind(n) > 3; }, a, b2);
  auto b4 = p.m.if_then_else(
      "b4", [](auto n) { return kind(n) > 4; }, a, b3);
  auto b5 = p.m.if_then_else(
      "b5", [](auto n) { return kind(n) > 5; }, a, b4);
  auto b6 = p.m.if_then_else(
      "b6", [](auto n) { return kind(n) > 6; }, a, b5);
  const auto program = p.m.recursion_op(p.h, b6);
  CHECK_THAT(refusal(program.graph(), Schedule{}.specialize_if_else()),
             Catch::Contains("128 ways through the body") && Catch::Contains("specialize fewer of them"));
}

TEST_CASE("a recursion over parents goes from the highest batch to the leaves", "[lower]") {
  Parts p;
  auto body =
      p.m.compute("body", p.H, [&](auto n, auto i) { return 1 + sum(above(n), [&](auto q) { return p.h(q, i); }); });
  const auto program = p.m.recursion_op(p.h, body);
  CHECK(count(lowered(program.graph(), Schedule::standard()), "batches(num_batches - 1 - b_idx,n_idx)") == 1);
  CHECK(count(lowered(program.graph(), Schedule{}), "nodes_downward(n_idx)") == 1);
}

TEST_CASE("a recursion over children and parents at once is refused", "[lower][refusal]") {
  Parts p;
  auto body = p.m.compute("body", p.H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k) { return p.h(k, i); }) + sum(above(n), [&](auto q) { return p.h(q, i); });
  });
  CHECK_THROWS_WITH(p.m.recursion_op(p.h, body), Catch::Contains("at children or at parents, not at both"));
}

TEST_CASE("a second layer multiplies the first one's results ahead, for all nodes at once", "[lower]") {
  Parts p;
  auto W = p.m.input<float>("W", p.H, p.H);
  auto first = p.m.recursion(p.h, p.children("s"));
  auto g = p.m.placeholder<float>("g", p.H);
  auto body = p.m.compute("second", p.H, [&](auto n, auto i) {
    return sum(p.H, [&](auto j) { return W(i, j) * first(n, j); }) + sum(kids(n), [&](auto k) { return g(k, i); });
  });
  const auto program = p.m.recursion_op(g, body);
  const std::string text = lowered(program.graph(), Schedule{}.dynamic_batch());
  const auto product = text.find("W[i"), ahead = text.find("num_nodes"), second = text.rfind("num_batches");
  REQUIRE(product != std::string::npos);
  CHECK(ahead < product);
  CHECK(product < second);
}

TEST_CASE("what an earlier recursion has computed at every node is not computed again", "[lower]") {
  Parts p;
  Dim V{"vocabulary"};
  auto Emb = p.m.input<float>("Emb", V, p.H);
  auto x = p.m.compute("x", p.H, [&](auto n, auto i) { return tanh(Emb(kind(n), i)); });
  auto up =
      p.m.compute("up", p.H, [&](auto n, auto i) { return x(n, i) + sum(kids(n), [&](auto k) { return p.h(k, i); }); });
  auto h = p.m.recursion(p.h, up);
  auto g = p.m.placeholder<float>("g", p.H);
  auto down = p.m.compute(
      "down", p.H, [&](auto n, auto i) { return x(n, i) * h(n, i) + sum(above(n), [&](auto q) { return g(q, i); }); });
  const auto program = p.m.recursion_op(g, down);
  CHECK(count(lowered(program.graph(), Schedule{}.dynamic_batch()), "Emb[") == 1);
}

TEST_CASE("what no node changes is computed once, whatever the number of versions", "[lower]") {
  Parts p;
  auto W = p.m.input<float>("W", p.H, p.H);
  auto b = p.m.input<float>("b", p.H);
  auto common =
      p.m.compute("common", p.H, [&](auto, auto i) { return sum(p.H, [&](auto j) { return W(i, j) * b(j); }); });
  auto body = p.m.compute("body", p.H, [&](auto n, auto i) {
    return tanh(common(n, i) + sum(kids(n), [&](auto k) { return p.h(k, i); }));
  });
  const auto program = p.m.recursion_op(p.h, body);
  CHECK(count(lowered(program.graph(), Schedule::standard()), "fma(W[") == 1);
}

TEST_CASE("functions of weights alone are computed once, wherever they stand", "[lower]") {
  Parts p(cortex::tree.with_max_children(20));
  Dim V{"vocabulary"}, P("position", 20);
  auto Emb = p.m.input<float>("Emb", V, p.H), W = p.m.input<float>("W", p.H, p.H);
  auto U = p.m.input<float>("U", P, p.H);
  auto b = p.m.input<float>("b", p.H);
  auto scale = p.m.input<float>("scale", Dim("one", 1));
  auto decay = p.m.compute("decay", p.H, [&](auto, auto i) { return exp(b(i)); });
  auto body = p.m.compute("body", p.H, [&](auto n, auto i) {
    auto below = sum(kids(n), [&](auto k) { return p.h(k, i) * sigmoid(b(i)) / (1 + scale(0)); });
    auto product = sum(p.H, [&](auto j) { return sum(kids(n), [&](auto k) { return p.h(k, j); }) * log(W(i, j)); });
    auto placed = sum(kids(n), [&](auto k, auto position) { return p.h(k, i) * cos(U(position, i)); });
    return exp(-decay(n, i)) * below + product + placed + sin(Emb(kind(n), i) * sqrt(b(i)));
  });
  const std::string text = lowered(p.m.recursion_op(p.h, body).graph(), Schedule::standard());
  INFO(text);
  const std::string once = text.substr(0, text.find("for n_idx"));
  for (const char* function : {"exp(b[", "exp(-", "sigmoid(", "log(", "sqrt("}) {
    INFO(function);
    CHECK(count(text, function) == 1);
    CHECK(count(once, function) == 1);
  }
  // What is read by a word or a position is not the same for all.
  CHECK(count(once, "sin(") == 0);
  CHECK(count(text, "sin(") == 2);
  CHECK(count(once, "cos(") == 0);
  CHECK(count(text, "cos(") == 1);
}

TEST_CASE("a readout runs over the roots", "[lower]") {
  Parts p;
  auto h = p.m.recursion(p.h, p.children("s"));
  auto mean = p.m.readout<float>("mean", p.H, [&](auto r, auto i) {
    return sum(cortex::nodes(r), [&](auto n) { return h(n, i); }) / cast<float>(num_children(cortex::nodes(r)));
  });
  const auto program = p.m.program(mean);
  const std::string text = lowered(program.graph(), Schedule::standard());
  CHECK(count(text, "num_roots") == 1);
  CHECK(count(text, "num_nodes(") == 2);  // the loop's end and the divisor
}

TEST_CASE("an unrolled recursion is inlined once a level, over groups of subtrees", "[lower][golden]") {
  const auto program = test::tree_rnn(4);
  const std::string twice = lowered(program.graph(), Schedule::standard().unroll(program, 2));
  CHECK(count(twice, "num_groups") == 1);
  CHECK(count(twice, "num_inner(") == 1);
  CHECK(count(twice, "rnn[left(") == 2);  // the body in itself
  check_golden("lower/tree_rnn_unrolled.ilir", twice);
  const std::string thrice = lowered(program.graph(), Schedule::standard().unroll("rnn", 3));
  CHECK(count(thrice, "rnn[left(") == 3);
}

TEST_CASE("in an unrolled recursion the children inside a subtree come before their parent", "[lower]") {
  const auto program = test::tree_rnn(4);
  const std::string text = lowered(program.graph(), Schedule::standard().unroll(program, 2));
  const std::size_t inner = text.find("rnn[left(inner),"), top = text.find("rnn[left(top),");
  REQUIRE(inner != std::string::npos);
  REQUIRE(top != std::string::npos);
  CHECK(inner < top);
}

TEST_CASE("an unrolled recursion that workers share has one barrier a group, and none inside a subtree", "[lower]") {
  const auto program = test::tree_lstm(32);
  const auto barriers = [&](const Schedule& schedule) {
    return count(test::text_after("insert_barriers", program.graph(), schedule), "barrier");
  };
  const std::string text =
      test::text_after("insert_barriers", program.graph(), Schedule::standard().workers(2).unroll(program, 2));
  CHECK(count(text.substr(text.find("g_idx")), "barrier") == 1);
  CHECK(count(text, "parallel for t_idx") == 1);
  CHECK(barriers(Schedule::standard().workers(2)) >= 1);
}

TEST_CASE("unrolling by one changes nothing", "[lower][noop]") {
  const auto program = test::tree_rnn(4);
  CHECK(lowered(program.graph(), Schedule::standard().unroll(program, 1)) ==
        lowered(program.graph(), Schedule::standard()));
}

TEST_CASE("what cannot be unrolled is refused with the reason", "[lower][refusal]") {
  Parts dag(cortex::dag);
  const auto shared = dag.m.recursion_op(dag.h, dag.children("s"));
  CHECK_THAT(refusal(shared.graph(), Schedule{}.unroll(shared, 2)), Catch::Contains("declared for DAGs"));

  Parts p;
  auto cell = p.m.switch_(
      "cell", [](auto n) { return kind(n); }, when(0, p.children("a")), when(1, p.constant("b", 1)));
  auto up = p.m.recursion(p.h, cell);
  auto g = p.m.placeholder<float>("g", p.H);
  auto body = p.m.compute("down", p.H,
                          [&](auto n, auto i) { return up(n, i) + sum(above(n), [&](auto q) { return g(q, i); }); });
  const auto both = p.m.recursion_op(g, body);
  CHECK_THAT(refusal(both.graph(), Schedule{}.unroll(g, 2)), Catch::Contains("'g' does not recurse on children"));
  CHECK_THAT(refusal(both.graph(), Schedule{}.unroll(up, 9)), Catch::Contains("give a depth from 1 to 8"));
  CHECK_THAT(refusal(both.graph(), Schedule{}.unroll(up, 0)), Catch::Contains("give a depth from 1 to 8"));
  CHECK_THAT(refusal(both.graph(), Schedule{}.unroll("nobody", 2)), Catch::Contains("'nobody'"));
  CHECK_THAT(refusal(both.graph(), Schedule{}.unroll(up, 2).specialize_if_else(cell)),
             Catch::Contains("cannot be specialized by more than leaves"));
  CHECK(refusal(both.graph(), Schedule::standard().unroll(up, 2)) == "no error");
}
