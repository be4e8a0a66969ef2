// Batches sorted by the matrices that nodes choose: the same bits as unsorted, and the same errors.
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <vector>

#include "cortex/explain.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "support/compile.hpp"

using namespace cortex;
using test::uniform;

namespace {

constexpr int num_tags = 5, hidden = 72, num_words = 10;  // four vectors of 16, and a half

struct Item {
  int word = 0, tag = 0;
  std::vector<const Item*> kids;
};
constexpr auto word = cortex::field<&Item::word>;
constexpr auto tag = cortex::field<&Item::tag>;
constexpr auto kids = cortex::children<&Item::kids>;

/// h = z tanh(U_t C z + V x) + s with z = sigmoid(W_t s), s being the sum of the children's states; at leaves tanh(x).
/// All nodes have C in common, between two products with matrices of their own.
auto tagged(int tags = num_tags) {
  Dim vocabulary("vocabulary"), H("hidden", hidden), T("tags", tags);
  Model<Item> m("tagged", cortex::tree);
  auto Emb = m.input<float>("Emb", vocabulary, H);
  auto U = m.input<float>("U", T, H, H), W = m.input<float>("W", T, H, H);
  auto V = m.input<float>("V", H, H), C = m.input<float>("C", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto z = m.compute(
      "z", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return W(tag(n), i, j) * s(n, j); })); });
  auto c = m.compute("c", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return C(i, j) * z(n, j); }); });
  auto x = m.compute("x", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return V(i, j) * Emb(word(n), j); }); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    return z(n, i) * tanh(sum(H, [&](auto j) { return U(tag(n), i, j) * c(n, j); }) + x(n, i)) + s(n, i);
  });
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return tanh(Emb(word(n), i)); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  return m.recursion_op(h, body);
}

/// An LSTM over children whose gates have matrices of their labels: c = sum over k of sigmoid(F_t h_k) c_k + u,
/// u = tanh(sum over k of U_t h_k + x), h = tanh(c).
auto labelled(Structure structure) {
  Dim vocabulary("vocabulary"), H("hidden", hidden), T("tags", num_tags);
  Model<Item> m("labelled", structure);
  auto Emb = m.input<float>("Emb", vocabulary, H);
  auto U = m.input<float>("U", T, H, H), F = m.input<float>("F", T, H, H);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  const auto times = [&](auto& matrix, auto k, auto i) {
    return sum(H, [&](auto j) { return matrix(tag(k), i, j) * h(k, j); });
  };
  auto update = m.compute("update", H, [&](auto n, auto i) {
    return tanh(sum(kids(n), [&](auto k) { return times(U, k, i); }) + Emb(word(n), i));
  });
  auto cell = m.compute("cell", H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k) { return sigmoid(times(F, k, i)) * c(k, i); }) + update(n, i);
  });
  auto state = m.compute("state", H, [&](auto n, auto i) { return tanh(cell(n, i)); });
  return m.recursion_op(h, state, c, cell);
}

auto with_labels(const Schedule& schedule, Structure structure = cortex::tree, const Target& on = test::best_target()) {
  auto model = cortex::compile(labelled(structure), schedule, CompileOptions{}.on(on));
  const std::size_t matrix = hidden * hidden;
  return std::move(model.bind("Emb", uniform(num_words * hidden, 1, 1))
                       .bind("U", uniform(num_tags * matrix, 0.1f, 2))
                       .bind("F", uniform(num_tags * matrix, 0.1f, 3)));
}

auto compiled(const Schedule& schedule) {
  auto model = test::compile_here(tagged(), schedule);
  const std::size_t matrix = hidden * hidden;
  return std::move(model.bind("Emb", uniform(num_words * hidden, 1, 1))
                       .bind("U", uniform(num_tags * matrix, 0.1f, 2))
                       .bind("W", uniform(num_tags * matrix, 0.1f, 3))
                       .bind("V", uniform(matrix, 0.1f, 4))
                       .bind("C", uniform(matrix, 0.3f, 5)));
}

