// Nodes as plain tables, made by hand or at random, and the linearizer's arrays of them, made in the most obvious way
// and without the linearizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "cortex/ra/node_view.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::test {

/// Nodes 0 .. n - 1, numbered in any order. Every node has an ordered list of children; named accessor a is its a-th
/// child, and container 0 is the whole list. Field 0 is `word`; field 1, if there is one, the row of `data`.
struct NodeTable final : ra::NodeView {
  std::vector<std::vector<int>> kids;
  std::vector<int> word;
  std::vector<std::vector<float>> data;

  int num_nodes() const override { return int(kids.size()); }
  int child(int accessor, int node) const override {
    const auto& list = kids[std::size_t(node)];
    return accessor < int(list.size()) ? list[std::size_t(accessor)] : -1;
  }
  std::vector<int> children(int, int node) const override { return kids[std::size_t(node)]; }
  double field(int accessor, int node, int k) const override {
    return accessor == 0 ? word[std::size_t(node)] : double(data[std::size_t(node)][std::size_t(k)]);
  }
  bool is_leaf(int node) const override { return kids[std::size_t(node)].empty(); }
};

/// `count` nodes in trees (or, with `shared`, a DAG) of up to `max_children` children: exactly that many at inner nodes
/// of a full one. Children have greater numbers than their parents.
inline NodeTable random_table(int count, int max_children, int words, std::mt19937& random, bool full = false,
                              bool shared = false) {
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  NodeTable table;
  table.kids.resize(std::size_t(count));
  for (int node = 0; node < count; ++node) table.word.push_back(below(words));
  int next = 1;  // the next node without a parent
  for (int node = 0; node < count; ++node) {
    next = std::max(next, node + 1);
    const int wanted = full ? max_children : below(max_children + 1);
    const bool fits = shared ? node + 1 < count : next + wanted <= count;
    if (!fits || (full && node > 0 && below(4) == 0)) continue;
    for (int k = 0; k < wanted; ++k)
      table.kids[std::size_t(node)].push_back(shared ? node + 1 + below(count - node - 1) : next++);
  }
  return table;
}

/// A list of `count` nodes; node 0 is the root.
inline NodeTable chain_table(int count) {
  NodeTable table;
  for (int node = 0; node < count; ++node) {
    table.kids.push_back(node + 1 < count ? std::vector<int>{node + 1} : std::vector<int>{});
    table.word.push_back(node % 7);
  }
  return table;
}

/// The arrays of a table's nodes as the linearizer numbers them: batches by height, leaves last. Every node without a
/// parent is a root. `number` tells where a node went.
class Linear {
 public:
  explicit Linear(const NodeTable& table, int named = 0) {
    const std::size_t n = table.kids.size();
    number_nodes(table);
    std::vector<int> node_of(n);
    for (std::size_t node = 0; node < n; ++node) node_of[std::size_t(number[node])] = int(node);
    begin_.push_back(0);
    for (std::size_t i = 0; i < n; ++i) {
      const auto node = std::size_t(node_of[i]);
      for (const int kid : table.kids[node]) child_of_edge_.push_back(number[std::size_t(kid)]);
      begin_.push_back(std::int32_t(child_of_edge_.size()));
      word_.push_back(table.word[node]);
      if (!table.data.empty()) append_row(table.data[node]);
    }
    for (int a = 0; a < named; ++a) {
      child_.emplace_back();
      for (std::size_t i = 0; i < n; ++i) {
        const int kid = table.child(a, node_of[i]);
        child_.back().push_back(kid < 0 ? std::int32_t(n) : number[std::size_t(kid)]);
      }
    }
    find_roots(table);
    point();
  }
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  std::vector<std::int32_t> number;  // [node of the table]
  structure::Arrays arrays;

 private:
  void number_nodes(const NodeTable& table) {
    const std::size_t n = table.kids.size();
    std::vector<int> height(n);
    for (std::size_t node = n; node-- > 0;)
      for (const int kid : table.kids[node]) height[node] = std::max(height[node], height[std::size_t(kid)] + 1);
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const int of_a = height[std::size_t(a)], of_b = height[std::size_t(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    number.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const int h = height[std::size_t(order[i])];
      number[std::size_t(order[i])] = std::int32_t(i);
      if (std::size_t(h) >= length_.size()) length_.resize(std::size_t(h) + 1), first_.resize(std::size_t(h) + 1);
      if (length_[std::size_t(h)]++ == 0) first_[std::size_t(h)] = std::int32_t(i);
      arrays.num_internal += h > 0;
    }
  }

  void append_row(const std::vector<float>& row) {
    stride_ = std::int32_t((row.size() + 15) / 16 * 16);
    data_.insert(data_.end(), row.begin(), row.end());
    data_.resize((data_.size() + 15) / 16 * 16);
  }

  void find_roots(const NodeTable& table) {
    std::vector<char> has_parent(table.kids.size());
    for (const auto& list : table.kids)
      for (const int kid : list) has_parent[std::size_t(kid)] = 1;
    for (std::size_t node = 0; node < has_parent.size(); ++node)
      if (!has_parent[node]) root_.push_back(number[node]);
  }

  void point() {
    arrays.num_nodes = std::int32_t(number.size());
    arrays.num_batches = std::int32_t(length_.size());
    arrays.num_roots = std::int32_t(root_.size());
    structure::Csr csr{begin_.data(), child_of_edge_.data(), std::int32_t(child_of_edge_.size()), 0};
    for (std::size_t b = 0; b < length_.size(); ++b) {
      arrays.max_batch = std::max(arrays.max_batch, length_[b]);
      if (b > 0) arrays.max_internal_batch = std::max(arrays.max_internal_batch, length_[b]);
      csr.max_batch_edges =
          std::max(csr.max_batch_edges, begin_[std::size_t(first_[b] + length_[b])] - begin_[std::size_t(first_[b])]);
    }
    for (const auto& list : child_) child_table_.push_back(list.data());
    children_.push_back(csr);
    fields_.push_back({word_.data(), 1});
    fields_.push_back({data_.data(), stride_});
    arrays.batch_begin = first_.data();
    arrays.batch_length = length_.data();
    arrays.root = root_.data();
    arrays.child = child_table_.data();
    arrays.children = children_.data();
    arrays.field = fields_.data();
  }

  std::vector<std::int32_t> first_, length_, root_, begin_, child_of_edge_, word_;
  std::vector<std::vector<std::int32_t>> child_;
  std::vector<const std::int32_t*> child_table_;
  std::vector<structure::Csr> children_;
  std::vector<structure::FieldArray> fields_;
  std::vector<float> data_;
  std::int32_t stride_ = 1;
};

}  // namespace cortex::test
