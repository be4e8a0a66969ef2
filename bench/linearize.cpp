// What linearization costs: nanoseconds per node, with every check on, on the Stanford Sentiment Treebank.
//
//   linearize [a file of trees in PTB format] [--json FILE] [--rounds 301]
//
// Without a file: test.txt of the treebank (CORTEX_SST, or beside the repository); where there is none, the examples'
// sentences. With --json it is the experiment `linearize` of that file.
//
// hot:  batches of 10 trees, ten such batches in turn, so that nodes come from the second-level cache as in a server;
// cold: all trees in one call, their nodes allocated in a random order.
// Each is measured as it is, and with equal subtrees found, which is what a model's calls do unless its schedule says
// not. Two node types are measured: a binary one with named children, and one with a std::vector of children. Each
// figure is the median of many short rounds, so that a neighbour who takes the core now and then does not show. The
// peer measured beside them is a plain recursive walk over the same nodes that follows the same links and adds up words
// and heights: what merely touching the nodes costs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "../examples/support/ptb.hpp"
#include "cortex/structure/linearizer.hpp"
#include "support/report.hpp"
#include "support/results_file.hpp"

namespace {

namespace cs = cortex::structure;
using bench::Json;

struct Binary {
  int word = -1;
  const Binary* left = nullptr;
  const Binary* right = nullptr;
};
using BinarySet = cs::Accessors<cs::Child<&Binary::left>, cs::Child<&Binary::right>, cs::Field<&Binary::word>>;

struct Wide {
  int word = -1;
  std::vector<const Wide*> kids;
};
using WideSet = cs::Accessors<cs::Children<&Wide::kids>, cs::Field<&Wide::word>>;

void link(Binary& node, const Binary* left, const Binary* right) { node.left = left, node.right = right; }
void link(Wide& node, const Wide* left, const Wide* right) { node.kids = {left, right}; }

/// One tree before its nodes exist: children come before parents, the root last.
struct Shape {
  struct Item {
    int left, right, word;
  };
  std::vector<Item> items;
};

/// Reads one line such as `(3 (2 a) (1 b))`, with a stack instead of recursion.
Shape parse(const std::string& line, std::unordered_map<std::string, int>& words) {
  Shape shape;
  std::vector<std::vector<int>> open;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '(') {
      open.emplace_back();
      at = line.find(' ', at);
    } else if (line[at] == ')') {
      const std::vector<int> kids = open.back();
      open.pop_back();
      if (kids.size() == 2) shape.items.push_back({kids[0], kids[1], -1});
      if (!open.empty()) open.back().push_back(int(shape.items.size()) - 1);
    } else if (line[at] != ' ') {
      const std::size_t end = line.find(')', at);
      const int word = words.try_emplace(line.substr(at, end - at), int(words.size())).first->second;
      shape.items.push_back({-1, -1, word});
      at = end - 1;
    }
  }
  return shape;
}

template <class Node>
struct Forest {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<const Node*> roots;
};

/// Makes the nodes, one `new` each: in the order of the trees, or shuffled over all of them.
template <class Node>
Forest<Node> build(const std::vector<Shape>& shapes, bool shuffled) {
  Forest<Node> forest;
  std::size_t count = 0;
  for (const Shape& shape : shapes) count += shape.items.size();
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  if (shuffled) std::shuffle(order.begin(), order.end(), std::mt19937(7));
  forest.nodes.resize(count);
  for (std::size_t i : order) forest.nodes[i] = std::make_unique<Node>();
  std::size_t base = 0;
  for (const Shape& shape : shapes) {
    for (std::size_t k = 0; k < shape.items.size(); ++k) {
      Node& node = *forest.nodes[base + k];
      const Shape::Item& item = shape.items[k];
      node.word = item.word;
      auto at = [&](int i) { return forest.nodes[base + std::size_t(i)].get(); };
      if (item.left >= 0) link(node, at(item.left), at(item.right));
    }
    base += shape.items.size();
    forest.roots.push_back(forest.nodes[base - 1].get());
  }
  return forest;
}

int touch(const Binary* node, long& sum) {
  if (!node->left) return sum += node->word, 0;
  return 1 + std::max(touch(node->left, sum), touch(node->right, sum));
}
int touch(const Wide* node, long& sum) {
  if (node->kids.empty()) return sum += node->word, 0;
  int height = 0;
  for (const Wide* kid : node->kids) height = std::max(height, touch(kid, sum));
  return 1 + height;
}

int rounds_of_work = 301;

/// The median of many rounds of `work`, in nanoseconds per node.
template <class Work>
double per_node(std::size_t nodes, int repeats, Work&& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rounds;
  for (int round = 0; round < rounds_of_work; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) work();
    rounds.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / double(nodes) / repeats);
  }
  const auto middle = rounds.begin() + rounds_of_work / 2;
  std::nth_element(rounds.begin(), middle, rounds.end());
  return *middle;
}

