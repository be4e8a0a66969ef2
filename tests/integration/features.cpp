// The breadth of the front end, each feature from a lambda to a result.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <list>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "cortex/structure/hana_struct.hpp"
#include "support/compile.hpp"
#include "support/models.hpp"

using namespace cortex;

namespace {

/// Sums `value` over a node and everything below it: a model small enough to check by eye, over any node type.
template <class Node, class Kids, class Value>
auto total(const Kids& kids, const Value& value, Structure structure = cortex::tree) {
  Dim one("one", 1);
  Model<Node> m("total", structure);
  auto h = m.template placeholder<float>("h", one);
  auto body =
      m.compute("body", one, [&](auto n, auto i) { return value(n) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  return test::compile_here(m.recursion_op(h, body));
}

}  // namespace

namespace features_test {
struct Adapted {
  float weight;
  std::vector<const Adapted*> parts;
};
}  // namespace features_test
BOOST_HANA_ADAPT_STRUCT(features_test::Adapted, weight, parts);

TEST_CASE("children may be unique pointers in a vector", "[features]") {
  struct Node {
    float value;
    std::vector<std::unique_ptr<Node>> kids;
  };
  Node root{1, {}};
  root.kids.push_back(std::make_unique<Node>(Node{2, {}}));
  root.kids.push_back(std::make_unique<Node>(Node{4, {}}));
  root.kids[0]->kids.push_back(std::make_unique<Node>(Node{8, {}}));
  CHECK(total<Node>(cortex::children<&Node::kids>, cortex::field<&Node::value>)(root)[0][0] == 15);
}

TEST_CASE("children may be shared pointers in an array, and a span of raw ones", "[features]") {
  struct Shared {
    float value;
    std::array<std::shared_ptr<Shared>, 2> kids;
  };
  const Shared root{1, {std::make_shared<Shared>(Shared{2, {}}), std::make_shared<Shared>(Shared{4, {}})}};
  const auto model = total<Shared>(cortex::children<&Shared::kids>, cortex::field<&Shared::value>);
  CHECK(model.try_call(root).error().code == Code::invalid_structure);  // null elements: an array is full

  struct Raw {
    float value;
    std::span<const Raw* const> kids;
  };
  const Raw a{2, {}}, b{4, {}};
  const Raw* both[] = {&a, &b};
  CHECK(total<Raw>(cortex::children<&Raw::kids>, cortex::field<&Raw::value>)(Raw{1, both})[0][0] == 7);
}

TEST_CASE("children may be indices into an arena", "[features]") {
  struct Node {
    float value;
    std::vector<int> kids;
  };
  const std::vector<Node> arena{{1, {1, 2}}, {2, {3}}, {4, {}}, {8, {}}};
  const auto model = total<Node>(cortex::children<&Node::kids>, cortex::field<&Node::value>);
  CHECK(model(cortex::arena(arena), {0, 2})[0][0] == 15);
  CHECK(model(cortex::arena(arena), {0, 2})[1][0] == 4);
}

TEST_CASE("node types are adapted by Boost.Hana", "[features]") {
  using features_test::Adapted;
  const Adapted a{2, {}}, b{4, {}}, root{1, {&a, &b}};
  CHECK(total<Adapted>(cortex::children_named<Adapted, "parts">, cortex::field_named<Adapted, "weight">)(root)[0][0] ==
        7);
}

TEST_CASE("a graph that shares nodes computes each of them once for all its parents", "[features]") {
  struct Node {
    float value;
    std::vector<const Node*> kids;
  };
  const Node shared{1, {}}, left{2, {&shared}}, right{4, {&shared}}, root{8, {&left, &right}};
  const auto result = total<Node>(cortex::children<&Node::kids>, cortex::field<&Node::value>, cortex::dag)(root);
  CHECK(result[0][0] == 16);
  CHECK(result.num_nodes() == 4);
}

TEST_CASE("a fixed vector of integers in the node indexes a table", "[features]") {
  struct Node {
    std::array<int, 3> ids;
    std::vector<const Node*> kids;
  };
  constexpr auto ids = cortex::field<&Node::ids>;
  Dim V{"vocabulary"}, H("hidden", 4), three("three", 3);
  Model<Node> m("bag", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(three, [&](auto t) { return Emb(ids(n, t), i); }) +
           sum(cortex::children<&Node::kids>(n), [&](auto k) { return h(k, i); });
  });
  auto model = test::compile_here(m.recursion_op(h, body));
  const std::vector<float> table = test::uniform(7 * 4, 1, 3);
  model.bind("Emb", table);
  const Node leaf{{6, 0, 1}, {}}, root{{2, 2, 5}, {&leaf}};
  const auto result = model(root);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto row = [&](std::size_t word) { return table[word * 4 + i]; };
    CHECK(result[0][i] == Approx(row(6) + row(0) + row(1) + 2 * row(2) + row(5)));
  }
  const Node bad{{1, 7, 0}, {}};
  CHECK(model.try_call(bad).error().code == Code::out_of_range);
}

