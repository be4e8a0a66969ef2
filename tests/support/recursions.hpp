// The models of graphs.hpp as plain recursion in C++, in a number type of choice.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "support/graphs.hpp"
#include "support/node_tables.hpp"

namespace cortex::test::graphs {

/// tree_rnn at one node.
template <class Real>
std::vector<Real> tree_rnn_at(const NodeTable& nodes, int node, const ra::Weights& weights) {
  const ra::Tensor& emb = weights.at("Emb");
  const int H = int(emb.shape[1]);
  std::vector<Real> h(static_cast<std::size_t>(H));
  const auto child = [&](int k) {
    return nodes.child(k, node) < 0 ? std::vector<Real>(std::size_t(H))
                                    : tree_rnn_at<Real>(nodes, nodes.child(k, node), weights);
  };
  if (nodes.is_leaf(node)) {
    for (int i = 0; i < H; ++i)
      h[std::size_t(i)] = Real(emb.values[std::size_t(nodes.word[std::size_t(node)] * H + i)]);
    return h;
  }
  const std::vector<Real> l = child(0), r = child(1);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = std::tanh(l[i] + r[i]);
  return h;
}

/// How a recursion in C++ rounds: sums from front or from back, fused or not.
enum class Order { forward, fused, backward };

template <class Real>
struct TreeLstm {
  struct State {
    std::vector<Real> h, c;
  };

  const NodeTable& nodes;
  const ra::Weights& weights;
  Order order = Order::forward;

  State at(int node) const {
    std::vector<State> kids;
    for (const int kid : nodes.kids[std::size_t(node)]) kids.push_back(at(kid));
    const std::size_t H = weights.at("b_i").values.size();
    std::vector<Real> x = row(node), s(H);
    for (const State& kid : kids)
      for (std::size_t i = 0; i < H; ++i) s[i] += kid.h[i];
    State result{std::vector<Real>(H), std::vector<Real>(H)};
    for (std::size_t i = 0; i < H; ++i) {
      Real fc = 0;
      for (const State& kid : kids) fc += sigmoid(affine("f", i, x, kid.h)) * kid.c[i];
      result.c[i] = sigmoid(affine("i", i, x, s)) * std::tanh(affine("u", i, x, s)) + fc;
      result.h[i] = sigmoid(affine("o", i, x, s)) * std::tanh(result.c[i]);
    }
    return result;
  }

 private:
  static Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }

  std::vector<Real> row(int node) const {
    const ra::Tensor& emb = weights.at("Emb");
    const auto begin = emb.values.begin() + nodes.word[std::size_t(node)] * emb.shape[1];
    return std::vector<Real>(begin, begin + emb.shape[1]);
  }

  Real dot(const ra::Tensor& W, std::size_t i, const std::vector<Real>& x) const {
    const std::size_t n = x.size();
    Real sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t at = order == Order::backward ? n - 1 - j : j;
      const Real w = Real(W.values[i * n + at]);
      if (order == Order::fused)
        sum = std::fma(w, x[at], sum);
      else
        sum += w * x[at];
    }
    return sum;
  }

  Real affine(const std::string& gate, std::size_t i, const std::vector<Real>& x, const std::vector<Real>& h) const {
    return dot(weights.at("W_" + gate), i, x) + dot(weights.at("U_" + gate), i, h) +
           Real(weights.at("b_" + gate).values[i]);
  }
};

}  // namespace cortex::test::graphs
