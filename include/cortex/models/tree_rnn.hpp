// The TreeRNN: a plain recurrent layer over the sum of the children.
#pragma once

#include "cortex/models/cell.hpp"

namespace cortex::models {

/// Adds a TreeRNN to `m`, over what each node reads of its children:
///
///   h = tanh(W x + U sum of h_k + b)
///
/// `x(n, j)` is the input, an operator `[node, shape.input]` or a lambda; `kids(n)` a container of children, one
/// child, or with `cortex::parents` the parents. Weights:
///
///   W [hidden, input], U [hidden, hidden], b [hidden]
///
/// Gives the state h, `[node, hidden]` of `T`.
template <class T = float, class Node, class X, class Linked>
auto tree_rnn_cell(Model<Node>& m, const X& x, const Linked& kids, const CellShape& shape) {
  const Dim &D = shape.input, &H = shape.hidden;
  const Gate w = gate<T>(m, shape);
  auto h = m.template placeholder<T>(shape.prefix + "h", H);
  auto s = m.compute(shape.prefix + "s", H,
                     [&](auto n, auto i) { return sum_over(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute(shape.prefix + "body", H, [&](auto n, auto i) {
    return tanh(sum(D, [&](auto j) { return w.W(i, j) * x(n, j); }) +
                sum(H, [&](auto j) { return w.U(i, j) * s(n, j); }) + w.b(i));
  });
  return m.recursion(h, body);
}

/// The TreeRNN over words: `tree_rnn<Word>(word, kids, {.input = 256, .hidden = 256})`; `word` as in `tree_lstm`.
/// Weights: Emb [vocabulary, input] and those of `tree_rnn_cell`. Gives the program and its state h.
template <class Node, class T = float, class Word, class Linked>
auto tree_rnn(const Word& word, const Linked& kids, const Sizes& sizes, Structure structure = cortex::tree) {
  Model<Node> m("tree_rnn", structure);
  const CellShape shape{Dim("input", sizes.input), Dim("hidden", sizes.hidden)};
  auto x = input_of<T>(m, word, sizes.words(), shape.input);
  auto h = tree_rnn_cell<T>(m, x, kids, shape);
  return OneState{m.program(h), h};
}

}  // namespace cortex::models
