// What follows from words and weights alone is read from tables: the same bits as computed.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "runtime/count_allocations.hpp"
#include "support/compile.hpp"
#include "support/random_cases.hpp"
#include "support/wanted_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;

/// Compares random models with and without tables; `schedule_of` gives each model's schedule. How many had tables.
template <class ScheduleOf>
int compare(std::uint64_t first, int count, Grammar grammar, const Target& target, ScheduleOf schedule_of) {
  const auto pool = std::make_shared<Workers>(2);
  int with_tables = 0;
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const RandomModel model(seed, grammar);
    const Schedule schedule = schedule_of(model);
    RandomFunctor plain = compile_model(model, schedule.tabulate_nothing(), target);
    RandomFunctor read = compile_model(model, schedule.tabulate(1), target);
    if (schedule.max_workers > 1) plain.use(pool), read.use(pool);
    with_tables += read.memory().tables > 0;
    const std::size_t of_weights = plain.memory().tables;  // alone, which machine code has in any case
    CHECK(of_weights <= (target.backend == Backend::interpreter ? 0 : read.memory().tables));
    for (int f = 0; f < 5; ++f) {
      Random random(seed * 100 + std::uint64_t(f));
      const Forest forest = random_forest(random, model.graph, f ? 40 : 3);
      INFO("seed " << seed << "\n" << ra::print(model.graph) << describe(forest));
      CHECK(same_bits(model, plain, read, forest));
    }
  }
  return with_tables;
}

/// A child-sum TreeLSTM over words of a small vocabulary, as tests here use it.
struct Lstm {
  static constexpr int hidden = 24;
  explicit Lstm(const Schedule& schedule, bool open = false, const Target& target = Target::interpreter())
      : model(compile(
            cortex::models::tree_lstm<Vertex>(cortex::models::at_leaves(word), kids,
                                              {.vocabulary = open ? 0 : num_words, .input = hidden, .hidden = hidden})
                .program,
            schedule, options(target))) {
    bind(0);
  }
  static CompileOptions options(const Target& target) {
    CompileOptions result;
    result.target = target;
    return result;
  }
  void bind(unsigned seed, int words = num_words) {
    model.bind_together([&] {
      for (const auto& spec : model.executable().weights) bind(spec.name, ++seed, words);
    });
  }
  void bind(const std::string& name, unsigned seed, int words = num_words) {
    const auto& all = model.executable().weights;
    const auto spec = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.name == name; });
    std::size_t size = 1;
    for (const Dim& dim : spec->dims) size *= std::size_t(name == "Emb" && size == 1 ? words : dim.extent());
    model.bind(name, uniform(size, 0.5f, seed));
  }
  using Model = decltype(compile(cortex::models::tree_lstm<Vertex>(cortex::models::at_leaves(word), kids, {}).program));
  Model model;
};

Forest some_trees(std::uint64_t seed, int most = 40) {
  Random random(seed);
  return random_forest(random, ra::StructureKind::tree, most);
}

