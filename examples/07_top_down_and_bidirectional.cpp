// Lesson 7: both directions. Up a tree, down again, up once more, then a result at each node and one for the tree; all
// of it one program, compiled together and run by one call.
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

struct Phrase {
  int word = 0;
  std::vector<const Phrase*> parts;
};
constexpr auto parts = cortex::children<&Phrase::parts>;
constexpr auto word = cortex::field<&Phrase::word>;
// What a node is part of. Nodes need no link for it: the linearizer finds parents while it walks down. The accessors
// given are those by which it walks.
constexpr auto above = cortex::parents<parts>;

constexpr int hidden = 40, words = 30, labels = 3;
using Weights = std::map<std::string, std::vector<float>>;
struct States {
  std::vector<double> up, down, again, logits;
};
std::map<const Phrase*, States> by_hand(const Phrase* root, const Weights& weights);  // below, by plain recursion

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

int main() try {
  const cortex::Dim V{"vocabulary"}, H{"hidden", hidden}, L{"labels", labels};
  cortex::Model<Phrase> m("up_and_down", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", H, H), D = m.input<float>("D", H, H), A = m.input<float>("A", H, H);
  auto W = m.input<float>("W", L, H);
  const auto times = [&](const auto& M, auto n, auto i, const auto& x) {
    return sum(H, [&](auto j) { return M(i, j) * x(n, j); });
  };

  // Up: what a phrase consists of. `recursion` ties a placeholder to its body, as `recursion_op` does, but does not
  // complete the model: it gives the results, which what is added later reads at the node itself.
  auto up_of = m.placeholder<float>("up", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(parts(n), [&](auto k) { return up_of(k, i); }); });
  auto up_body = m.compute("up_body", H, [&](auto n, auto i) { return tanh(Emb(word(n), i) + times(U, n, i, s)); });
  auto up = m.recursion(up_of, up_body);

  // Down: the context that it stands in. A recursion that reads its placeholder at parents goes from the roots to the
  // leaves. A tree's node has one parent and its root none, so the sum is over one state or over nothing; in a DAG
  // there may be several.
  auto down_of = m.placeholder<float>("down", H);
  auto t = m.compute("t", H, [&](auto n, auto i) { return sum(above(n), [&](auto p) { return down_of(p, i); }); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) { return tanh(up(n, i) + times(D, n, i, t)); });
  auto at_root = m.compute("at_root", H, [&](auto n, auto i) { return up(n, i); });
  auto down_body = m.if_then_else(
      "down_body", [](auto n) { return is_root(above(n)); }, at_root, inner);
  auto down = m.recursion(down_of, down_body);

  // Up again, over what both gave: recursions stack, and as many as you like. So do the layers of a network.
  auto again_of = m.placeholder<float>("again", H);
  auto again_body = m.compute("again_body", H, [&](auto n, auto i) {
    return tanh(times(A, n, i, down) + up(n, i) + sum(parts(n), [&](auto k) { return again_of(k, i); }));
  });
  auto again = m.recursion(again_of, again_body);

  // A result at each node on which nothing recurses: here a classifier of phrases.
  auto logits = m.output<float>("logits", L, [&](auto n, auto l) { return times(W, n, l, again); });

  // And a result for each root. A readout may read all nodes below it, `cortex::nodes`, and the readouts before it.
  const auto all = cortex::nodes;
  auto mean = m.readout<float>("mean", H, [&](auto r, auto i) {
    return sum(all(r), [&](auto n) { return again(n, i); }) / num_children(all(r));
  });
  auto best = m.readout<float>("best", L,
                               [&](auto r, auto l) { return maximum(all(r), [&](auto n) { return logits(n, l); }); });

  // The program names the results that calls give; the first is what `result[i]` shows. What no result needs is
  // refused.
  auto model = cortex::compile(m.program(mean, best, logits, up, down));

  std::mt19937 random(1);
  Weights weights;
  for (const auto& [name, rows] :
       {std::pair("Emb", words), {"U", hidden}, {"D", hidden}, {"A", hidden}, {"W", labels}}) {
    for (int i = 0; i < rows * hidden; ++i) weights[name].push_back(float(random() % 2001) / 8000.0F - 0.125F);
    model.bind(name, weights[name]);
  }

  std::deque<Phrase> phrases;
  const auto tree = [&](const auto& self, int depth) -> const Phrase* {
    Phrase p{int(random() % words), {}};
    for (int count = depth > 0 ? int(random() % 4) : 0; count > 0; --count) p.parts.push_back(self(self, depth - 1));
    return &phrases.emplace_back(p);
  };
  std::vector<const Phrase*> roots;
  for (int i = 0; i < 5; ++i) roots.push_back(tree(tree, 5));

  const auto result = model(roots);
  double difference = 0;
  const auto compare = [&](std::span<const float> values, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < values.size(); ++i) difference = larger(difference, std::abs(values[i] - expected[i]));
  };
  for (std::size_t r = 0; r < roots.size(); ++r) {
    const auto expected = by_hand(roots[r], weights);
    std::vector<double> of_mean(hidden), of_best(labels, -1e9);
    for (const auto& [n, states] : expected) {
      compare(result.node(n, up), states.up);  // a result is named by its handle, or by a string
      compare(result.node(n, "down"), states.down);
      compare(result.node(n, logits), states.logits);
      for (int i = 0; i < hidden; ++i) of_mean[i] += states.again[i] / double(expected.size());
      for (int l = 0; l < labels; ++l) of_best[l] = std::fmax(of_best[l], states.logits[l]);
    }
    compare(result[r], of_mean);
    compare(result.root(r, best), of_best);
    std::printf("root %zu: %zu nodes, best logits %.4f %.4f %.4f\n", r, expected.size(), result.root(r, best)[0],
                result.root(r, best)[1], result.root(r, best)[2]);
  }
  std::printf("largest difference from plain recursion, all results, all nodes: %.1e\n", difference);
  return difference < 1e-5 ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

