// Switches of many cases: the standard schedule decides at each node what code cannot be made for.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cortex/explain.hpp"
#include "cortex/ra/partition.hpp"
#include "support/compile.hpp"

using namespace cortex;

namespace {

struct Item {
  int kind = 0, op = 0;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto kind = cortex::field<&Item::kind>;
constexpr auto op = cortex::field<&Item::op>;

const Dim H("hidden", 4);

/// A switch on `key` whose case k is `make(k)`.
template <class Key, class Make, int... k>
auto switch_of(Model<Item>& m, const char* name, Key key, Make make, std::integer_sequence<int, k...>) {
  return m.switch_(name, key, when(k, make(k))...);
}

/// `scale` times the number of a case and the sum of what the children have, by the name of the state and that number.
auto counting(Model<Item>& m, const Placeholder<Item, float, 1>& h, const std::string& name, float scale) {
  return [&m, h, name, scale](int number) {
    return m.compute(name + std::to_string(number), H, [=](auto n, auto i) {
      return scale * float(number) + sum(kids(n), [=](auto k) { return h(k, i); });
    });
  };
}

/// A tree with nodes of all kinds below `cases`; the kinds and ops of its nodes add up to the sums.
struct Tree {
  std::vector<Item> nodes;
  float kinds = 0, ops = 0;
  explicit Tree(int cases) : nodes(std::size_t(3 * cases)) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      nodes[n].kind = int(n) % cases, nodes[n].op = int(n / 2 + 5) % cases;
      kinds += float(nodes[n].kind), ops += float(nodes[n].op);
      if (n) nodes[(n - 1) / 3].kids.push_back(&nodes[n]);
    }
  }
  const Item& root() const { return nodes[0]; }
};

}  // namespace

TEST_CASE("each of the 70 cases of a switch has code of its own", "[branches]") {
  constexpr int cases = 70;
  Model<Item> m("many_kinds", tree);
  auto h = m.placeholder<float>("h", H);
  auto body = switch_of(
      m, "body", [](auto n) { return kind(n); }, counting(m, h, "of_", 1), std::make_integer_sequence<int, cases>());
  const auto program = m.recursion_op(h, body);
  CHECK(ra::questions(program.graph(), Schedule::standard()).parts() == cases);
  const auto model = test::compile_here(program);
  const Tree tree(cases);
  CHECK(model(tree.root())[0][0] == tree.kinds);
  for (const int wrong : {-1, cases}) {
    const auto refused = model.try_call(Item{wrong});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::out_of_range);
    CHECK_THAT(refused.error().message, Catch::Contains("it has cases for 0, 1, 2,") && Catch::Contains("and 54 more"));
  }
  CHECK_THAT(explain(model), !Catch::Contains("too many"));
}

TEST_CASE("of two switches whose cases together are too many the second is decided at each node from a case on",
          "[branches]") {
  constexpr int cases = 9;
  Model<Item> m("two_keys", tree);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H), d = m.placeholder<float>("d", H);
  const auto all = std::make_integer_sequence<int, cases>();
  const auto by_kind = [](auto n) { return kind(n); };
  auto of_kind = switch_of(m, "of_kind", by_kind, counting(m, h, "kind_", 1), all);
  auto of_op = switch_of(
      m, "of_op", [](auto n) { return op(n); }, counting(m, c, "op_", 1), all);
  auto again = switch_of(m, "again", by_kind, counting(m, d, "again_", 2), all);
  const auto program = m.recursion_op(h, of_kind, c, of_op, d, again);
  // Nine kinds, and six ops and any other; the third switch asks what the first one does.
  CHECK(ra::questions(program.graph(), Schedule::standard()).parts() == 63);
  const auto model = test::compile_here(program);
  const Tree tree(cases);
  const auto result = model(tree.root());
  CHECK(result.root(0, h)[0] == tree.kinds);
  CHECK(result.root(0, c)[0] == tree.ops);
  CHECK(result.root(0, d)[0] == 2 * tree.kinds);
  Item wrong{3, cases};
  CHECK(model.try_call(wrong).error().code == Code::out_of_range);
  wrong = {cases, 3};
  CHECK(model.try_call(wrong).error().code == Code::out_of_range);
  CHECK_THAT(explain(model), Catch::Contains("(of 'of_op' not all cases, of which there are too many)"));
}

TEST_CASE("switches of many cases on one key are specialized together", "[branches][slow]") {
  constexpr int cases = 66;
  Model<Item> m("one_key", tree);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H), d = m.placeholder<float>("d", H);
  const auto all = std::make_integer_sequence<int, cases>();
  const auto by_kind = [](auto n) { return kind(n); };
  auto h_body = switch_of(m, "h_body", by_kind, counting(m, h, "h_", 1), all);
  auto c_body = switch_of(m, "c_body", by_kind, counting(m, c, "c_", 3), all);
  auto d_body = switch_of(
      m, "d_body", [](auto n) { return op(n); }, counting(m, d, "d_", 1), std::make_integer_sequence<int, 7>());
  const auto program = m.recursion_op(h, h_body, c, c_body, d, d_body);
  CHECK(ra::questions(program.graph(), Schedule::standard()).parts() == cases);
  CHECK(ra::branches_cut_short(program.graph(), Schedule::standard()) == Vector<std::string>{"d_body"});
  const auto model = test::compile_here(program);
  Tree tree(cases);
  for (Item& n : tree.nodes) n.op %= 7;
  const auto result = model(tree.root());
  CHECK(result.root(0, h)[0] == tree.kinds);
  CHECK(result.root(0, c)[0] == 3 * tree.kinds);
}

