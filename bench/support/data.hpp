// The structures that models run over: ten batches of trees, of grids or of sequences.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/support/ptb.hpp"
#include "models.hpp"

namespace bench {

/// A node of every structure here. In a tree it has both children or none; in a grid `left` and `right` are the
/// neighbours before it in its row and in its column, if there are any; in a sequence `left` is the step before.
struct Node {
  int word = -1;  // -1 at the inner nodes of trees
  int index = 0;  // its number in its batch; peers may look up by it what Cortex finds by itself
  const Node* left = nullptr;
  const Node* right = nullptr;
};
using Roots = std::vector<const Node*>;

/// Batches of one size, ten where nothing else is said.
struct Batches {
  std::deque<Node> nodes;  // never moved
  std::vector<Roots> roots;
  std::vector<std::size_t> counts;  // nodes in each batch
  int words = vocabulary;           // that there are

  Batches() = default;
  Batches(Batches&&) = default;
  Batches(const Batches&) = delete;  // links would lead into the original

  void begin_batch() { roots.emplace_back(), counts.push_back(0); }
  const Node* add(int word, const Node* left = nullptr, const Node* right = nullptr) {
    return &nodes.emplace_back(Node{word, int(counts.back()++), left, right});
  }
  double mean_nodes() const { return double(nodes.size()) / double(roots.size()); }
};

enum class Trees { random, sst };

namespace detail {

/// Words in a sentence of the Stanford Sentiment Treebank's test split, at a hundred equal steps from the shortest to
/// the longest.
inline constexpr std::array<int, 100> sst_words{
    3,  4,  5,  6,  6,  6,  7,  7,  7,  8,  8,  8,  8,  9,  9,  9,  10, 10, 10, 10, 11, 11, 11, 12, 12,
    12, 13, 13, 13, 13, 14, 14, 14, 15, 15, 15, 15, 15, 16, 16, 16, 17, 17, 17, 17, 18, 18, 18, 18, 18,
    19, 19, 19, 19, 20, 20, 20, 20, 21, 21, 21, 22, 22, 22, 22, 23, 23, 23, 23, 24, 24, 24, 24, 25, 25,
    25, 26, 26, 26, 27, 27, 27, 28, 28, 28, 29, 29, 30, 31, 31, 32, 32, 33, 34, 35, 36, 37, 38, 40, 44};

/// A random binary tree of so many words: neighbours are joined, as in phrases, each pair equally likely.
inline const Node* random_tree(Batches& batches, int words, std::mt19937& random) {
  std::vector<const Node*> open;
  for (int i = 0; i < words; ++i) open.push_back(batches.add(int(random() % vocabulary)));
  while (open.size() > 1) {
    const std::size_t at = random() % (open.size() - 1);
    open[at] = batches.add(-1, open[at], open[at + 1]);
    open.erase(open.begin() + std::ptrdiff_t(at) + 1);
  }
  return open[0];
}

inline const Node* perfect_tree(Batches& batches, int height, std::mt19937& random) {
  if (height == 0) return batches.add(int(random() % vocabulary));
  const Node* const left = perfect_tree(batches, height - 1, random);
  return batches.add(-1, left, perfect_tree(batches, height - 1, random));
}

inline const Node* grid(Batches& batches, int rows, int columns, std::mt19937& random) {
  std::vector<const Node*> above(std::size_t(columns), nullptr);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      above[std::size_t(c)] =
          batches.add(int(random() % vocabulary), c ? above[std::size_t(c) - 1] : nullptr, above[std::size_t(c)]);
  return above.back();
}

inline const Node* sequence(Batches& batches, int length, std::mt19937& random) {
  const Node* last = nullptr;
  for (int i = 0; i < length; ++i) last = batches.add(int(random() % vocabulary), last);
  return last;
}

inline const Node* copy_of(Batches& batches, const examples::Phrase* phrase) {
  if (!phrase->left) return batches.add(phrase->word);
  const Node* const left = copy_of(batches, phrase->left);
  return batches.add(-1, left, copy_of(batches, phrase->right));
}

/// `count` batches of `size` structures, dealt in turn, so that each batch gets its share of sorted ones.
/// `make(batches, i, of)` makes number i.
template <class Make>
Batches deal(std::size_t count, std::size_t size, Make make) {
  Batches batches;
  for (std::size_t b = 0; b < count; ++b) {
    batches.begin_batch();
    for (std::size_t i = 0; i < size; ++i) batches.roots.back().push_back(make(batches, i * count + b, size * count));
  }
  return batches;
}

/// Trees of the treebank's test split, with all words of that, that stand for the whole by their sizes: those at equal
/// distances in the order of size.
inline Batches sst_batches(std::size_t count, std::size_t size) {
  const auto directory = examples::find_sst();
  if (!directory)
    throw std::runtime_error("the Stanford Sentiment Treebank was not found: give its directory in CORTEX_SST");
  examples::Treebank bank;
  examples::read_ptb(*directory / "test.txt", bank);
  std::vector<std::pair<long, std::size_t>> sorted;  // by size, then as they stand in the treebank
  for (const examples::Phrase* tree : bank.trees) sorted.emplace_back(examples::size_of(tree).nodes, sorted.size());
  std::sort(sorted.begin(), sorted.end());
  Batches batches = deal(count, size, [&](Batches& all, std::size_t i, std::size_t of) {
    return copy_of(all, bank.trees[sorted[(2 * i + 1) * sorted.size() / (2 * of)].second]);
  });
  batches.words = int(bank.vocabulary.size());
  return batches;
}

}  // namespace detail

/// Batches of `size` random binary trees of `words` words each.
inline Batches trees_of(int words, std::size_t size, std::size_t count = 10) {
  std::mt19937 random(3);
  return detail::deal(count, size, [&](Batches& batches, std::size_t, std::size_t) {
    return detail::random_tree(batches, words, random);
  });
}

/// What `model` runs over, in batches of `size` roots.
inline Batches batches_for(Model model, std::size_t size, Trees trees = Trees::random, std::size_t count = 10) {
  std::mt19937 random(3);
  switch (model) {
    case Model::treefc:
      return detail::deal(count, size,
                          [&](Batches& b, std::size_t, std::size_t) { return detail::perfect_tree(b, 7, random); });
    case Model::dagrnn:
      return detail::deal(count, size,
                          [&](Batches& b, std::size_t, std::size_t) { return detail::grid(b, 10, 10, random); });
    case Model::lstm:
    case Model::gru:
      return detail::deal(count, size,
                          [&](Batches& b, std::size_t, std::size_t) { return detail::sequence(b, 100, random); });
    default: break;
  }
  if (trees == Trees::sst) return detail::sst_batches(count, size);
  return detail::deal(count, size, [&](Batches& b, std::size_t i, std::size_t of) {
    return detail::random_tree(b, detail::sst_words[(2 * i + 1) * detail::sst_words.size() / (2 * of)], random);
  });
}

}  // namespace bench
