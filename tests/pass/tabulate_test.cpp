// Which nests tables can stand for, how they are marked, and that a marked program computes the same.
#include <catch2/catch.hpp>

#include "cortex/dsl/model.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "support/golden.hpp"
#include "support/lowering.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Node {
  int word = 0, tag = 0;
  float weight = 0;
  std::vector<const Node*> kids;
};
constexpr auto kids = cortex::children<&Node::kids>;
constexpr auto word = cortex::field<&Node::word>;
constexpr auto tag = cortex::field<&Node::tag>;

const Dim V{"vocabulary"}, T{"tags", 5}, H{"hidden", 8};

/// h = tanh(W x + sum of the children's h), where `x` gives the input from what the model reads.
template <class X>
ra::Graph cell(X x) {
  Model<Node> m("cell", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), Tag = m.input<float>("Tag", T, H), W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * x(n, j, Emb, Tag); }) +
                sum(kids(n), [&](auto k) { return h(k, i); }));
  });
  return m.recursion_op(h, body).graph();
}

/// The program's tabulations under the standard schedule; none if the pass found nothing.
std::vector<ir::Tabulation> found(const ra::Graph& graph, const Schedule& schedule = Schedule::standard()) {
  for (const Snapshot& s : passes_of(graph, schedule, machine(16)))
    if (s.pass == "tabulate") return s.program.tabulations;
  return {};
}

/// The rows of each tabulation: l leaves, i inner nodes, a all, o once.
std::string rows(const std::vector<ir::Tabulation>& tabulations) {
  std::string text;
  for (const ir::Tabulation& t : tabulations) text += "oali"[int(t.rows)];
  return text;
}

}  // namespace

TEST_CASE("leaves' states by their word, and products of weights alone, are marked", "[pass][golden]") {
  const auto program =
      models::tree_lstm<Node>(models::at_leaves(word), kids, {.vocabulary = 10, .input = 4, .hidden = 4}).program;
  check_golden("pass/tabulate/tree_lstm.ilir",
               text_after("tabulate", program.graph(), Schedule::standard().exact_activations()));
  const std::vector<ir::Tabulation> tables = found(program.graph());
  CHECK(rows(tables) == "lo");
  CHECK(tables[0].states == std::vector{0, 1});
  CHECK(tables[0].temps.empty());
  CHECK(tables[1].states.empty());
  CHECK(tables[1].temps.size() == 4);
  CHECK(rows(found(program.graph(), Schedule::standard().tabulate_nothing())) == "o");
}

TEST_CASE("inputs of leaves and of inner nodes are a table by the fields that they read", "[pass]") {
  const auto by_word = found(cell([](auto n, auto j, auto& Emb, auto&) { return Emb(word(n), j); }));
  REQUIRE(rows(by_word) == "a");
  CHECK(by_word[0].keys.size() == 1);
  CHECK(by_word[0].temps.size() == 1);
  const auto by_both =
      found(cell([](auto n, auto j, auto& Emb, auto& Tag) { return Emb(word(n), j) + Tag(tag(n), j); }));
  REQUIRE(rows(by_both) == "a");
  CHECK(by_both[0].keys.size() == 2);
  CHECK(by_both[0].keys[1].bounds.size() == 1);
}

TEST_CASE("what cases of a switch compute of fields is a table for each case", "[pass]") {
  Model<Node> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), X = m.input<float>("X", H, H);
  auto h = m.placeholder<float>("h", H);
  const auto cell = [&](const char* name, auto U) {
    return m.compute(name, H, [=](auto n, auto i) {
      return tanh(sum(H, [=](auto j) { return U(i, j) * Emb(word(n), j); }) +
                  sum(kids(n), [=](auto k) { return h(k, i); }));
    });
  };
  auto a = cell("a", W), b = cell("b", X);
  auto body = m.switch_(
      "body", [](auto n) { return tag(n); }, when(1, a), when(4, b));
  const std::vector<ir::Tabulation> tables = found(m.recursion_op(h, body).graph());
  REQUIRE(rows(tables) == "llii");
  for (const ir::Tabulation& t : tables) {
    CHECK(t.keys.size() == 1);
    CHECK(t.weights.size() == 2);
    CHECK(t.parts.count == 1);
    CHECK(t.states.empty() == (t.rows == ir::Tabulation::Rows::internal));
  }
  CHECK(tables[0].parts.first != tables[1].parts.first);
  CHECK(tables[2].parts.first != tables[3].parts.first);
}

TEST_CASE("products of words stay a table beside products of states in the same output", "[pass]") {
  for (const bool apart : {false, true}) {
    Model<Node> m("output", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H), W = m.input<float>("W", H, H);
    auto h_of = m.placeholder<float>("h", H);
    auto h = m.recursion(h_of, m.compute("body", H, [&](auto n, auto i) {
      return tanh(Emb(word(n), i) + sum(kids(n), [&](auto k) { return h_of(k, i); }));
    }));
    auto y = m.output<float>("y", H, [&](auto n, auto i) {
      const auto of_state = sum(H, [&](auto j) { return U(i, j) * h(n, j); });
      const auto of_word = sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); });
      return apart ? sigmoid(of_word) * tanh(of_state) : tanh(of_state + of_word);
    });
    const ra::Graph graph = m.program(y, h).graph();
    CHECK(rows(found(graph)) == "a");
    CHECK(rows(found(graph, Schedule::standard().tabulate_nothing())) == "");
  }
}

