// Kernels that are so long that they are cut into functions.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "support/compile.hpp"

using namespace cortex;

namespace {

struct Node {
  float value;
  std::vector<const Node*> kids;
};
constexpr auto value = field<&Node::value>;
constexpr auto kids = children<&Node::kids>;

constexpr int layers = 12, hidden = 9;

/// The state of a node is the sum of its children's, through many layers of its own.
auto stack() {
  const Dim H("hidden", hidden);
  Model<Node> m("stack", tree);
  auto h = m.placeholder<float>("h", H);
  auto state =
      m.compute("layer", H, [&](auto n, auto i) { return value(n) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  for (int l = 0; l < layers; ++l) {
    auto w = m.input<float>("W" + std::to_string(l), H, H);
    state = m.compute("layer" + std::to_string(l), H, [&](auto n, auto i) {
      return tanh(sum(H, [&](auto j) { return w(i, j) * state(n, j); }) + state(n, i));
    });
  }
  return m.recursion_op(h, state);
}

std::vector<double> by_recursion(const std::vector<std::vector<float>>& weights, const Node& node) {
  std::vector<double> state(hidden, node.value);
  for (const Node* child : node.kids) {
    const std::vector<double> h = by_recursion(weights, *child);
    for (int i = 0; i < hidden; ++i) state[std::size_t(i)] += h[std::size_t(i)];
  }
  for (const std::vector<float>& w : weights) {
    std::vector<double> next = state;
    for (std::size_t i = 0; i < hidden; ++i) {
      for (std::size_t j = 0; j < hidden; ++j) next[i] += double(w[i * hidden + j]) * state[j];
      next[i] = std::tanh(next[i]);
    }
    state = next;
  }
  return state;
}

}  // namespace

TEST_CASE("a node of many products equals its equations, on any number of workers", "[long_kernels]") {
  const auto program = stack();
  std::vector<std::vector<float>> weights;
  for (int l = 0; l < layers; ++l) weights.push_back(test::uniform(hidden * hidden, 0.3F, unsigned(l)));

  std::vector<Node> leaves(40);
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].value = float(i % 7) / 7 - 0.4F;
  std::vector<Node> parents(9, Node{0.1F, {}});  // of one to six leaves, so that levels have tiles of several sizes
  for (std::size_t p = 0, leaf = 0; p < parents.size(); ++p)
    for (std::size_t k = 0; k <= p % 6; ++k) parents[p].kids.push_back(&leaves[leaf++]);
  const Node root{-0.2F, {&parents[0], &parents[5], &parents[7]}};
  std::vector<const Node*> roots{&root, &leaves[39]};
  for (const std::size_t p : {1, 2, 3, 4, 6, 8}) roots.push_back(&parents[p]);

  std::vector<float> first;
  for (const int workers : {1, 3}) {
    auto model = test::compile_here(program, Schedule::standard().workers(workers));
    model.use(std::make_shared<Workers>(workers - 1));
    const std::string text = model.executable().llvm_text, calls = text.substr(text.find("\ndefine void @") + 1);
    CHECK((!test::built_with_llvm() || 5 * calls.size() < text.size()));  // in one function they would be the same
    for (std::size_t l = 0; l < layers; ++l) model.bind("W" + std::to_string(l), weights[l]);
    const auto results = model(roots);
    std::vector<float> all;
    for (std::size_t r = 0; r < roots.size(); ++r) {
      const std::vector<double> expected = by_recursion(weights, *roots[r]);
      for (std::size_t i = 0; i < hidden; ++i) CHECK(results[r][i] == Approx(expected[i]).margin(1e-5));
      all.insert(all.end(), results[r].begin(), results[r].end());
    }
    if (workers == 1) first = all;
    CHECK(all == first);
  }
}
