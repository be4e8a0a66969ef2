// What results of outputs and readouts answer, and how handles of other recursions are refused.
#include <catch2/catch.hpp>

#include "support/compile.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Item {
  int kind = 0;
  std::vector<const Item*> kids;
  const Item *first = nullptr, *second = nullptr;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto kind = cortex::field<&Item::kind>;
constexpr auto first = cortex::child<&Item::first>;
constexpr auto second = cortex::child<&Item::second>;

/// The sum of all kinds below each node, twice it, and the greatest kind of an input.
struct Sums {
  Dim one{"one", 1};
  Model<Item> m{"sums", cortex::tree};
  Placeholder<Item, float, 1> sum_in = m.placeholder<float>("sum", one);
  auto body() {
    return m.compute("body", one, [this](auto n, auto i) {
      return cast<float>(kind(n)) + cortex::sum(kids(n), [&](auto k) { return sum_in(k, i); });
    });
  }
};

}  // namespace

TEST_CASE("outputs are there for every node, readouts for every root", "[runtime]") {
  Sums s;
  auto total = s.m.recursion(s.sum_in, s.body());
  auto twice = s.m.output<float>("twice", s.one, [&](auto n, auto i) { return 2 * total(n, i); });
  auto most = s.m.readout<float>(
      "most", s.one, [&](auto r, auto i) { return maximum(cortex::nodes(r), [&](auto n) { return total(n, i); }); });
  const auto model = compile_here(s.m.program(twice, most, total));
  const Item a{3, {}}, b{-5, {}}, top{1, {&a, &b}};
  const auto result = model({&top, &a});
  CHECK(result[0][0] == -2);
  CHECK(result.node(&b)[0] == -10);
  CHECK(result.node(&b, total)[0] == -5);
  CHECK(result.root(0, most)[0] == 3);
  CHECK(result.root(1, most)[0] == 3);
  CHECK(result.node(&a, most)[0] == 3);  // a root too
  CHECK_THROWS_WITH(result.node(&b, most), Catch::Contains("readout 'most' is asked for at a node that is no root"));
}

TEST_CASE("a leaf's state that is a row of a table is that of the call, whatever is bound later", "[runtime]") {
  const Dim V{"vocabulary"}, H{"hidden", 3};
  Model<Item> m("rows", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(kind(n), i); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return h(first(n), i) + h(second(n), i); });
  auto model = compile_here(m.recursion_op(h, m.if_then_else(
                                                  "body", [](auto n) { return is_leaf(n); }, leaf, rec)));
  model.bind("Emb", std::vector<float>{1, 2, 3, 10, 20, 30});
  const Item a{1, {}}, b{0, {}}, top{7, {}, &a, &b};
  const auto result = model({&top, &b});
  model.bind("Emb", std::vector<float>{-1, -1, -1, -1, -1, -1});
  const auto later = model(top);
  CHECK(result[0][1] == 22);
  CHECK(result[1][2] == 3);  // a root that is a leaf
  CHECK(result.node(&a)[0] == 10);
  CHECK(later.node(&a)[0] == -1);
  std::vector<float> copied(3);
  result.copy_node(&a, h, copied);
  CHECK(copied == std::vector<float>{10, 20, 30});
}

TEST_CASE("a placeholder of a complete recursion is refused in favour of its result", "[runtime][refusal]") {
  Sums s;
  s.m.recursion(s.sum_in, s.body());
  CHECK_THROWS_WITH(
      s.m.output<float>("o", s.one,
                        [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return s.sum_in(k, i); }); }),
      Catch::Contains("placeholder 'sum' is read after its recursion is complete"));
}

TEST_CASE("a recursion that no result depends on is refused", "[runtime][refusal]") {
  Sums s;
  auto total = s.m.recursion(s.sum_in, s.body());
  auto twice = s.m.output<float>("twice", s.one, [&](auto n, auto i) { return 2 * total(n, i); });
  CHECK_THROWS_WITH(s.m.program(total), Catch::Contains("no result of model 'sums' depends on 'twice'"));
  CHECK_THROWS_WITH(s.m.program(total, total, twice), Catch::Contains("'sum' is listed twice"));
  CHECK_NOTHROW(s.m.program(twice));  // what failed has left nothing behind
}

TEST_CASE("an empty forest gives empty results, whatever the program", "[runtime]") {
  Sums s;
  auto total = s.m.recursion(s.sum_in, s.body());
  auto most = s.m.readout<float>(
      "most", s.one, [&](auto r, auto i) { return maximum(cortex::nodes(r), [&](auto n) { return total(n, i); }); });
  const auto program = s.m.program(most);
  for (const Schedule& schedule : {Schedule{}, Schedule::standard(), Schedule::standard().unroll(total, 2)})
    CHECK(compile_here(program, schedule)(std::vector<const Item*>{}).empty());
}

TEST_CASE("a chain of a million nodes goes down as well as up, and unrolled", "[runtime][slow]") {
  struct Step {
    const Step* next;
  };
  constexpr auto next = cortex::optional_child<&Step::next>;
  constexpr auto before = cortex::parents<next>;
  const Dim one{"one", 1};
  Model<Step> m("depth", cortex::sequence);
  auto h = m.placeholder<double>("h", one), g = m.placeholder<double>("g", one);
  auto up = m.recursion(h, m.compute("up", one, [&](auto n, auto i) { return 1 + h(next(n), i); }));
  auto down = m.recursion(
      g, m.compute("down", one, [&](auto n, auto i) { return 1 + sum(before(n), [&](auto p) { return g(p, i); }); }));
  const auto program = m.program(up, down);
  std::vector<Step> chain(1'000'000);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) chain[i].next = &chain[i + 1];
  for (const Schedule& schedule : {Schedule{}, Schedule::standard(), Schedule::standard().unroll(up, 4)}) {
    const auto result = compile_here(program, schedule)(chain.front());
    CHECK(result[0][0] == 1e6);
    CHECK(result.node(&chain.back(), down)[0] == 1e6);
  }
}
