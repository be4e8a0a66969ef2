// Which branches the standard schedule makes a version of the body for each side of, beside those on leaves and
// switches.
#include <array>
#include <catch2/catch.hpp>

#include "cortex/lower/lower.hpp"
#include "cortex/ra/index_checks.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;

namespace {

struct Item {
  int kind = 0, tag = 0;
  std::array<int, 3> marks{};
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto kind = cortex::field<&Item::kind>;
constexpr auto tag = cortex::field<&Item::tag>;
constexpr auto marks = cortex::field<&Item::marks>;

const auto is_one = [](auto n) { return kind(n) == 1; };

/// The parts of batches of a model of `hidden` whose body `make` makes of a model, a dimension, the sum of the
/// children's states, and products of that with a matrix of each name.
template <class Make>
int parts(std::int64_t hidden, Make make, const Schedule& schedule = Schedule::standard()) {
  Dim H("hidden", hidden);
  Model<Item> m("branches", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }) + 1; });
  const auto product = [&](const std::string& name, auto of) {
    auto matrix = m.template input<float>("of_" + name, H, H);
    return m.compute(name, H,
                     [=](auto n, auto i) { return tanh(sum(H, [=](auto j) { return matrix(i, j) * of(n, j); })); });
  };
  return lower::lower(m.recursion_op(h, make(m, H, s, product)).graph(), schedule).parts;
}

const auto two_sides = [](auto& m, auto, auto s, auto product) {
  return m.if_then_else("body", is_one, product("a", s), product("b", s));
};

}  // namespace

TEST_CASE("a branch has versions where its sides multiply", "[lower][branches]") {
  CHECK(parts(64, two_sides) == 2);
  CHECK(parts(63, two_sides) == 1);
  CHECK(parts(63, two_sides, Schedule::standard().specialize_if_else()) == 2);
  CHECK(parts(64, two_sides, Schedule{}.dynamic_batch().specialize_leaves()) == 1);
  CHECK(parts(64, [](auto& m, auto, auto s, auto product) {
          return m.if_then_else("body", is_one, product("a", s), s);
        }) == 2);
  CHECK(parts(64, [](auto& m, auto, auto s, auto product) {
          auto some = m.if_then_else(
              "some", [](auto n) { return num_children(kids(n)) < 2; }, product("b", s), s);
          return m.if_then_else("body", is_one, product("a", s), some);
        }) == 4);
  CHECK(parts(64, [](auto& m, auto, auto s, auto product) {
          auto others = m.if_then_else(
              "others", [](auto n) { return kind(n) == 2; }, product("b", s), s);
          return m.if_then_else("body", is_one, product("a", s), others);
        }) == 3);  // of one number
}

TEST_CASE("a branch has no versions where they would multiply by themselves what all nodes have in common",
          "[lower][branches]") {
  CHECK(parts(64, [](auto& m, auto H, auto s, auto product) {
          auto common = product("common", s);
          auto a = m.compute("a", H, [&](auto n, auto i) { return tanh(common(n, i)); });
          return m.if_then_else("body", is_one, a, common);
        }) == 1);
  const auto one_side_of = [](int common_ones) {
    return [common_ones](auto& m, auto H, auto s, auto product) {
      auto one = product("one", s), other = product("other", one);
      auto a = m.compute("a", H, [&](auto n, auto i) { return one(n, i); });
      auto b = m.compute("b", H, [&](auto n, auto i) { return one(n, i) + other(n, i); });
      if (common_ones == 1) return m.if_then_else("body", is_one, product("alone", one), a);
      return m.if_then_else("body", is_one, product("alone", other), b);
    };
  };
  CHECK(parts(64, one_side_of(1)) == 2);
  CHECK(parts(64, one_side_of(2)) == 1);
}

TEST_CASE("a branch has no versions for what is made ahead of the recursion", "[lower][branches]") {
  const auto of_inputs = [](auto& m, auto H, auto s, auto product) {
    auto E = m.template input<float>("E", H);
    auto e = m.compute("e", H, [=](auto n, auto i) { return E(i) * cast<float>(kind(n)); });
    auto x = m.if_then_else("x", is_one, product("a", e), product("b", e));
    return m.compute("body", H, [=](auto n, auto i) { return x(n, i) + s(n, i); });
  };
  CHECK(parts(64, of_inputs) == 1);
}

TEST_CASE("a branch of an output has versions where its sides multiply", "[lower][branches]") {
  Dim H("hidden", 64);
  Model<Item> m("outputs", cortex::tree);
  auto A = m.input<float>("A", H, H), B = m.input<float>("B", H, H);
  auto h = m.placeholder<float>("h", H);
  auto all = m.recursion(h, m.compute("body", H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k) { return h(k, i); }) + cast<float>(kind(n));
  }));
  const auto product = [&](const char* name, auto matrix) {
    return m.compute(name, H, [=](auto n, auto i) { return sum(H, [=](auto j) { return matrix(i, j) * all(n, j); }); });
  };
  auto y = m.if_then_else("y", is_one, product("a", A), product("b", B));
  auto out = m.output<float>("out", H, [&](auto n, auto i) { return y(n, i); });
  CHECK(lower::lower(m.program(out).graph(), Schedule::standard()).parts == 2);
}

