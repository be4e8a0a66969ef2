// Every sentence of the Stanford Sentiment Treebank's dev set, against plain recursion, within the bound that the
// equations' operations give.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <vector>

#include "../../examples/support/models.hpp"
#include "../../examples/support/ptb.hpp"
#include "../../examples/support/recursion.hpp"
#include "support/compile.hpp"
#include "support/interpreters.hpp"
#include "support/skip.hpp"

using namespace cortex;

namespace {

constexpr int hidden = 16;

/// One sentence as the interpreter of the operator graph sees it.
struct SentenceView final : ra::NodeView {
  explicit SentenceView(const examples::Phrase* root) { add(root); }
  int num_nodes() const override { return int(nodes.size()); }
  int child(int accessor, int node) const override {
    const examples::Phrase* kid = accessor == 0 ? nodes[std::size_t(node)]->left : nodes[std::size_t(node)]->right;
    return kid ? number.at(kid) : -1;
  }
  std::vector<int> children(int, int node) const override {
    if (!nodes[std::size_t(node)]->left) return {};
    return {child(0, node), child(1, node)};
  }
  double field(int, int node, int) const override { return nodes[std::size_t(node)]->word; }
  bool is_leaf(int node) const override { return !nodes[std::size_t(node)]->left; }

  std::vector<const examples::Phrase*> nodes;
  std::map<const examples::Phrase*, int> number;

 private:
  void add(const examples::Phrase* phrase) {
    number.emplace(phrase, int(nodes.size()));
    nodes.push_back(phrase);
    if (phrase->left) add(phrase->left), add(phrase->right);
  }
};

template <class Program, class Weights>
ra::Weights interpreter_weights(const Program& program, const Weights& weights, int vocabulary) {
  ra::Weights result;
  weights([&](const std::string& name, const std::vector<float>& values) {
    ra::Tensor tensor{{}, std::vector<double>(values.begin(), values.end())};
    const ra::Graph& graph = program.graph();
    for (const Dim& dim : graph.ops[std::size_t(graph.find(name))].dims)
      tensor.shape.push_back(dim.kind() == DimKind::open ? vocabulary : dim.extent());
    result.emplace(name, std::move(tensor));
  });
  return result;
}

examples::Treebank dev_set() {
  const auto directory = test::sst_directory();
  examples::Treebank bank;
  examples::read_ptb(directory / "dev.txt", bank);
  return bank;
}

/// Runs the trees in batches of 10 and holds each root to its bound, and the bound's value to plain recursion in
/// double.
template <class Program, class Functor, class Recursion>
void check_all(const examples::Treebank& bank, const Program& program, const Functor& model, const ra::Weights& weights,
               Recursion&& recursion) {
  int wrong = 0, oracle_wrong = 0;
  for (std::size_t first = 0; first < bank.trees.size(); first += 10) {
    const std::vector<const examples::Phrase*> batch(
        bank.trees.begin() + std::ptrdiff_t(first),
        bank.trees.begin() + std::ptrdiff_t(std::min(first + 10, bank.trees.size())));
    const auto result = model(batch);
    for (std::size_t t = 0; t < batch.size(); ++t) {
      const auto expected = ra::interpret<ra::Bounded>(program.graph(), SentenceView(batch[t]), weights);
      const auto plain = recursion(batch[t]);
      for (std::size_t i = 0; i < hidden; ++i) {
        wrong += !expected[0][0][i].covers(result[t][i]);
        oracle_wrong += std::abs(expected[0][0][i].value - plain[i]) > 1e-12;
      }
    }
  }
  CHECK(bank.trees.size() == 1101);
  CHECK(wrong == 0);
  CHECK(oracle_wrong == 0);
}

}  // namespace

TEST_CASE("TreeLSTM on all of SST dev equals plain recursion", "[sst][slow]") {
  const examples::Treebank bank = dev_set();
  const int words = bank.vocabulary.size();
  const auto program = examples::tree_lstm(hidden, hidden);
  const auto weights = examples::TreeLstmWeights::random(words, hidden, hidden);
  auto model = test::compile_here(program);
  examples::bind_all(model, weights);
  examples::TreeLstm<double> recursion(weights);
  check_all(bank, program, model,
            interpreter_weights(
                program, [&](auto bind) { weights.each(bind); }, words),
            recursion);
}

TEST_CASE("the running example on all of SST dev equals plain recursion", "[sst][slow]") {
  const examples::Treebank bank = dev_set();
  const int words = bank.vocabulary.size();
  const auto program = examples::tree_rnn(hidden);
  const std::vector<float> table = test::uniform(std::size_t(words) * hidden, 1, 1);
  auto model = test::compile_here(program);
  model.bind("Emb", table);
  const examples::TreeRnn<double> recursion(table, hidden);
  check_all(bank, program, model,
            interpreter_weights(
                program, [&](auto bind) { bind("Emb", table); }, words),
            recursion);
}
