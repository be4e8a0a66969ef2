// The nodes of a call as the interpreter of the operator graph sees them, whatever they are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "cortex/ra/graph.hpp"

namespace cortex::ra {

/// Nodes numbered 0 .. num_nodes - 1 in any order. Accessors go by their number in the graph's group.
///
/// A test that starts from nodes of its own gathers them in a vector, keeps a map from address to position, and answers
/// from the nodes themselves, so that nothing of the linearizer is on the way:
///
///     struct Words : ra::NodeView {
///       std::vector<const Word*> nodes;  // every node once, in any order
///       std::map<const Word*, int> number;
///       int num_nodes() const override { return int(nodes.size()); }
///       int child(int a, int n) const override {
///         const Word* kid = a == 0 ? nodes[n]->left : nodes[n]->right;
///         return kid ? number.at(kid) : -1;
///       }
///       std::vector<int> children(int, int) const override { return {}; }
///       double field(int, int n, int) const override { return nodes[n]->id; }
///       bool is_leaf(int n) const override { return !nodes[n]->left; }
///     };
struct NodeView {
  virtual ~NodeView() = default;
  virtual int num_nodes() const = 0;
  /// The child through named accessor `accessor`, or -1.
  virtual int child(int accessor, int node) const = 0;
  /// The children in container `container`, in its order. Not asked for containers of parents or of members, which
  /// follow from the children.
  virtual std::vector<int> children(int container, int node) const = 0;
  /// Component `k` of a field, integer or floating-point.
  virtual double field(int accessor, int node, int k) const = 0;
  virtual bool is_leaf(int node) const = 0;
  /// The roots of the call, at which readouts are evaluated; all nodes unless overridden.
  virtual std::vector<int> roots() const {
    std::vector<int> all(static_cast<std::size_t>(num_nodes()));
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = int(n);
    return all;
  }
};

/// The linearizer's arrays as nodes; they and the graph have to outlive the view. `Arrays` is structure::Arrays, which
/// stands above this file, with the accessors in the graph's order.
template <class Arrays>
class ArraysView final : public NodeView {
 public:
  ArraysView(const Arrays& arrays, const Graph& graph) : arrays_(arrays), graph_(graph) {}

  int num_nodes() const override { return arrays_.num_nodes; }
  int child(int accessor, int node) const override {
    const std::int32_t result = arrays_.child[accessor][node];
    return result < arrays_.num_nodes ? result : -1;
  }
  std::vector<int> children(int container, int node) const override {
    const auto& csr = arrays_.children[container];
    return std::vector<int>(csr.child + csr.begin[node], csr.child + csr.begin[node + 1]);
  }
  double field(int accessor, int node, int k) const override {
    const auto& rows = arrays_.field[accessor];
    const std::int64_t at = std::int64_t(node) * rows.stride + k;
    switch (graph_.fields[std::size_t(accessor)].dtype) {
      case DType::f32: return double(static_cast<const float*>(rows.data)[at]);
      case DType::f64: return static_cast<const double*>(rows.data)[at];
      default: return static_cast<const std::int32_t*>(rows.data)[at];
    }
  }
  bool is_leaf(int node) const override { return node >= arrays_.num_internal; }
  std::vector<int> roots() const override { return std::vector<int>(arrays_.root, arrays_.root + arrays_.num_roots); }

 private:
  const Arrays& arrays_;
  const Graph& graph_;
};

}  // namespace cortex::ra
