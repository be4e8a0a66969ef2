// TreeLSTM over sentences: Cortex beside plain recursion and beside OpenBLAS, hand-batched by level.
//
//   tree_lstm [--hidden 256|512|...] [--trees FILE | --random] [--rounds N]
//
// Child-sum TreeLSTM, words at leaves only, one thread, batches of 1 and of 10 trees. The trees are those of the
// Stanford Sentiment Treebank if it is found (CORTEX_SST, or shared/data/sst beside the repository), else the examples'
// own. Each system gets the same nodes and ends with the state h of each root; numbering the nodes is part of its time.
//
// Ten batches are fixed, and a round takes each system through all ten; the systems alternate round by round, since the
// clock of a shared machine drifts. A figure is the mean over the ten batches of each one's median over the rounds.
// Before anything is timed, each system's states are compared with plain recursion in double.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../examples/support/measure.hpp"
#include "../examples/support/models.hpp"
#include "../examples/support/ptb.hpp"
#include "../examples/support/recursion.hpp"
#include "support/openblas_level.hpp"

namespace {

using namespace examples;
using Batch = std::vector<const Phrase*>;
using Batches = std::vector<Batch>;

struct Options {
  int hidden = 256;
  int rounds = 200;
  std::string trees;
  bool random = false;
};

/// A random binary tree of so many words, out of a vocabulary of 1000: each split is equally likely.
const Phrase* random_tree(Treebank& bank, int words, std::mt19937& random) {
  std::vector<Phrase*> open;
  for (int i = 0; i < words; ++i) open.push_back(bank.add({2, int(random() % 1000), nullptr, nullptr}));
  while (open.size() > 1) {  // joins neighbours, as phrases do
    const std::size_t at = random() % (open.size() - 1);
    open[at] = bank.add({2, -1, open[at], open[at + 1]});
    open.erase(open.begin() + std::ptrdiff_t(at) + 1);
  }
  bank.trees.push_back(open[0]);
  return open[0];
}

Treebank read(const Options& options, std::string& source) {
  Treebank bank;
  if (options.random) {
    std::mt19937 random(3);
    for (int i = 0; i < 1000; ++i) bank.vocabulary.add("word" + std::to_string(i));
    for (int i = 0; i < 200; ++i)
      random_tree(bank, 2 + int(random() % 36), random);  // SST: 2 to 56 words, 19 in the mean
    source = "random binary trees of 2 to 37 words out of 1000";
    return bank;
  }
  if (!options.trees.empty()) {
    read_ptb(options.trees, bank);
    source = std::filesystem::path(options.trees).filename().string();
  } else if (const auto sst = find_sst()) {
    read_ptb(*sst / "test.txt", bank);
    source = "Stanford Sentiment Treebank, test.txt";
  } else {
    read_ptb(examples_directory() / "data" / "sentences.txt", bank);
    source = "the examples' sentences.txt (the Stanford Sentiment Treebank was not found: set CORTEX_SST)";
  }
  return bank;
}

/// Ten batches of `size` trees that stand for the whole by their sizes: of all trees sorted by size those at equal
/// distances, dealt to the batches in turn.
Batches choose(const Treebank& bank, std::size_t size) {
  if (bank.trees.size() < size)
    throw std::runtime_error("a batch of " + std::to_string(size) + " needs that many trees; there are " +
                             std::to_string(bank.trees.size()));
  std::vector<std::pair<long, const Phrase*>> sorted;
  for (const Phrase* tree : bank.trees) sorted.emplace_back(size_of(tree).nodes, tree);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Batches batches(10);
  for (std::size_t i = 0; i < 10 * size; ++i)
    batches[i % 10].push_back(sorted[(2 * i + 1) * sorted.size() / (20 * size)].second);
  return batches;
}

struct System {
  std::string name;
  std::function<void(const Batch&, float*)> run;  // writes h of each root, [root][hidden]
  std::vector<Samples> times{};                   // [batch] microseconds, one a round

  double microseconds_a_batch() const {
    double sum = 0;
    for (const Samples& batch : times) sum += batch.median();
    return sum / double(times.size());
  }
};

/// The largest difference of a system's states from recursion in double.
double error_of(const System& system, const Batches& batches, TreeLstm<double>& reference, std::size_t hidden) {
  double most = 0;
  for (const Batch& batch : batches) {
    std::vector<float> out(batch.size() * hidden, NAN);
    system.run(batch, out.data());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const double here = largest_difference(out.data() + i * hidden, reference(batch[i]), hidden);
      if (std::isnan(here)) return here;
      most = std::max(most, here);
    }
  }
  return most;
}

double mean_nodes(const Batches& batches) {
  double nodes = 0;
  for (const Batch& batch : batches)
    for (const Phrase* tree : batch) nodes += double(size_of(tree).nodes);
  return nodes / double(batches.size());
}

