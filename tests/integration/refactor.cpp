// GRUs whose recursion is cut at the candidate's contraction, compiled and shared by threads, against their equations.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "support/compile.hpp"
#include "support/gru_models.hpp"
#include "support/interpreters.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr int words = 11;

/// Nodes as the interpreter of the operator graph sees them.
template <class Node, class Kids>
struct View final : ra::NodeView {
  View(const std::deque<Node>& all, Kids kids_of) : all(all), kids_of(kids_of) {}
  int num_nodes() const override { return int(all.size()); }
  int number(const Node* node) const {
    for (std::size_t n = 0; n < all.size(); ++n)
      if (&all[n] == node) return int(n);
    return -1;
  }
  std::vector<int> children(int, int node) const override {
    std::vector<int> result;
    for (const Node* kid : kids_of(all[std::size_t(node)])) result.push_back(number(kid));
    return result;
  }
  int child(int, int node) const override { return is_leaf(node) ? -1 : children(0, node)[0]; }
  double field(int, int node, int) const override { return all[std::size_t(node)].id; }
  bool is_leaf(int node) const override { return kids_of(all[std::size_t(node)]).empty(); }
  const std::deque<Node>& all;
  Kids kids_of;
};

constexpr auto kids_of_token = [](const Token& t) { return t.kids; };
constexpr auto kids_of_link = [](const Link& l) { return l.next ? std::vector{l.next} : std::vector<const Link*>(); };

/// Trees of random shape; the last `roots` nodes are roots.
std::deque<Token> random_trees(int roots, int depth) {
  std::mt19937 random(3);
  std::deque<Token> nodes;
  const auto grow = [&](auto& self, int below) -> Token {
    Token token{int(random() % words), {}};
    for (unsigned k = below > 0 ? random() % 4 : 0; k > 0; --k) {
      nodes.push_back(self(self, below - 1 - int(random() % 2)));
      token.kids.push_back(&nodes.back());
    }
    return token;
  };
  std::vector<Token> tops;
  for (int r = 0; r < roots; ++r) tops.push_back(grow(grow, depth));
  for (Token& top : tops) nodes.push_back(std::move(top));
  return nodes;
}
std::deque<Token> token_chain(int count) {
  std::deque<Token> nodes;
  for (int n = 0; n < count; ++n)
    nodes.push_back({n % words, n ? std::vector<const Token*>{&nodes.back()} : std::vector<const Token*>()});
  return nodes;
}
std::deque<Link> link_chain(int count) {
  std::deque<Link> nodes;
  for (int n = 0; n < count; ++n) nodes.push_back({n % words, n ? &nodes.back() : nullptr});
  return nodes;
}

/// Compiles `program` with and without the cut under every schedule, runs it by one to four workers, and holds the
/// states of all nodes against the equations, and those of the cut one against each other to the bit.
template <class Real, class Program, class Node, class Kids>
void check(const Program& program, const std::deque<Node>& nodes, int roots, Kids kids) {
  const ra::Graph& graph = program.graph();
  std::map<std::string, std::vector<Real>> values;
  ra::Weights weights;
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    std::vector<std::int64_t> shape;
    std::int64_t size = 1;
    for (const Dim& dim : op.dims) size *= shape.emplace_back(dim.kind() == DimKind::open ? words : dim.extent());
    const auto drawn = uniform(std::size_t(size), op.dims.size() > 1 ? 0.4f : 0.8f, unsigned(values.size()));
    values[op.name()] = std::vector<Real>(drawn.begin(), drawn.end());
    weights[op.name()] = {shape, std::vector<double>(drawn.begin(), drawn.end())};
  }
  const View<Node, Kids> view(nodes, kids);
  const auto expected = ra::interpret<ra::Bounded>(graph, view, weights);
  std::vector<const Node*> tops;
  for (int r = 0; r < roots; ++r) tops.push_back(&nodes[nodes.size() - 1 - std::size_t(r)]);

  for (const bool batched : {false, true})
    for (const bool apart : {false, true})
      for (const int most : {2, 4}) {
        Schedule schedule = Schedule{}.workers(most).refactor("candidate");
        schedule.batched = batched, schedule.leaves_apart = schedule.specialize_every = apart;
        auto model = compile_here(program, schedule);
        for (const auto& [name, weight] : values) model.bind(name, weight);
        std::vector<std::vector<Real>> first;
        for (int workers = 1; workers <= 4; ++workers) {
          INFO(graph.name << (batched ? ", batched" : "") << (apart ? ", leaves apart" : "") << ", " << workers
                          << " of at most " << most);
          model.use(workers > 1 ? std::make_shared<Workers>(workers - 1) : nullptr);
          std::vector<std::vector<Real>> got;
          for (int call = 0; call < 3; ++call) {
            const auto result = model(tops);
            int outside = 0;
            std::vector<std::vector<Real>> states;
            for (std::size_t s = 0; s < graph.states.size(); ++s)
              for (int n = 0; n < view.num_nodes(); ++n) {
                const std::string& state = graph.ops[std::size_t(graph.states[s].placeholder)].name();
                const auto row = result.template node<Real>(&nodes[std::size_t(n)], state);
                states.emplace_back(row.begin(), row.end());
                for (std::size_t i = 0; i < row.size(); ++i) outside += !expected[s][std::size_t(n)][i].covers(row[i]);
              }
            CHECK(outside == 0);
            if (call > 0) CHECK(states == got);
            got = std::move(states);
          }
          if (workers == 1) first = got;
          CHECK(got == first);
        }
      }
}

}  // namespace

