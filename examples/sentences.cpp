// The paper's running example on its own sentence, and a child-sum TreeLSTM with random weights over many: from
// bracketed trees to states, timed and checked against plain recursion. What a trained model says of sentences is the
// main example, sentiment.cpp.
//
//   sentences                                 the 102 trees of data/sentences.txt
//   sentences --trees FILE                    any file in PTB format, such as the treebank's test.txt
//   sentences "It is a dog." "So is this."    typed sentences, as trees that branch to the right
//   sentences --print ra|ilir|scheduled|llvm  the model at a stage of its compilation
//
// From the root of the repository: examples/run --lesson sentences, and these arguments after it.
//
// Exit status: 0; 1 if a state differs from plain recursion by more than rounding explains, or Cortex fails; 2 for
// wrong input.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/latency.hpp"
#include "support/models.hpp"
#include "support/ptb.hpp"
#include "support/recursion.hpp"
#include "support/run_main.hpp"

namespace {

using namespace examples;

struct Options {
  std::string trees;
  std::vector<std::string> sentences;
  int hidden = 256;
  int threads = 1;
  int runs = 400;
  std::string print;
};

constexpr int input_size = 256;

/// How far apart two float computations of the same states may be, in units in the last place of 1: the rounding of
/// sums of `hidden` products, as it adds up in the mean, twice over, and that of the activations, whose approximations
/// are good to four units.
double bound(int hidden) { return (2 * std::sqrt(double(hidden)) + 16) * std::exp2(-24); }

cortex::Schedule schedule(const Options& options) { return cortex::Schedule::standard().workers(options.threads); }

cortex::CompileOptions compile_options(const Options& options) {
  cortex::CompileOptions result;
  result.timings = true;
  if (options.threads > 1)
    result.workers = std::make_shared<cortex::Workers>(options.threads - 1);  // the caller works too
  return result;
}

/// Compiles the program and says how long that took.
template <class Program>
auto compile(const Program& program, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  auto model = cortex::compile(program, schedule(options), compile_options(options));
  const double total = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const auto& times = model.executable().times;
  std::printf("  compiled in %.0f ms: to loops %.0f ms, to LLVM IR %.0f ms, to machine code %.0f ms\n", total,
              times.lower, times.codegen, times.llvm);
  return model;
}

bool report(double difference, double bound) {
  const bool within = difference <= bound;  // false for NaN
  std::printf("  largest difference from plain recursion: %.1e (bound %.1e)%s\n", difference, bound,
              within ? "" : "  EXCEEDED");
  return within;
}

/// The paper's running example on its own sentence.
bool running_example(const Options& options) {
  Treebank bank;
  parse_ptb("(2 (2 It) (2 (2 (2 is) (2 (2 a) (2 dog))) (2 .)))", "the running example", bank);
  std::printf(
      "The paper's running example, h = tanh(h_left + h_right), on \"It is a dog.\": 5 words, 9 nodes, hidden %d\n",
      options.hidden);
  auto model = compile(tree_rnn(options.hidden), options);
  const std::vector<float> embedding = random_weights(std::size_t(bank.vocabulary.size() * options.hidden), 1.0F, 1);
  model.bind("Emb", embedding);
  const auto result = model(bank.trees);
  const std::vector<float> expected = TreeRnn<float>(embedding, options.hidden)(bank.trees[0]);
  // Nothing is summed here but two numbers; what differs is the approximation of tanh, at each of four levels.
  return report(largest_difference(result[0].data(), expected.data(), expected.size()), 16 * std::exp2(-23));
}

/// The largest difference of any root's state from plain recursion, over all trees, by ten in a call.
template <class Model>
double difference_from(TreeLstm<float>& recursion, const Model& model, const Batch& trees) {
  double most = 0;
  for (std::size_t at = 0; at < trees.size() && !std::isnan(most); at += 10) {
    const auto batch = std::span(trees).subspan(at, std::min<std::size_t>(10, trees.size() - at));
    const auto result = model(batch);
    for (std::size_t i = 0; i < batch.size() && !std::isnan(most); ++i) {
      const double here = largest_difference(result[i].data(), recursion(batch[i]), result[i].size());
      most = here <= most ? most : here;  // a NaN is kept
    }
  }
  return most;
}

Treebank read(const Options& options, std::string& source) {
  Treebank bank;
  if (!options.sentences.empty()) {
    for (const std::string& sentence : options.sentences) add_sentence(sentence, bank);
    source = "typed sentences";
  } else {
    const std::filesystem::path path =
        options.trees.empty() ? examples_directory() / "data" / "sentences.txt" : std::filesystem::path(options.trees);
    read_ptb(path, bank);
    source = path.filename().string();
  }
  constexpr long most = 5000;
  for (std::size_t i = 0; i < bank.trees.size(); ++i)
    if (const long height = size_of(bank.trees[i]).height; height > most)
      throw std::runtime_error(
          "tree " + std::to_string(i + 1) + " of " + source + " is " + std::to_string(height) +
          " levels high; this program takes up to " + std::to_string(most) +
          ", because plain recursion, to which it compares, runs on the stack (Cortex itself does not)");
  return bank;
}

int run(const Options& options) {
  if (!options.print.empty()) {
    auto model = cortex::compile(tree_lstm(input_size, options.hidden), schedule(options));
    std::cout << model.print(options.print) << '\n';
    return 0;
  }
  std::string source;
  const Treebank bank = read(options, source);
  long nodes = 0, words = 0;
  for (const Phrase* tree : bank.trees) nodes += size_of(tree).nodes, words += size_of(tree).words;

  const cortex::Target target = cortex::runtime::host_target();
  std::printf("Cortex %s on %s, vectors of %d bytes, %d thread%s\n\n", CORTEX_VERSION, target.cpu.c_str(),
              target.vector_bytes, options.threads, options.threads == 1 ? "" : "s");
  bool right = running_example(options);

  std::printf("\nChild-sum TreeLSTM, hidden %d, word vectors of %d: %zu trees (%s), %ld words, %ld nodes\n",
              options.hidden, input_size, bank.trees.size(), source.c_str(), words, nodes);
  auto model = compile(tree_lstm(input_size, options.hidden), options);
  const TreeLstmWeights weights = TreeLstmWeights::random(bank.vocabulary.size(), input_size, options.hidden);
  bind_all(model, weights);

  TreeLstm<float> recursion(weights);
  right = report(difference_from(recursion, model, bank.trees), bound(options.hidden)) && right;

  std::vector<Column> columns{measure(model, recursion, bank.trees, 1, options.runs)};
  if (bank.trees.size() > 1) columns.push_back(measure(model, recursion, bank.trees, 10, options.runs));
  print_table(columns, options.runs);
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Sentences through a child-sum TreeLSTM: compiled by Cortex, checked against plain recursion, timed."};
  auto* trees = app.add_option("--trees", options.trees, "A file of trees in PTB format: (3 (2 It) (3 works))");
  app.add_option("sentence", options.sentences, "Sentences to run in place of a file, each one argument")
      ->excludes(trees);
  app.add_option("--hidden", options.hidden, "Elements of a state")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that share one call")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--runs", options.runs, "Timed calls for each batch size")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  app.add_option("--print", options.print,
                 "Print the TreeLSTM and exit: the operator graph, the loops made of it, or the LLVM IR")
      ->check(CLI::IsMember({"ra", "ilir", "scheduled", "llvm"}));
  return run_main(app, argc, argv, "sentences", [&] { return run(options); });
}
