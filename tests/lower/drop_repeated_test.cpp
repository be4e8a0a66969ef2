// What a recursion has computed at all nodes, and recursions after it read as well, is computed once.
#include <catch2/catch.hpp>

#include "support/compile.hpp"
#include "support/lowering.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;
constexpr int hidden = 8;

/// h = a sum(h of the children) + x, y = h + l x, where x is `of(product, n, i)` of a product of the node's word.
template <class Of>
auto read_twice(Of of) {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("read_twice", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H);
  auto a = m.input<float>("a", H), l = m.input<float>("l", H);
  auto h_of = m.placeholder<float>("h", H);
  auto x = m.compute(
      "x", H, [&](auto n, auto i) { return of(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }), n, i); });
  auto body = m.compute(
      "body", H, [&](auto n, auto i) { return a(i) * sum(kids(n), [&](auto k) { return h_of(k, i); }) + x(n, i); });
  auto h = m.recursion(h_of, body);
  return m.program(m.output<float>("y", H, [&](auto n, auto i) { return h(n, i) + l(i) * x(n, i); }), h);
}

/// x = W e + sum(U h of the children), h = tanh(x), y = sigmoid(x) + h: at leaves x is what goes ahead of inner nodes.
auto read_whole(Structure structure) {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("read_whole", structure);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h_of = m.placeholder<float>("h", H);
  auto x = m.compute("x", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) +
           sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return U(i, j) * h_of(k, j); }); });
  });
  auto h = m.recursion(h_of, m.compute("body", H, [&](auto n, auto i) { return tanh(x(n, i)); }));
  auto y = m.output<float>("y", H, [&](auto n, auto i) { return sigmoid(x(n, i)) + h(n, i); });
  auto z = m.output<float>("z", H, [&](auto n, auto i) {
    return y(n, i) + sum(H, [&](auto j) { return U(i, j) * x(n, j); }) + sum(kids(n), [&](auto k) { return y(k, i); });
  });
  return m.program(z, y);
}

template <class Program>
int products(const Program& program, const Schedule& schedule) {
  return count(ir::print(lower::lower(program.graph(), schedule)), "fma(W[");
}

template <class Program>
std::vector<float> values(const Program& program, const Schedule& schedule, const Target& target) {
  auto model = compile(program, schedule, CompileOptions{}.on(target));
  model.bind_together([&] {
    model.bind("Emb", uniform(num_words * hidden, 1, 1)).bind("W", uniform(hidden * hidden, 0.3f, 2));
    for (const auto& weight : model.executable().weights) {
      if (weight.name == "a") model.bind("a", uniform(hidden, 0.5f, 3)).bind("l", uniform(hidden, 1, 4));
      if (weight.name == "U") model.bind("U", uniform(hidden * hidden, 0.2f, 5));
    }
  });
  Random random(3);
  const Forest forest = random_forest(random, {program.graph().structure}, 30);
  const auto result = model(forest.roots);
  std::vector<float> all;
  for (const auto& vertex : forest.all) {
    const auto own = result.node(vertex.get());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

template <class Program>
void check_values(const Program& program, const Schedule& schedule = Schedule::standard()) {
  const std::vector<float> expected = values(program, Schedule{}, Target::interpreter());
  const std::vector<float> own = values(program, schedule, best_target());
  for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(own[i] == Approx(expected[i]).margin(1e-5));
}

template <class Program>
void check(const Program& program) {
  CHECK(products(program, Schedule::standard()) == 1);
  CHECK(products(program, Schedule{}.dynamic_batch()) == 1);
  check_values(program);
}

}  // namespace

TEST_CASE("a product that a recursion and an output after it read is made once", "[lower]") {
  check(read_twice([](auto product, auto, auto) { return product; }));
  check(read_twice([](auto product, auto, auto) { return silu(product); }));
  check(read_twice([](auto product, auto n, auto) { return product * cast<float>(word(n)); }));
}

TEST_CASE("what a later recursion reads keeps its tensor, whatever else computes the same", "[lower][equality]") {
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence})
    for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().tabulate_nothing().share_no_subtrees(),
                                     Schedule{}.dynamic_batch().specialize_leaves(), Schedule::standard().workers(2)})
      check_values(read_whole(structure), schedule);
}

TEST_CASE("what a recursion that is cut has of its own is not read later", "[lower][refactor][equality]") {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("cut", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h_of = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h_of(k, i); }); });
  auto cut = m.compute("cut", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }); });
  auto x = m.compute(
      "x", H, [&](auto n, auto i) { return cut(n, i) + sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }); });
  auto h = m.recursion(h_of, m.compute("body", H, [&](auto n, auto i) { return tanh(x(n, i)); }));
  const auto program = m.program(m.output<float>("y", H, [&](auto n, auto i) { return x(n, i) + s(n, i) + h(n, i); }));
  check_values(program);
  for (const int workers : {1, 2}) check_values(program, Schedule::standard().workers(workers).refactor(cut));
}

TEST_CASE("an operator of which a later recursion needs more than there is, is computed anew as a whole",
          "[lower][equality]") {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("sides", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
  auto h_of = m.placeholder<float>("h", H), g_of = m.placeholder<float>("g", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h_of(k, i); }); });
  auto a = m.compute("a", H, [&](auto n, auto i) { return tanh(Emb(word(n), i)); });
  auto b = m.compute("b", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }); });
  auto third = m.if_then_else(
      "third", [](auto n) { return word(n) % 3 == 0; }, a, b);
  auto inner = m.compute("inner", H, [&](auto n, auto i) { return tanh(third(n, i) + s(n, i)); });
  auto h = m.recursion(h_of, m.if_then_else(
                                 "h_body", [](auto n) { return !is_leaf(n); }, inner, a));
  auto mixed = m.compute("mixed", H, [&](auto n, auto i) {
    return third(n, i) + 0.5f * sum(kids(n), [&](auto k) { return g_of(k, i); });
  });
  auto rest = m.compute("rest", H, [&](auto n, auto i) { return h(n, i) * sigmoid(third(n, i)); });
  auto g = m.recursion(g_of, m.if_then_else(
                                 "g_body", [](auto n) { return word(n) % 4 == 0; }, mixed, rest));
  const auto program = m.program(g, h);
  for (const Schedule& schedule :
       {Schedule{}, Schedule{}.dynamic_batch(), Schedule::standard(), Schedule::standard().specialize_if_else()})
    check_values(program, schedule);
}