template <class Model>
double linearize_us(const Model& timed, const Batches& batches) {
  Samples samples;
  for (int round = 0; round < 50; ++round) {
    double sum = 0;
    for (const Batch& batch : batches) sum += double(timed(batch).linearize_ns());
    samples.add(sum / 1e3 / double(batches.size()));
  }
  return samples.median();
}

void interleave(std::vector<System>& systems, const Batches& batches, std::size_t hidden, int rounds) {
  std::vector<float> out(batches[0].size() * hidden);
  for (System& system : systems) system.times.resize(batches.size());
  for (int round = -2; round < rounds; ++round) {  // two to warm up
    for (System& system : systems) {
      for (std::size_t b = 0; b < batches.size(); ++b) {
        const double time = microseconds([&] { system.run(batches[b], out.data()); });
        if (round >= 0) system.times[b].add(time);
      }
    }
  }
}

int run(const Options& options) {
  std::string source;
  const Treebank bank = read(options, source);
  const int input = 256;
  const std::size_t hidden = std::size_t(options.hidden);
  const TreeLstmWeights weights = TreeLstmWeights::random(bank.vocabulary.size(), input, options.hidden);
  std::printf("TreeLSTM, hidden %d, word vectors of %d; %s: %zu trees, %d words\n", options.hidden, input,
              source.c_str(), bank.trees.size(), bank.vocabulary.size());

  auto model = cortex::compile(tree_lstm(input, options.hidden));
  bind_all(model, weights);
  const auto& times = model.executable().times;
  std::printf("cortex: compiled in %.0f ms (%.0f to loops, %.0f to LLVM IR, %.0f to machine code)\n",
              times.lower + times.codegen + times.llvm, times.lower, times.codegen, times.llvm);
  auto timed = cortex::compile(tree_lstm(input, options.hidden), cortex::CompileOptions{{}, {}, true});
  bind_all(timed, weights);
  auto shared = cortex::compile(tree_lstm(input, options.hidden), cortex::Schedule::standard().workers(2),
                                cortex::CompileOptions{{}, std::make_shared<cortex::Workers>(1), false});
  bind_all(shared, weights);

  TreeLstm<float> recursion(weights);
  TreeLstm<double> reference(weights);
  const auto cortex_run = [hidden](const auto& functor) {
    return
        [&functor, hidden](const Batch& batch, float* out) { functor(batch, std::span(out, batch.size() * hidden)); };
  };
  std::vector<System> all{{"cortex", cortex_run(model)}};
#if CORTEX_BENCH_OPENBLAS
  bench::OpenblasLevel by_level(weights);
  std::printf("openblas_level: %s, 1 thread; %s\n", bench::openblas_name().c_str(), by_level.choices().c_str());
  all.push_back({"openblas_level", [&](const Batch& batch, float* out) { by_level(batch, out); }});
#else
  std::printf("openblas_level: left out, this was built without OpenBLAS\n");
#endif
  all.push_back({"recursion", [&](const Batch& batch, float* out) {
                   for (std::size_t i = 0; i < batch.size(); ++i)
                     std::copy_n(recursion(batch[i]), hidden, out + i * hidden);
                 }});
  all.push_back({"cortex, 2 threads", cortex_run(shared)});

  bool right = true;
  for (const std::size_t size : {std::size_t(1), std::size_t(10)}) {
    const Batches batches = choose(bank, size);
    std::vector<System> systems = all;
    const double nodes = mean_nodes(batches);
    std::printf("\nbatch of %zu: %.1f nodes in the mean; cortex linearizes them in %.2f us\n", size, nodes,
                linearize_us(timed, batches));
    std::printf("  %-20s %12s %14s %16s %14s\n", "system", "us a batch", "nodes/s", "time / cortex's", "max abs err");
    std::vector<double> errors;
    for (const System& system : systems) errors.push_back(error_of(system, batches, reference, hidden));
    interleave(systems, batches, hidden, options.rounds);
    for (std::size_t s = 0; s < systems.size(); ++s) {
      const double us = systems[s].microseconds_a_batch();
      std::printf("  %-20s %12.1f %14.0f %15.2fx %14.1e\n", systems[s].name.c_str(), us, nodes / us * 1e6,
                  us / systems[0].microseconds_a_batch(), errors[s]);
      right = right && errors[s] < 1e-4;
    }
  }
  if (!right) std::printf("\nWRONG: a system differs from plain recursion in double by more than 1e-4\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"TreeLSTM: Cortex beside plain recursion and OpenBLAS by level."};
  app.add_option("--hidden", options.hidden, "Elements of a state")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds, each of ten batches a system")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  auto* trees = app.add_option("--trees", options.trees, "A file of trees in PTB format");
  app.add_flag("--random", options.random, "Random binary trees in place of a file")->excludes(trees);
  CLI11_PARSE(app, argc, argv);
  try {
#if CORTEX_BENCH_OPENBLAS
    bench::use_best_openblas(argv);
#endif
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tree_lstm: %s\n", error.what());
    return 2;
  }
}
