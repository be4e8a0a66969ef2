// Large states that no call gives out: what reads them at a node is computed beside them, and their rows serve other
// nodes. Results are those of the equations.
#include <catch2/catch.hpp>
#include <map>

#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "cortex/tune/tune.hpp"
#include "support/compile.hpp"
#include "support/error_of_call.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;
constexpr int width = 33;  // a row of width x width numbers takes more than 4 KB

/// How a program reads its matrices later.
enum class Read {
  at_node,
  of_operator,
  beside_children,
  beside_outputs,
  at_root,
  at_all_nodes,
  of_children,
  beside_product,
  named
};

/// Linear attention over the children: S = d sum(S of the children) + k v^T, y = S^T q, a row of which results have.
template <Read read = Read::at_node>
auto attention(Structure structure) {
  Dim V("vocabulary"), D("keys", width), E("values", width);
  Model<Vertex> m("attention", structure);
  auto Emb = m.input<float>("Emb", V, D), Wk = m.input<float>("Wk", D, D), Wv = m.input<float>("Wv", E, D);
  auto Wq = m.input<float>("Wq", D, D);
  auto decay = m.input<float>("decay", D);
  auto S_of = m.placeholder<float>("S", D, E);
  auto k =
      m.compute("k", D, [&](auto n, auto i) { return sum(D, [&](auto j) { return Wk(i, j) * Emb(word(n), j); }); });
  auto v =
      m.compute("v", E, [&](auto n, auto i) { return sum(D, [&](auto j) { return Wv(i, j) * Emb(word(n), j); }); });
  auto q =
      m.compute("q", D, [&](auto n, auto i) { return sum(D, [&](auto j) { return Wq(i, j) * Emb(word(n), j); }); });
  auto body = m.compute("body", D, E, [&](auto n, auto d, auto e) {
    return decay(d) * sum(kids(n), [&](auto c) { return S_of(c, d, e); }) + k(n, d) * v(n, e);
  });
  auto S = m.recursion(S_of, body);
  auto y_of = [&](auto n, auto e) { return sum(D, [&](auto d) { return q(n, d) * S(n, d, e); }); };
  if constexpr (read == Read::of_operator) {
    auto y = m.compute("product", E, y_of);
    return m.program(m.output<float>(
        "y", E, [&](auto n, auto e) { return y(n, e) + 0 * sum(E, [&](auto j) { return Wv(e, j + 0) * y(n, j); }); }));
  } else if constexpr (read == Read::beside_children) {  // so that leaves have a version of their own
    auto before =
        m.compute("before", D, [&](auto n, auto i) { return sum(kids(n), [&](auto c) { return Emb(word(c), i); }); });
    auto mixed = m.compute("mixed", D, [&](auto n, auto i) {
      return q(n, i) + 0 * sum(D, [&](auto j) { return Wq(i, j) * before(n, j); });
    });
    return m.program(m.output<float>(
        "y", E, [&](auto n, auto e) { return sum(D, [&](auto d) { return mixed(n, d) * S(n, d, e); }); }));
  } else if constexpr (read == Read::beside_outputs || read == Read::beside_product) {
    auto one = m.output<float>("one", [&](auto n) { return 1 + 0 * sum(D, [&](auto d) { return q(n, d); }); });
    auto same = m.output<float>("same", E, [&](auto n, auto e) {
      if constexpr (read == Read::beside_product)
        return one(n) + 0 * sum(E, [&](auto j) { return Wv(e, j + 0) * Emb(word(n), j + 0); });
      else
        return one(n) + 0 * cast<float>(e);
    });
    return m.program(m.output<float>("y", E, [&](auto n, auto e) { return y_of(n, e) * one(n) * same(n, e); }));
  } else {
    auto y = m.output<float>("y", E, y_of);
    if constexpr (read == Read::at_root)
      return m.program(y, m.readout<float>("top", D, E, [&](auto r, auto d, auto e) { return S(r, d, e); }));
    else if constexpr (read == Read::at_all_nodes)
      return m.program(y, m.readout<float>("all", D, E, [&](auto r, auto d, auto e) {
        return sum(cortex::nodes(r), [&](auto n) { return S(n, d, e); });
      }));
    else if constexpr (read == Read::of_children)
      return m.program(y, m.output<float>("below", E, [&](auto n, auto e) {
        return sum(kids(n), [&](auto c) { return S(c, 0, e); });
      }));
    else if constexpr (read == Read::named)
      return m.program(y, S);
    else
      return m.program(y);
  }
}

