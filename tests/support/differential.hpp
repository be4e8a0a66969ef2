// Running a random model on a random forest, and what the equations say that it gives.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cortex/ra/print.hpp"
#include "support/interpreters.hpp"
#include "support/random_models.hpp"

namespace cortex::test {

/// A forest as the interpreter of the operator graph sees it: the vertices themselves, nothing of the linearizer.
struct ForestView final : ra::NodeView {
  explicit ForestView(const Forest& forest) {
    for (const auto& vertex : forest.all) {
      number.emplace(vertex.get(), int(nodes.size()));
      nodes.push_back(vertex.get());
    }
    for (const Vertex* root : forest.roots) root_numbers.push_back(number.at(root));
  }
  int num_nodes() const override { return int(nodes.size()); }
  int child(int accessor, int node) const override {
    const Vertex* kid = accessor == 0 ? nodes[std::size_t(node)]->first : nodes[std::size_t(node)]->second;
    return kid ? number.at(kid) : -1;
  }
  std::vector<int> children(int, int node) const override {
    std::vector<int> result;
    for (const Vertex* kid : nodes[std::size_t(node)]->kids) result.push_back(number.at(kid));
    return result;
  }
  double field(int accessor, int node, int k) const override {
    return accessor == 0 ? nodes[std::size_t(node)]->word : double(nodes[std::size_t(node)]->feature[std::size_t(k)]);
  }
  bool is_leaf(int node) const override { return nodes[std::size_t(node)]->kids.empty(); }
  std::vector<int> roots() const override { return root_numbers; }

  std::vector<const Vertex*> nodes;
  std::map<const Vertex*, int> number;
  std::vector<int> root_numbers;
};

/// The weights of a random model as its interpreter takes them.
inline ra::Weights interpreter_weights(const GraphCase& model) {
  ra::Weights result;
  for (const ra::Op& op : model.graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    const std::vector<float>& values = model.weights.at(op.name());
    ra::Tensor tensor{{}, std::vector<double>(values.begin(), values.end())};
    for (const Dim& dim : op.dims) tensor.shape.push_back(dim.kind() == DimKind::open ? num_words : dim.extent());
    result.emplace(op.name(), std::move(tensor));
  }
  return result;
}

/// The forest as text: each vertex with its word and its children's numbers.
inline std::string describe(const Forest& forest) {
  const ForestView view(forest);
  std::ostringstream out;
  for (int n = 0; n < view.num_nodes(); ++n) {
    out << "  " << n << ": word " << view.nodes[std::size_t(n)]->word << ", children";
    for (const int kid : view.children(0, n)) out << " " << kid;
    out << "\n";
  }
  out << "  roots";
  for (const Vertex* root : forest.roots) out << " " << view.number.at(root);
  out << "\n";
  return out.str();
}

}  // namespace cortex::test
