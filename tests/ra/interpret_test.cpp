#include "cortex/ra/interpret.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>

#include "support/recursions.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

constexpr int words = 11;

struct Word {
  int id;
  const Word* left;
  const Word* right;
};

/// A view of user nodes, as ra/node_view.hpp shows it.
struct Words : ra::NodeView {
  std::vector<const Word*> nodes;
  std::map<const Word*, int> number;

  explicit Words(std::vector<const Word*> all) : nodes(std::move(all)) {
    for (std::size_t n = 0; n < nodes.size(); ++n) number[nodes[n]] = int(n);
  }
  int num_nodes() const override { return int(nodes.size()); }
  int child(int a, int n) const override {
    const Word* kid = a == 0 ? nodes[std::size_t(n)]->left : nodes[std::size_t(n)]->right;
    return kid ? number.at(kid) : -1;
  }
  std::vector<int> children(int, int) const override { return {}; }
  double field(int, int n, int) const override { return nodes[std::size_t(n)]->id; }
  bool is_leaf(int n) const override { return !nodes[std::size_t(n)]->left; }
};

/// The sum of a field over a structure: s = x + sum of the children's s.
ra::Graph sums(DType dtype = DType::f64) {
  graphs::GraphBuilder g("sums", ra::StructureKind::dag, 0);
  const Dim one("one", 1);
  const int kids = g.container("kids"), word = g.int_field("word"), s = g.placeholder("s", {one}, dtype);
  const int body = g.compute(
      "body", {one},
      [&](auto& n, auto& i) {
        return ir::Cast::make(dtype, g.field_of(word, n)) + g.sum_over_children(kids, n, [&](auto& k) {
          return g.at(s, {g.kid_of(kids, n, k), i[0]});
        });
      },
      dtype);
  g.recursion_op(s, body);
  return g.graph;
}

template <class F>
std::string refusal(Code code, F run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.code == code);
    return error.message;
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("TreeRNN is what recursion in C++ gives, to the bit", "[ra-interpret]") {
  std::mt19937 random(1);
  const ra::Graph graph = graphs::tree_rnn(0, 5);
  for (int round = 0; round < 20; ++round) {
    const NodeTable nodes = random_table(1 + int(random() % 40), 2, words, random, true);
    const ra::Weights weights = graphs::random_weights(graph, words, random);
    const auto states = ra::interpret<double>(graph, nodes, weights);
    for (int n = 0; n < nodes.num_nodes(); ++n)
      CHECK(states[0][std::size_t(n)] == graphs::tree_rnn_at<double>(nodes, n, weights));
  }
}

