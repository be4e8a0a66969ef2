// Which input products leave the recursion where its body has several versions.
#include <catch2/catch.hpp>

#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using cortex::test::count;

namespace {

struct Item {
  int word = 0, kind = 0;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto word = cortex::field<&Item::word>;
constexpr auto kind = cortex::field<&Item::kind>;

/// Two kinds of nodes with a matrix each for the children, and `input(word product, n, i)` added to both.
template <class A, class B>
std::string lowered(A input_of_a, B input_of_b, const Schedule& schedule = Schedule::standard()) {
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H), U = m.input<float>("U", H, H), T = m.input<float>("T", H, H);
  auto h = m.placeholder<float>("h", H);
  const auto product = [=](auto n, auto i) { return sum(H, [=](auto j) { return W(i, j) * Emb(word(n), j); }); };
  auto x = m.compute("x", H, product);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto a = m.compute("a", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + input_of_a(x, product, n, i));
  });
  auto b = m.compute("b", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return T(i, j) * s(n, j); }) + input_of_b(x, product, n, i));
  });
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, a), when(1, b));
  return ir::print(lower::lower(m.recursion_op(h, body).graph(), schedule).body);
}

const auto as_operator = [](auto x, auto, auto n, auto i) { return x(n, i); };
const auto as_sum = [](auto, auto product, auto n, auto i) { return product(n, i); };
const auto none = [](auto, auto, auto, auto) { return 1.0F; };

/// How often the product stands before the loop over levels, and in it.
int ahead(const std::string& text) { return count(text.substr(0, text.find("for b_idx")), "W[i"); }
int in_levels(const std::string& text) { return count(text.substr(text.find("for b_idx")), "W[i"); }

}  // namespace

TEST_CASE("an input product that all cases of a switch read is made ahead of the recursion", "[lower][ahead]") {
  const std::string text = lowered(as_operator, as_operator);
  CHECK(ahead(text) == 1);  // for leaves and inner nodes
  CHECK(in_levels(text) == 0);
  CHECK(count(text, "= 0:num_nodes") == 1);
  const std::string at_each = lowered(as_operator, as_operator, Schedule{}.dynamic_batch().specialize_leaves());
  CHECK(ahead(at_each) == 1);
  CHECK(in_levels(at_each) == 0);
}

TEST_CASE("what one case of a switch reads is made ahead for the nodes of that case", "[lower][ahead]") {
  const auto listed = [](const std::string& text, int part) {
    const std::string rows = "0:part_lengths(" + std::to_string(part) + ",1)";
    const std::size_t at = text.find(rows);
    return at == text.npos ? 0 : count(text.substr(at, text.find("for n_idx", at) - at), "W[i");
  };
  const std::string first = lowered(as_operator, none), second = lowered(none, as_sum);
  CHECK(in_levels(first) == 0);
  CHECK(ahead(first) == 2);  // for leaves of that kind, and inner nodes
  CHECK(listed(first, 0) == 1);
  CHECK(listed(second, 1) == 1);
  CHECK(count(first, "part_lengths") + count(second, "part_lengths") == 2);
  const std::string both = lowered(as_operator, as_sum);  // sums of different operators
  CHECK(in_levels(both) == 0);
  CHECK(listed(both, 0) == 1);
  CHECK(listed(both, 1) == 1);
}

TEST_CASE("a sum of an operator that all cases of a switch read is made ahead, and what needs children stays",
          "[lower][ahead]") {
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto gate = m.compute("gate", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) +
           sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return U(i, j) * h(k, j); }); });
  });
  auto a = m.compute("a", H, [&](auto n, auto i) { return tanh(gate(n, i)); });
  auto b = m.compute("b", H, [&](auto n, auto i) { return sigmoid(gate(n, i)); });
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, a), when(1, b));
  const std::string text = ir::print(lower::lower(m.recursion_op(h, body).graph(), Schedule::standard()).body);
  CHECK(in_levels(text) == 0);
  CHECK(ahead(text) == 1);  // of leaves and inner nodes
  CHECK(count(text.substr(text.find("for b_idx")), "U[i") == 2);
}

