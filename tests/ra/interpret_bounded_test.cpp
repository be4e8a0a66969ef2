#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "cortex/ir/print.hpp"
#include "support/recursions.hpp"

using namespace cortex;
using namespace cortex::test;
using ra::Bounded;

namespace {

constexpr int words = 11;
constexpr double inf = std::numeric_limits<double>::infinity(), nan_value = std::numeric_limits<double>::quiet_NaN();

const ra::Arithmetic<Bounded> math;

/// Random expressions over elements of a field `x`, with as many kinds of operators as an operator's body may have.
class RandomExpression {
 public:
  RandomExpression(std::mt19937& random, const ir::Buffer& x, const ir::Expr& node, int size)
      : random_(random), x_(x), node_(node), size_(size) {}

  ir::Expr number(int depth) {
    using enum ir::UnaryOp;
    using B = ir::BinaryOp;
    if (depth == 0)
      return below(5) == 0 ? ir::constant(0.1 * (below(40) - 20), type)
                           : ir::Load::make(x_, {node_, ir::imm(below(size_))});
    switch (below(17)) {
      case 0: return ir::Unary::make(tanh, number(depth - 1));
      case 1: return ir::Unary::make(sigmoid, number(depth - 1));
      case 2: return ir::Unary::make(relu, number(depth - 1));
      case 3: return ir::Unary::make(below(2) ? neg : abs, number(depth - 1));
      case 4: return ir::Unary::make(exp, ir::Unary::make(tanh, number(depth - 1)));
      case 5: return ir::Unary::make(below(2) ? sqrt : log, positive(depth - 1));
      case 6: return ir::Binary::make(B::div, number(depth - 1), positive(depth - 1));
      case 7: return ir::Binary::make(below(2) ? B::min : B::max, number(depth - 1), number(depth - 1));
      case 8:
        return ir::Select::make(ir::Binary::make(below(2) ? B::lt : B::ge, number(depth - 1), number(depth - 1)),
                                number(depth - 1), number(depth - 1));
      case 9: return number(depth - 1) * number(depth - 1);
      case 10: return ir::Unary::make(below(2) ? round : floor, number(depth - 1));
      case 11: return ir::Unary::make(below(2) ? sin : cos, number(depth - 1));
      case 12: return ir::Unary::make(erf, number(depth - 1));
      case 13:
        return ir::Unary::make(log1p, below(2) ? positive(depth - 1) : ir::Unary::make(sigmoid, number(depth - 1)));
      case 14: return ir::Unary::make(expm1, ir::Unary::make(tanh, number(depth - 1)));
      case 15: return ir::Binary::make(B::pow, positive(depth - 1), ir::Unary::make(tanh, number(depth - 1)));
      default: return below(2) ? number(depth - 1) + number(depth - 1) : number(depth - 1) - number(depth - 1);
    }
  }

 private:
  static constexpr ir::Type type{DType::f32, 1};
  int below(int n) { return int(random_() % unsigned(n)); }
  /// Something well above 0: what lies closer has no useful bound.
  ir::Expr positive(int depth) { return ir::Unary::make(ir::UnaryOp::abs, number(depth)) + ir::constant(0.25, type); }