template <class Model>
std::vector<float> values_of(const Model& model, const Forest& forest) {
  std::vector<float> all;
  const auto result = model(forest.roots);
  for (const auto& vertex : forest.all)
    for (const char* state : {"h", "c"}) {
      const auto values = result.template node<float>(vertex.get(), state);
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const Schedule computed = Schedule::standard().tabulate_nothing(), tabulated = Schedule::standard().tabulate(1);

}  // namespace

TEST_CASE("random models give the same bits from tables as computed", "[runtime][tables]") {
  const int tables =
      compare(1, 30, Grammar::one_recursion, Target::interpreter(), [](const auto&) { return Schedule::standard(); });
  CHECK(tables > 5);
  compare(400, 6, Grammar::one_recursion, Target::interpreter(),
          [](const auto&) { return Schedule{}.specialize_leaves(); });
  compare(500, 6, Grammar::one_recursion, Target::interpreter(),
          [](const auto&) { return Schedule::standard().workers(3).share_subtrees(); });
  compare(600, wanted_cases(30), Grammar::whole, Target::interpreter(),
          [](const auto&) { return Schedule::standard(); });
}

TEST_CASE("machine code gives the same bits from tables as computed", "[runtime][tables]") {
  need_llvm();
  compare(5, 3, Grammar::one_recursion, best_target(), [](const auto&) { return Schedule::standard(); });
  compare(11, 1, Grammar::one_recursion, best_target(), [](const auto&) { return Schedule::standard().workers(3); });
}

TEST_CASE("a leaf's states are rows of tables, and what follows from weights alone is one", "[runtime][tables]") {
  const Lstm plain(computed), read(tabulated);
  const Forest forest = some_trees(3);
  CHECK(same(values_of(plain.model, forest), values_of(read.model, forest)));
  // h and c for each word, one row of zeros more, and four products with an input of zeros.
  const std::size_t row = 32 * sizeof(float);  // padded, as states are
  CHECK(read.model.memory().tables == 2 * (num_words + 1) * row + 4 * Lstm::hidden * sizeof(float));
  CHECK(plain.model.memory().tables == 0);
}

TEST_CASE("a temporary whose rows at leaves nobody reads but what is in tables takes none from them",
          "[runtime][tables]") {
  Dim V{"vocabulary"}, H{"hidden", 16}, I{"inner", 24};
  Model<Vertex> m("two_layers", cortex::tree);
  auto Emb = m.input<float>("Emb", V, I), U = m.input<float>("U", I, H), W = m.input<float>("W", H, I);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto first = m.compute("first", I, [&](auto n, auto i) {
    return tanh(Emb(word(n), i) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }));
  });
  auto second = m.compute("second", H,
                          [&](auto n, auto i) { return tanh(sum(I, [&](auto j) { return W(i, j) * first(n, j); })); });
  const auto program = m.recursion_op(h, second);
  auto plain = compile(program, computed, Lstm::options(Target::interpreter())),
       read = compile(program, tabulated, Lstm::options(Target::interpreter()));
  for (auto* model : {&plain, &read}) {
    model->bind_together([&] {
      model->bind("Emb", uniform(num_words * 24, 0.5f, 1));
      model->bind("U", uniform(24 * 16, 0.5f, 2)).bind("W", uniform(16 * 24, 0.5f, 3));
    });
  }
  const ir::Program& tables = read.executable().program;
  REQUIRE(tables.tabulations.size() == 1);
  CHECK(tables.tabulations[0].states.size() == 1);
  CHECK(tables.tabulations[0].temps.empty());
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Forest forest = some_trees(seed);
    const auto a = plain(forest.roots), b = read(forest.roots);
    for (const auto& vertex : forest.all)
      CHECK(std::ranges::equal(a.node(vertex.get(), "h"), b.node(vertex.get(), "h")));
  }
}

TEST_CASE("two integer fields are one table, of each value with each", "[runtime][tables]") {
  struct Tagged {
    int word = 0, tag = 0;
    std::vector<const Tagged*> kids;
  };
  Dim V{"vocabulary"}, T{"tags", 3}, H{"hidden", 20};
  Model<Tagged> m("tagged", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), Tag = m.input<float>("Tag", T, H);
  auto W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto x = m.compute("x", H, [&](auto n, auto i) {
    return Emb(cortex::field<&Tagged::word>(n), i) * Tag(cortex::field<&Tagged::tag>(n), i);
  });
  auto s = m.compute(
      "s", H, [&](auto n, auto i) { return sum(cortex::children<&Tagged::kids>(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * x(n, j); }) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }));
  });
  const auto program = m.recursion_op(h, body);
  std::deque<Tagged> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back({i % 7, i % 5 % 3, {}});
    if (i >= 30) all.back().kids = {&all[std::size_t(3 * (i - 30))], &all[std::size_t(3 * (i - 30) + 1)]};
  }
  std::vector<const Tagged*> roots;
  for (int i = 30; i < 40; ++i) roots.push_back(&all[std::size_t(i)]);
  std::vector<std::vector<float>> states;
  for (const Schedule& schedule : {computed, tabulated}) {
    auto model = compile(program, schedule, Lstm::options(Target::interpreter()));
    model.bind("Emb", uniform(7 * 20, 1, 1)).bind("Tag", uniform(3 * 20, 1, 2));
    model.bind("W", uniform(400, 0.3f, 3)).bind("U", uniform(400, 0.3f, 4));
    const auto result = model(roots);
    std::vector<float>& values = states.emplace_back();
    for (const Tagged& node : all)
      if (result.node(&all[30]).size() && node.kids.size())
        values.insert(values.end(), result.node(&node).begin(), result.node(&node).end());
    CHECK((model.memory().tables > 0) == (schedule == tabulated));
    if (schedule == tabulated) CHECK(explain(model).find("by word, tag") != std::string::npos);
  }
  CHECK(same(states[0], states[1]));
}

