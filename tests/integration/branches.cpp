// Branches whose questions are asked at some nodes alone, and operators that several of their sides, or several
// recursions, need: results are what plain recursion gives, and nothing is read that was not checked.
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "cortex/ra/schedule_text.hpp"
#include "support/compile.hpp"
#include "support/differential.hpp"
#include "support/models.hpp"

using namespace cortex;

namespace {

struct Item {
  int kind = 0, word = 0;
  const Item *first = nullptr, *second = nullptr;
};
constexpr auto first = child<&Item::first>;
constexpr auto second = child<&Item::second>;
constexpr auto kind = field<&Item::kind>;
constexpr auto word = field<&Item::word>;

/// A node of kind 2 over ((0 1) 0) of kinds 1 and 0, whose words count from 0.
struct Phrase {
  Item a{0, 0}, b{1, 1}, c{0, 2}, ab{1, 3, &a, &b}, all{2, 4, &ab, &c};
};

std::vector<Schedule> schedules() {
  return {Schedule{}, Schedule::standard(), Schedule::standard().specialize_if_else(),
          Schedule::standard().specialize_if_else().workers(2)};
}

/// What `call` gives for every schedule is `right`.
template <class Program, class Bind>
void check_roots(const Program& program, const std::vector<float>& right, Bind bind) {
  int number = 0;
  for (const Schedule& schedule : schedules()) {
    CAPTURE(number++);
    auto model = test::compile_here(program, schedule);
    bind(model);
    const Phrase p;
    const auto result = model({&p.all, &p.ab, &p.a, &p.b, &p.c});
    std::vector<float> got;
    for (std::size_t r = 0; r < result.size(); ++r) got.push_back(result[r][0]);
    CHECK(got == right);
  }
}

}  // namespace

TEST_CASE("a question that leaves alone are asked says nothing of inner nodes", "[branches]") {
  const Dim H("one", 1);
  Model<Item> m("asked_at_leaves", tree);
  auto h = m.placeholder<float>("h", H);
  auto one = m.compute("of_0", H, [](auto, auto) { return cast<float>(1); });
  auto two = m.compute("others", H, [](auto, auto) { return cast<float>(2); });
  auto leaf = m.switch_(
      "leaf", [](auto n) { return kind(n); }, when(0, one), otherwise(two));
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    const auto below = h(first(n), i) + h(second(n), i);
    return select(kind(n) == 0, below, 10.f * below);
  });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  check_roots(m.recursion_op(h, body), {310, 30, 1, 2, 1}, [](auto&) {});
}

TEST_CASE("a question that one side of a branch asks says nothing of the other side", "[branches]") {
  const Dim H("one", 1);
  Model<Item> m("asked_on_one_side", tree);
  auto h = m.placeholder<float>("h", H);
  const auto below = [&](auto n, auto i) { return h(first(n), i) + h(second(n), i); };
  auto even = m.compute("even", H, [&](auto n, auto i) { return 1.f + below(n, i); });
  auto odd = m.compute("odd", H, [&](auto n, auto i) { return 2.f + below(n, i); });
  auto parity = m.if_then_else(
      "parity", [](auto n) { return word(n) % 2 == 0; }, even, odd);
  auto plain = m.compute("plain", H, [&](auto n, auto i) {
    return select(word(n) % 2 == 0, cast<float>(100), cast<float>(200)) + below(n, i);
  });
  auto body = m.if_then_else(
      "body", [](auto n) { return kind(n) == 0; }, parity, plain);
  check_roots(m.recursion_op(h, body), {502, 401, 1, 200, 1}, [](auto&) {});
}

namespace {

/// A model that reads rows of a table by word, and what binds five of them: x is 2, 4, 8, 16, 32.
struct Rows {
  explicit Rows(const char* name) : m(name, tree) {}
  Dim V{"vocabulary"}, H{"one", 1}, D{"width", 2};
  Model<Item> m;
  Input<2> Emb = m.input<float>("Emb", V, D);
  Placeholder<Item, float, 1> h = m.placeholder<float>("h", H);