struct Trees {
  std::vector<std::unique_ptr<Item>> items;
  std::vector<const Item*> roots;
  explicit Trees(int count) {
    std::mt19937 engine(7);
    const auto below = [&](int n) { return int(engine() % unsigned(n)); };
    for (int t = 0; t < count; ++t) {
      std::vector<const Item*> tops;
      for (int i = 0; i < 20; ++i) {
        items.push_back(std::make_unique<Item>(Item{below(num_words), i < 10 ? 999 : below(num_tags), {}}));
        const std::size_t taken = i < 10 ? 0 : std::min<std::size_t>(tops.size(), std::size_t(1 + below(3)));
        items.back()->kids.assign(tops.end() - std::ptrdiff_t(taken), tops.end());
        tops.resize(tops.size() - taken);
        tops.insert(tops.begin(), items.back().get());
      }
      items.push_back(std::make_unique<Item>(Item{0, below(num_tags), tops}));
      roots.push_back(items.back().get());
    }
  }
};

}  // namespace

TEST_CASE("batches that are sorted by matrix give the same bits", "[sort][slow]") {
  const Trees trees(6);
  const Schedule plain = Schedule::standard().share_no_subtrees().sort_by_no_matrix();
  const auto expected = compiled(plain)(trees.roots);
  const auto pool = std::make_shared<Workers>(1);
  for (const Schedule& schedule :
       {plain.sort_by_matrix_where_it_pays(), plain.sort_by_matrix(), plain.sort_by_matrix().workers(2),
        plain.sort_by_matrix().workers(2).groups(2), plain.sort_by_matrix().fill_levels(8),
        plain.sort_by_matrix().share_subtrees(), plain.sort_by_matrix().tabulate_nothing()}) {
    INFO(to_string(schedule));
    auto model = compiled(schedule);
    if (schedule.max_workers > 1) model.use(pool);
    const auto all = model(trees.roots);
    for (std::size_t t = 0; t < trees.roots.size(); ++t) {
      const auto row = expected[t];
      CHECK(std::equal(row.begin(), row.end(), all[t].begin()));
      const auto alone = model(*trees.roots[t]);  // a tree's bits do not depend on who else is in the call
      CHECK(std::equal(row.begin(), row.end(), alone[0].begin()));
    }
  }
}

TEST_CASE("one number may choose among three matrices here and among five there", "[sort]") {
  Dim H("hidden", 8), three("three", 3), five("five", 5);
  Model<Item> m("two", cortex::tree);
  auto W = m.input<float>("W", three, H, H);
  auto U = m.input<float>("U", five, H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }) + 1; });
  const auto times = [&](const char* name, const auto& matrix) {
    return m.compute(
        name, H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return matrix(tag(n), i, j) * s(n, j); })); });
  };
  auto of_three = times("of_three", W), of_five = times("of_five", U);
  const auto program =
      m.recursion_op(h, m.switch_(
                            "body", [](auto n) { return word(n); }, when(0, of_three), when(1, of_five)));
  const Item left{1, 4, {}}, right{0, 2, {}}, root{1, 3, {&left, &right}};
  std::vector<std::vector<float>> states;
  for (const Schedule& schedule : {Schedule::standard().sort_by_matrix(), Schedule::standard().sort_by_no_matrix()}) {
    auto model = test::compile_here(program, schedule);
    model.bind("W", uniform(3 * 64, 0.5f, 1)).bind("U", uniform(5 * 64, 0.5f, 2));
    const auto result = model(root);
    states.emplace_back(result[0].begin(), result[0].end());
  }
  CHECK(states[0] == states[1]);
}

