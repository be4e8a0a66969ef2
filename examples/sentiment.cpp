// The main example: what a trained TreeLSTM says of sentences, phrase by phrase.
//
//   sentiment                               some of data/sentences.txt
//   sentiment "The plot is thin."           typed sentences, as trees that branch to the right
//   sentiment "(2 (2 Great) (2 film))"      trees in PTB format, typed
//   sentiment --trees FILE                  or from a file
//   sentiment --test FILE                   accuracy on a file of labelled trees, such as the treebank's test.txt
//   sentiment --print ra|ilir|scheduled|llvm  the model at a stage of its compilation
//
// sentiment/train.py made the weights. Where the Stanford Sentiment Treebank is found (CORTEX_SST), the accuracies on
// its test split are printed too, and each prediction is held against PyTorch's.
//
// Exit status: 0; 1 if a result differs from plain recursion or from PyTorch by more than rounding explains, or Cortex
// fails; 2 for wrong input.
#include "support/sentiment.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cortex/weights/safetensors.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/latency.hpp"
#include "support/run_main.hpp"

namespace {

using namespace examples;

struct Options {
  std::string trees, test, color = "auto", print;
  std::vector<std::string> sentences;
  int threads = 1;
  int runs = 400;
};

std::filesystem::path data(const char* name) { return examples_directory() / "data" / name; }

cortex::CompileOptions compile_options(const Options& options) {
  cortex::CompileOptions result;
  result.timings = true;
  if (options.threads > 1)
    result.workers = std::make_shared<cortex::Workers>(options.threads - 1);  // the caller works too
  return result;
}

/// Everything that is loaded once: the words, and the compiled model with its weights.
struct Loaded {
  TrainedWords words{data("sentiment_vocabulary.txt")};
  cortex::SafetensorsFile file = cortex::SafetensorsFile::open(data("sentiment.safetensors"));
  int input = int(file.tensor("W_i").shape.at(1)), hidden = int(file.tensor("W_i").shape.at(0));
  decltype(cortex::compile(sentiment_model(1, 1))) model;

  explicit Loaded(const Options& options)
      : model(cortex::compile(sentiment_model(input, hidden), cortex::Schedule::standard().workers(options.threads),
                              compile_options(options))) {
    cortex::bind(model, file);
  }

  SentimentWeights plain_weights() const {
    SentimentWeights weights;
    for (const std::string& name : file.names()) weights[name] = file.read<float>(name);
    return weights;
  }
};

// ---------------------------------------------------------------------------------------------------- printing trees

constexpr const char* marks[] = {"--", "- ", "o ", "+ ", "++"};

/// The words of a phrase, coloured from red to green where the terminal takes that.
class TreePrinter {
 public:
  TreePrinter(const Sentences& sentences, bool colors) : sentences_(sentences), colors_(colors) {}

  /// `of(phrase)` is the sentiment of a phrase.
  template <class Of>
  void print(const Phrase* tree, const Of& of) const {
    struct Line {
      const Phrase* phrase;
      std::string indent;
    };
    std::vector<Line> open{{tree, ""}};  // a stack of its own: trees may be high
    while (!open.empty()) {
      const Line line = open.back();
      open.pop_back();
      const Sentiment s = of(line.phrase);
      std::printf("  %s%s %3.0f%%  %s%s%s\n", color(s.fine), marks[s.fine], 100 * s.probability[std::size_t(s.fine)],
                  line.indent.c_str(), words(line.phrase).c_str(), colors_ ? "\033[0m" : "");
      if (!line.phrase->left) continue;
      open.push_back({line.phrase->right, line.indent + "  "});
      open.push_back({line.phrase->left, line.indent + "  "});
    }
  }

 private:
  const char* color(int fine) const {
    constexpr const char* codes[] = {"\033[1;31m", "\033[31m", "\033[2m", "\033[32m", "\033[1;32m"};
    return colors_ ? codes[fine] : "";
  }