TEST_CASE("what does not fit the budget is computed in calls, and explain says what a row takes", "[runtime][tables]") {
  const int large = 6000;  // h and c of so many words are 1.5 MB
  Lstm plain(computed, true), read(tabulated, true);
  plain.bind(7, large), read.bind(7, large);
  const Forest forest = some_trees(4);
  CHECK(same(values_of(plain.model, forest), values_of(read.model, forest)));
  CHECK(read.model.memory().tables == 4 * Lstm::hidden * sizeof(float));  // what follows from weights alone
  read.bind(7, num_words);
  CHECK(read.model.memory().tables > 4 * Lstm::hidden * sizeof(float));
  const std::string text = explain(read.model);
  CHECK_THAT(text, Catch::Contains("h, c at leaves, by word") && Catch::Contains("256 B") && Catch::Contains("1 MB"));
  CHECK_THAT(text, Catch::Contains("without what comes from tables, where there is room for them: "));
  CHECK_THAT(explain(plain.model), Catch::Contains("computed in each call"));
  CHECK_THAT(explain(plain.model), !Catch::Contains("without what comes from tables"));
}

TEST_CASE("tables are made of so many rows at a time as memory is to be taken for", "[runtime][tables]") {
  const Lstm lstm(Schedule::standard().tabulate(1), true);
  const runtime::Executable& executable = lstm.model.executable();
  runtime::Weights weights({&executable, [](const runtime::Executable*) {}});
  unsigned seed = 0;
  for (const runtime::WeightSpec& spec : executable.weights) {
    std::vector<std::int64_t> shape;
    std::size_t size = 1;
    for (const Dim& dim : spec.dims) {
      shape.push_back(spec.name == "Emb" && shape.empty() ? 11 : dim.extent());
      size *= std::size_t(shape.back());
    }
    weights.bind(spec.name, DType::f32, uniform(size, 0.5f, ++seed).data(), size, shape);
  }
  const auto set = weights.published().current().value;
  int compared = 0;
  for (const ir::Tabulation& tabulation : executable.program.tabulations) {
    const Vector<std::int64_t> extents = runtime::extents_of(executable, tabulation, set->shapes);
    const Vector<int> wanted = runtime::results_of(executable.program, tabulation);
    const auto made = [&](std::size_t bytes) {
      return runtime::detail::TableRun(executable, set->blocks, tabulation, extents, wanted, bytes).take(tabulation);
    };
    const auto whole = made(runtime::detail::TableRun::bytes_at_once);
    for (const std::size_t bytes : {std::size_t(1), std::size_t(4000), std::size_t(20000)}) {
      const auto parts = made(bytes);
      REQUIRE(parts->blocks.size() == whole->blocks.size());
      CHECK(parts->extents == whole->extents);
      for (std::size_t b = 0; b < whole->blocks.size(); ++b, ++compared) {
        REQUIRE(parts->blocks[b]->size() == whole->blocks[b]->size());
        CHECK(std::memcmp(parts->blocks[b]->data(), whole->blocks[b]->data(), whole->blocks[b]->size()) == 0);
      }
    }
  }
  CHECK(compared > 3);
}

TEST_CASE("a weight that is bound again has tables of its own", "[runtime][tables]") {
  Lstm plain(computed), read(tabulated);
  const Forest forest = some_trees(5);
  for (const char* name : {"W_i", "Emb", "b_u", "U_o", "W_f"}) {
    INFO(name);
    const std::vector<float> before = values_of(read.model, forest);
    plain.bind(name, 99u), read.bind(name, 99u);
    const std::vector<float> after = values_of(read.model, forest);
    CHECK(same(values_of(plain.model, forest), after));
    CHECK(same(before, after) ==
          (std::string(name) == "W_f" || (std::string(name) == "U_o" && forest.all.size() == 1)));
  }
}

TEST_CASE("a vocabulary that grows and shrinks has tables of its size", "[runtime][tables]") {
  Lstm plain(computed, true), read(tabulated, true);
  const Forest forest = some_trees(6);
  for (const int words : {num_words, 40, num_words + 1}) {
    plain.bind("Emb", 3, words), read.bind("Emb", 3, words);
    CHECK(same(values_of(plain.model, forest), values_of(read.model, forest)));
  }
  Vertex high;
  high.word = 39;
  CHECK_THROWS_AS(read.model(high), Error);
  read.bind("Emb", 3, 40);
  CHECK(read.model(high).size() == 1);
}

