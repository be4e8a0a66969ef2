// Every pair of scheduling decisions on one model: the results are right, or the pair is refused with a sentence.
#include <catch2/catch.hpp>
#include <functional>

#include "support/compile.hpp"
#include "support/differential.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;

/// A gated cell with a branch on leaves, which have a product with their word, a switch on the word, a branch on the
/// number of children, and two products in a row, so that every decision finds something to decide.
auto gated(Structure structure) {
  Dim V{"vocabulary"}, H{"hidden", 32};
  Model<Vertex> m("gated", structure);
  auto Emb = m.input<float>("Emb", V, H);
  auto U_r = m.input<float>("U_r", H, H), U_h = m.input<float>("U_h", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto r =
      m.compute("r", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return U_r(i, j) * s(n, j); })); });
  auto few = m.compute("few", H, [&](auto n, auto i) { return r(n, i) * s(n, i); });
  auto many = m.compute("many", H, [&](auto n, auto i) { return 0.5f * r(n, i) * s(n, i); });
  auto rs = m.if_then_else(
      "rs", [](auto n) { return num_children(kids(n)) == 1; }, few, many);
  auto hc = m.compute("hc", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U_h(i, j) * rs(n, j); }) + Emb(word(n), i));
  });
  auto cell = m.compute("cell", H, [&](auto n, auto i) { return 0.5f * s(n, i) + 0.5f * hc(n, i); });
  auto plain = m.compute("plain", H, [&](auto n, auto i) { return tanh(s(n, i) + Emb(word(n), i)); });
  auto kind = m.switch_(
      "kind", [](auto n) { return word(n) % 3; }, when(0, plain), otherwise(cell));
  auto leaf = m.compute(
      "leaf", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return U_r(i, j) * Emb(word(n), j); })); });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, kind));
}

struct Decision {
  std::string name;
  std::function<Schedule(const Schedule&)> apply;
};

const std::vector<Decision> decisions{
    {"batched", [](const Schedule& s) { return s.dynamic_batch(); }},
    {"leaf branch", [](const Schedule& s) { return s.specialize_if_else("body"); }},
    {"switch", [](const Schedule& s) { return s.specialize_if_else("kind"); }},
    {"count branch", [](const Schedule& s) { return s.specialize_if_else("rs"); }},
    {"every branch", [](const Schedule& s) { return s.specialize_if_else(); }},
    {"leaves and switches", [](const Schedule& s) { return s.specialize_where_it_pays(); }},
    {"leaves apart", [](const Schedule& s) { return s.specialize_leaves(); }},
    {"unrolled", [](const Schedule& s) { return s.unroll("h", 2); }},
    {"refactored", [](const Schedule& s) { return s.workers(std::max(s.max_workers, 2)).refactor("hc"); }},
    {"two workers", [](const Schedule& s) { return s.workers(2); }},
    {"shared", [](const Schedule& s) { return s.share_subtrees(); }},
    {"sorted", [](const Schedule& s) { return s.sort_by_matrix(); }},
    {"filled", [](const Schedule& s) { return s.dynamic_batch().fill_levels(3); }},
    {"in pieces", [](const Schedule& s) { return s.dynamic_batch().pieces(6); }},
    {"tabulated", [](const Schedule& s) { return s.tabulate(1); }},
    {"exact", [](const Schedule& s) { return s.exact_activations(); }},
    {"unfused", [](const Schedule& s) { return s.fuse_nothing(); }},
};

/// Why two decisions do not go together; nothing if they do.
std::string expected_refusal(const std::string& a, const std::string& b, bool dag) {
  const auto either = [&](const char* name) { return a == name || b == name; };
  const bool unrolled = either("unrolled"), refactored = either("refactored");
  if (either("in pieces") && unrolled && !dag)
    return "pieces: calls of model 'gated' cannot be divided: it is unrolled";
  if (either("filled") && unrolled) return "fill_levels: model 'gated': levels cannot be filled: it is unrolled";
  if (either("shared") && unrolled) return "share_subtrees: model 'gated': equal subtrees cannot be computed once";
  if (either("shared") && refactored) return "it is cut by refactor";
  if (dag && unrolled) return "unroll: model 'gated': it is declared for DAGs";
  if (dag && refactored) return "refactor: model 'gated': it is declared for DAGs";
  if (unrolled && (either("switch") || either("count branch") || either("every branch")))
    return "cannot be specialized by more than leaves";
  if (unrolled && refactored) return "in a recursion that is unrolled";
  return "";
}

void check_pairs(Structure structure) {
  const auto program = gated(structure);
  const ra::Graph& graph = program.graph();
  Random random(3);
  const Forest forest = random_forest(random, graph, 40);
  const ForestView view(forest);
  std::vector<float> emb = uniform(std::size_t(num_words) * 32, 1, 1), u_r = uniform(1024, 0.2f, 2),
                     u_h = uniform(1024, 0.2f, 3);
  const auto tensor = [](const std::vector<float>& v, std::vector<std::int64_t> shape) {
    return ra::Tensor{std::move(shape), std::vector<double>(v.begin(), v.end())};
  };
  const ra::Weights weights{
      {"Emb", tensor(emb, {num_words, 32})}, {"U_r", tensor(u_r, {32, 32})}, {"U_h", tensor(u_h, {32, 32})}};
  const auto right = ra::interpret<ra::Bounded>(graph, view, weights);
  const auto pool = std::make_shared<Workers>(1);
  for (const Decision& a : decisions)
    for (const Decision& b : decisions) {
      if (&b < &a) continue;  // the same schedule again
      INFO(a.name << " and " << b.name);
      const Schedule schedule = b.apply(a.apply(Schedule{}));
      const std::string refusal = expected_refusal(a.name, b.name, structure.kind == structure::Kind::dag);
      try {
        auto model = compile_here(program, schedule);
        CHECK(refusal.empty());
        model.bind("Emb", emb).bind("U_r", u_r).bind("U_h", u_h);
        if (schedule.max_workers > 1) model.use(pool);
        const auto result = model(forest.roots);
        bool within = true;
        for (int n = 0; n < view.num_nodes(); ++n) {
          const auto values = result.node(view.nodes[std::size_t(n)]);
          for (std::size_t i = 0; i < values.size(); ++i) within &= right[0][std::size_t(n)][i].covers(values[i]);
        }
        CHECK(within);
      } catch (const Error& error) {
        CHECK(error.code == Code::invalid_schedule);
        REQUIRE_FALSE(refusal.empty());
        CHECK_THAT(error.message, Catch::Contains(refusal));
      }
    }
}

}  // namespace

TEST_CASE("every pair of scheduling decisions is right or refused, on trees", "[schedule][slow]") {
  check_pairs(cortex::tree);
}
TEST_CASE("every pair of scheduling decisions is right or refused, on graphs", "[schedule][slow]") {
  check_pairs(cortex::dag);
}