TEST_CASE("products with the matrices of children are made at these, and roots may have any number", "[sort][slow]") {
  Trees trees(6);
  for (auto& item : trees.items) item->tag %= num_tags;
  for (const Item* root : trees.roots)
    for (auto& item : trees.items)
      if (item.get() == root) item->tag = 1 << 30;
  const Schedule plain = Schedule::standard().share_no_subtrees();
  const auto right = with_labels(plain.sort_by_no_matrix(), cortex::tree, Target::interpreter())(trees.roots);
  const auto expected = with_labels(plain.sort_by_matrix())(trees.roots);
  const auto pool = std::make_shared<Workers>(1);
  for (const Schedule& schedule :
       {plain.sort_by_matrix(), plain.sort_by_matrix().workers(2), plain.sort_by_matrix().workers(2).groups(2),
        plain.sort_by_matrix().fill_levels(8), plain.sort_by_matrix().share_subtrees(),
        plain.sort_by_matrix().tabulate_nothing(), plain.sort_by_matrix_where_it_pays(), plain.sort_by_no_matrix()}) {
    for (const Structure& structure : {cortex::tree, cortex::dag}) {
      if (structure.kind == structure::Kind::dag && schedule.max_workers > 1) continue;
      INFO(to_string(schedule));
      auto model = with_labels(schedule, structure);
      if (schedule.max_workers > 1) model.use(pool);
      const auto all = model(trees.roots);
      for (std::size_t t = 0; t < trees.roots.size(); ++t) {
        const auto alone = model(*trees.roots[t]);
        CHECK(std::equal(alone[0].begin(), alone[0].end(), all[t].begin()));
        for (int i = 0; i < hidden; ++i) REQUIRE(std::abs(all[t][i] - right[t][i]) < 1e-5);
        if (schedule.sorting == Sorting::on) CHECK(std::equal(expected[t].begin(), expected[t].end(), all[t].begin()));
      }
      CHECK(all.size() == trees.roots.size());
    }
  }
}

TEST_CASE("a child of two parents has one product for both, and every child has to choose a matrix",
          "[sort][refusal]") {
  Item leaf{1, 2, {}}, other{2, 0, {}};
  const Item a{3, 1, {&leaf, &other}}, b{4, 3, {&other, &leaf, &a}};
  const Item root{5, -7, {&b, &leaf}};
  const auto model = with_labels(Schedule::standard().sort_by_matrix(), cortex::dag);
  const auto right = with_labels(Schedule{}, cortex::dag, Target::interpreter())(root);
  const auto got = model(root);
  for (int i = 0; i < hidden; ++i) REQUIRE(std::abs(got[0][i] - right[0][i]) < 1e-5);
  for (const int wrong : {num_tags, -1, 1 << 30}) {
    leaf.tag = wrong;
    const auto answer = model.try_call(root);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == Code::out_of_range);
    CHECK_THAT(answer.error().message,
               Catch::Matchers::Contains("'tag'") && Catch::Matchers::Contains(std::to_string(wrong)));
    leaf.tag = 2;
  }
  CHECK(model.try_call(root));
  CHECK(model.try_call(leaf));
}

TEST_CASE("an explanation says by what nodes are sorted", "[sort]") {
  const std::string sorted = "matrices   nodes of a level are sorted by which of 5 they choose, as of ";
  CHECK_THAT(explain(compiled(Schedule::standard())), Catch::Matchers::Contains(sorted));
  CHECK_THAT(explain(compiled(Schedule::standard().sort_by_no_matrix())), !Catch::Matchers::Contains("matrices  "));
}

TEST_CASE("a matrix that there is not is refused, sorted or not", "[sort][refusal]") {
  for (const Schedule& schedule :
       {Schedule::standard(), Schedule::standard().sort_by_matrix(), Schedule::standard().sort_by_no_matrix()}) {
    auto model = compiled(schedule);
    Trees trees(2);
    for (const int wrong : {num_tags, -1, 1 << 30}) {
      Item& item = *trees.items.back();
      const int right = std::exchange(item.tag, wrong);
      const auto answer = model.try_call(trees.roots);
      REQUIRE_FALSE(answer);
      CHECK(answer.error().code == Code::out_of_range);
      CHECK(answer.error().node == &item);
      CHECK_THAT(answer.error().message,
                 Catch::Matchers::Contains("'tag'") && Catch::Matchers::Contains(std::to_string(wrong)));
      item.tag = right;
    }
    CHECK(model.try_call(trees.roots));  // leaves may have any
  }
}