const char* const matrices[] = {"Wk", "Wv", "Wq"};

std::vector<float> weight(const std::string& name) {
  if (name == "Emb") return uniform(num_words * width, 1, 1);
  if (name == "decay") return uniform(width, 0.5f, 2);
  return uniform(width * width, 0.2f, unsigned(name[1]));
}

template <class Model>
void bind(Model& model) {
  model.bind_together([&] {
    for (const char* name : {"Emb", "decay", "Wk", "Wv", "Wq"}) model.bind(name, weight(name));
  });
}

/// What the equations give, in double.
class Expected {
 public:
  struct Values {
    std::vector<double> S, y;
  };
  const Values& of(const Vertex* node) {
    const auto known = all_.find(node);
    if (known != all_.end()) return known->second;
    Values values{std::vector<double>(width * width), std::vector<double>(width)};
    for (const Vertex* kid : node->kids) {
      const Values& below = of(kid);
      for (std::size_t i = 0; i < values.S.size(); ++i) values.S[i] += below.S[i];
    }
    const std::vector<double> k = product("Wk", node->word), v = product("Wv", node->word),
                              q = product("Wq", node->word);
    for (std::size_t d = 0; d < width; ++d)
      for (std::size_t e = 0; e < width; ++e) {
        double& element = values.S[d * width + e];
        element = decay_[d] * element + k[d] * v[e];
        values.y[e] += q[d] * element;
      }
    return all_.emplace(node, std::move(values)).first->second;
  }

 private:
  std::vector<double> product(const char* name, int at) const {
    const std::vector<float> W = weight(name);
    std::vector<double> result(width);
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t j = 0; j < width; ++j)
        result[i] += double(W[i * width + j]) * double(embedding_[std::size_t(at) * width + j]);
    return result;
  }

  const std::vector<float> embedding_ = weight("Emb"), decay_ = weight("decay");
  std::map<const Vertex*, Values> all_;
};

Forest forest_of(unsigned seed, ra::StructureKind kind) {
  Random random(seed);
  return random_forest(random, {kind}, 40);
}

void check_near(std::span<const float> values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(values[i] == Approx(expected[i]).margin(1e-4));
}

bool recycles(const runtime::Executable& executable) { return executable.rows_apart > 0; }

/// Runs a program on random structures and checks what it gives at each node, and the matrices at the roots.
template <class Program>
void check_results(const Program& program, ra::StructureKind kind, const Schedule& schedule, const Target& target,
                   bool recycled = true) {
  auto model = compile(program, schedule, CompileOptions{}.on(target).with_workers(std::make_shared<Workers>(2)));
  bind(model);
  INFO(to_string(schedule));
  CHECK(recycles(model.executable()) == recycled);
  for (unsigned seed = 0; seed < 3; ++seed) {
    const Forest forest = forest_of(seed, kind);
    Expected expected;
    const auto result = model(forest.roots);
    for (const auto& vertex : forest.all) check_near(result.node(vertex.get()), expected.of(vertex.get()).y);
    for (std::size_t r = 0; r < forest.roots.size(); ++r) {
      std::vector<float> matrix(width * width);
      result.copy_root(r, "S", matrix);
      check_near(matrix, expected.of(forest.roots[r]).S);
    }
  }
}

const Schedule standard = Schedule::standard().share_no_subtrees();

}  // namespace

TEST_CASE("states that no call gives out share rows, and results are the equations'", "[runtime][equality]") {
  using enum ra::StructureKind;
  for (const Target& target : {Target::interpreter(), best_target()}) {
    check_results(attention(cortex::tree), tree, standard, target);
    check_results(attention(cortex::dag), dag, standard.workers(3), target);
    check_results(attention(cortex::sequence), sequence, standard, target);
    check_results(attention(cortex::tree), tree, standard.pieces(5).workers(2), target);
    check_results(attention<Read::at_root>(cortex::dag), dag, standard, target);
  }
}

