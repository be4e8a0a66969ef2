// What one case of a branch alone computes of fields: ahead of the recursion for the nodes of that case, of whatever
// batch, and in tables where there are any.
#include <catch2/catch.hpp>
#include <deque>
#include <random>

#include "cortex/explain.hpp"
#include "support/compile.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Item {
  int word = 0, tag = 0, kind = 0;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto above = cortex::parents<kids>;
constexpr auto word = cortex::field<&Item::word>;
constexpr auto tag = cortex::field<&Item::tag>;
constexpr auto kind = cortex::field<&Item::kind>;

constexpr int num_items = 9, hidden = 20;
constexpr int far_off = 1 << 20;  // no word, and no tag: only nodes of other kinds have it

/// Nodes of four kinds, three with a matrix for what comes from their neighbours; two read their word, one its tag.
template <class Neighbours>
auto kinds(Structure structure, Neighbours neighbours) {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Item> m("kinds", structure);
  auto Emb = m.input<float>("Emb", V, H), Tag = m.input<float>("Tag", V, H);
  auto W = m.input<float>("W", H, H), X = m.input<float>("X", H, H);
  auto U = m.input<float>("U", H, H), T = m.input<float>("T", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(neighbours(n), [&](auto k) { return h(k, i); }); });
  auto a = m.compute("a", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); }) +
                sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }));
  });
  auto b = m.compute("b", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return T(i, j) * s(n, j); }) +
                sum(H, [&](auto j) { return X(i, j) * Tag(tag(n), j); }));
  });
  auto c = m.compute("c", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); }) +
                sum(H, [&](auto j) { return X(i, j) * Emb(word(n), j); }));
  });
  auto d = m.compute("d", H, [&](auto n, auto i) { return s(n, i) * 0.5f + 0.25f; });
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, a), when(1, b), when(2, c), cortex::otherwise(d));
  return m.recursion_op(h, body);
}
auto upward(Structure structure) {
  return kinds(structure, [](auto n) { return kids(n); });
}

/// Some roots over nodes of all kinds, of which each has the fields that its kind reads and no others.
struct Items {
  std::deque<Item> all;
  std::vector<const Item*> roots;

  Items(unsigned seed, int count, bool shared) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return int(random() % unsigned(n)); };
    std::vector<const Item*> free;
    for (int n = 0; n < count; ++n) {
      Item& item = all.emplace_back();
      item.kind = below(4);
      item.word = item.kind == 0 || item.kind == 2 ? below(num_items) : far_off;
      item.tag = item.kind == 1 ? below(num_items) : -far_off;
      for (int k = below(3); k-- > 0 && !free.empty();) {
        const std::size_t at = std::size_t(below(int(free.size())));
        item.kids.push_back(free[at]);
        if (!shared || below(3) > 0) free.erase(free.begin() + std::ptrdiff_t(at));
      }
      free.push_back(&item);
    }
    roots = free;
  }
};

template <class Model>
void bind(Model& model) {
  unsigned seed = 0;
  model.bind_together([&] {
    for (const char* name : {"Emb", "Tag"}) model.bind(name, uniform(num_items * hidden, 1, ++seed));
    for (const char* name : {"W", "X", "U", "T"}) model.bind(name, uniform(hidden * hidden, 0.25f, ++seed));
  });
}

template <class Model>
std::vector<float> states_of(const Model& model, const Items& items) {
  std::vector<float> all;
  const auto result = model(items.roots);
  for (const Item& item : items.all) {
    const auto values = result.template node<float>(&item, "h");
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// A model as written, with products ahead, and with tables: the same, the last two in every bit.
template <class Program>
void check_same(const Program& program, const Schedule& schedule, const Target& target, bool shared) {
  const auto options = CompileOptions{}.on(target);
  auto written = compile(program, Schedule{}, CompileOptions{}.on(Target::interpreter()));
  auto computed = compile(program, schedule.tabulate_nothing(), options);
  auto read = compile(program, schedule.tabulate(1), options);
  bind(written), bind(computed), bind(read);
  CHECK(read.executable().program.listed != ir::Listed::nothing);
  CHECK(read.memory().tables > 0);
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Items items(seed, 1 + int(seed) * 20, shared);
    const std::vector<float> expected = states_of(written, items), values = states_of(computed, items),
                             from_tables = states_of(read, items);
    REQUIRE(expected.size() == values.size());
    CHECK(from_tables == values);
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-5));
  }
}

