// The child-sum TreeGRU, and SimpleTreeGRU, which leaves out the children's share of the new state (the Cortex paper,
// section 6): a GRU whose reset gate comes before the product, over trees.
#pragma once

#include <string>

#include "cortex/models/cell.hpp"

namespace cortex::models {

namespace detail {

template <class T, bool Simple, class Node, class X, class Kids>
auto tree_gru_cell(Model<Node>& m, const X& x, const Kids& kids, const CellShape& shape) {
  const Dim &D = shape.input, &H = shape.hidden;
  const std::string& p = shape.prefix;
  const Gate w_r = gate<T>(m, shape, "r"), w_z = gate<T>(m, shape, "z"), w_h = gate<T>(m, shape, "h");
  auto h = m.template placeholder<T>(p + "h", H);

  auto s = m.compute(p + "s", H, [&](auto n, auto i) { return sum_over(kids(n), [&](auto k) { return h(k, i); }); });
  const auto linear = [&](const Gate& w, auto n, auto i, const auto& state) {
    return sum(D, [&](auto j) { return w.W(i, j) * x(n, j); }) + sum(H, [&](auto j) { return w.U(i, j) * state(j); }) +
           w.b(i);
  };
  const auto of_sum = [&](const Gate& w, auto n, auto i) { return linear(w, n, i, [&](auto j) { return s(n, j); }); };

  auto r = m.compute(p + "r", H, [&](auto n, auto i) { return sigmoid(of_sum(w_r, n, i)); });
  auto z = m.compute(p + "z", H, [&](auto n, auto i) { return sigmoid(of_sum(w_z, n, i)); });
  auto candidate = m.compute(p + "candidate", H, [&](auto n, auto i) {
    return tanh(linear(w_h, n, i, [&](auto j) { return r(n, j) * s(n, j); }));
  });
  auto body = m.compute(p + "body", H, [&](auto n, auto i) {
    if constexpr (Simple)
      return (1 - z(n, i)) * candidate(n, i);
    else
      return z(n, i) * s(n, i) + (1 - z(n, i)) * candidate(n, i);
  });
  return m.recursion(h, body);
}

template <class Node, class T, bool Simple, class Word, class Kids>
auto tree_gru(const char* name, const Word& word, const Kids& kids, const Sizes& sizes, Structure structure) {
  Model<Node> m(name, structure);
  const CellShape shape{Dim("input", sizes.input), Dim("hidden", sizes.hidden)};
  auto x = input_of<T>(m, word, sizes.words(), shape.input);
  auto h = tree_gru_cell<T, Simple>(m, x, kids, shape);
  return OneState{m.program(h), h};
}

}  // namespace detail

/// Adds a child-sum TreeGRU to `m`:
///
///   s = sum of h_k;   r, z = sigmoid(W x + U s + b);   h' = tanh(W_h x + U_h (r s) + b_h);   h = z s + (1 - z) h'
///
/// `x(n, j)` is the input, an operator `[node, shape.input]` or a lambda; `kids(n)` a container of children, one child,
/// or with `cortex::parents` the parents. Weights, for each gate g of r, z, h:
///
///   W_g [hidden, input], U_g [hidden, hidden], b_g [hidden]
///
/// Gives the state h, `[node, hidden]` of `T`.
template <class T = float, class Node, class X, class Kids>
auto tree_gru_cell(Model<Node>& m, const X& x, const Kids& kids, const CellShape& shape) {
  return detail::tree_gru_cell<T, false>(m, x, kids, shape);
}

/// The same with h = (1 - z) h'.
template <class T = float, class Node, class X, class Kids>
auto simple_tree_gru_cell(Model<Node>& m, const X& x, const Kids& kids, const CellShape& shape) {
  return detail::tree_gru_cell<T, true>(m, x, kids, shape);
}

/// The child-sum TreeGRU over words: `tree_gru<Word>(word, kids, {.input = 256, .hidden = 256})`; `word` as in
/// `tree_lstm`. Weights: Emb [vocabulary, input] and those of `tree_gru_cell`. Gives the program and its state h.
template <class Node, class T = float, class Word, class Kids>
auto tree_gru(const Word& word, const Kids& kids, const Sizes& sizes, Structure structure = cortex::tree) {
  return detail::tree_gru<Node, T, false>("tree_gru", word, kids, sizes, structure);
}

/// The same with h = (1 - z) h'.
template <class Node, class T = float, class Word, class Kids>
auto simple_tree_gru(const Word& word, const Kids& kids, const Sizes& sizes, Structure structure = cortex::tree) {
  return detail::tree_gru<Node, T, true>("simple_tree_gru", word, kids, sizes, structure);
}

}  // namespace cortex::models