  std::string words(const Phrase* phrase) const {
    std::string result;
    std::vector<const Phrase*> open{phrase};
    while (!open.empty()) {
      const Phrase* at = open.back();
      open.pop_back();
      if (!at->left) {
        result += (result.empty() ? "" : " ") + sentences_.text.at(at);
      } else {
        open.push_back(at->right);
        open.push_back(at->left);
      }
    }
    return result;
  }

  const Sentences& sentences_;
  bool colors_;
};

bool colors(const Options& options) {
  if (options.color != "auto") return options.color == "always";
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR") && terminal && std::string(terminal) != "dumb";
}

void show(const Loaded& loaded, const Sentences& sentences, std::size_t most, const Options& options) {
  const TreePrinter printer(sentences, colors(options));
  for (std::size_t i = 0; i < std::min(most, sentences.bank.trees.size()); ++i) {
    const Phrase* tree = sentences.bank.trees[i];
    const auto result = loaded.model(tree);
    printer.print(tree, [&](const Phrase* phrase) { return Sentiment(result.node(phrase)); });
    std::printf("\n");
  }
}

// ----------------------------------------------------------------------------------------------------- accuracy, speed

/// The predictions that PyTorch made for the treebank's test split; nothing if the file is not there.
std::optional<std::vector<std::pair<int, int>>> pytorch_predictions() {
  std::ifstream in(examples_directory().parent_path() / "tests" / "fixtures" / "sentiment_test_predictions.txt");
  std::string header;
  if (!std::getline(in, header)) return std::nullopt;
  std::vector<std::pair<int, int>> result;
  for (int fine = 0, binary = 0; in >> fine >> binary;) result.emplace_back(fine, binary);
  return result;
}

/// Prints how many roots are predicted as labelled; false if a prediction of the test split differs from PyTorch's.
bool accuracy(const Loaded& loaded, const std::filesystem::path& path, bool is_test_split) {
  Treebank bank;
  read_ptb(path, bank);
  const Sentences sentences(std::move(bank), loaded.words);
  const Batch& trees = sentences.bank.trees;
  const auto expected = is_test_split ? pytorch_predictions() : std::nullopt;
  std::size_t fine = 0, binary = 0, decided = 0, differ = 0;
  for (std::size_t at = 0; at < trees.size(); at += 10) {
    const auto batch = std::span(trees).subspan(at, std::min<std::size_t>(10, trees.size() - at));
    const auto result = loaded.model(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Sentiment s(result[i]);
      fine += s.fine == batch[i]->label;
      decided += batch[i]->label != 2;
      binary += batch[i]->label != 2 && s.positive == (batch[i]->label > 2);
      if (expected) differ += at + i >= expected->size() || (*expected)[at + i] != std::pair(s.fine, int(s.positive));
    }
  }
  std::printf("%s: %zu trees; fine-grained accuracy %.2f%% (%zu), binary %.2f%% (%zu of %zu)\n",
              path.filename().c_str(), trees.size(), 100 * double(fine) / double(trees.size()), fine,
              decided ? 100 * double(binary) / double(decided) : 0, binary, decided);
  if (!expected) return true;
  const bool same = differ == 0 && expected->size() == trees.size();
  std::printf("  predictions that differ from PyTorch's: %zu of %zu%s\n", differ, trees.size(),
              same ? "" : "  TOO MANY");
  return same;
}

/// Times calls beside plain recursion; false if they disagree.
bool speed(const Loaded& loaded, const Batch& trees, const Options& options) {
  const PlainSentiment plain(loaded.plain_weights(), loaded.input, loaded.hidden);
  double most = 0;
  for (const Phrase* tree : trees) {
    const auto result = loaded.model(tree);
    const auto expected = plain(tree);
    const double here = largest_difference(result[0].data(), expected.data(), expected.size());
    most = here <= most ? most : here;  // a NaN is kept
  }
  // Rounding of sums of 2 * hidden products, through the levels of a tree, on logits of up to about 10.
  const double bound = 10 * (2 * std::sqrt(2.0 * loaded.hidden) + 16) * std::exp2(-24);
  const bool within = most <= bound;
  std::printf("\nlargest difference of a root's logits from plain recursion: %.1e (bound %.1e)%s\n", most, bound,
              within ? "" : "  EXCEEDED");
  std::vector<Column> columns{measure(loaded.model, plain, trees, 1, options.runs)};
  if (trees.size() > 1) columns.push_back(measure(loaded.model, plain, trees, 10, options.runs));
  print_table(columns, options.runs);
  return within;
}

// ---------------------------------------------------------------------------------------------------------------- main

Treebank read(const Options& options) {
  Treebank bank;
  for (const std::string& sentence : options.sentences) {
    if (const auto first = sentence.find_first_not_of(" \t\r\n"); first != std::string::npos && sentence[first] == '(')
      parse_ptb(sentence, "the argument", bank);
    else
      add_sentence(sentence, bank);
  }
  if (options.sentences.empty())
    read_ptb(options.trees.empty() ? data("sentences.txt") : std::filesystem::path(options.trees), bank);
  constexpr long highest = 5000;
  for (std::size_t i = 0; i < bank.trees.size(); ++i)
    if (const long height = size_of(bank.trees[i]).height; height > highest)
      throw std::runtime_error(
          "tree " + std::to_string(i + 1) + " is " + std::to_string(height) +
          " levels high; this program takes up to " + std::to_string(highest) +
          ", because plain recursion, to which it compares, runs on the stack (Cortex itself does not)");
  return bank;
}

int run(const Options& options) {
  const Loaded loaded(options);
  if (!options.print.empty()) {
    std::cout << loaded.model.print(options.print) << '\n';
    return 0;
  }
  if (!options.test.empty()) return accuracy(loaded, options.test, false) ? 0 : 1;
  const Sentences sentences(read(options), loaded.words);
  const auto& times = loaded.model.executable().times;
  std::printf(
      "Cortex %s on %s, %d thread%s; a binary TreeLSTM over words of %d numbers, hidden %d, %d words known; compiled "
      "in %.0f ms\n\n",
      CORTEX_VERSION, loaded.model.executable().target.cpu.c_str(), options.threads, options.threads == 1 ? "" : "s",
      loaded.input, loaded.hidden, loaded.words.size(), times.total());
  const bool asked = !options.sentences.empty() || !options.trees.empty();
  show(loaded, sentences, asked ? sentences.bank.trees.size() : 3, options);
  bool right = true;
  if (const auto sst = asked ? std::nullopt : find_sst())
    right = accuracy(loaded, *sst / "test.txt", true);
  else if (!asked)
    std::printf("no accuracy on the treebank's test split: CORTEX_SST does not say where it is\n");
  right = speed(loaded, sentences.bank.trees, options) && right;
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "The sentiment of sentences, phrase by phrase, by a trained TreeLSTM: compiled by Cortex, checked, timed."};
  auto* trees = app.add_option("--trees", options.trees, "A file of trees in PTB format: (3 (2 It) (3 works))");
  auto* typed = app.add_option("sentence", options.sentences, "Sentences or trees in PTB format, each one argument");
  typed->excludes(trees);
  app.add_option("--test", options.test, "Only report the accuracy on a file of labelled trees")
      ->excludes(trees)
      ->excludes(typed);
  app.add_option("--color", options.color, "Colours: auto (where the terminal takes them), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads that share one call")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--runs", options.runs, "Timed calls for each batch size")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  app.add_option("--print", options.print,
                 "Print the model and exit: the operator graph, the loops made of it, or the LLVM IR")
      ->check(CLI::IsMember({"ra", "ilir", "scheduled", "llvm"}));
  return run_main(app, argc, argv, "sentiment", [&] { return run(options); });
}