const Schedule standard = Schedule::standard().share_no_subtrees();

}  // namespace

TEST_CASE("what a case of a switch computes of a field is the same ahead and in tables", "[runtime][tables]") {
  for (const Target& target : {Target::interpreter(), best_target()}) {
    check_same(upward(cortex::tree), standard.workers(3), target, false);
    check_same(upward(cortex::dag), standard, target, true);
  }
}

TEST_CASE("what a case of a switch computes of a field is the same under every schedule", "[runtime][tables][slow]") {
  for (const Target& target : {Target::interpreter(), best_target()}) {
    check_same(upward(cortex::tree), standard, target, false);
    check_same(upward(cortex::dag), standard, target, true);
    check_same(upward(cortex::tree), standard.workers(3), target, false);
    check_same(upward(cortex::tree), standard.groups(2), target, false);
    check_same(upward(cortex::tree), standard.pieces(7), target, false);
    check_same(upward(cortex::tree), standard.share_subtrees(), target, false);
    check_same(upward(cortex::dag), Schedule{}.dynamic_batch().specialize_if_else(), target, true);
    check_same(kinds(cortex::tree, [](auto n) { return above(n); }), standard, target, false);
  }
}

/// Nodes of two sorts; those of the first have matrices of their words, of which there are few, and read `data`.
template <class Condition>
auto two_vocabularies(Condition condition) {
  Dim V("vocabulary"), H("hidden", hidden), F("few", 2), G("gate", 7);
  Model<Item> m("two_vocabularies", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), X = m.input<float>("X", H, H);
  auto U = m.input<float>("U", H, H);
  auto Few = m.input<float>("Few", F, G, G);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto up = m.compute("up", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }); });
  auto x = m.compute("x", G, [&](auto n, auto g) {
    return sum(G, [&](auto r) { return Few(word(n), g, r) * cast<float>(tag(n) + r); });
  });
  auto a = m.compute("a", H, [&](auto n, auto i) {
    return tanh(up(n, i) + sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) +
                sum(G, [&](auto g) { return x(n, g); }));
  });
  auto b = m.compute("b", H, [&](auto n, auto i) {
    return tanh(up(n, i) + sum(H, [&](auto j) { return X(i, j) * Emb(word(n), j); }));
  });
  auto out = m.recursion_op(h, m.if_then_else("body", condition, a, b));
  auto model = compile(out, standard.specialize_if_else().tabulate(1), CompileOptions{}.on(Target::interpreter()));
  model.bind_together([&] {
    model.bind("Emb", uniform(num_items * hidden, 1, 1)).bind("Few", uniform(2 * 7 * 7, 0.1f, 2));
    for (const char* name : {"W", "X", "U"}) model.bind(name, uniform(hidden * hidden, 0.2f, unsigned(name[0])));
  });
  return model;
}

TEST_CASE("a table of a part has no rows for which other nests of the part would read past a weight",
          "[runtime][tables]") {
  const std::size_t table = (num_items + 1) * 128;
  CHECK(two_vocabularies([](auto n) { return word(n) == 1; }).memory().tables == 2 * table);
  CHECK(two_vocabularies([](auto n) { return word(n) % 2 == 1; }).memory().tables == 2 * table);
  CHECK(two_vocabularies([](auto n) { return kind(n) == 0; }).memory().tables == 2 * table);
}

TEST_CASE("explain says of which parts there are tables", "[runtime][tables]") {
  const auto model = compile(upward(cortex::tree), standard.tabulate(1), CompileOptions{}.on(Target::interpreter()));
  const std::string text = explain(model);
  CHECK_THAT(text, Catch::Contains("at leaves of part 0, by word"));
  CHECK_THAT(text, Catch::Contains("at inner nodes of part 0, by word"));
  CHECK_THAT(text, Catch::Contains("at inner nodes of part 1, by tag"));
}