  auto x() {
    return m.compute("x", H, [this](auto n, auto) { return sum(D, [&](auto j) { return Emb(word(n), j); }); });
  }
  /// `own` of a node, and what its children have.
  template <class Own>
  auto with_below(const char* name, Own own) {
    return m.compute(name, H, [=, this](auto n, auto i) { return own(n, i) + h(first(n), i) + h(second(n), i); });
  }
  static void bind(auto& model) { model.bind("Emb", {1.f, 1.f, 2.f, 2.f, 4.f, 4.f, 8.f, 8.f, 16.f, 16.f}); }
};
constexpr auto bind_rows = [](auto& model) { Rows::bind(model); };
constexpr auto is_a_leaf = [](auto n) { return is_leaf(n); };

}  // namespace

TEST_CASE("what an earlier recursion has of all leaves, a later one reads in the parts of a switch", "[branches]") {
  Rows r("parts_of_leaves");
  const auto x = r.x();
  auto early_h = r.m.placeholder<float>("early_h", r.H);
  auto early_leaf = r.m.compute("early_leaf", r.H, [&](auto n, auto i) { return 2.f * x(n, i); });
  auto early_inner = r.m.compute("early_inner", r.H, [&](auto n, auto i) { return early_h(first(n), i); });
  auto early = r.m.recursion(early_h, r.m.if_then_else("early_body", is_a_leaf, early_leaf, early_inner));
  auto zero = r.m.compute("zero", r.H, [&](auto n, auto i) { return x(n, i); });
  auto more = r.m.compute("more", r.H, [&](auto n, auto i) { return 100.f + x(n, i); });
  auto leaf = r.m.switch_(
      "leaf", [](auto n) { return kind(n); }, when(0, zero), otherwise(more));
  auto inner = r.m.compute("inner", r.H, [&](auto n, auto i) { return r.h(first(n), i) + r.h(second(n), i); });
  auto late = r.m.recursion(r.h, r.m.if_then_else("body", is_a_leaf, leaf, inner));
  check_roots(r.m.program(late, early), {114, 106, 2, 104, 8}, bind_rows);
}

TEST_CASE("an operator that several conditions need is computed where one of them holds", "[branches]") {
  Rows r("needed_twice");
  const auto x = r.x();
  auto one = r.with_below("one", [=](auto n, auto i) { return x(n, i); });
  auto two = r.with_below("two", [=](auto n, auto i) { return 10.f * x(n, i); });
  auto none = r.with_below("none", [](auto, auto) { return cast<float>(1000); });
  auto rest = r.m.if_then_else(
      "rest", [](auto n) { return kind(n) == 2; }, two, none);
  auto body = r.m.if_then_else(
      "body", [](auto n) { return kind(n) == 1; }, one, rest);
  const auto program = r.m.recursion_op(r.h, body);
  check_roots(program, {2340, 1020, 1000, 4, 1000}, bind_rows);
  for (const Schedule& schedule : schedules()) {
    auto model = test::compile_here(program, schedule);
    Rows::bind(model);
    const Item a{0, -1}, b{1, 1}, far{0, 1 << 30}, ab{2, 0, &a, &b}, all{1, 4, &far, &ab};
    CHECK(model(all)[0][0] == 32 + 1000 + 20 + 1000 + 4);
    const Item wrong{1, 5};
    CHECK(model.try_call(wrong).error().code == Code::out_of_range);
  }
}

TEST_CASE("a branch that another one's side reads is computed where that side is taken", "[branches]") {
  Rows r("read_branch");
  const auto x = r.x();
  auto seven = r.m.compute("seven", r.H, [](auto, auto) { return cast<float>(7); });
  const auto value = r.m.if_then_else(
      "value", [](auto n) { return word(n) % 2 != 0; }, x, seven);
  auto with = r.with_below("with", [=](auto n, auto i) { return value(n, i); });
  auto without = r.with_below("without", [](auto, auto) { return cast<float>(100); });
  const auto program = r.m.recursion_op(r.h, r.m.if_then_else(
                                                 "body", [](auto n) { return kind(n) == 1; }, with, without));
  check_roots(program, {320, 120, 100, 4, 100}, bind_rows);
  for (const Schedule& schedule : schedules()) {
    auto model = test::compile_here(program, schedule);
    Rows::bind(model);
    const Item a{0, -1}, b{1, 3}, far{2, (1 << 30) + 1}, ab{1, 0, &a, &b}, all{1, 1, &far, &ab};
    CHECK(model(all)[0][0] == 4 + 100 + 7 + 100 + 16);
  }
}