TEST_CASE("a word outside of the vocabulary is refused before a table is read", "[runtime][tables]") {
  const Lstm read(tabulated);
  for (const int bad : {-1, num_words, 1 << 30}) {
    Vertex leaf;
    leaf.word = bad;
    const auto result = read.model.try_call(leaf);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Code::out_of_range);
    CHECK_THAT(result.error().message, Catch::Contains("indexes the table 'Emb'"));
  }
}

TEST_CASE("calls in flight see the tables of one weight set, while weights are bound again", "[runtime][tables]") {
  Lstm read(tabulated);
  const Forest forest = some_trees(8, 20);
  read.bind("Emb", 1);
  const std::vector<float> first = values_of(read.model, forest);
  read.bind("Emb", 2);
  const std::vector<float> second = values_of(read.model, forest);
  REQUIRE_FALSE(same(first, second));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 2; ++t)
    callers.emplace_back([&] {
      while (!stop) {
        const std::vector<float> values = values_of(read.model, forest);
        wrong += !same(values, first) && !same(values, second);
      }
    });
  for (int round = 0; round < 40; ++round) read.bind("Emb", 1 + unsigned(round) % 2);
  stop = true;
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

TEST_CASE("until weights are bound together calls have the old tables, and new ones are made once",
          "[runtime][tables]") {
  Lstm plain(computed), read(tabulated);
  const Forest forest = some_trees(9);
  const std::size_t tables = read.model.memory().tables;
  const std::vector<float> before = values_of(read.model, forest);
  read.model.bind_together([&] {
    read.bind("W_u", 50), plain.bind("W_u", 50);
    read.bind("Emb", 51), plain.bind("Emb", 51);
    CHECK(read.model.memory().tables == tables);
    CHECK(same(values_of(read.model, forest), before));
  });
  CHECK(read.model.memory().tables == tables);
  CHECK(same(values_of(plain.model, forest), values_of(read.model, forest)));
}

TEST_CASE("a warm call that reads tables allocates nothing", "[runtime][tables]") {
  need_llvm();
  const Lstm read(Schedule::standard().tabulate(1).share_subtrees(), false, best_target());
  const Forest forest = some_trees(10);
  for (int i = 0; i < 3; ++i) read.model(forest.roots);
  const std::int64_t before = allocations_of_this_thread();
  for (int i = 0; i < 20; ++i) read.model(forest.roots);
  CHECK(allocations_of_this_thread() == before);
}

TEST_CASE("inputs of all nodes are tables too, of a sequence model", "[runtime][tables]") {
  constexpr auto previous = cortex::optional_child<&Vertex::first>;
  const auto program =
      cortex::models::gru<Vertex>(word, previous, {.vocabulary = num_words, .input = 16, .hidden = 16}).program;
  Random random(3);
  const Forest forest = random_forest(random, ra::StructureKind::sequence, 30);
  std::vector<std::vector<float>> states;
  for (const Schedule& schedule : {computed, tabulated}) {
    auto model = compile(program, schedule, Lstm::options(Target::interpreter()));
    unsigned seed = 0;
    for (const auto& spec : model.executable().weights) {
      std::size_t size = 1;
      for (const Dim& dim : spec.dims) size *= std::size_t(dim.extent());
      model.bind(spec.name, uniform(size, 0.5f, ++seed));
    }
    const auto result = model(forest.roots);
    std::vector<float>& values = states.emplace_back();
    for (const auto& vertex : forest.all) {
      const auto h = result.node(vertex.get());
      values.insert(values.end(), h.begin(), h.end());
    }
    if (schedule == tabulated) CHECK_THAT(explain(model), Catch::Contains("n_l0_sum, r_l0_sum, z_l0_sum, by word"));
  }
  CHECK(same(states[0], states[1]));
}