TEST_CASE("an input vector in the node is read as a tensor", "[features]") {
  struct Node {
    std::array<float, 5> x;
    const Node* next;
  };
  Dim E("input", 5), H("hidden", 3);
  Model<Node> m("rnn", cortex::sequence);
  auto W = m.input<float>("W", H, E);
  auto x = m.field("x", cortex::field<&Node::x>, E);
  auto h = m.placeholder<float>("h", H);
  auto wx = m.compute("wx", H, [&](auto n, auto i) { return sum(E, [&](auto j) { return W(i, j) * x(n, j); }); });
  auto body = m.compute("body", H,
                        [&](auto n, auto i) { return wx(n, i) + 0.5 * h(cortex::optional_child<&Node::next>(n), i); });
  auto model = test::compile_here(m.recursion_op(h, body));
  std::vector<float> ones(15, 1);
  model.bind("W", ones);
  const Node last{{1, 1, 1, 1, 1}, nullptr}, first{{1, 2, 3, 4, 5}, &last};
  CHECK(model(first)[0][2] == 17.5f);
}

TEST_CASE("an array in the node is read as a matrix, row by row", "[features]") {
  struct Node {
    std::array<double, 40> x;
    const Node* next;
  };
  Dim A("rows", 20), B("columns", 2);
  Model<Node> m("matrices", cortex::sequence);
  auto x = m.field("x", cortex::field<&Node::x>, A, B);
  auto h = m.placeholder<double>("h", A);
  auto body = m.compute("body", A, [&](auto n, auto i) {
    return sum(B, [&](auto j) { return (1 + 10 * j) * x(n, i, j); }) + h(cortex::optional_child<&Node::next>(n), i);
  });
  const auto program = m.recursion_op(h, body);
  Node last{{}, nullptr}, first{{}, &last};
  for (std::size_t k = 0; k < 40; ++k) first.x[k] = double(k), last.x[k] = 1000 * double(k);
  for (const auto& schedule : {Schedule(), Schedule::standard()}) {
    const auto model = test::compile_here(program, schedule);
    const auto result = model(first);
    for (std::size_t i = 0; i < 20; ++i) CHECK(result[0][i] == 1001 * double(2 * i + 11 * (2 * i + 1)));
  }
}

