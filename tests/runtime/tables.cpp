// What follows from words and weights alone is read from tables: the same bits as computed.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "cortex/explain.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "runtime/count_allocations.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;

RandomFunctor compiled(const RandomModel& model, const Schedule& schedule, const Target& target) {
  RandomFunctor functor(runtime::compile_graph(model.graph, schedule, target));
  functor.bind_together([&] {
    for (const auto& [name, values] : model.weights) functor.bind(name, values);
  });
  return functor;
}

bool same_bits(const RandomModel& model, const RandomFunctor& a, const RandomFunctor& b, const Forest& forest) {
  const auto x = a(forest.roots), y = b(forest.roots);
  bool same = true;
  for (const ra::State& state : model.graph.states) {
    if (model.graph.ops[std::size_t(state.body)].at_roots) continue;
    const std::string& name = model.graph.ops[std::size_t(state.placeholder)].name();
    for (const auto& vertex : forest.all) {
      const auto p = x.node<float>(vertex.get(), name), q = y.node<float>(vertex.get(), name);
      same &= std::memcmp(p.data(), q.data(), p.size_bytes()) == 0;
    }
  }
  return same;
}

/// Compares random models with and without tables; `schedule_of` gives each model's schedule. How many had tables.
template <class ScheduleOf>
int compare(std::uint64_t first, int count, Grammar grammar, const Target& target, ScheduleOf schedule_of) {
  const auto pool = std::make_shared<Workers>(2);
  int with_tables = 0;
  for (std::uint64_t seed = first; seed < first + std::uint64_t(count); ++seed) {
    const RandomModel model(seed, grammar);
    const Schedule schedule = schedule_of(model);
    RandomFunctor plain = compiled(model, schedule.tabulate_nothing(), target);
    RandomFunctor read = compiled(model, schedule.tabulate(1), target);
    if (schedule.max_workers > 1) plain.use(pool), read.use(pool);
    with_tables += read.memory().tables > 0;
    CHECK(plain.memory().tables == 0);
    for (int f = 0; f < 5; ++f) {
      Random random(seed * 100 + std::uint64_t(f));
      const Forest forest = random_forest(random, model.graph.structure, f ? 40 : 3);
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
                                              {.vocabulary = open ? 0 : vocabulary, .input = hidden, .hidden = hidden})
                .program,
            schedule, options(target))) {
    bind(0);
  }
  static CompileOptions options(const Target& target) {
    CompileOptions result;
    result.target = target;
    return result;
  }
  void bind(unsigned seed, int words = vocabulary) {
    model.bind_together([&] {
      for (const auto& spec : model.executable().weights) bind(spec.name, ++seed, words);
    });
  }
  void bind(const std::string& name, unsigned seed, int words = vocabulary) {
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
  compare(600, 30, Grammar::whole, Target::interpreter(), [](const auto&) { return Schedule::standard(); });
}

#if CORTEX_LLVM
TEST_CASE("machine code gives the same bits from tables as computed", "[runtime][tables]") {
  compare(5, 3, Grammar::one_recursion, best_target(), [](const auto&) { return Schedule::standard(); });
  compare(11, 1, Grammar::one_recursion, best_target(), [](const auto&) { return Schedule::standard().workers(3); });
}
#endif

TEST_CASE("a leaf's states are rows of tables, and what follows from weights alone is one", "[runtime][tables]") {
  const Lstm plain(computed), read(tabulated);
  const Forest forest = some_trees(3);
  CHECK(same(values_of(plain.model, forest), values_of(read.model, forest)));
  // h and c for each word, one row of zeros more, and four products with an input of zeros.
  const std::size_t row = 32 * sizeof(float);  // padded, as states are
  CHECK(read.model.memory().tables == 2 * (vocabulary + 1) * row + 4 * Lstm::hidden * sizeof(float));
  CHECK(plain.model.memory().tables == 0);
}