std::map<const Phrase*, States> by_hand(const Phrase* root, const Weights& weights) {
  std::map<const Phrase*, States> states;
  const auto times = [&](const char* name, const std::vector<double>& x) {
    const std::vector<float>& M = weights.at(name);
    std::vector<double> product(M.size() / hidden);
    for (std::size_t i = 0; i < M.size(); ++i) product[i / hidden] += double(M[i]) * x[i % hidden];
    return product;
  };
  const auto up = [&](const auto& self, const Phrase* n) -> void {
    std::vector<double> s(hidden);
    for (const Phrase* k : n->parts) {
      self(self, k);
      for (int i = 0; i < hidden; ++i) s[i] += states[k].up[i];
    }
    std::vector<double>& h = states[n].up = times("U", s);
    for (int i = 0; i < hidden; ++i) h[i] = std::tanh(weights.at("Emb")[n->word * hidden + i] + h[i]);
  };
  const auto down = [&](const auto& self, const Phrase* n, const Phrase* parent) -> void {
    States& of_n = states[n];
    of_n.down = parent ? times("D", states[parent].down) : of_n.up;
    for (int i = 0; i < hidden && parent; ++i) of_n.down[i] = std::tanh(of_n.up[i] + of_n.down[i]);
    for (const Phrase* k : n->parts) self(self, k, n);
  };
  const auto again = [&](const auto& self, const Phrase* n) -> void {
    States& of_n = states[n];
    of_n.again = times("A", of_n.down);
    for (int i = 0; i < hidden; ++i) of_n.again[i] += of_n.up[i];
    for (const Phrase* k : n->parts) {
      self(self, k);
      for (int i = 0; i < hidden; ++i) of_n.again[i] += states[k].again[i];
    }
    for (double& x : of_n.again) x = std::tanh(x);
    of_n.logits = times("W", of_n.again);
  };
  up(up, root), down(down, root, nullptr), again(again, root);
  return states;
}