TEST_CASE("what depends on more than integer fields that index weights is not marked", "[pass]") {
  CHECK(rows(found(cell([](auto n, auto j, auto& Emb, auto&) {
          return Emb(word(n), j) * cortex::field<&Node::weight>(n);
        }))).empty());  // a number of the node
  CHECK(rows(found(cell([](auto n, auto j, auto& Emb, auto&) { return Emb(word(n) / 2, j); }))).empty());
  CHECK(rows(found(cell([](auto n, auto j, auto& Emb, auto&) {
          return Emb(word(n), j) * cast<float>(tag(n));
        }))).empty());  // of a range that nothing says
  CHECK(rows(found(cell([](auto n, auto j, auto& Emb, auto&) {
          return Emb(word(n), j) * cast<float>(num_children(kids(n)));
        }))) == "l");  // leaves have none
}

TEST_CASE("without a contraction there is nothing to tabulate", "[pass]") {
  Model<Node> m("lookup", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute(
      "body", H, [&](auto n, auto i) { return tanh(Emb(word(n), i) + sum(kids(n), [&](auto k) { return h(k, i); })); });
  CHECK(found(m.recursion_op(h, body).graph()).empty());
}

TEST_CASE("what follows from words is not marked unless the schedule says so", "[pass]") {
  const ra::Graph graph = cell([](auto n, auto j, auto& Emb, auto&) { return Emb(word(n), j); });
  CHECK(found(graph, Schedule::standard().tabulate_nothing()).empty());
  CHECK(found(graph, Schedule{}).empty());
  CHECK(rows(found(graph, Schedule{}.tabulate())) == "a");
}

TEST_CASE("functions of a whole weight are made once, and lie as products read them", "[pass]") {
  const auto scores = [](bool as_operator) {
    Model<Node> m("scores", cortex::tree);
    auto A = m.input<float>("A", H, H);
    auto b = m.input<float>("b", H);
    auto h = m.placeholder<float>("h", H);
    auto P = m.compute("P", H, H, [&](auto, auto i, auto j) { return exp(A(i, j)); });
    const auto below = [=](auto n, auto j) { return sum(kids(n), [=](auto k) { return h(k, j); }); };
    auto inside = m.compute("inside", H, [&](auto n, auto i) {
      return relu(b(i)) + sum(H, [&](auto j) { return exp(A(i, j)) * below(n, j); });
    });
    auto outside = m.compute("outside", H, [&](auto n, auto i) {
      return relu(b(i)) + sum(H, [&](auto j) { return P(n, i, j) * below(n, j); });
    });
    return (as_operator ? m.recursion_op(h, outside) : m.recursion_op(h, inside)).graph();
  };
  for (const bool as_operator : {false, true}) {
    const ra::Graph graph = scores(as_operator);
    const std::vector<ir::Tabulation> tables = found(graph);
    CHECK(rows(tables) == "o");
    const std::string text = text_after("tabulate", graph, Schedule::standard());
    INFO(text);
    const std::size_t once = text.find("if computed_num_nodes > 0");
    REQUIRE(once != std::string::npos);
    CHECK(count(text, "exp(") == 1);
    CHECK(text.find("exp(") > once);
    CHECK(text.find("exp(") < text.find("for b_idx"));
    CHECK(count(text, " transposed") == 1);
  }
}

TEST_CASE("arithmetic on weights, and weights in another order, are made once, as operators too", "[pass]") {
  const auto model = [](bool as_operator, auto matrix) {
    Model<Node> m("structured", cortex::tree);
    auto A = m.input<float>("A", H, H), b = m.input<float>("B", H, H);
    auto c = m.input<float>("diagonals", Dim("places", 15));
    auto h = m.placeholder<float>("h", H);
    const auto element = [=](auto i, auto j) { return matrix(A, b, c, i, j); };
    auto M = m.compute("M", H, H, [&](auto, auto i, auto j) { return element(i, j); });
    const auto below = [=](auto n, auto j) { return sum(kids(n), [=](auto k) { return h(k, j); }); };
    auto inside = m.compute(
        "inside", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return element(i, j) * below(n, j); })); });
    auto outside = m.compute(
        "outside", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return M(n, i, j) * below(n, j); })); });
    return (as_operator ? m.recursion_op(h, outside) : m.recursion_op(h, inside)).graph();
  };
  for (const bool as_operator : {false, true}) {
    const auto check = [&](auto matrix) {
      const ra::Graph graph = model(as_operator, matrix);
      INFO(ir::print(lower::lower(graph, Schedule::standard()).body));
      CHECK(rows(found(graph)) == "o");
      const std::string text = text_after("tabulate", graph, Schedule::standard()),
                        levels = text.substr(text.find("for b_idx"));
      for (const char* weight : {"A[", "B[", "diagonals["}) CHECK(count(levels, weight) == 0);
    };
    check([](auto A, auto B, auto, auto i, auto j) { return A(i, j) + B(i, j); });
    check([](auto A, auto, auto, auto i, auto j) { return A(i, j) - A(j, i); });
    check([](auto, auto, auto c, auto i, auto j) { return c(i - j + 7); });
  }
}
