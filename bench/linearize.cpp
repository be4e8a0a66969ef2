// What linearization costs: nanoseconds per node, with every check on, on the Stanford Sentiment Treebank.
//
//   linearize [a file of trees in PTB format]
//
// Without a file: test.txt of the treebank (CORTEX_SST, or beside the repository); where there is none, the examples'
// sentences.
//
// hot:  batches of 10 trees, ten such batches in turn, so that nodes come from the second-level cache as in a server;
// cold: all trees in one call, their nodes allocated in a random order.
// Each is measured as it is, and with equal subtrees found, which is what a model's calls do unless its schedule says
// not. Two node types are measured: a binary one with named children, and one with a std::vector of children. Each
// figure is the median of many short rounds, so that a neighbour who takes the core now and then does not show. The
// peer measured beside them is a plain recursive walk over the same nodes that follows the same links and adds up words
// and heights: what merely touching the nodes costs.
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

namespace {

namespace cs = cortex::structure;

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

/// The median of 301 rounds of `work`, in nanoseconds per node.
template <class Work>
double per_node(std::size_t nodes, int repeats, Work&& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rounds;
  for (int round = 0; round < 301; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) work();
    rounds.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / double(nodes) / repeats);
  }
  std::nth_element(rounds.begin(), rounds.begin() + 150, rounds.end());
  return rounds[150];
}

volatile long sink;

template <class Node, class Set>
void measure(const char* name, const std::vector<Shape>& shapes, int vocabulary) {
  using Linearizer = cs::Linearizer<Node, Set>;
  const cs::FieldCheck checks[] = {{cs::Where::leaves, vocabulary, "words"}};
  cs::Workspace workspace;
  auto plain = [](std::span<const Node* const> roots) {
    long sum = 0;
    for (const Node* root : roots) sum += touch(root, sum);
    sink = sum;
  };

  const std::vector<Shape> first(shapes.begin(), shapes.begin() + 100);
  const Forest<Node> hot = build<Node>(first, false);
  cs::Workspace sharing, filling;
  sharing.share_subtrees(true);
  filling.fill_levels(4);
  auto batches = [&](auto&& work) {
    for (std::size_t b = 0; b < 10; ++b) work(std::span(hot.roots).subspan(b * 10, 10));
  };
  const double hot_ns = per_node(hot.nodes.size(), 10, [&] {
    batches([&](auto roots) { sink = Linearizer::run(workspace, cortex::tree, checks, roots).num_batches; });
  });
  const double hot_shared = per_node(hot.nodes.size(), 10, [&] {
    batches([&](auto roots) { sink = Linearizer::run(sharing, cortex::tree, checks, roots).num_batches; });
  });
  const double hot_filled = per_node(hot.nodes.size(), 10, [&] {
    batches([&](auto roots) { sink = Linearizer::run(filling, cortex::tree, checks, roots).num_batches; });
  });
  std::size_t hot_values = 0;
  batches(
      [&](auto roots) { hot_values += std::size_t(Linearizer::run(sharing, cortex::tree, checks, roots).num_nodes); });
  const double hot_touch = per_node(hot.nodes.size(), 10, [&] { batches(plain); });

  const Forest<Node> cold = build<Node>(shapes, true);
  const double cold_ns = per_node(
      cold.nodes.size(), 1, [&] { sink = Linearizer::run(workspace, cortex::tree, checks, cold.roots).num_batches; });
  const double cold_shared = per_node(
      cold.nodes.size(), 1, [&] { sink = Linearizer::run(sharing, cortex::tree, checks, cold.roots).num_batches; });
  const double cold_filled = per_node(
      cold.nodes.size(), 1, [&] { sink = Linearizer::run(filling, cortex::tree, checks, cold.roots).num_batches; });
  const std::size_t cold_values = std::size_t(sharing.arrays().num_nodes);
  const double cold_touch = per_node(cold.nodes.size(), 1, [&] { plain(cold.roots); });
  auto print = [&](const char* state, double ns, double filled, double shared, std::size_t values, double touched,
                   std::size_t nodes, std::size_t batches_run, std::size_t trees) {
    std::printf(
        "%-24s %-4s %6.2f ns/node, recursive touch %5.2f, ratio %.2f; small levels filled %6.2f ns/node; "
        "equal subtrees found %6.2f ns/node, %2.0f%% of the nodes left; %zu nodes in %zu batches of %zu trees\n",
        name, state, ns, touched, ns / touched, filled, shared, 100.0 * double(values) / double(nodes), nodes,
        batches_run, trees);
  };
  print("hot", hot_ns, hot_filled, hot_shared, hot_values, hot_touch, hot.nodes.size(), 10, 10);
  print("cold", cold_ns, cold_filled, cold_shared, cold_values, cold_touch, cold.nodes.size(), 1, cold.roots.size());
}

}  // namespace

int main(int argc, char** argv) {
  const auto sst = examples::find_sst();
  const std::string path = argc > 1 ? argv[1]
                           : sst    ? (*sst / "test.txt").string()
                                    : (examples::examples_directory() / "data" / "sentences.txt").string();
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "linearize: %s cannot be opened\n", path.c_str());
    return 1;
  }
  std::unordered_map<std::string, int> words;
  std::vector<Shape> shapes;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) shapes.push_back(parse(line, words));
  if (shapes.size() < 100) {
    std::fprintf(stderr, "linearize: fewer than 100 trees in %s\n", path.c_str());
    return 1;
  }
  std::printf("%zu trees of %s\n", shapes.size(), path.c_str());
  measure<Binary, BinarySet>("named children", shapes, int(words.size()));
  measure<Wide, WideSet>("std::vector of children", shapes, int(words.size()));
}