  std::mt19937& random_;
  const ir::Buffer& x_;
  const ir::Expr& node_;
  int size_;
};

float relu(float a) { return a < 0 ? 0 : a; }

/// The same in floats.
float in_float(const ir::Expr& e, const std::vector<float>& x) {
  const auto f = [&](const ir::Expr& part) { return in_float(part, x); };
  if (const auto* imm = e.as<ir::FloatImm>()) return float(imm->value);
  if (const auto* load = e.as<ir::Load>()) return x[std::size_t(*ir::as_int(load->indices[1]))];
  if (const auto* n = e.as<ir::Select>()) {
    const auto* c = n->condition.as<ir::Binary>();
    const bool holds = c->op == ir::BinaryOp::lt ? f(c->a) < f(c->b) : f(c->a) >= f(c->b);
    return holds ? f(n->then_value) : f(n->else_value);
  }
  if (const auto* n = e.as<ir::Unary>()) {
    const float a = f(n->a);
    switch (n->op) {
      case ir::UnaryOp::neg: return -a;
      case ir::UnaryOp::abs: return std::abs(a);
      case ir::UnaryOp::exp: return std::exp(a);
      case ir::UnaryOp::log: return std::log(a);
      case ir::UnaryOp::sqrt: return std::sqrt(a);
      case ir::UnaryOp::tanh: return std::tanh(a);
      case ir::UnaryOp::sigmoid: return 1 / (1 + std::exp(-a));
      case ir::UnaryOp::round: return std::nearbyint(a);
      case ir::UnaryOp::floor: return std::floor(a);
      case ir::UnaryOp::erf: return std::erf(a);
      case ir::UnaryOp::sin: return std::sin(a);
      case ir::UnaryOp::cos: return std::cos(a);
      case ir::UnaryOp::log1p: return std::log1p(a);
      case ir::UnaryOp::expm1: return std::expm1(a);
      default: return relu(a);
    }
  }
  const auto* n = e.as<ir::Binary>();
  const float a = f(n->a), b = f(n->b);
  switch (n->op) {
    case ir::BinaryOp::add: return a + b;
    case ir::BinaryOp::sub: return a - b;
    case ir::BinaryOp::mul: return a * b;
    case ir::BinaryOp::div: return a / b;
    case ir::BinaryOp::min: return std::min(a, b);
    case ir::BinaryOp::pow: return std::pow(a, b);
    default: return std::max(a, b);
  }
}

/// The greatest error of the bounds, in units of the greatest value.
double widest(const ra::States<Bounded>& states) {
  double error = 0, value = 0;
  for (const auto& state : states)
    for (const auto& row : state)
      for (const Bounded& b : row) error = std::max(error, b.error), value = std::max(value, std::abs(b.value));
  return error / value;
}

/// h and c of all nodes by recursion in float.
ra::States<double> float_states(const NodeTable& nodes, const ra::Weights& weights) {
  ra::States<double> result(2);
  for (int n = 0; n < nodes.num_nodes(); ++n) {
    const auto state = graphs::TreeLstm<float>{nodes, weights}.at(n);
    result[0].emplace_back(state.h.begin(), state.h.end());
    result[1].emplace_back(state.c.begin(), state.c.end());
  }
  return result;
}

/// How far a recursion in `Real` is off at most, in bounds: more than 1 is out of bounds.
template <class Real>
double farthest(const ra::States<Bounded>& states, const NodeTable& nodes, const ra::Weights& weights,
                graphs::Order order) {
  double most = 0;
  for (int n = 0; n < nodes.num_nodes(); ++n) {
    const auto got = graphs::TreeLstm<Real>{nodes, weights, order}.at(n);
    for (std::size_t i = 0; i < got.h.size(); ++i) {
      const Bounded &h = states[0][std::size_t(n)][i], &c = states[1][std::size_t(n)][i];
      most = std::max(
          {most, std::abs(double(got.h[i]) - h.value) / h.error, std::abs(double(got.c[i]) - c.value) / c.error});
    }
  }
  return most;
}

}  // namespace

TEST_CASE("bounds cover random expressions evaluated in float", "[bounded]") {
  std::mt19937 random(11);
  const Dim F("features", 6);
  int bounded = 0;
  for (int round = 0; round < 3000; ++round) {
    graphs::GraphBuilder g("random", ra::StructureKind::tree, 0);
    g.container("kids");
    g.int_field("word");
    const Dim one("one", 1);
    const int x = g.float_field("x", {F}), s = g.placeholder("s", {one});
    ir::Expr e;
    const int body = g.compute("body", {one}, [&](auto& n, auto&) {
      return e = RandomExpression(random, g.graph.ops[std::size_t(x)].buffer, n, 6).number(1 + round % 5);
    });
    g.recursion_op(s, body);
    NodeTable nodes = chain_table(1);
    nodes.data.emplace_back();
    for (int i = 0; i < 6; ++i) nodes.data[0].push_back(std::uniform_real_distribution<float>(-3, 3)(random));
    const Bounded b = ra::interpret<Bounded>(g.graph, nodes, {})[0][0][0];
    const double got = in_float(e, nodes.data[0]), reference = ra::interpret<double>(g.graph, nodes, {})[0][0][0];
    INFO(ir::print(e) << " is " << got << ", not " << b.value << " +- " << b.error);
    CHECK(b.covers(got));
    CHECK(b.value == reference);
    bounded += b.error < 1e-4 * (1 + std::abs(b.value));
  }
  CHECK(bounded > 2700);  // the others: a rounding or a comparison on the edge, or a large number
}

TEST_CASE("bounds cover TreeLSTM in float, fused or not", "[bounded]") {
  std::mt19937 random(12);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 16, 16);
  for (int round = 0; round < 5; ++round) {
    const NodeTable nodes = random_table(25, 3, words, random);
    const ra::Weights weights = graphs::random_weights(graph, words, random);
    const auto states = ra::interpret<Bounded>(graph, nodes, weights);
    CHECK(farthest<float>(states, nodes, weights, graphs::Order::forward) <= 1);
    CHECK(farthest<float>(states, nodes, weights, graphs::Order::fused) <= 1);
  }
}

