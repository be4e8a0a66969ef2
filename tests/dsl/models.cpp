// Whole models become the graphs that the recursive API means.
#include "dsl/support.hpp"

using namespace dsl_test;

namespace {

using cortex::Dim;
using cortex::Model;
using cortex::ir::Role;
using cortex::ra::OpKind;

TEST_CASE("the running example becomes the graph of the paper's listing") {
  const Dim V{"vocabulary"}, H{"hidden", 256};
  Model<Word> tree_rnn("tree_rnn", cortex::tree);
  auto Emb = tree_rnn.input<float>("Emb", V, H);
  auto rnn = tree_rnn.placeholder<float>("rnn", H);
  auto leaf = tree_rnn.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto lh = tree_rnn.compute("lh", H, [&](auto n, auto i) { return rnn(left(n), i); });
  auto rh = tree_rnn.compute("rh", H, [&](auto n, auto i) { return rnn(right(n), i); });
  auto rec = tree_rnn.compute("rec", H, [&](auto n, auto i) { return tanh(lh(n, i) + rh(n, i)); });
  auto choice = tree_rnn.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, rec);
  auto out = tree_rnn.recursion_op(rnn, choice);

  const cortex::ra::Graph& g = out.graph();
  CHECK(g.name == "tree_rnn");
  CHECK(out.name() == "tree_rnn");
  CHECK(g.structure == cortex::ra::StructureKind::tree);
  CHECK(g.max_children == 0);
  REQUIRE(g.ops.size() == 7);
  CHECK(body(g, "leaf") == "Emb[id(n),i]");
  CHECK(body(g, "lh") == "rnn[left(n),i]");
  CHECK(body(g, "rh") == "rnn[right(n),i]");
  CHECK(body(g, "rec") == "tanh(lh[n,i] + rh[n,i])");
  CHECK(cortex::ir::print(op(g, "body").condition) == "is_leaf(n)");
  CHECK(g.ops[std::size_t(op(g, "body").then_op)].name() == "leaf");
  CHECK(g.ops[std::size_t(op(g, "body").else_op)].name() == "rec");
  REQUIRE(g.states.size() == 1);
  CHECK(g.ops[std::size_t(g.states[0].placeholder)].name() == "rnn");
  CHECK(g.ops[std::size_t(g.states[0].body)].name() == "body");

  static_assert(std::is_same_v<decltype(leaf)::Set, SetOf<word>>);
  static_assert(std::is_same_v<decltype(rec)::Set, SetOf<left, right>>);
  static_assert(std::is_same_v<decltype(out)::Set, SetOf<word, left, right>>);
  static_assert(std::is_same_v<decltype(out)::Node, Word>);
}

TEST_CASE("buffers have the roles, slots and dimensions that lowering counts on") {
  Words w;
  auto x = w.m.field("features", features, w.E);
  const cortex::ra::Graph& g = w.m.graph();
  CHECK(op(g, "Emb").kind == OpKind::input);
  CHECK(op(g, "Emb").buffer->role == Role::weight);
  CHECK(op(g, "Emb").buffer->slot == 0);
  CHECK(op(g, "W").buffer->slot == 1);
  CHECK(op(g, "W").buffer->dims == std::vector<Dim>{w.H, w.E});
  CHECK(op(g, "h").kind == OpKind::placeholder);
  CHECK(op(g, "h").buffer->role == Role::state);
  CHECK(op(g, "h").buffer->slot == -1);
  CHECK(op(g, "h").buffer->dims == std::vector<Dim>{cortex::dims::node, w.H});
  CHECK(op(g, "leaf").buffer->role == Role::temp);
  CHECK(op(g, "leaf").dims == std::vector<Dim>{w.H});
  CHECK(op(g, "features").kind == OpKind::field);
  CHECK(op(g, "features").buffer->role == Role::field);
  CHECK(op(g, "features").buffer->slot == 1);  // after `word`
  REQUIRE(g.fields.size() == 2);
  CHECK(g.fields[1].name == "features");
  CHECK(g.fields[1].components == 4);
  CHECK(g.fields[1].dtype == cortex::DType::f32);
  CHECK(cortex::dsl::accessor_number<std::remove_cvref_t<decltype(features)>>(g) == 1);
  CHECK(cortex::dsl::accessor_number<std::remove_cvref_t<decltype(left)>>(g) == -1);
}