TEST_CASE("nodes may have as many numbers as a model declares, wherever they keep them", "[features]") {
  struct Node {
    std::vector<float> x;
    const double* y;  // three of them
    std::vector<const Node*> kids;
  };
  constexpr auto kids = cortex::children<&Node::kids>;
  constexpr auto y_of = cortex::field<[](const Node& n) { return std::span(n.y, 3); }>;
  Dim E("input", 5), H("hidden", 3);
  Model<Node> m("rows", cortex::tree);
  auto W = m.input<float>("W", H, E);
  auto x = m.field("x", cortex::field<&Node::x>, E);
  auto y = m.field("y", y_of, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return sum(E, [&](auto j) { return W(i, j) * x(n, j); }); });
  auto inner = m.compute(
      "inner", H, [&](auto n, auto i) { return cast<float>(y(n, i)) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  const auto out = m.recursion_op(h, body);
  const double three[] = {0.5, 1.5, 2.5};
  const Node one{{1, 1, 1, 1, 1}, nullptr, {}}, two{{1, 2, 3, 4, 5}, nullptr, {}}, root{{}, three, {&one, &two}};
  const std::vector<float> ones(15, 1);
  for (const Schedule& schedule : {Schedule::standard(), Schedule(), Schedule::standard().specialize_if_else()}) {
    auto model = test::compile_here(out, schedule);
    model.bind("W", ones);
    CHECK(model(root)[0][0] == 20.5f);
    CHECK(model(root)[0][2] == 22.5f);
    CHECK(model({&one, &two, &root})[1][1] == 15);
    const Node short_one{{1, 2, 3, 4}, nullptr, {}}, wrong{{}, three, {&one, &short_one}};
    const auto answer = model.try_call(wrong);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == Code::invalid_structure);
    CHECK(answer.error().node == &short_one);
    CHECK_THAT(answer.error().message, Catch::Matchers::Contains("has 4 numbers, but the model declares 5"));
  }
  // Rows are not looked through for equal ones.
  CHECK_THROWS_WITH(test::compile_here(out, Schedule::standard().share_subtrees()),
                    Catch::Matchers::Contains("it reads 'x', rows of each node's own"));
  auto shared = test::compile_here(out, Schedule::standard().share_subtrees_where_it_pays());
  shared.bind("W", ones);
  const Node twin{{1, 1, 1, 1, 1}, nullptr, {}}, twins{{}, three, {&one, &twin}};
  const auto result = shared(twins);
  CHECK(result.num_computed() == 3);
  CHECK(result[0][0] == 10.5f);
}

TEST_CASE("numbers of the nodes are read at children, parents and members", "[features]") {
  struct Arc {
    float weight;
    std::vector<float> features;
    std::vector<const Arc*> from;
  };
  constexpr auto from = cortex::children<&Arc::from>;
  constexpr auto above = cortex::parents<from>;
  constexpr auto weight = cortex::field<&Arc::weight>;
  Dim F("features", 3);
  Model<Arc> m("weighted", cortex::dag);
  auto x = m.field("x", cortex::field<&Arc::features>, F);
  auto up_of = m.placeholder<float>("up", F);
  auto up_body = m.compute("up_body", F, [&](auto n, auto i) {
    return 1 + sum(from(n), [&](auto k) { return weight(k) * (x(k, i) + up_of(k, 2 - i)); });
  });
  auto up = m.recursion(up_of, up_body);
  auto down_of = m.placeholder<float>("down", F);
  auto down_body = m.compute("down_body", F, [&](auto n, auto i) {
    return up(n, i) + sum(above(n), [&](auto p) { return x(p, 0) * weight(p) * down_of(p, i); });
  });
  auto down = m.recursion(down_of, down_body);
  auto all = m.readout<float>(
      "all", F, [&](auto r, auto i) { return sum(cortex::nodes(r), [&](auto n) { return weight(n) * x(n, i); }); });
  const auto program = m.program(down, up, all);

  //  top -> {left, right}, both -> low; low and top alone are read at a node that is a leaf, or a root
  const Arc low{2, {1, 2, 3}, {}}, left{3, {4, 5, 6}, {&low}}, right{-1, {7, 8, 9}, {&low}};
  const Arc top{5, {-1, 0, 1}, {&left, &right}};
  const auto up_by_hand = [&](auto& self, const Arc& n, std::size_t i) -> float {
    float result = 1;
    for (const Arc* k : n.from) result += k->weight * (k->features[i] + self(self, *k, 2 - i));
    return result;
  };
  for (const auto& schedule : {Schedule(), Schedule::standard(), Schedule().dynamic_batch(),
                               Schedule::standard().share_no_subtrees(), Schedule::standard().workers(2)}) {
    const auto model = test::compile_here(program, schedule);
    const auto result = model(top);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto up_at = [&](const Arc& n) { return up_by_hand(up_by_hand, n, i); };
      const auto factor = [](const Arc& n) { return n.weight * n.features[0]; };
      const float at_top = up_at(top), at_left = up_at(left) + factor(top) * at_top,
                  at_right = up_at(right) + factor(top) * at_top;
      CHECK(result.node(&top, "up")[i] == at_top);
      CHECK(result.node(&left)[i] == at_left);
      CHECK(result.node(&right)[i] == at_right);
      CHECK(result.node(&low)[i] == up_at(low) + factor(left) * at_left + factor(right) * at_right);
      float sum = 0;
      for (const Arc* n : {&low, &left, &right, &top}) sum += n->weight * n->features[i];
      CHECK(result.root(0, "all")[i] == sum);
    }
    const Arc short_of_one{1, {1, 2}, {}}, over{1, {1, 2, 3}, {&short_of_one}};
    CHECK(model.try_call(over).error().code == Code::invalid_structure);
  }

  Dim one("one", 1);
  Model<Arc> below("below", cortex::tree);
  auto h = below.placeholder<float>("h", one);
  auto leaf = below.compute("leaf", one, [](auto, auto) { return cortex::cast<float>(1); });
  auto inner = below.compute("inner", one, [&](auto n, auto i) {
    return 1 + sum(from(n), [&](auto k) { return weight(k) * (h(k, i) + 1); });
  });
  auto body = below.if_then_else([](auto n) { return is_leaf(n); }, leaf, inner);
  const auto once = test::compile_here(below.recursion_op(h, body), Schedule::standard().share_subtrees());
  const Arc a{2, {}, {}}, same = a, b{3, {}, {}};  // b differs in what its parent reads alone
  const Arc over_a{1, {}, {&a}}, over_same{1, {}, {&same}}, over_b{1, {}, {&b}};
  const auto result = once({&over_a, &over_same, &over_b});
  CHECK(result.num_nodes() == 6);
  CHECK(result.num_computed() == 4);
  CHECK(result[0][0] == 1 + 2 * (1 + 1));
  CHECK(result[1][0] == result[0][0]);
  CHECK(result[2][0] == 1 + 3 * (1 + 1));
}

