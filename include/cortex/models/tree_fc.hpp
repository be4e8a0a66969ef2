// TreeFC, the fully connected layer over binary trees of Looks et al. (TensorFlow Fold, 2017), as the Cortex paper runs
// it.
#pragma once

#include <string>

#include "cortex/models/cell.hpp"

namespace cortex::models {

/// Adds a TreeFC to `m`, over binary trees:
///
///   leaf: h = x;   else: h = relu(W_0 h_left + W_1 h_right + b)
///
/// `x(n, i)` is the input at leaves, an operator `[node, hidden]` or a lambda. `left(n)` and `right(n)` are the
/// children: accessors, or lambdas such as `[](auto n) { return kids(n)[0]; }`. Weights, W_0 and W_1 being halves of
/// one:
///
///   W [hidden, 2, hidden], b [hidden]
///
/// Gives the state h, `[node, hidden]` of `T`.
template <class T = float, class Node, class X, class Left, class Right>
auto tree_fc_cell(Model<Node>& m, const X& x, const Left& left, const Right& right, const Dim& H,
                  const std::string& prefix = "") {
  const Dim side("side", 2);
  auto W = m.template input<T>(prefix + "W", H, side, H);
  auto b = m.template input<T>(prefix + "b", H);
  auto h = m.template placeholder<T>(prefix + "h", H);
  auto leaf = m.compute(prefix + "leaf", H, [&](auto n, auto i) { return x(n, i); });
  auto inner = m.compute(prefix + "inner", H, [&](auto n, auto i) {
    return relu(sum(H, [&](auto j) { return W(i, 0, j) * h(left(n), j); }) +
                sum(H, [&](auto j) { return W(i, 1, j) * h(right(n), j); }) + b(i));
  });
  auto body = m.if_then_else(
      prefix + "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  return m.recursion(h, body);
}

/// TreeFC over words at leaves: `tree_fc<Word>(word, left, right, {.hidden = 256})`. Weights: Emb [vocabulary, hidden],
/// if `word` is an integer field, and those of `tree_fc_cell`; the input is as large as the state. Gives the program
/// and its state h.
template <class Node, class T = float, class Word, class Left, class Right>
auto tree_fc(const Word& word, const Left& left, const Right& right, const Sizes& sizes) {
  Model<Node> m("tree_fc", cortex::tree);
  const Dim H("hidden", sizes.hidden);
  auto x = input_of<T>(m, word, sizes.words(), H);
  auto h = tree_fc_cell<T>(m, x, left, right, H);
  return OneState{m.program(h), h};
}

}  // namespace cortex::models