TEST_CASE("a branch that nodes cannot be sorted by is decided at each, and what stands in it", "[lower][branches]") {
  const auto by_mark = [](auto n) { return marks(n)[kind(n)] == 1; };
  CHECK(parts(64, [&](auto& m, auto, auto s, auto product) {
          return m.if_then_else("body", by_mark, product("a", s), product("b", s));
        }) == 1);
  CHECK(parts(64, [&](auto& m, auto, auto s, auto product) {
          auto inside = m.if_then_else("inside", is_one, product("b", s), s);
          return m.if_then_else("body", by_mark, product("a", s), inside);
        }) == 1);
  CHECK(parts(64, [&](auto& m, auto, auto s, auto product) {
          return m.if_then_else(
              "body", [](auto n) { return marks(n)[2] == 1; }, product("a", s), product("b", s));
        }) == 2);
  // Nor are they sorted by the matrices that nodes choose there.
  CHECK(parts(96, [&](auto& m, auto H, auto s, auto product) {
          auto U = m.template input<float>("U", Dim("tags", 3), H, H);
          auto chosen = m.compute(
              "chosen", H, [=](auto n, auto i) { return sum(H, [=](auto j) { return U(tag(n), i, j) * s(n, j); }); });
          return m.if_then_else("body", by_mark, chosen, product("b", s));
        }) == 1);
}

TEST_CASE("branches one behind the other, both sides of which read the one before, are of that many ways",
          "[lower][branches]") {
  constexpr int length = 12;  // of as many ways together as 2^12
  Dim V("vocabulary", 5), H("hidden", 4);
  Model<Item> m("chain", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto first = m.compute(
      "first", H, [&](auto n, auto i) { return Emb(tag(n), i) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  const auto link = [&](auto before, int number) {
    const std::string name = std::to_string(number);
    auto x = m.compute("x" + name, H, [=](auto n, auto i) { return tanh(before(n, i)) + Emb(marks(n)[0], i); });
    auto y = m.compute("y" + name, H, [=](auto n, auto i) { return sigmoid(before(n, i)) + Emb(marks(n)[0], i); });
    return m.if_then_else(
        "link" + name, [=](auto n) { return kind(n) > number; }, x, y);
  };
  auto last = link(first, 0);
  for (int number = 1; number < length; ++number) last = link(last, number);
  const ra::Graph graph = m.recursion_op(h, last).graph();

  const ra::IndexChecks checks = ra::index_checks(graph);
  CHECK(checks.branches.size() == length);
  CHECK(checks.indices.size() == 2);  // the tag and the mark, each at all nodes
  for (const ra::IndexCheck& check : checks.indices) CHECK(!check.reach.guard);
  for (const Vector<ra::Reach>& reads : checks.field_reads) CHECK(reads.size() == 1);
  const std::string text = ir::print(lower::lower(graph, Schedule{}).body);
  CHECK(test::count(text, "tanh(") == length);
  CHECK(test::count(text, "if ") == length);
}

TEST_CASE("branches whose ways only part are refused before there are too many", "[lower][branches]") {
  const auto compile_chain = [](int length) {  // each branch leads to the two before it
    Dim V("vocabulary", 5), H("hidden", 4);
    Model<Item> m("chain", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto h = m.placeholder<float>("h", H);
    auto first = m.compute("first", H, [&](auto n, auto i) {
      return Emb(tag(n), i) + cast<float>(kind(n)) + sum(kids(n), [&](auto k) { return h(k, i); });
    });
    auto second = m.compute("second", H, [&](auto n, auto i) { return 0.5f * first(n, i); });
    auto one = m.if_then_else(
        "one", [](auto n) { return kind(n) > 0; }, first, second);
    auto two = m.if_then_else(
        "two", [](auto n) { return kind(n) > 1; }, second, one);
    for (int number = 2; number < length; ++number)
      one = std::exchange(
          two, m.if_then_else(
                   "link" + std::to_string(number), [=](auto n) { return kind(n) % (number + 3) == 0; }, two, one));
    return lower::lower(m.recursion_op(h, two).graph(), Schedule{});
  };
  CHECK_NOTHROW(compile_chain(8));
  CHECK_THROWS_WITH(compile_chain(24), Catch::Contains("branches of model 'chain' lead to operator") &&
                                           Catch::Contains("so that ways meet again"));
}

TEST_CASE("a branch that one side of another reads is decided at the nodes of that side", "[lower][branches]") {
  Dim H("hidden", 4);
  Model<Item> m("inside", cortex::tree);
  auto v = m.input<float>("v", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto x = m.compute("x", H, [&](auto n, auto i) { return s(n, i) * v(i); });
  auto y = m.compute("y", H, [&](auto n, auto i) { return s(n, i) + v(i); });
  auto value = m.if_then_else(
      "value", [](auto n) { return tag(n) > 2; }, x, y);
  auto with = m.compute("with", H, [&](auto n, auto i) { return tanh(value(n, i)); });
  auto body = m.if_then_else("body", is_one, with, s);
  const std::string text = ir::print(lower::lower(m.recursion_op(h, body).graph(), Schedule{}).body);
  INFO(text);
  CHECK(test::count(text, "if kind(node) == 1 and tag(node) > 2:") == 1);
  CHECK(test::count(text, "if tag(node) > 2:") == 0);
}