volatile long sink;

/// How the nodes of a kind lie, and how they are called.
template <class Node>
struct Calls {
  const char* state;
  Forest<Node> forest;
  std::size_t trees;  // a call
  int repeats;        // a round

  template <class Work>
  void each(Work&& work) const {
    for (std::size_t at = 0; at < forest.roots.size(); at += trees) work(std::span(forest.roots).subspan(at, trees));
  }
};

/// What numbering them costs, in its three ways, and what touching them does: said, and as a row.
template <class Set, class Node>
Json measured(const char* name, const Calls<Node>& calls, int vocabulary) {
  using Linearizer = cs::Linearizer<Node, Set>;
  const cs::FieldCheck checks[] = {{cs::Where::leaves, vocabulary, "words"}};
  const std::size_t nodes = calls.forest.nodes.size();
  const auto numbering = [&](cs::Workspace& workspace) {
    return per_node(nodes, calls.repeats, [&] {
      calls.each([&](auto roots) { sink = Linearizer::run(workspace, cortex::tree, checks, roots).num_batches; });
    });
  };
  cs::Workspace plain, sharing, filling;
  sharing.share_subtrees(true);
  filling.fill_levels(4);
  const double ns = numbering(plain), filled = numbering(filling), shared = numbering(sharing);
  std::size_t values = 0;
  calls.each(
      [&](auto roots) { values += std::size_t(Linearizer::run(sharing, cortex::tree, checks, roots).num_nodes); });
  const double touched = per_node(nodes, calls.repeats, [&] {
    calls.each([](std::span<const Node* const> roots) {
      long sum = 0;
      for (const Node* root : roots) sum += touch(root, sum);
      sink = sum;
    });
  });
  const double left = double(values) / double(nodes);
  std::fprintf(bench::talk(),
               "%-24s %-4s %6.2f ns/node, recursive touch %5.2f, ratio %.2f; small levels filled %6.2f ns/node; "
               "equal subtrees found %6.2f ns/node, %2.0f%% of the nodes left; %zu nodes in %zu batches of %zu trees\n",
               name, calls.state, ns, touched, ns / touched, filled, shared, 100 * left, nodes,
               calls.forest.roots.size() / calls.trees, calls.trees);
  return Json::object({{"nodes_of", name},
                       {"state", calls.state},
                       {"batch", calls.trees},
                       {"nodes", nodes},
                       {"ns", ns},
                       {"filled_ns", filled},
                       {"shared_ns", shared},
                       {"touch_ns", touched},
                       {"share_left", left}});
}

template <class Node, class Set>
void measure(std::vector<Json>& rows, const char* name, const std::vector<Shape>& shapes, int vocabulary) {
  const std::vector<Shape> first(shapes.begin(), shapes.begin() + 100);
  rows.push_back(measured<Set>(name, Calls<Node>{"hot", build<Node>(first, false), 10, 10}, vocabulary));
  rows.push_back(measured<Set>(name, Calls<Node>{"cold", build<Node>(shapes, true), shapes.size(), 1}, vocabulary));
}

Json::Fields measure_all(std::vector<Json>& rows, const bench::OtherWork& others, std::string path) {
  const auto sst = examples::find_sst();
  const bool is_sst = path.empty() && sst;
  if (path.empty())
    path = is_sst ? (*sst / "test.txt").string() : (examples::examples_directory() / "data" / "sentences.txt").string();
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be opened");
  std::unordered_map<std::string, int> words;
  std::vector<Shape> shapes;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) shapes.push_back(parse(line, words));
  if (shapes.size() < 100) throw std::runtime_error("fewer than 100 trees in " + path);
  std::fprintf(bench::talk(), "%zu trees of %s\n", shapes.size(), path.c_str());
  measure<Binary, BinarySet>(rows, "named children", shapes, int(words.size()));
  measure<Wide, WideSet>(rows, "std::vector of children", shapes, int(words.size()));
  // The figures are of the treebank if they are of its test split, as it is found; any other file is a file.
  return {{"data", is_sst ? "sst" : "other"}, {"busy", int(others.share() > 0.03)}};
}

void run(const std::string& path, const std::string& json) {
  bench::run_experiment("linearize", json,
                        [&](auto& rows, const auto& others) { return measure_all(rows, others, path); });
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, json;
  CLI::App app{"What linearization costs, in nanoseconds per node."};
  app.add_option("file", path, "Trees in PTB format; without it the treebank's test split, or the examples' sentences");
  app.add_option("--json", json,
                 "Write the results to this file, in which those of experiments stay (-: the standard output)");
  app.add_option("--rounds", rounds_of_work, "Rounds, whose median is told")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  return bench::run_program(app, "linearize", argc, argv, [&] { return run(path, json), 0; });
}