TEST_CASE("states may be doubles", "[features]") {
  struct Node {
    double value;
    const Node* next;
  };
  Dim H("hidden", 9);
  Model<Node> m("powers", cortex::sequence);
  auto a = m.input<double>("a", H);
  auto h = m.placeholder<double>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(a(i) * cortex::field<&Node::value>(n)) + h(cortex::optional_child<&Node::next>(n), i) / 3;
  });
  auto model = test::compile_here(m.recursion_op(h, body));
  const std::vector<double> weights{-4, -1, -0.1, 0, 1e-9, 0.1, 1, 2, 40};
  model.bind("a", weights);
  const Node last{0.7, nullptr}, first{-0.3, &last};
  const auto result = model(first);
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(result[0][i] ==
          Approx(std::tanh(-0.3 * weights[i]) + std::tanh(0.7 * weights[i]) / 3).epsilon(1e-14).margin(1e-20));
}

TEST_CASE("a state may be a scalar or a matrix", "[features]") {
  Dim H("hidden", 6), K("columns", 5);
  Model<test::Word> m("shapes", cortex::tree);
  auto A = m.input<float>("A", H, K);
  auto count = m.placeholder<float>("count");
  auto M = m.placeholder<float>("M", H, K);
  auto leaf_count = m.compute("leaf_count", [](auto n) { return cast<float>(test::word(n)); });
  auto inner_count = m.compute("inner_count", [&](auto n) { return count(test::left(n)) + count(test::right(n)); });
  auto leaf_M = m.compute("leaf_M", H, K, [&](auto n, auto i, auto j) { return A(i, j) * cast<float>(test::word(n)); });
  auto inner_M = m.compute(
      "inner_M", H, K, [&](auto n, auto i, auto j) { return max(M(test::left(n), i, j), M(test::right(n), i, j)); });
  const auto leafy = [](auto n) { return is_leaf(n); };
  auto out = m.recursion_op(count, m.if_then_else("c", leafy, leaf_count, inner_count), M,
                            m.if_then_else("b", leafy, leaf_M, inner_M));
  for (const Schedule& schedule : {Schedule::standard(), Schedule{}, Schedule{}.dynamic_batch()}) {
    auto model = test::compile_here(out, schedule);
    const std::vector<float> values = test::uniform(30, 1, 5);
    model.bind(A, values);
    const test::Word a{3, nullptr, nullptr}, b{4, nullptr, nullptr}, root{-1, &a, &b};
    const auto result = model(root);
    CHECK(result.root(0, count)[0] == 7);
    std::vector<float> dense(30);
    result.copy_root(0, M, dense);
    for (std::size_t i = 0; i < 30; ++i) CHECK(dense[i] == std::max(values[i] * 3, values[i] * 4));
  }
}