TEST_CASE("a row of a table that one side reads at a fixed number has to be there", "[branches]") {
  Rows r("fixed_row");
  auto with = r.with_below("with", [&](auto, auto) { return sum(r.D, [&](auto j) { return r.Emb(7, j); }); });
  auto without = r.with_below("without", [](auto, auto) { return cast<float>(100); });
  const auto program = r.m.recursion_op(r.h, r.m.if_then_else(
                                                 "body", [](auto n) { return kind(n) == 1; }, with, without));
  for (const Schedule& schedule : schedules()) {
    auto model = test::compile_here(program, schedule);
    model.bind("Emb", std::vector<float>(2 * 7, 1));
    const Item a{0, 0};
    const auto result = model.try_call(a);
    REQUIRE_FALSE(result.has_value());
    CHECK_THAT(result.error().message, Catch::Contains("Emb"));
    model.bind("Emb", std::vector<float>(2 * 8, 1));
    CHECK(model(a)[0][0] == 100);
  }
}

TEST_CASE("what follows from weights alone is there for later recursions too", "[branches]") {
  const Dim H("one", 1);
  Model<Item> m("freed", tree);
  auto b = m.input<float>("b", H);
  auto y = m.compute("y", H, [&](auto, auto i) { return 2.f * b(i); });
  auto x = m.compute("x", H, [&](auto n, auto i) { return y(n, i) + 1.f; });
  auto h_in = m.placeholder<float>("h", H);
  auto h = m.recursion(
      h_in, m.compute("body", H, [&](auto n, auto i) { return x(n, i) + h_in(first(n), i) + h_in(second(n), i); }));
  auto out = m.output<float>("out", H, [&](auto n, auto i) { return 10.f * x(n, i) + h(n, i); });
  check_roots(m.program(out, h), {105, 91, 77, 77, 77}, [](auto& model) { model.bind("b", {3.f}); });
}

TEST_CASE("what follows from weights alone at leaves is there for later recursions too", "[branches]") {
  const Dim H("one", 1);
  Model<Item> m("freed_at_leaves", tree);
  auto b = m.input<float>("b", H);
  auto h_in = m.placeholder<float>("h", H);
  auto pre = m.compute("pre", H, [&](auto n, auto i) { return b(i) + h_in(first(n), i) + h_in(second(n), i); });
  auto gate = m.compute("gate", H, [&](auto n, auto i) { return pre(n, i) + 1.f; });
  auto h = m.recursion(h_in, m.compute("body", H, [&](auto n, auto i) { return 2.f * gate(n, i); }));
  auto out = m.output<float>("out", H, [&](auto n, auto i) { return 10.f * gate(n, i); });
  check_roots(m.program(out, h), {260, 100, 20, 20, 20}, [](auto& model) { model.bind("b", {1.f}); });
}

namespace {

const std::vector<float> powers{1, 2, 4, 8, 16};

/// x = 2 Emb[word], and a recursion that adds it up; what a later one reads of x is the earlier one's.
struct Shared {
  Dim V{"vocabulary"}, H{"one", 1};
  Model<Item> m{"shared", tree};
  Input<2> Emb = m.input<float>("Emb", V, H);
  Placeholder<Item, float, 1> early_in = m.placeholder<float>("early_h", H), h = m.placeholder<float>("h", H);
  auto x() {
    return m.compute("x", H, [this](auto n, auto i) { return 2.f * Emb(word(n), i); });
  }
  template <class X>
  auto early(const X& x) {
    return m.recursion(early_in, m.compute("early", H, [&](auto n, auto i) {
      return x(n, i) + early_in(first(n), i) + early_in(second(n), i);
    }));
  }
};

}  // namespace