TEST_CASE("states share rows under every schedule, whatever reads them", "[runtime][equality][slow]") {
  using enum ra::StructureKind;
  for (const Target& target : {Target::interpreter(), best_target()}) {
    for (const Schedule& schedule :
         {standard, standard.tabulate_nothing(), Schedule{}, standard.workers(3), standard.workers(2).groups(2),
          standard.fill_levels(8), Schedule::standard().share_subtrees(), standard.exact_activations()}) {
      check_results(attention(cortex::tree), tree, schedule, target);
      check_results(attention(cortex::dag), dag, schedule, target);
      check_results(attention(cortex::sequence), sequence, schedule, target);
    }
    check_results(attention(cortex::tree), tree, standard.pieces(5), target);
    check_results(attention(cortex::tree), tree, standard.pieces(5).workers(2), target);
    check_results(attention<Read::of_operator>(cortex::dag), dag, standard, target);
    check_results(attention<Read::beside_children>(cortex::dag), dag, standard, target);
    check_results(attention<Read::beside_children>(cortex::sequence), sequence, Schedule{}, target);
    check_results(attention<Read::at_root>(cortex::dag), dag, standard, target);
    for (const Schedule& schedule : {standard, Schedule{}, standard.workers(2), standard.specialize_if_else()}) {
      check_results(attention<Read::beside_outputs>(cortex::tree), tree, schedule, target);
      check_results(attention<Read::beside_outputs>(cortex::sequence), sequence, schedule, target);
    }
  }
}

TEST_CASE("states that are read elsewhere later keep a row for each node", "[runtime][equality]") {
  using enum ra::StructureKind;
  const Target target = best_target();
  check_results(attention<Read::at_all_nodes>(cortex::tree), tree, standard, target, false);
  check_results(attention<Read::of_children>(cortex::tree), tree, standard, target, false);
  check_results(attention<Read::named>(cortex::tree), tree, standard, target, false);
  check_results(attention<Read::beside_product>(cortex::tree), tree, standard, target, false);
  check_results(attention(cortex::tree), tree, standard.loops(Loops{}), target, false);
}

TEST_CASE("states of a recursion from parents to children keep a row for each node", "[runtime][equality]") {
  constexpr auto above = cortex::parents<kids>;
  Dim V("vocabulary"), D("keys", width), E("values", width);
  for (const Structure structure : {cortex::tree, cortex::dag}) {
    Model<Vertex> m("down", structure);
    auto Emb = m.input<float>("Emb", V, D);
    auto S_of = m.placeholder<float>("S", D, E);
    auto c_of = m.placeholder<float>("c", E);
    auto k = m.compute("k", D, [&](auto n, auto d) { return tanh(Emb(word(n), d)); });
    auto body = m.compute("body", D, E, [&](auto n, auto d, auto e) {
      return 0.3f * sum(above(n), [&](auto p) { return S_of(p, d, e); }) + k(n, d) * Emb(word(n), e + 0);
    });
    auto read = m.compute("read", E, [&](auto n, auto e) {
      return k(n, e + 0) +
             sum(above(n), [&](auto p) { return sum(D, [&](auto d) { return k(n, d) * S_of(p, d, e); }); });
    });
    auto [S, c] = m.recursion(S_of, body, c_of, read);
    const auto program = m.program(c);
    const auto run = [&](const Schedule& schedule, const Target& target) {
      auto model = compile(program, schedule, CompileOptions{}.on(target));
      CHECK(!recycles(model.executable()));
      model.bind("Emb", weight("Emb"));
      std::vector<float> all;
      for (unsigned seed = 0; seed < 4; ++seed) {
        const Forest forest = forest_of(seed, program.graph().structure);
        const auto result = model(forest.roots);
        for (const auto& vertex : forest.all) {
          const auto values = result.node(vertex.get());
          all.insert(all.end(), values.begin(), values.end());
        }
      }
      return all;
    };
    const std::vector<float> expected = run(Schedule{}, Target::interpreter()), values = run(standard, best_target());
    for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(values[i] == Approx(expected[i]).margin(1e-4));
  }
}