TEST_CASE("a child-sum TreeLSTM folds over children, also around products with weights") {
  Nodes t;
  auto& m = t.m;
  const Dim& H = t.H;
  auto Uf = m.input<float>("Uf", H, H);
  auto bf = m.input<float>("bf", H);
  auto c = m.placeholder<float>("c", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return t.h(k, i); }); });
  auto us = m.compute("us", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return t.U(i, j) * s(n, j); }); });
  auto fc = m.compute("fc", H, [&](auto n, auto i) {
    return sum(kids(n),
               [&](auto k) { return sigmoid(sum(H, [&](auto j) { return Uf(i, j) * t.h(k, j); }) + bf(i)) * c(k, i); });
  });
  auto c_body = m.compute("c_body", H, [&](auto n, auto i) { return sigmoid(us(n, i)) + fc(n, i); });
  auto h_body = m.compute("h_body", H, [&](auto n, auto i) { return sigmoid(us(n, i)) * tanh(c_body(n, i)); });
  CHECK_THROWS_AS(c.position(), cortex::Error);
  auto out = m.recursion_op(t.h, h_body, c, c_body);

  CHECK(body(out.graph(), "s") == "sum(k = 0:num_children(n), h[kids(n,k),i])");
  CHECK(body(out.graph(), "us") == "sum(r = 0:8, U[i,r] * s[n,r])");
  CHECK(body(out.graph(), "fc") ==
        "sum(k = 0:num_children(n), sigmoid(sum(r = 0:8, Uf[i,r] * h[kids(n,k),r]) + bf[i]) * c[kids(n,k),i])");
  REQUIRE(out.graph().containers.size() == 1);
  CHECK(out.graph().children_named.empty());
  CHECK(t.h.position() == 0);
  CHECK(c.position() == 1);
  CHECK(out.position(c) == 1);
  static_assert(std::is_same_v<decltype(out)::Set, SetOf<kids>>);

  const auto* fold = op(out.graph(), "s").body.as<cortex::ir::Reduce>();
  REQUIRE(fold);
  CHECK(fold->axis.dim == cortex::dims::child);
}

TEST_CASE("a branch without a name is named after its sides, each time differently") {
  Words w;
  auto rec = w.m.compute("rec", w.H, [&](auto n, auto i) { return w.h(left(n), i); });
  auto first = w.m.if_then_else([](auto n) { return is_leaf(n); }, w.leaf, rec);
  auto second = w.m.if_then_else([](auto n) { return !is_leaf(n) && word(n) > 0; }, w.leaf, rec);
  CHECK(first.name() == "leaf_or_rec");
  CHECK(second.name() == "leaf_or_rec_2");
  CHECK(cortex::ir::print(op(w.m.graph(), "leaf_or_rec_2").condition) == "not(is_leaf(n)) and id(n) > 0");
  static_assert(std::is_same_v<decltype(second)::Set, SetOf<word, left>>);
}

TEST_CASE("data of the node is a branch: an operator reads it") {
  Words w;
  auto x = w.m.field("x", features, w.E);
  auto other = w.m.compute("other", w.E, [&](auto n, auto i) { return w.leaf(n, i + 4); });
  auto either = w.m.if_then_else(
      "either", [](auto n) { return is_leaf(n); }, x, other);
  const auto& graph = w.m.graph();
  CHECK(body(graph, "x_read") == "x[n,i]");
  CHECK(graph.ops[std::size_t(op(graph, "either").then_op)].name() == "x_read");
  static_assert(std::is_same_v<decltype(either)::Set, SetOf<features, word>>);
}