TEST_CASE("child-sum TreeLSTM is what recursion in C++ gives", "[ra-interpret]") {
  std::mt19937 random(2);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 3, 4);
  for (int round = 0; round < 10; ++round) {
    const NodeTable nodes = random_table(1 + int(random() % 30), 3, words, random);
    const ra::Weights weights = graphs::random_weights(graph, words, random);
    const auto states = ra::interpret<double>(graph, nodes, weights);
    for (int n = 0; n < nodes.num_nodes(); ++n) {
      const auto expected = graphs::TreeLstm<double>{nodes, weights}.at(n);
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(states[0][std::size_t(n)][i] == Approx(expected.h[i]).epsilon(1e-13));
        CHECK(states[1][std::size_t(n)][i] == Approx(expected.c[i]).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("a view may be made of the user's own nodes", "[ra-interpret]") {
  const Word a{1, nullptr, nullptr}, b{2, nullptr, nullptr}, root{0, &a, &b};
  std::mt19937 random(3);
  const ra::Graph graph = graphs::tree_rnn(0, 2);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto& emb = weights.at("Emb").values;
  const auto states = ra::interpret<double>(graph, Words({&root, &a, &b}), weights);
  CHECK(states[0][0] == std::vector<double>{std::tanh(emb[2] + emb[4]), std::tanh(emb[3] + emb[5])});
}

TEST_CASE("a view of the linearizer's arrays gives the same at each node's number", "[ra-interpret]") {
  std::mt19937 random(4);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 2, 3);
  const NodeTable nodes = random_table(25, 3, words, random);
  const Linear linear(nodes);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto states = ra::interpret<double>(graph, nodes, weights),
             numbered = ra::interpret<double>(graph, ra::ArraysView(linear.arrays, graph), weights);
  for (std::size_t n = 0; n < 25; ++n) CHECK(numbered[0][std::size_t(linear.number[n])] == states[0][n]);
}

TEST_CASE("a chain of 100000 nodes is no recursion of the interpreter", "[ra-interpret]") {
  const NodeTable nodes = chain_table(100000);
  const auto states = ra::interpret<double>(sums(), nodes, {});
  double total = 0;
  for (const int word : nodes.word) total += word;
  CHECK(states[0][0][0] == total);
}

TEST_CASE("a node shared by many parents is evaluated once", "[ra-interpret]") {
  NodeTable nodes;  // 60 nodes, each with two links to the next: 2^59 paths
  for (int n = 0; n < 60; ++n)
    nodes.kids.push_back(n < 59 ? std::vector<int>{n + 1, n + 1} : std::vector<int>{}), nodes.word.push_back(n == 59);
  CHECK(ra::interpret<double>(sums(), nodes, {})[0][0][0] == std::ldexp(1.0, 59));
}

TEST_CASE("a state read at an absent child is 0", "[ra-interpret]") {
  const Word left{3, nullptr, nullptr}, root{0, &left, nullptr};
  std::mt19937 random(5);
  const ra::Graph graph = graphs::tree_rnn(0, 2);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto& emb = weights.at("Emb").values;
  CHECK(ra::interpret<double>(graph, Words({&root, &left}), weights)[0][0] ==
        std::vector<double>{std::tanh(emb[6]), std::tanh(emb[7])});
}

TEST_CASE("an operator that a branch does not take is not evaluated", "[ra-interpret]") {
  const Word a{1, nullptr, nullptr}, b{2, nullptr, nullptr}, root{-1, &a, &b};  // the root's word is in no table
  std::mt19937 random(6);
  const ra::Graph graph = graphs::tree_rnn(0, 2);
  CHECK_NOTHROW(ra::interpret<double>(graph, Words({&root, &a, &b}), graphs::random_weights(graph, words, random)));
}

TEST_CASE("reductions other than sums run over the children", "[ra-interpret]") {
  graphs::GraphBuilder g("most", ra::StructureKind::tree, 0);
  const Dim one("one", 1);
  const int kids = g.container("kids"), word = g.int_field("word"), m = g.placeholder("m", {one});
  const int body = g.compute("body", {one}, [&](auto& n, auto& i) {
    const ir::Expr below = g.sum_over_children(
        kids, n,
        [&](auto& k) {
          return g.at(m, {g.kid_of(kids, n, k), i[0]});
        },
        ir::ReduceOp::max);
    return ir::binary(ir::BinaryOp::max, ir::Cast::make(DType::f32, g.field_of(word, n)), below);
  });
  g.recursion_op(m, body);
  NodeTable nodes;
  nodes.kids = {{1, 2}, {}, {3}, {}};
  nodes.word = {2, 9, 1, 4};
  const auto states = ra::interpret<double>(g.graph, nodes, {});
  CHECK(states[0] == std::vector<std::vector<double>>{{9}, {9}, {4}, {4}});
}

TEST_CASE("operators of several dimensions are row-major", "[ra-interpret]") {
  graphs::GraphBuilder g("outer", ra::StructureKind::tree, 0);
  const Dim A("a", 2), B("b", 3);
  const int m = g.placeholder("m", {A, B});
  g.container("kids");
  const int body =
      g.compute("body", {A, B}, [&](auto&, auto& i) { return ir::Cast::make(DType::f32, i[0] * 10 + i[1]); });
  g.recursion_op(m, body);
  CHECK(ra::interpret<double>(g.graph, chain_table(1), {})[0][0] == std::vector<double>{0, 1, 2, 10, 11, 12});
}

TEST_CASE("floating-point fields are read at the node", "[ra-interpret]") {
  graphs::GraphBuilder g("copy", ra::StructureKind::tree, 0);
  const Dim F("features", 2);
  g.container("kids");
  g.int_field("word");
  const int x = g.float_field("x", {F}), s = g.placeholder("s", {F});
  const int body = g.compute("body", {F}, [&](auto& n, auto& i) { return g.at(x, {n, i[0]}) * g.at(x, {n, i[0]}); });
  g.recursion_op(s, body);
  NodeTable nodes = chain_table(2);
  nodes.data = {{1, 2}, {3, 4}};
  CHECK(ra::interpret<double>(g.graph, nodes, {})[0] == std::vector<std::vector<double>>{{1, 4}, {9, 16}});
}

TEST_CASE("an index past the end of a table names table, dimension and node", "[ra-interpret]") {
  std::mt19937 random(7);
  const ra::Graph graph = graphs::tree_rnn(0, 2);
  NodeTable nodes = chain_table(1);
  nodes.word = {words};
  CHECK_THAT(refusal(Code::out_of_range,
                     [&] { ra::interpret<double>(graph, nodes, graphs::random_weights(graph, words, random)); }),
             Contains("index 11 into dimension 'vocabulary' of 'Emb' at node 0 is not in [0, 11)"));
}

TEST_CASE("weights that are missing or of another shape are refused by name", "[ra-interpret]") {
  const ra::Graph graph = graphs::tree_rnn(4, 2);
  CHECK_THAT(refusal(Code::invalid_weights, [&] { ra::interpret<double>(graph, chain_table(1), {}); }),
             Contains("nothing is bound to input 'Emb'"));
  const ra::Weights wrong{{"Emb", {{2, 4}, std::vector<double>(8)}}};
  CHECK_THAT(refusal(Code::invalid_weights, [&] { ra::interpret<double>(graph, chain_table(1), wrong); }),
             Contains("bound to input 'Emb' has another shape"));
}

TEST_CASE("a cycle is refused", "[ra-interpret]") {
  NodeTable nodes = chain_table(3);
  nodes.kids[2] = {0};
  CHECK_THAT(refusal(Code::invalid_structure, [&] { ra::interpret<double>(sums(), nodes, {}); }),
             Contains("part of a cycle"));
}