TEST_CASE("bounds in any order cover TreeLSTM with its sums from back to front", "[bounded]") {
  std::mt19937 random(13);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 16, 16);
  const NodeTable nodes = random_table(25, 3, words, random);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  ra::Rounding rounding;
  rounding.any_order = true;
  const auto states = ra::interpret(graph, nodes, weights, ra::Arithmetic<Bounded>(rounding));
  CHECK(farthest<float>(states, nodes, weights, graphs::Order::backward) <= 1);
  CHECK(widest(states) < 1e-3);
}

TEST_CASE("bounds of TreeLSTM are tight enough to tell a wrong result", "[bounded]") {
  std::mt19937 random(14);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 64, 64);
  const NodeTable nodes = random_table(30, 3, words, random);
  const auto states = ra::interpret<Bounded>(graph, nodes, graphs::random_weights(graph, words, random));
  CHECK(widest(states) < 1e-4);
}

TEST_CASE("bounds from given children's states cover float and do not grow with height", "[bounded]") {
  std::mt19937 random(17);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 16, 16);
  const NodeTable nodes = chain_table(40);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto states = ra::interpret_from<Bounded>(float_states(nodes, weights), graph, nodes, weights);
  CHECK(farthest<float>(states, nodes, weights, graphs::Order::forward) <= 1);
  CHECK(widest(states) < 1e-5);
}

TEST_CASE("states are computed where they are wanted", "[bounded]") {
  std::mt19937 random(17);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 16, 16);
  const NodeTable nodes = chain_table(40);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto given = float_states(nodes, weights);
  const auto all = ra::interpret_from<Bounded>(given, graph, nodes, weights);
  std::vector<char> wanted(all[0].size());
  for (const std::size_t n : {0, 7, 39}) wanted[n] = 1;
  const auto some = ra::interpret_from<Bounded>(given, graph, nodes, weights, {}, &wanted);
  for (std::size_t s = 0; s < all.size(); ++s)
    for (std::size_t n = 0; n < wanted.size(); ++n) {
      REQUIRE(some[s][n].size() == (wanted[n] ? all[s][n].size() : 0));
      for (std::size_t i = 0; i < some[s][n].size(); ++i) CHECK(some[s][n][i].value == all[s][n][i].value);
    }
}

TEST_CASE("a weight that is wrong by a thousandth is out of bounds", "[bounded]") {
  std::mt19937 random(15);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 16, 16);
  const NodeTable nodes = random_table(25, 3, words, random);
  ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto states = ra::interpret<Bounded>(graph, nodes, weights);
  weights["U_f"].values[5] += 1e-3;
  CHECK(farthest<float>(states, nodes, weights, graphs::Order::forward) > 1);
}

TEST_CASE("bounds in f64 cover recursion in double and are as small as doubles are", "[bounded]") {
  std::mt19937 random(16);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 16, 16, DType::f64);
  const NodeTable nodes = random_table(25, 3, words, random);
  const ra::Weights weights = graphs::random_weights(graph, words, random);
  const auto states = ra::interpret<Bounded>(graph, nodes, weights);
  CHECK(farthest<double>(states, nodes, weights, graphs::Order::fused) <= 1);
  CHECK(widest(states) < 1e-12);
}

TEST_CASE("a comparison of two values that may be equal covers both sides", "[bounded]") {
  const Bounded a{1, 1e-6}, b{1 + 1e-7, 1e-6};
  const ra::Truth less = math.compare(ir::BinaryOp::lt, a, b);
  CHECK(less.value);
  CHECK_FALSE(less.certain);
  const Bounded chosen = math.select(less, {0, 0.5}, {10, 2});
  CHECK(chosen.covers(12));
  CHECK(chosen.covers(-0.5));
}

TEST_CASE("a comparison of two values that are apart is certain", "[bounded]") {
  CHECK(math.compare(ir::BinaryOp::lt, {1, 0.1}, {2, 0.1}).certain);
  CHECK(math.compare(ir::BinaryOp::eq, {1, 0}, {1, 0}).certain);
}

TEST_CASE("undecided conditions combine as in three-valued logic", "[bounded]") {
  const ra::Truth yes{true}, no{false}, perhaps{true, false};
  CHECK((no && perhaps).certain);
  CHECK_FALSE((yes && perhaps).certain);
  CHECK((yes || perhaps).certain);
  CHECK_FALSE((no || perhaps).certain);
}

TEST_CASE("rounding at the edge covers both neighbours", "[bounded]") {
  const Bounded edge = math.unary(ir::UnaryOp::round, {2.5, 1e-6}, DType::f32);
  CHECK(edge.covers(2));
  CHECK(edge.covers(3));
  CHECK(math.unary(ir::UnaryOp::round, {2.4, 1e-6}, DType::f32).error == 0);
}

