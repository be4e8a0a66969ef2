#include "cortex/ra/print.hpp"

#include <catch2/catch.hpp>

#include "support/graphs.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

TEST_CASE("a graph is printed like the paper's Listing 1", "[print]") {
  CHECK(ra::print(graphs::tree_rnn(0, 256)) ==
        "tree_rnn: tree, at most 2 children\n"
        "Emb  = input([vocabulary, hidden=256]) f32\n"
        "rnn  = placeholder([hidden=256]) f32\n"
        "leaf = compute([hidden=256], lambda n,i: Emb[word(n),i])\n"
        "lh   = compute([hidden=256], lambda n,i: rnn[left(n),i])\n"
        "rh   = compute([hidden=256], lambda n,i: rnn[right(n),i])\n"
        "rec  = compute([hidden=256], lambda n,i: tanh(lh[n,i] + rh[n,i]))\n"
        "body = if_then_else(lambda n: is_leaf(n), leaf, rec)\n"
        "recursion_op(rnn, body)\n");
}

TEST_CASE("every state is printed with its body", "[print]") {
  const std::string text = ra::print(graphs::child_sum_tree_lstm(0, 3, 4));
  CHECK_THAT(text, Contains("tree_lstm: tree\n") && Contains("\nrecursion_op(h, h_new)\nrecursion_op(c, c_new)\n"));
}

TEST_CASE("reductions over children and dimensions are printed with their bounds", "[print]") {
  const std::string text = ra::print(graphs::child_sum_tree_lstm(0, 3, 4));
  CHECK_THAT(text, Contains("s     = compute([hidden=4], lambda n,i: sum(k = 0:num_children(n), h[kids(n,k),i]))\n"));
  CHECK_THAT(text, Contains("sum(j = 0:3, W_i[i,j] * Emb[word(n),j])"));
}

TEST_CASE("fields of the node are printed with the accessor's name, and f64 computes with their type", "[print]") {
  graphs::GraphBuilder g("sum", ra::StructureKind::sequence, 1);
  const Dim F("features", 3);
  const int x = g.float_field("x", {F}, DType::f64);
  g.compute(
      "twice", {F},
      [&](auto& n, auto& i) {
        return g.at(x, {n, i[0]}) + g.at(x, {n, i[0]});
      },
      DType::f64);
  CHECK(ra::print(g.graph) ==
        "sum: sequence\n"
        "x     = field(x, [features=3]) f64\n"
        "twice = compute([features=3], lambda n,i: x[n,i] + x[n,i]) f64\n");
}