TEST_CASE("a product of what cases compute differently is made for each case apart", "[lower][ahead]") {
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), Other = m.input<float>("Other", V, H);
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto e = m.compute("e", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto o = m.compute("o", H, [&](auto n, auto i) { return tanh(Other(word(n), i)); });
  auto chosen = m.switch_(
      "chosen", [](auto n) { return kind(n); }, when(0, e), when(1, o));
  auto t = m.compute("t", H, [&](auto n, auto i) { return tanh(chosen(n, i)); });
  auto x = m.compute("x", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * t(n, j); }); });
  auto body = m.compute("body", H,
                        [&](auto n, auto i) { return tanh(x(n, i) + sum(kids(n), [&](auto k) { return h(k, i); })); });
  const std::string text = ir::print(lower::lower(m.recursion_op(h, body).graph(), Schedule::standard()).body);
  CHECK(in_levels(text) == 0);
  CHECK(ahead(text) == 4);  // leaves and inner nodes of each case
  CHECK(count(text, "part_lengths") == 2);
}

TEST_CASE("an input product that not all leaves need is made ahead for inner nodes alone", "[lower][ahead]") {
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto x = m.compute("x", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }); });
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto a = m.compute("a", H, [&](auto n, auto i) { return tanh(x(n, i) + s(n, i)); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) { return x(n, i) - s(n, i); });
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto b = m.if_then_else(
      "b", [](auto n) { return is_leaf(n); }, leaf, inner);
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, a), when(1, b));
  const std::string text = ir::print(lower::lower(m.recursion_op(h, body).graph(), Schedule::standard()).body);
  CHECK(in_levels(text) == 0);
  CHECK(ahead(text) == 2);  // for inner nodes, and for leaves of one kind
  CHECK(count(text, "= 0:num_nodes") == 0);
}

TEST_CASE("a product of what one side of a branch needs children for is not made ahead", "[lower][ahead]") {
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H);
  auto v = m.input<float>("v", H);
  auto h = m.placeholder<float>("h", H);
  auto e = m.compute("e", H, [&](auto n, auto i) { return tanh(Emb(word(n), i)); });
  auto s = m.compute("s", H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k) { return sigmoid(sum(H, [&](auto j) { return v(j) * h(k, j); })) * h(k, i); });
  });
  auto either = m.if_then_else(
      "either", [](auto n) { return word(n) == 1; }, e, s);
  auto x = m.compute("x", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * either(n, j); }); });
  auto a = m.compute("a", H, [&](auto n, auto i) { return tanh(x(n, i) + s(n, i)); });
  auto b = m.compute("b", H, [&](auto n, auto i) { return sigmoid(x(n, i) + s(n, i)); });
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, a), when(1, b));
  CHECK(in_levels(ir::print(lower::lower(m.recursion_op(h, body).graph(), Schedule::standard()).body)) == 2);
}

TEST_CASE("versions do not take one side of a branch for another that has the same", "[lower][ahead]") {
  Dim V("vocabulary"), H("hidden", 4);
  Model<Item> m("kinds", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  const auto product = [&](const std::string& name) {
    auto matrix = m.input<float>("of_" + name, H, H);
    return m.compute(name, H,
                     [=](auto n, auto i) { return sum(H, [=](auto j) { return matrix(i, j) * Emb(word(n), j); }); });
  };
  auto X = product("X"), Y = product("Y"), Z = product("Z");
  const auto is_one = [](auto n) { return word(n) == 1; };
  auto first = m.if_then_else("first", is_one, X, Z), second = m.if_then_else("second", is_one, X, Y);
  const auto with = [&](const char* name, auto input) {
    return m.compute(name, H,
                     [=](auto n, auto i) { return tanh(input(n, i) + sum(kids(n), [&](auto k) { return h(k, i); })); });
  };
  auto a = with("a", first), b = with("b", second);
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, a), when(1, b));
  const std::string text = ir::print(lower::lower(m.recursion_op(h, body).graph(), Schedule::standard()).body);
  CHECK(count(text.substr(text.find("part_lengths")), "second[node") >= 3);  // written on both sides, and read
}