TEST_CASE("reductions are sums, products, maxima and minima, over dimensions and over children", "[features]") {
  struct Node {
    float value;
    std::vector<const Node*> kids;
  };
  constexpr auto kids = cortex::children<&Node::kids>;
  Dim D("four", 4), E("two", 2);
  Model<Node> m("reductions", cortex::tree);
  auto a = m.input<float>("a", E);
  auto b = m.input<float>("b", E, E);
  auto h = m.placeholder<float>("h", D);
  auto leaf = m.compute("leaf", D, [&](auto n, auto) { return cortex::field<&Node::value>(n); });
  auto most = m.compute("most", D, [&](auto n, auto i) { return maximum(kids(n), [&](auto k) { return h(k, i); }); });
  auto least = m.compute("least", D, [&](auto n, auto i) { return minimum(kids(n), [&](auto k) { return h(k, i); }); });
  auto all = m.compute("all", D, [&](auto n, auto i) { return product(kids(n), [&](auto k) { return h(k, i); }); });
  auto dense = m.compute("dense", D, [&](auto, auto) {
    return product(E, [&](auto j) { return a(j); }) + maximum(E, E, [&](auto j, auto l) { return b(j, l); }) +
           minimum(E, [&](auto j) { return a(j) + sum(E, [&](auto l) { return b(j, l); }); });
  });
  auto inner = m.compute("inner", D, [&](auto n, auto i) {
    return most(n, i) + 10 * least(n, i) + 100 * all(n, i) + 1000 * dense(n, i) +
           cast<float>(num_children(kids(n))) * 10000;
  });
  auto out = m.recursion_op(h, m.if_then_else(
                                   "body", [](auto n) { return is_leaf(n); }, leaf, inner));
  for (const Schedule& schedule : {Schedule::standard(), Schedule{}}) {
    auto model = test::compile_here(out, schedule);
    model.bind("a", std::vector<float>{2, 3}).bind("b", std::vector<float>{1, 5, -4, 2});
    const Node x{2, {}}, y{3, {}}, z{-1, {}}, root{0, {&x, &y, &z}};
    // dense: 6 + 5 + min(2 + 6, 3 - 2) = 12
    CHECK(model(root)[0][1] == 3 + 10 * -1 + 100 * -6 + 12000 + 30000);
  }
}

TEST_CASE("elementwise functions and select follow their definitions", "[features]") {
  Dim H("hidden", 21);
  Model<test::Word> m("functions", cortex::tree);
  auto x = m.input<float>("x", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto, auto i) {
    auto positive = abs(x(i)) + 0.125;
    return exp(x(i)) + log(positive) * 2 - sqrt(positive) / 4 + tanh(x(i)) * sigmoid(-x(i)) + relu(x(i)) +
           select(x(i) > 0.5, max(x(i), 1), min(x(i), -1));
  });
  const auto out = m.recursion_op(h, body);
  for (const bool exact : {false, true}) {
    auto model = test::compile_here(out, exact ? Schedule::standard().exact_activations() : Schedule::standard());
    const std::vector<float> values = test::uniform(21, 3, 9);
    model.bind("x", values);
    const test::Word leaf{0, nullptr, nullptr};
    const auto result = model(leaf);
    for (std::size_t i = 0; i < 21; ++i) {
      const double v = values[i], p = std::abs(v) + 0.125;
      const double expected = std::exp(v) + 2 * std::log(p) - std::sqrt(p) / 4 + std::tanh(v) / (1 + std::exp(v)) +
                              std::max(v, 0.0) + (v > 0.5 ? std::max(v, 1.0) : std::min(v, -1.0));
      CHECK(result[0][i] == Approx(expected).epsilon(3e-6));
    }
  }
}

