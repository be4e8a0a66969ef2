// Layers that are made in a loop: variables of C++ that hold one operator after the other.
#include <catch2/catch.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "support/compile.hpp"

using namespace cortex;

namespace {

struct Item {
  int word = 0;
  float weight = 1;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto word = cortex::field<&Item::word>;
constexpr auto weight = cortex::field<&Item::weight>;

const Dim V{"vocabulary"}, H("hidden", 4);

}  // namespace

TEST_CASE("layers are stacked in a loop", "[layers]") {
  for (const int layers : {1, 2, 4}) {
    Model<Item> m("layers", tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto embedded = m.compute("embedded", H, [&](auto n, auto i) { return Emb(word(n), i); });
    // A layer sums the layer below over all nodes below, each times its weight.
    const auto layer = [&](const auto& below, int number) {
      auto state = m.placeholder<float>("h" + std::to_string(number), H);
      auto body = m.compute("layer" + std::to_string(number), H, [&](auto n, auto i) {
        return sum(kids(n), [&](auto k) { return state(k, i); }) + weight(n) * below(n, i);
      });
      return m.recursion(state, body);
    };
    auto top = layer(embedded, 0);
    for (int number = 1; number < layers; ++number) top = layer(top, number);
    auto model = test::compile_here(m.program(top));
    model.bind("Emb", std::vector<float>{1, 1, 1, 1, 10, 10, 10, 10});
    const Item a{0, 2, {}}, b{1, 3, {}}, root{0, 1, {&a, &b}};
    // Leaves: weight^layers times the word's value; the root: its children's and what it had below.
    float of_a = 1, of_b = 10, of_root = 1;
    for (int number = 0; number < layers; ++number) of_a *= 2, of_b *= 3, of_root += of_a + of_b;
    CHECK(model(root)[0][0] == of_root);
  }
}

TEST_CASE("an operator takes the place of another that reads the same in another order", "[layers]") {
  Model<Item> m("orders", tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto one = m.compute("one", H, [&](auto n, auto i) { return Emb(word(n), i) * weight(n); });
  auto other = m.compute("other", H, [&](auto n, auto i) { return weight(n) + Emb(word(n), i); });
  static_assert(!std::is_same_v<decltype(one), decltype(other)>);
  const std::vector<decltype(one)> both{one, other};
  auto body = m.compute("body", H, [&](auto n, auto i) {
    auto value = both[1](n, i) + sum(kids(n), [&](auto k) { return h(k, i); });
    value = weight(n) * value;  // of fewer accessors, or in another order
    value = both[0](n, i);
    return value;
  });
  one = other;
  CHECK(one.name() == "other");
  const auto program = m.recursion_op(h, body);
  auto model = test::compile_here(program);
  model.bind("Emb", std::vector<float>{5, 5, 5, 5});
  CHECK(model(Item{0, 3, {}})[0][0] == 15);
}