TEST_CASE("all matrices have their products by the same code", "[sort]") {
  test::need_llvm();
  const auto functions = [](int tags) {
    const std::string text = test::compile_here(tagged(tags), Schedule::standard().workers(1)).print("llvm");
    int count = 0;
    for (std::size_t at = 0; (at = text.find("\ndefine ", at)) != text.npos; ++at) ++count;
    return count;
  };
  CHECK(functions(2) > 3);
  CHECK(functions(8) == functions(2));
}

TEST_CASE("a tensor of which one side of a branch chooses a matrix and all nodes have the other", "[sort]") {
  Dim H("hidden", 8), tags("tags", 3);
  Model<Item> m("sides", cortex::tree);
  auto U = m.input<float>("U", tags, H, H);
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }) + 1; });
  auto u = m.compute("u", H,
                     [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return U(tag(n), i, j) * s(n, j); })); });
  auto w =
      m.compute("w", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return W(i, j) * s(n, j); })); });
  auto side = m.if_then_else(
      "side", [](auto n) { return word(n) == 1; }, u, w);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(u(n, i) - 2 * side(n, i) + w(n, i) + sum(H, [&](auto j) { return W(j, i) * s(n, j); }));
  });
  const auto program = m.recursion_op(h, body);
  const Item a{1, 2, {}}, b{0, 0, {}}, c{1, 1, {}}, d{0, 2, {}}, left{1, 0, {&a, &b}}, right{0, 1, {&c, &d}},
      root{1, 2, {&left, &right}};
  const auto states = [&](const Schedule& schedule, const Target& target) {
    auto model = compile(program, schedule, CompileOptions{}.on(target));
    model.bind("U", uniform(3 * 64, 0.5f, 1)).bind("W", uniform(64, 0.5f, 2));
    const auto result = model(root);
    return std::vector<float>(result[0].begin(), result[0].end());
  };
  const auto right_ones = states(Schedule{}, Target::interpreter());
  const auto sorted = states(Schedule::standard().sort_by_matrix(), test::best_target());
  for (int i = 0; i < 8; ++i) CHECK(std::abs(sorted[i] - right_ones[i]) < 1e-5);
}

TEST_CASE("products of children that may be absent are made at the parent", "[sorting]") {
  struct Two {
    std::vector<const Two*> kids, others;
  };
  constexpr auto some = cortex::children<&Two::kids>;
  constexpr auto others = cortex::children<&Two::others>;
  const auto check = [](auto make) {
    Dim H("hidden", 2), Q("places", 2);
    Model<Two> m("absent", cortex::dag);
    auto G = m.input<float>("G", H, H);
    auto h = m.placeholder<float>("h", H);
    // Of a child that is not there this is not 0.
    const auto product = [=](auto kid, auto i) {
      return tanh(sum(H, [=](auto j) { return G(i, j) * (h(kid, j) + 1); }));
    };
    const auto program = m.recursion_op(h, make(m, H, Q, h, product));
    const std::vector<float> weights{0.5f, -0.25f, 1, 0.75f};
    const Two first, second{{&first}, {&first}}, third{{&first, &second}, {&first}};
    const std::vector<const Two*> roots{&first, &second, &third};
    std::vector<float> expected;
    for (const Schedule& schedule : {Schedule{}, Schedule{}.dynamic_batch(), Schedule::standard()}) {
      auto model = compile(program, schedule, CompileOptions{}.on(Target::interpreter()));
      model.bind("G", weights);
      const auto result = model(roots);
      std::vector<float> values;
      for (std::size_t r = 0; r < roots.size(); ++r) values.insert(values.end(), {result[r][0], result[r][1]});
      if (expected.empty()) expected = values;
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(expected[i]));
    }
    CHECK(expected[0] != 0);
  };
  check([=](auto& m, auto H, auto Q, auto, auto product) {
    return m.compute("x", H,
                     [=](auto n, auto i) { return tanh(sum(Q, [=](auto q) { return product(some(n)[q], i); })); });
  });
  check([=](auto& m, auto H, auto, auto h, auto product) {
    return m.compute("x", H, [=](auto n, auto i) {
      return tanh(0.25f + sum(some(n), [=](auto k, auto at) { return h(k, i) + product(others(n)[at], i); }));
    });
  });
}