TEST_CASE("gates that are packed in one row are read as those that have a dimension of their own", "[features]") {
  constexpr int h = 19;
  const auto model = [](bool packed) {
    Dim V("vocabulary", 6), H("hidden", h), K("gates", 3), G("packed", 3 * h);
    Model<test::Word> m("gated", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto state = m.placeholder<float>("state", H);
    const auto sums = [&](auto n, auto r) {
      return Emb(max(test::word(n), 0), r) + sum(test::kids(n), [&](auto k) { return state(k, r); });
    };
    const auto body = [&](auto gate) {
      return m.compute("body", H, [&](auto n, auto i) { return gate(n, i, 0) * tanh(gate(n, i, 1)) - gate(n, i, 2); });
    };
    if (packed) {
      auto W = m.input<float>("W", G, H);
      auto z = m.compute("z", G, [&](auto n, auto g) { return sum(H, [&](auto r) { return W(g, r) * sums(n, r); }); });
      return test::compile_here(m.recursion_op(state, body([&](auto n, auto i, int k) { return z(n, i + k * h); })));
    }
    auto W = m.input<float>("W", K, H, H);
    auto z = m.compute("z", K, H,
                       [&](auto n, auto k, auto i) { return sum(H, [&](auto r) { return W(k, i, r) * sums(n, r); }); });
    return test::compile_here(m.recursion_op(state, body([&](auto n, auto i, int k) { return z(n, k, i); })));
  };
  auto packed = model(true), apart = model(false);
  for (auto* each : {&packed, &apart}) {
    each->bind("Emb", test::uniform(6 * h, 1, 1));
    each->bind("W", test::uniform(3 * h * h, 0.5f, 2));
  }
  const test::Word a{1, nullptr, nullptr}, b{3, nullptr, nullptr}, inner{-1, &a, &b}, c{5, nullptr, nullptr},
      root{-1, &inner, &c};
  const auto one = packed(root), other = apart(root);
  for (std::size_t i = 0; i < h; ++i) CHECK(one[0][i] == Approx(other[0][i]).margin(1e-6));
}

TEST_CASE("results are bit-identical for any batch composition and number of workers", "[features]") {
  const auto program = test::tree_lstm(37);
  auto alone = test::compile_here(program), shared = test::compile_here(program, Schedule::standard().workers(3));
  shared.use(std::make_shared<Workers>(2));
  unsigned seed = 1;
  for (const auto& w : alone.executable().weights) {
    std::size_t size = 1;
    for (const Dim& d : w.dims) size *= std::size_t(d.kind() == DimKind::open ? 50 : d.extent());
    const auto values = test::uniform(size, 0.4f, seed++);
    alone.bind(w.name, values);
    shared.bind(w.name, values);
  }
  std::list<test::Word> words;
  std::vector<const test::Word*> roots;
  for (int t = 0; t < 17; ++t) {
    words.push_back({t, nullptr, nullptr});
    const test::Word* tree = &words.back();
    for (int n = 0; n < t; ++n) {
      words.push_back({(t * 7 + n) % 50, nullptr, nullptr});
      const test::Word* leaf = &words.back();
      words.push_back(n % 2 ? test::Word{-1, tree, leaf} : test::Word{-1, leaf, tree});
      tree = &words.back();
    }
    roots.push_back(tree);
  }
  const auto together = alone(roots), by_three = shared(roots);
  for (std::size_t t = 0; t < roots.size(); ++t) {
    const auto single = alone(*roots[t]);
    CHECK(std::equal(single[0].begin(), single[0].end(), together[t].begin()));
    CHECK(std::equal(single[0].begin(), single[0].end(), by_three[t].begin()));
  }
}

TEST_CASE("many threads call one functor", "[features]") {
  const auto program = test::tree_rnn(32);
  auto model = test::compile_here(program);
  model.bind("Emb", test::uniform(32 * 4, 1, 2));
  const test::Word a{1, nullptr, nullptr}, b{3, nullptr, nullptr}, inner{-1, &a, &b}, c{0, nullptr, nullptr},
      root{-1, &inner, &c};
  const auto first = model(root);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto result = model(root);
        wrong += !std::equal(first[0].begin(), first[0].end(), result[0].begin());
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}