TEST_CASE("elements are float unless it is said") {
  Words w;
  auto W = w.m.input("more", w.H, w.E);
  auto c = w.m.placeholder("c", w.E);
  auto body = w.m.compute("body", w.E, [&](auto n, auto i) { return W(0, i) * c(left(n), i); });
  auto h = w.m.recursion(w.h, w.leaf);
  auto state = w.m.recursion(c, body);
  auto twice = w.m.output("twice", w.E, [&](auto n, auto i) { return 2 * state(n, i); });
  auto total = w.m.readout("total", w.E,
                           [&](auto r, auto i) { return sum(cortex::nodes(r), [&](auto n) { return twice(n, i); }); });
  static_assert(std::is_same_v<decltype(total)::Element, float> && std::is_same_v<decltype(c)::Element, float>);
  CHECK(w.m.program(total, h).graph().ops[std::size_t(w.m.graph().find("more"))].buffer->dtype == cortex::DType::f32);
}

TEST_CASE("an integer field is a condition, true where it is not 0") {
  Words w;
  auto rec = w.m.compute("rec", w.H, [&](auto n, auto i) { return w.h(left(n), i); });
  w.m.if_then_else(
      "body", [](auto n) { return known(n); }, w.leaf, rec);
  CHECK(cortex::ir::print(op(w.m.graph(), "body").condition) == "known(n) != 0");
}

TEST_CASE("states may be matrices and scalars") {
  Words w;
  auto M = w.m.placeholder<float>("M", w.H, w.E);
  auto score = w.m.placeholder<float>("score");
  auto M_body =
      w.m.compute("M_body", w.H, w.E, [&](auto n, auto i, auto j) { return M(left(n), i, j) + score(right(n)); });
  auto score_body = w.m.compute(
      "score_body", [&](auto n) { return maximum(w.H, w.E, [&](auto i, auto j) { return M_body(n, i, j); }); });
  auto h_body = w.m.compute("h_body", w.H, [&](auto n, auto i) { return M_body(n, i, 0) * score_body(n); });
  auto out = w.m.recursion_op(w.h, h_body, M, M_body, score, score_body);
  CHECK(body(out.graph(), "M_body") == "M[left(n),i,j] + score[right(n)]");
  CHECK(body(out.graph(), "score_body") == "max(r = 0:8, max(r.2 = 0:4, M_body[n,r,r.2]))");
  CHECK(body(out.graph(), "h_body") == "M_body[n,i,0] * score_body[n]");
}

TEST_CASE("handles and programs outlive their model") {
  auto make = [] {
    Words w;
    auto rec = w.m.compute("rec", w.H, [&](auto n, auto i) { return w.h(left(n), i); });
    Model<Word> moved = std::move(w.m);
    auto out = moved.recursion_op(w.h, rec);
    return std::pair{out, w.h};
  };
  const auto [out, h] = make();
  CHECK(h.name() == "h");
  CHECK(out.position(h) == 0);
  CHECK(out.graph().ops.size() == 5);
}

TEST_CASE("the kind of structure and the bound on children reach the graph") {
  CHECK(Model<Word>("m", cortex::sequence).graph().max_children == 1);
  CHECK(Model<Word>("m", cortex::sequence).graph().structure == cortex::ra::StructureKind::sequence);
  CHECK(Model<Word>("m", cortex::dag.with_max_children(3)).graph().max_children == 3);
  CHECK(Model<Word>("m", cortex::dag).graph().structure == cortex::ra::StructureKind::dag);
}

TEST_CASE("an optional child is marked, and is another accessor than a required one") {
  Words w;
  w.m.compute("x", w.H, [&](auto n, auto i) { return w.h(left(n), i) + w.h(perhaps(n), i); });
  REQUIRE(w.m.graph().children_named.size() == 2);
  CHECK(!w.m.graph().children_named[0].optional);
  CHECK(w.m.graph().children_named[1].optional);
}

}  // namespace