TEST_CASE("a cut TreeGRU equals its equations to the bit for any number of workers", "[integration][refactor][slow]") {
  const auto nodes = random_trees(3, 6);
  check<float>(child_sum_gru(48), nodes, 3, kids_of_token);
  check<float>(child_sum_gru<float, false, true>(20), nodes, 3, kids_of_token);
  check<double>(child_sum_gru<double>(24), nodes, 3, kids_of_token);
}

TEST_CASE("a cut SimpleTreeGRU equals its equations to the bit for any number of workers",
          "[integration][refactor][slow]") {
  check<float>(child_sum_gru<float, true, true>(32), random_trees(5, 5), 5, kids_of_token);
  check<float>(child_sum_gru<float, true>(128), random_trees(1, 5), 1, kids_of_token);
}

TEST_CASE("a cut GRU over sequences equals its equations to the bit for any number of workers",
          "[integration][refactor][slow]") {
  check<float>(sequential_gru(64), link_chain(17), 1, kids_of_link);
  check<double>(sequential_gru<double>(12), link_chain(9), 1, kids_of_link);
  check<float>(child_sum_gru(16, cortex::sequence), token_chain(9), 1, kids_of_token);
}

TEST_CASE("two states behind a cut equal their equations to the bit for any number of workers",
          "[integration][refactor]") {
  check<float>(two_state_gru(32), random_trees(4, 5), 4, kids_of_token);
}

TEST_CASE("a cut has the same bits with any pool, whether or not the schedule says how many workers there are",
          "[integration][refactor][slow]") {
  const auto nodes = random_trees(6, 5);
  std::vector<const Token*> tops;
  for (int r = 0; r < 6; ++r) tops.push_back(&nodes[nodes.size() - 1 - std::size_t(r)]);
  const auto pool_of = [](int threads) { return threads ? std::make_shared<Workers>(threads) : nullptr; };
  const auto check = [&](int hidden, int slices) {
    const auto program = child_sum_gru<float, true, true>(hidden);
    const auto compiled = [&](const Schedule& schedule, const std::shared_ptr<Workers>& pool) {
      CompileOptions options;
      options.target = best_target(), options.workers = pool;
      auto model = compile(program, schedule.refactor("candidate").share_no_subtrees(), options);
      unsigned seed = 0;
      for (const ra::Op& op : program.graph().ops) {
        if (op.kind != ra::OpKind::input) continue;
        std::size_t size = 1;
        for (const Dim& dim : op.dims) size *= std::size_t(dim.kind() == DimKind::open ? words : dim.extent());
        model.bind(op.name(), uniform(size, 0.4f, ++seed));
      }
      return model;
    };
    const auto states = [&](const auto& model) {
      std::vector<float> all;
      const auto result = model(tops);
      for (std::size_t r = 0; r < tops.size(); ++r) all.insert(all.end(), result[r].begin(), result[r].end());
      return all;
    };
    auto asked = compiled(Schedule::standard().workers(slices), nullptr);  // of which all that are free take part
    const std::vector<float> first = states(asked);
    for (int threads = 0; threads <= 7; ++threads) {
      INFO(hidden << ", a pool of " << threads);
      const auto pool = pool_of(threads);
      CHECK(states(compiled(Schedule::standard(), pool)) == first);
      asked.use(pool);
      CHECK(states(asked) == first);
    }
  };
  check(64, 4);
  check(75, 3);
}

TEST_CASE("a cut in one side of a branch equals its equations to the bit for any number of workers",
          "[integration][refactor]") {
  Dim H("hidden", 24), V{"vocabulary"};
  constexpr auto kids = cortex::children<&Token::kids>;
  Model<Token> m("one_side", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", H, H), W = m.input<float>("W", H, H), Q = m.input<float>("Q", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  const auto times = [&](auto M, auto x) {
    return [=](auto n, auto i) { return sum(H, [&](auto j) { return M(i, j) * x(n, j); }); };
  };
  auto r = m.compute("r", H, [&](auto n, auto i) { return sigmoid(times(W, s)(n, i)) * s(n, i); });
  auto candidate = m.compute(
      "candidate", H, [&](auto n, auto i) { return tanh(times(U, r)(n, i) + Emb(cortex::field<&Token::id>(n), i)); });
  auto many = m.compute("many", H, [&](auto n, auto i) { return candidate(n, i) + 0.5f * s(n, i); });
  auto one = m.compute("one", H, [&](auto n, auto i) { return relu(times(Q, s)(n, i)); });
  const auto out = m.recursion_op(h, m.if_then_else(
                                         "body", [&](auto n) { return num_children(kids(n)) == 1; }, one, many));
  check<float>(out, random_trees(4, 6), 4, kids_of_token);
}