TEST_CASE("leaves of a later recursion read what an earlier one has of them, and not its inner nodes'", "[branches]") {
  Shared s;
  const auto x = s.x();
  const auto early = s.early(x);
  auto leaf = s.m.compute("leaf", s.H, [&](auto n, auto i) { return 100.f + x(n, i); });
  auto inner = s.m.compute("inner", s.H, [&](auto n, auto i) { return s.h(first(n), i) + s.h(second(n), i); });
  auto late = s.m.recursion(s.h, s.m.if_then_else("body", is_a_leaf, leaf, inner));
  check_roots(s.m.program(late, early), {314, 206, 102, 104, 108}, [](auto& model) { model.bind("Emb", powers); });
}

TEST_CASE("a part reads what an earlier recursion has though another part computes it again", "[branches]") {
  Shared s;
  const auto x = s.x();
  const auto early = s.early(x);
  const auto below = [&](auto n, auto i) { return s.h(first(n), i) + s.h(second(n), i); };
  auto leaf = s.m.compute("leaf", s.H, [](auto, auto) { return cast<float>(1); });
  auto plain = s.m.compute("plain", s.H, [&](auto n, auto i) { return x(n, i) + below(n, i); });
  auto with = s.m.compute("with", s.H, [&](auto n, auto i) { return 100.f + x(n, i) + below(n, i); });
  auto without = s.m.compute("without", s.H, [&](auto n, auto i) { return 1000.f + below(n, i); });
  auto odd = s.m.if_then_else(
      "odd", [](auto n) { return word(n) % 2 == 1; }, with, without);
  auto inner = s.m.switch_(
      "inner", [](auto n) { return kind(n); }, when(2, plain), otherwise(odd));
  auto late = s.m.recursion(s.h, s.m.if_then_else("body", is_a_leaf, leaf, inner));
  check_roots(s.m.program(late, early), {151, 118, 1, 1, 1}, [](auto& model) { model.bind("Emb", powers); });
}

TEST_CASE("each switch refuses what it has no case for", "[branches]") {
  const Dim H("one", 1);
  Model<Item> m("two_switches", tree);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  auto one = m.compute("of_0", H, [&](auto n, auto i) { return 1.f + h(first(n), i); });
  auto two = m.compute("of_1", H, [&](auto n, auto i) { return 2.f + c(first(n), i); });
  auto three = m.compute("of_2", H, [](auto, auto) { return cast<float>(3); });
  const auto key = [](auto n) { return kind(n); };
  auto narrow = m.switch_("narrow", key, when(0, one), when(1, two));
  auto wide = m.switch_("wide", key, when(0, one), when(1, two), when(2, three));
  const auto program = m.recursion_op(h, narrow, c, wide);
  for (const Schedule& schedule : schedules()) {
    const auto model = test::compile_here(program, schedule);
    const auto result = model.try_call(Item{2, 0});
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == Code::out_of_range);
    CHECK(model(Item{1, 0})[0][0] == 2);
  }
}