TEST_CASE("what all cases of many have in common is not compiled for each of them", "[branches][slow]") {
  // A switch of 200 cases that all read the last of forty operators; and the same above leaves.
  for (const bool above_leaves : {false, true}) {
    Model<Item> m("common", tree);
    auto h = m.placeholder<float>("h", H);
    auto last = m.compute("first", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
    for (int layer = 0; layer < 40; ++layer)
      last = m.compute("layer_" + std::to_string(layer), H, [&](auto n, auto i) { return last(n, i) * 1.f; });
    auto cell = switch_of(
        m, "cell", [](auto n) { return kind(n); },
        [&](int number) {
          return m.compute("of_" + std::to_string(number), H,
                           [&](auto n, auto i) { return cast<float>(number) + last(n, i); });
        },
        std::make_integer_sequence<int, 200>());
    auto leaf = m.compute("leaf", H, [](auto, auto) { return cast<float>(1); });
    auto branch = m.if_then_else(
        "branch", [](auto n) { return is_leaf(n); }, leaf, cell);
    if (above_leaves)
      m.recursion(h, branch);
    else
      m.recursion(h, cell);
    const ra::Questions questions = ra::questions(m.graph(), Schedule::standard());
    CHECK((questions.parts() > 1 && questions.parts() <= 1024 / 40));
  }
}

TEST_CASE("a switch in what another one leaves is a switch of its own", "[branches]") {
  // In the last case, which is what is left, and in otherwise.
  for (const bool total : {false, true}) {
    Model<Item> m("nested", tree);
    auto h = m.placeholder<float>("h", H);
    const auto leaf = counting(m, h, "of_", 1);
    auto inner = switch_of(
        m, "inner", [](auto n) { return op(n); }, counting(m, h, "inner_", 1), std::make_integer_sequence<int, 8>());
    const auto by_kind = [](auto n) { return kind(n); };
    auto outer = total ? m.switch_("outer", by_kind, when(0, leaf(0)), when(1, leaf(1)), otherwise(inner))
                       : m.switch_("outer", by_kind, when(0, leaf(10)), when(1, leaf(11)), when(2, inner));
    const auto program = m.recursion_op(h, outer);
    const auto switches = ra::detail::branches_worth_it(program.graph(), ra::index_checks(program.graph()), true);
    REQUIRE(switches.size() == 2);  // on two keys
    CHECK((switches[0].branches[0].size() == 7 && switches[1].branches[0].size() == 2));
    CHECK(ra::questions(program.graph(), Schedule::standard()).parts() == 3 * 8);
    const auto model = test::compile_here(program);
    const Item a{1, 5}, b{2, 5}, top{2, 3, {&a, &b}};
    CHECK(model(top)[0][0] == (total ? 1 : 11) + 5 + 3);
    CHECK(model.try_call(Item{2, 8}).error().code == Code::out_of_range);
  }
}

TEST_CASE("a switch may be on a number", "[branches]") {
  Model<Item> m("on_a_number", tree);
  auto h = m.placeholder<float>("h", H);
  const auto make = counting(m, h, "of_", 1);
  auto body = m.switch_(
      "body", [](auto n) { return kind(n) * 0 + 1; }, when(0, make(5)), when(1, make(6)), otherwise(make(7)));
  const auto model = test::compile_here(m.recursion_op(h, body));
  const Item a{3}, top{2, 0, {&a}};
  CHECK(model(top)[0][0] == 12);
}

TEST_CASE("what cannot be specialized is not decided at each node in too many ways", "[branches][slow]") {
  // All of the first switch would be 60 ways, each of which decides 60 cases of the second.
  Model<Item> m("many_undecided", tree);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  const auto all = std::make_integer_sequence<int, 60>();
  auto of_kind = switch_of(
      m, "of_kind", [](auto n) { return kind(n); }, counting(m, h, "kind_", 1), all);
  auto of_op = switch_of(
      m, "of_op", [](auto n) { return op(n); }, counting(m, c, "op_", 1), all);
  const auto program = m.recursion_op(h, of_kind, c, of_op);
  const ra::Questions questions = ra::questions(program.graph(), Schedule::standard());
  CHECK((questions.parts() > 1 && questions.parts() <= 1024 / 60));
  const auto model = test::compile_here(program);
  const Tree tree(60);
  const auto result = model(tree.root());
  CHECK(result.root(0, h)[0] == tree.kinds);
  CHECK(result.root(0, c)[0] == tree.ops);
}

TEST_CASE("switches that a schedule names are not left out", "[branches][refusal]") {
  Model<Item> m("named", tree);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  const auto all = std::make_integer_sequence<int, 9>();
  auto of_kind = switch_of(
      m, "of_kind", [](auto n) { return kind(n); }, counting(m, h, "kind_", 1), all);
  auto of_op = switch_of(
      m, "of_op", [](auto n) { return op(n); }, counting(m, c, "op_", 1), all);
  const auto program = m.recursion_op(h, of_kind, c, of_op);
  CompileOptions options;
  options.target = test::best_target();
  const Schedule both = Schedule::standard().specialize_if_else(of_kind).specialize_if_else(of_op);
  const auto refused = try_compile(program, both, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::invalid_schedule);
  CHECK_THAT(refused.error().message, Catch::Contains("81 ways through the body"));
}