TEST_CASE("the square root and logarithm of what may be negative have no bound", "[bounded]") {
  CHECK(math.unary(ir::UnaryOp::sqrt, {1e-9, 1e-8}, DType::f32).error == inf);
  CHECK(math.unary(ir::UnaryOp::log, {1e-9, 1e-8}, DType::f32).error == inf);
  CHECK(math.unary(ir::UnaryOp::sqrt, {0, 0}, DType::f32).error == 0);
}

TEST_CASE("log1p of what may be -1 has no bound, at -1 itself it is minus infinity", "[bounded]") {
  CHECK(math.unary(ir::UnaryOp::log1p, {-1 + 1e-9, 1e-8}, DType::f32).error == inf);
  const Bounded at = math.unary(ir::UnaryOp::log1p, {-1, 0}, DType::f32);
  CHECK((at.value == -inf && at.error == 0));
}

TEST_CASE("a sine has the bound of its argument, and never leaves [-1, 1]", "[bounded]") {
  const Bounded near = math.unary(ir::UnaryOp::cos, {1.5, 1e-3}, DType::f32);
  CHECK(near.covers(std::cos(1.501)));
  CHECK(near.error < 1.1e-3);
  for (const Bounded wild : {Bounded{0.5, 10}, Bounded{0x1p17, 1}}) {
    const Bounded any = math.unary(ir::UnaryOp::sin, wild, DType::f32);
    CHECK((any.covers(1) && any.covers(-1) && any.error <= 2));
  }
}

TEST_CASE("a square root near 0 has the bound of its steepest place", "[bounded]") {
  const Bounded root = math.unary(ir::UnaryOp::sqrt, {1e-8, 0.99e-8}, DType::f32);
  CHECK(root.covers(std::sqrt(1.99e-8)));
  CHECK(root.covers(std::sqrt(0.01e-8)));
}

TEST_CASE("a power has the bound of its base's and its exponent's ends", "[bounded]") {
  const Bounded power = math.binary(ir::BinaryOp::pow, {3, 1e-3}, {-2, 1e-2}, DType::f32);
  CHECK((power.covers(std::pow(2.999, -1.99)) && power.covers(std::pow(3.001, -2.01))));
  CHECK(power.error < 1.4e-3);
  CHECK(math.binary(ir::BinaryOp::pow, {1e-9, 1e-8}, {2, 0}, DType::f32).error == inf);
  CHECK(math.binary(ir::BinaryOp::pow, {-3, 0}, {3, 1e-9}, DType::f32).error == inf);
  const Bounded odd = math.binary(ir::BinaryOp::pow, {-3, 1e-3}, {3, 0}, DType::f32);
  CHECK((odd.covers(std::pow(-3.001, 3)) && odd.covers(std::pow(-2.999, 3)) && odd.error < 0.03));
  const Bounded exact = math.binary(ir::BinaryOp::pow, {-3, 0}, {3, 0}, DType::f32);
  CHECK((exact.value == -27 && exact.error < 1e-4));
}

TEST_CASE("a division by what may be 0 has no bound", "[bounded]") {
  CHECK(math.binary(ir::BinaryOp::div, {1, 0}, {1e-9, 1e-8}, DType::f32).error == inf);
}

TEST_CASE("zeros that are there for certain stay exact", "[bounded]") {
  CHECK(math.mul({0, 0}, {3, 0.1}, DType::f32).error == 0);
  CHECK(math.add({0, 0}, {3, 0.1}, DType::f32).error == 0.1);
}

TEST_CASE("certain NaNs and infinities stay certain", "[bounded]") {
  const Bounded nan = math.add({nan_value, 0}, {1, 0.1}, DType::f32), up = math.mul({inf, 0}, {2, 0}, DType::f32);
  CHECK(nan.covers(nan_value));
  CHECK_FALSE(nan.covers(1));
  CHECK(up.covers(inf));
  CHECK_FALSE(up.covers(1));
}

TEST_CASE("what may overflow a float has no bound", "[bounded]") {
  CHECK(math.unary(ir::UnaryOp::exp, {89, 0}, DType::f32).error == inf);
  CHECK(math.mul({1e30, 0}, {1e30, 0}, DType::f32).error == inf);
  CHECK(math.mul({1e30, 0}, {1e30, 0}, DType::f64).error < 1e46);
}

TEST_CASE("a constant that is no float counts its rounding", "[bounded]") {
  CHECK(math.constant(0.5, DType::f32).error == 0);
  CHECK(math.constant(0.1, DType::f32).covers(0.1f));
  CHECK(math.constant(0.1, DType::f64).error == 0);
}
