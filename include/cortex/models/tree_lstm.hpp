// The child-sum TreeLSTM (Tai, Socher and Manning 2015, equations 2 to 8): any number of children, in any order.
#pragma once

#include <string>

#include "cortex/models/cell.hpp"

namespace cortex::models {

/// Adds a child-sum TreeLSTM to `m`:
///
///   s = sum of h_k;   i, o = sigmoid(W x + U s + b);   u = tanh(W_u x + U_u s + b_u)
///   f_k = sigmoid(W_f x + U_f h_k + b_f);   c = i u + sum of f_k c_k;   h = o tanh(c)
///
/// `x(n, j)` is the input, an operator `[node, shape.input]` or a lambda, and `kids(n)` what the node reads: a
/// container of children, one child, or with `cortex::parents` the parents. Weights, for each gate g of i, f, o, u:
///
///   W_g [hidden, input], U_g [hidden, hidden], b_g [hidden]
///
/// Gives the states h and c, `[node, hidden]` of `T`, to read in operators of your own and in results.
template <class T = float, class Node, class X, class Kids>
auto tree_lstm_cell(Model<Node>& m, const X& x, const Kids& kids, const CellShape& shape) {
  const Dim &D = shape.input, &H = shape.hidden;
  const std::string& p = shape.prefix;
  const Gate w_i = gate<T>(m, shape, "i"), w_f = gate<T>(m, shape, "f"), w_o = gate<T>(m, shape, "o"),
             w_u = gate<T>(m, shape, "u");
  auto h = m.template placeholder<T>(p + "h", H), c = m.template placeholder<T>(p + "c", H);

  auto s = m.compute(p + "s", H, [&](auto n, auto i) { return sum_over(kids(n), [&](auto k) { return h(k, i); }); });
  const auto linear = [&](const Gate& w, auto n, auto i, const auto& state) {
    return sum(D, [&](auto j) { return w.W(i, j) * x(n, j); }) + sum(H, [&](auto j) { return w.U(i, j) * state(j); }) +
           w.b(i);
  };
  const auto of_sum = [&](const Gate& w, auto n, auto i) { return linear(w, n, i, [&](auto j) { return s(n, j); }); };

  auto in = m.compute(p + "i", H, [&](auto n, auto i) { return sigmoid(of_sum(w_i, n, i)); });
  auto out = m.compute(p + "o", H, [&](auto n, auto i) { return sigmoid(of_sum(w_o, n, i)); });
  auto update = m.compute(p + "u", H, [&](auto n, auto i) { return tanh(of_sum(w_u, n, i)); });
  auto kept = m.compute(p + "fc", H, [&](auto n, auto i) {
    return sum_over(kids(n),
                    [&](auto k) { return sigmoid(linear(w_f, n, i, [&](auto j) { return h(k, j); })) * c(k, i); });
  });
  auto c_body = m.compute(p + "c_body", H, [&](auto n, auto i) { return in(n, i) * update(n, i) + kept(n, i); });
  auto h_body = m.compute(p + "h_body", H, [&](auto n, auto i) { return out(n, i) * tanh(c_body(n, i)); });
  auto [h_all, c_all] = m.recursion(h, h_body, c, c_body);
  return LstmStates{h_all, c_all};
}

/// The child-sum TreeLSTM over words: `tree_lstm<Word>(word, kids, {.input = 256, .hidden = 256})`. `word` is an
/// integer field, looked up in Emb [vocabulary, input], or an array field, the input itself; `at_leaves(word)` where
/// leaves alone have one. Weights: Emb and those of `tree_lstm_cell`. Gives the program and its states h and c.
template <class Node, class T = float, class Word, class Kids>
auto tree_lstm(const Word& word, const Kids& kids, const Sizes& sizes, Structure structure = cortex::tree) {
  Model<Node> m("tree_lstm", structure);
  const CellShape shape{Dim("input", sizes.input), Dim("hidden", sizes.hidden)};
  auto x = input_of<T>(m, word, sizes.words(), shape.input);
  auto [h, c] = tree_lstm_cell<T>(m, x, kids, shape);
  return TwoStates{m.program(h, c), h, c};
}

}  // namespace cortex::models