TEST_CASE("an array of one integer is read by component as any other", "[branches]") {
  struct Node {
    std::array<int, 1> ids;
    std::vector<const Node*> kids;
  };
  const Dim V{"vocabulary"}, H("one", 1);
  Model<Node> m("one_of_one", tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return Emb(cortex::field<&Node::ids>(n)[0], i) +
           sum(cortex::children<&Node::kids>(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, body);
  for (const Schedule& schedule : schedules()) {
    auto model = test::compile_here(program, schedule);
    model.bind("Emb", powers);
    const Node a{{2}, {}}, b{{4}, {}}, top{{0}, {&a, &b}};
    CHECK(model(top)[0][0] == 21);
    CHECK(model.try_call(Node{{5}, {}}).error().code == Code::out_of_range);
  }
}

TEST_CASE("an index made of a child's position is asked where a branch leads to it", "[branches]") {
  struct Op {
    int kind = 0;
    std::vector<const Op*> in;
  };
  constexpr auto in = cortex::children<&Op::in>;
  constexpr auto kind_of = cortex::field<&Op::kind>;
  const Dim H("hidden", 4), one("of one", 4), two("of two", 8);
  Model<Op> m("by_position", tree);
  auto U = m.input<float>("U", H, one), W = m.input<float>("W", H, two);
  auto h = m.placeholder<float>("h", H);
  const auto product = [&](const char* name, const auto& weights) {
    return m.compute(name, H, [&](auto n, auto i) {
      return 1.0f + sum(in(n), [&](auto k, auto position) {
               return sum(H, [&](auto j) { return weights(i, j + position * 4) * h(k, j); });
             });
    });
  };
  auto scan = product("scan", U), join = product("join", W);
  auto body = m.switch_(
      "body", [&](auto n) { return kind_of(n); }, when(0, scan), when(1, join));
  const auto program = m.recursion_op(h, body);
  const Op a, b, both{1, {&a, &b}}, wrong{0, {&a, &b}};
  for (const Schedule& schedule : schedules()) {
    auto model = test::compile_here(program, schedule);
    model.bind("U", std::vector<float>(16, 1)).bind("W", std::vector<float>(32, 1));
    CHECK(model(both)[0][0] == 9);
    const auto answer = model.try_call(wrong);
    REQUIRE_FALSE(answer);
    CHECK_THAT(answer.error().message, Catch::Contains("operator 'scan' of model 'by_position' reads 'U' at index 4"));
  }
}

TEST_CASE("an index that is largest between the first and the last child is asked there", "[branches]") {
  struct Op {
    std::vector<const Op*> in;
  };
  constexpr auto in = cortex::children<&Op::in>;
  const Dim H("one", 1), P("places", 1);
  Model<Op> m("between", tree);
  auto W = m.input<float>("W", P, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return 1.0f + sum(in(n), [&](auto k, auto place) { return W(place * (2 - place), i) * h(k, i); });
  });
  auto model = test::compile_here(m.recursion_op(h, body));
  model.bind("W", std::vector<float>(1, 1));
  const Op a, one{{&a}}, b, c, d, three{{&b, &c, &d}};
  CHECK(model(one)[0][0] == 2);
  const auto answer = model.try_call(three);
  REQUIRE_FALSE(answer);
  CHECK_THAT(answer.error().message, Catch::Contains("reads 'W' at index 1"));
}

TEST_CASE("a scalar that a branch chooses has scalars of its own, under any schedule", "[branches]") {
  constexpr auto kids = cortex::children<&test::Vertex::kids>;
  constexpr auto kind_of = cortex::field<&test::Vertex::word>;
  const Dim H("hidden", 8);
  Model<test::Vertex> m("scalars", cortex::tree);
  auto B = m.input<float>("B", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) {
    return 0.1f * cast<float>(kind_of(n)) + sum(kids(n), [&](auto k) { return h(k, i); });
  });
  auto dot = m.compute("dot", [&](auto n) { return sum(H, [&](auto j) { return B(j) * s(n, j); }); });
  auto top = m.compute("top", [&](auto n) { return maximum(H, [&](auto j) { return s(n, j); }); });
  auto z = m.if_then_else(
      "z", [&](auto n) { return kind_of(n) == 0; }, dot, top);
  auto e = m.compute("e", [&](auto n) { return exp(z(n)); });
  auto t = m.compute("t", [&](auto n) { return tanh(e(n)); });
  auto body = m.compute("body", H, [&](auto n, auto i) { return tanh(s(n, i) * e(n) + t(n)); });
  const auto program = m.recursion_op(h, body);

  test::Random random(5);
  const test::Forest forest = test::random_forest(random, program.graph(), 40);
  const test::ForestView view(forest);
  const std::vector<float> b = test::uniform(8, 0.5f, 1);
  const auto right = ra::interpret<ra::Bounded>(program.graph(), view,
                                                {{"B", ra::Tensor{{8}, std::vector<double>(b.begin(), b.end())}}});
  const Schedule standard = Schedule::standard();
  for (const Schedule& schedule : {Schedule{}, Schedule{}.dynamic_batch(), standard, standard.workers(2),
                                   standard.fuse_nothing(), standard.refactor(dot)}) {
    CAPTURE(to_string(schedule));
    auto model = test::compile_here(program, schedule);
    model.bind("B", b);
    const auto result = model(forest.roots);
    for (int n = 0; n < view.num_nodes(); ++n) {
      const auto values = result.node(view.nodes[std::size_t(n)]);
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(right[0][std::size_t(n)][i].covers(values[i]));
    }
  }
}