TEST_CASE("a sequence of any length takes as much memory for states that no call gives out", "[runtime]") {
  const auto options = CompileOptions{}.on(best_target());
  auto recycled = compile(attention(cortex::sequence), standard, options);
  auto kept = compile(attention<Read::named>(cortex::sequence), standard, options);
  bind(recycled), bind(kept);
  std::vector<Vertex> words(300);
  for (std::size_t i = 1; i < words.size(); ++i) words[i].kids.push_back(&words[i - 1]);
  const std::size_t row = recycled.memory().states.recycled;
  CHECK(row >= width * width * sizeof(float));
  CHECK(recycled.memory().states.node < 1000);
  CHECK(recycled(words.back()).memory().states < 300 * 1000 + 4 * row);
  CHECK(kept(words.back()).memory().states >= 300 * row);
  CHECK_THAT(explain(recycled), Catch::Contains("a node that is still needed"));
}

TEST_CASE("a state that shares rows is refused at nodes that are no roots, by name", "[runtime]") {
  auto model = compile(attention(cortex::tree), standard, CompileOptions{}.on(best_target()));
  bind(model);
  Vertex leaf, top;
  top.kids.push_back(&leaf);
  const auto result = model({&top});
  std::vector<float> matrix(width * width);
  const std::string refused = error_of_call([&] { result.copy_node(&leaf, "S", matrix); });
  CHECK_THAT(refused, Catch::Contains("state 'S' is asked for at a node that is no root") &&
                          Catch::Contains("list it, as in model.program(result, S)"));
  CHECK(error_of_call([&] { result.copy_node(&top, "S", matrix); }) == "no error");
  CHECK(error_of_call([&] { (void)result.node(&leaf); }) == "no error");
}

TEST_CASE("the tuner takes schedules of models whose states share rows", "[runtime][tune]") {
  std::vector<std::unique_ptr<Forest>> forests;
  std::vector<std::vector<const Vertex*>> batches;
  for (unsigned seed = 0; seed < 2; ++seed) {
    forests.push_back(std::make_unique<Forest>(forest_of(seed, ra::StructureKind::tree)));
    batches.push_back(forests.back()->roots);
  }
  TuneOptions options;
  options.seconds = 2;
  const auto tuned = tune(
      attention(cortex::tree), batches, [](auto& model) { bind(model); }, options, CompileOptions{}.on(best_target()));
  CHECK(!tuned.candidates.empty());
}

TEST_CASE("workers meet in each level where a row that one reads whole serves another node later", "[runtime]") {
  Dim V("vocabulary"), D("keys", width), E("values", width);
  Model<Vertex> m("leaves_read", cortex::sequence);
  auto Emb = m.input<float>("Emb", V, D);
  auto S_of = m.placeholder<float>("S", D, E);
  auto body =
      m.compute("body", D, E, [&](auto n, auto d, auto e) {  // of which each worker has its own slice throughout
        return 0.5f * sum(kids(n), [&](auto c) { return S_of(c, d, e); }) + Emb(word(n), d) * Emb(word(n), e + 0);
      });
  auto S = m.recursion(S_of, body);
  auto read = m.compute("read", E, [&](auto n, auto e) {
    return sum(D, [&](auto d) { return Emb(word(n), d) * (S(n, d, e) + S(n, e + 0, d + 0)); });
  });
  auto written = m.compute("written", E, [&](auto n, auto e) { return Emb(word(n), e + 0); });
  const auto program = m.program(m.output<float>("y", E, [&](auto n, auto e) {
    return m.if_then_else(
        "either", [](auto k) { return is_leaf(k); }, read, written)(n, e);
  }));
  for (const Schedule& schedule : {standard.workers(2), standard.specialize_if_else().workers(2)}) {
    CAPTURE(to_string(schedule));
    auto model = compile(program, schedule, CompileOptions{}.on(best_target()));
    CHECK(recycles(model.executable()));
    const std::string text = model.print("scheduled"), levels = text.substr(text.find("for b_idx"));
    CHECK(levels.find("\n  barrier") != levels.npos);
    model.use(std::make_shared<Workers>(1));
    model.bind("Emb", weight("Emb"));
    std::vector<Vertex> words(300);
    for (std::size_t i = 1; i < words.size(); ++i) words[i].kids.push_back(&words[i - 1]);
    std::vector<float> first;
    for (int call = 0; call < 100; ++call) {
      const auto result = model(words.back());
      const auto values = result.node(&words[0]);
      if (first.empty()) first.assign(values.begin(), values.end());
      REQUIRE(std::equal(first.begin(), first.end(), values.begin()));
    }
  }
}