TEST_CASE("a number that a node's loops have in common may be made of what is in tables", "[runtime][tables]") {
  const Dim V{"vocabulary", num_words}, H{"hidden", 8};
  const std::vector<float> table = uniform(num_words * 8, 0.5f, 1), weights = uniform(8, 1, 2);
  Random random(5);
  const Forest forest = random_forest(random, ra::StructureKind::tree, 20);
  // `term` is what the number adds up, and `number` what that is of a word.
  const auto check = [&](auto term, const auto& number) {
    Model<Vertex> m("gated", cortex::tree);
    const auto w = m.input<float>("w", H);
    const auto Emb = m.input<float>("Emb", V, H);
    const auto h = m.placeholder<float>("h", H);
    const auto sums = m.compute("sums", [&](auto n) { return sum(H, [&](auto j) { return term(w, Emb, n, j); }); });
    const auto gate = m.compute("gate", [&](auto n) { return sums(n) * 0.5f + 1; });
    const auto body = m.compute("body", H, [&](auto n, auto i) {
      return gate(n) + Emb(word(n), i) + 0.5f * sum(kids(n), [&](auto k) { return h(k, i); });
    });
    const auto program = m.recursion_op(h, body);
    const std::function<double(const Vertex&)> expected = [&](const Vertex& v) {  // element 3
      double result = number(v.word) * 0.5 + 1 + double(table[std::size_t(v.word) * 8 + 3]);
      for (const Vertex* kid : v.kids) result += 0.5 * expected(*kid);
      return result;
    };
    const Schedule by_node;  // a node's operators one after the other
    for (const Schedule& base : {by_node, by_node.specialize_leaves(), by_node.dynamic_batch(), Schedule::standard()})
      for (const Schedule& schedule : {base.tabulate_nothing(), base.tabulate(1), base.tabulate(1).workers(2)}) {
        INFO(to_string(schedule));
        auto model = compile(program, schedule, CompileOptions{}.on(best_target()));
        model.bind("w", weights).bind("Emb", table);
        const auto result = model(forest.roots);
        for (const auto& vertex : forest.all)
          CHECK(double(result.node(vertex.get())[3]) == Approx(expected(*vertex)).epsilon(1e-5).margin(1e-5));
      }
  };
  const auto dot = [&](const float* row) {
    double result = 0;
    for (std::size_t i = 0; i < 8; ++i) result += double(row[i]) * double(weights[i]);
    return result;
  };
  check([](auto& w, auto&, auto, auto j) { return w(j) * w(j); }, [&](int) { return dot(weights.data()); });
  check([](auto& w, auto& Emb, auto n, auto j) { return Emb(word(n), j) * w(j); },
        [&](int of) { return dot(table.data() + of * 8); });
}

TEST_CASE("tables of a program with many parts are made over as many, all of them empty", "[runtime][tables]") {
  Dim H{"hidden", 16};
  Model<Vertex> m("parts", cortex::tree);
  auto U = m.input<float>("U", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  const auto below = [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); };
  auto shared = m.compute("shared", H, [&](auto, auto i) { return sum(H, [&](auto j) { return U(i, j) * b(j); }); });
  auto body = m.compute("body0", H, [&](auto n, auto i) { return below(n, i) + shared(n, i); });
  std::optional<decltype(m.if_then_else(
      "c", [](auto n) { return word(n) == 0; }, body, body))>
      chosen;
  for (int c = 1; c <= 47; ++c) {
    const std::string number = std::to_string(c);
    auto other = m.compute("body" + number, H, [&](auto n, auto i) { return below(n, i) * 0.5f + c; });
    const auto condition = [&](auto n) { return word(n) == c; };
    chosen.emplace(chosen ? m.if_then_else("c" + number, condition, other, *chosen)
                          : m.if_then_else("c" + number, condition, other, body));
  }
  auto model = compile(m.recursion_op(h, *chosen), tabulated.specialize_if_else(), Lstm::options(best_target()));
  CHECK(model.executable().program.parts == model.executable().partition.parts);
  REQUIRE(model.executable().program.parts > 40);
  const std::vector<float> u = uniform(256, 1, 1), v = uniform(16, 1, 2);
  model.bind("U", u).bind("b", v);
  CHECK(model.memory().tables > 0);
  const Vertex a{.word = 3}, zero{.word = 0};
  CHECK(model(a)[0][0] == 3);
  float first = 0;
  for (std::size_t j = 0; j < 16; ++j) first += u[j] * v[j];
  CHECK(model(zero)[0][0] == Approx(first));
}

TEST_CASE("tables of no size, and tables beside loops by hand, are refused", "[runtime][tables]") {
  const auto refusal = [](const Schedule& schedule) -> std::string {
    try {
      Lstm{schedule};
    } catch (const Error& error) {
      CHECK(error.code == Code::invalid_schedule);
      return error.message;
    }
    return "";
  };
  CHECK_THAT(refusal(Schedule::standard().tabulate(0)), Catch::Contains("give a number from 1 to 65536"));
  CHECK_THAT(refusal(Schedule::standard().tabulate(70000)), Catch::Contains("70000 MB"));
  CHECK_THAT(refusal(tabulated.loops(Loops{})), Catch::Contains("leave out tabulate, or the loop schedule"));
  CHECK(refusal(Schedule::standard().loops(Loops{})).empty());
}

