// The numbering that systems written by hand batch by: rows of one height follow each other, leaves first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "data.hpp"

namespace bench {

/// Rows for nodes, so that each level is one range of rows and children stand above their parents.
class LevelOrder {
 public:
  /// `shared`: whether a node may have several parents.
  explicit LevelOrder(bool shared) : shared_(shared) {}

  void number(const Roots& roots) {
    left_at_.clear(), right_at_.clear();
    if (shared_)
      depth_first(roots);
    else
      breadth_first(roots);
    sort_by_height();
    for (std::size_t i = 0; i < roots.size(); ++i) root_[i] = row_[std::size_t(root_[i])];
  }

  std::size_t count() const { return nodes_.size(); }
  std::size_t levels() const { return begin_.size() - 1; }
  std::size_t begin(std::size_t level) const { return begin_[level]; }
  std::size_t rows(std::size_t level) const { return begin_[level + 1] - begin_[level]; }
  std::size_t most_rows() const {
    std::size_t most = 0;
    for (std::size_t l = 0; l < levels(); ++l) most = std::max(most, rows(l));
    return most;
  }
  // By row; -1 where there is none.
  int left(std::size_t row) const { return left_[row]; }
  int right(std::size_t row) const { return right_[row]; }
  int word(std::size_t row) const { return word_[row]; }
  /// By root.
  std::size_t root(std::size_t i) const { return std::size_t(root_[i]); }

 private:
  /// Nodes with their children behind them. Positions stand in `left_at_` and `right_at_`.
  void breadth_first(const Roots& roots) {
    nodes_.assign(roots.begin(), roots.end());
    root_.resize(roots.size());
    for (std::size_t i = 0; i < roots.size(); ++i) root_[i] = int(i);
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const Node* const node = nodes_[at];
      const auto follow = [&](const Node* child) {
        if (!child) return -1;
        nodes_.push_back(child);
        return int(nodes_.size()) - 1;
      };
      left_at_.push_back(follow(node->left));
      right_at_.push_back(follow(node->right));
    }
  }

  /// The same where nodes are met again: those done are known by their index. Backwards, parents come behind children.
  void depth_first(const Roots& roots) {
    nodes_.clear();
    place_.clear();
    for (const Node* root : roots) {
      stack_.assign(1, root);
      while (!stack_.empty()) {
        const Node* const node = stack_.back();
        const std::size_t index = std::size_t(node->index);
        if (index >= place_.size()) place_.resize(index + 1, -1);
        if (place_[index] >= 0) {
          stack_.pop_back();
          continue;
        }
        const std::size_t before = stack_.size();
        for (const Node* child : {node->left, node->right})
          if (child && (std::size_t(child->index) >= place_.size() || place_[std::size_t(child->index)] < 0))
            stack_.push_back(child);
        if (stack_.size() > before) continue;
        place_[index] = int(nodes_.size());
        nodes_.push_back(node);
        stack_.pop_back();
      }
    }
    std::reverse(nodes_.begin(), nodes_.end());
    const int last = int(nodes_.size()) - 1;
    const auto place = [&](const Node* node) { return node ? last - place_[std::size_t(node->index)] : -1; };
    for (const Node* node : nodes_) left_at_.push_back(place(node->left)), right_at_.push_back(place(node->right));
    root_.clear();
    for (const Node* root : roots) root_.push_back(place(root));
  }

  /// Heights backwards over the nodes, then a counting sort.
  void sort_by_height() {
    const std::size_t count = nodes_.size();
    height_.resize(count), row_.resize(count), word_.resize(count), left_.resize(count), right_.resize(count);
    begin_.assign(1, 0);
    for (std::size_t at = count; at-- > 0;) {
      int height = 0;
      for (const int child : {left_at_[at], right_at_[at]})
        if (child >= 0) height = std::max(height, height_[std::size_t(child)] + 1);
      height_[at] = height;
      if (std::size_t(height) + 2 > begin_.size()) begin_.resize(std::size_t(height) + 2);
      ++begin_[std::size_t(height) + 1];
    }
    for (std::size_t level = 1; level < begin_.size(); ++level) begin_[level] += begin_[level - 1];
    next_.assign(begin_.begin(), begin_.end());
    const auto row_of = [&](int at) { return at < 0 ? -1 : row_[std::size_t(at)]; };
    for (std::size_t at = count; at-- > 0;) {  // children before parents: their rows are known
      const std::size_t row = next_[std::size_t(height_[at])]++;
      row_[at] = int(row);
      left_[row] = row_of(left_at_[at]);
      right_[row] = row_of(right_at_[at]);
      word_[row] = nodes_[at]->word;
    }
  }

  bool shared_;
  std::vector<const Node*> nodes_, stack_;
  std::vector<int> left_at_, right_at_, height_, row_;  // by place in `nodes_`
  std::vector<int> place_;                              // by index of the node
  std::vector<int> word_, left_, right_, root_;
  std::vector<std::size_t> begin_, next_;  // by level: its first row
};

}  // namespace bench