TEST_CASE("a table is made where what calls check is inside for all that it stands for", "[runtime][tables]") {
  Dim V{"vocabulary"}, W{"wide"}, H{"hidden", 16};
  // `Far` has so many rows, and its index is made of `far(n)`; the table is of products at all nodes, or at leaves.
  const auto tables = [&](bool at_leaves, int rows, const auto& far) {
    Model<Vertex> m("far", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H), Far = m.input<float>("Far", W, H), U = m.input<float>("U", H, H);
    auto h = m.placeholder<float>("h", H);
    auto product = m.compute("product", H,
                             [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * Emb(word(n), j); }); });
    auto read = m.compute("read", H, [&](auto n, auto i) { return far(Far, n, i); });
    auto all = m.compute("all", H, [&](auto n, auto i) {
      return product(n, i) + read(n, i) + sum(kids(n), [&](auto k) { return h(k, i); });
    });
    auto inner = m.compute("inner", H,
                           [&](auto n, auto i) { return read(n, i) + sum(kids(n), [&](auto k) { return h(k, i); }); });
    auto ends = m.if_then_else(
        "ends", [](auto n) { return is_leaf(n); }, product, inner);
    const auto program = at_leaves ? m.recursion_op(h, ends) : m.recursion_op(h, all);
    Vertex a{.word = 11}, b{.word = 0}, top{.word = 3};
    top.kids = {&a, &b};
    std::vector<float> first;
    std::size_t bytes = 0;
    for (const Schedule& schedule : {computed, tabulated}) {
      auto model = compile(program, schedule, Lstm::options(best_target()));
      REQUIRE(!model.executable().guarded.empty());
      model.bind("Emb", uniform(12 * 16, 1, 1)).bind("Far", uniform(rows * 16, 1, 2)).bind("U", uniform(256, 1, 3));
      bytes = model.memory().tables;
      std::vector<float> values;
      const auto output = model.try_call(top);
      if (output.has_value()) values.assign(&output.value()[0][0], &output.value()[0][0] + 16);
      if (schedule == computed) first = values;
      CHECK(values == first);
      if (schedule == tabulated && bytes) CHECK_THAT(explain(model), Catch::Contains("without what comes from tables"));
    }
    return std::pair{bytes > 0, !first.empty()};
  };
  using Is = std::pair<bool, bool>;  // there are tables; the call passes
  const auto of_word = [](auto& Far, auto n, auto i) { return Far(word(n) * 2, i); };
  CHECK(tables(false, 23, of_word) == Is(true, true));
  CHECK(tables(false, 22, of_word) == Is(false, false));  // word 11 has none
  CHECK(tables(true, 7, of_word) == Is(true, true));      // leaves do not read it, word 3 does
  CHECK(tables(true, 6, of_word) == Is(true, false));
  const auto of_children = [](auto& Far, auto n, auto i) {
    return sum(kids(n), [&](auto k) { return Far(word(k) + 5, i); });
  };
  CHECK(tables(false, 17, of_children) == Is(true, true));  // the table's nodes have no children
  CHECK(tables(false, 16, of_children) == Is(true, false));
  const auto of_number = [](auto& Far, auto n, auto i) { return Far(num_children(kids(n)) * 2 - min(word(n), 1), i); };
  CHECK(tables(false, 5, of_number) == Is(false, false));  // leaf 11 reads row -1
}

TEST_CASE("explain says by which indices there are no tables, and what to do", "[runtime][tables]") {
  Dim V{"vocabulary"}, H{"hidden", 16};
  Model<Vertex> m("shifted", cortex::tree);
  auto Emb = m.input("Emb", V, H), U = m.input("U", H, H);
  auto h = m.placeholder("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return U(i, j) * Emb(word(n) + 1, j); }) +
           sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, body);
  const auto text = [&](const Schedule& s) {
    return explain(compile(program, s, Lstm::options(Target::interpreter())));
  };
  CHECK_THAT(text(tabulated), Catch::Contains("not by word(node) + 1, at which body reads Emb: tables go by a field of "
                                              "the node itself, as it stands; shift the weight's rows, or the field"));
  CHECK_THAT(text(computed), !Catch::Contains("not by word"));
}
