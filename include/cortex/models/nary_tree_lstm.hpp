// The N-ary TreeLSTM (Tai, Socher and Manning 2015, equations 9 to 14): children have positions, and each position
// weights of its own.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cortex/models/cell.hpp"

namespace cortex::models {

/// Adds an N-ary TreeLSTM to `m`, sums being over the positions l:
///
///   i, o = sigmoid(W x + sum of U_l h_l + b);   u = tanh(W_u x + sum of U_u,l h_l + b_u)
///   f_k = sigmoid(W_f x + sum of U_f,kl h_l + b_f);   c = i u + sum of f_k c_k;   h = o tanh(c)
///
/// `x(n, j)` is the input, an operator `[node, shape.input]` or a lambda. `kids` are the children by position, N
/// accessors or lambdas: `std::tuple{left, right}`, with `optional_child` where one may be absent; that contributes
/// nothing. Weights, for each gate g of i, f, o, u:
///
///   W_g [hidden, input], b_g [hidden], U_i, U_o, U_u [N, hidden, hidden], U_f [N, N, hidden, hidden]
///
/// Gives the states h and c, `[node, hidden]` of `T`.
template <class T = float, class Node, class X, class... Kid>
auto nary_tree_lstm_cell(Model<Node>& m, const X& x, const std::tuple<Kid...>& kids, const CellShape& shape) {
  constexpr int N = sizeof...(Kid);
  static_assert(N > 0, "an N-ary TreeLSTM needs its children: std::tuple{left, right}");
  const Dim &D = shape.input, &H = shape.hidden, P("position", N);
  const std::string& p = shape.prefix;
  const auto W = [&](const char* g) { return m.template input<T>(p + "W_" + g, H, D); };
  const auto U = [&](const char* g) { return m.template input<T>(p + "U_" + g, P, H, H); };
  const auto b = [&](const char* g) { return m.template input<T>(p + "b_" + g, H); };
  auto W_i = W("i"), W_f = W("f"), W_o = W("o"), W_u = W("u");
  auto U_i = U("i"), U_o = U("o"), U_u = U("u");
  auto U_f = m.template input<T>(p + "U_f", P, P, H, H);
  auto b_i = b("i"), b_f = b("f"), b_o = b("o"), b_u = b("u");
  auto h = m.template placeholder<T>(p + "h", H), c = m.template placeholder<T>(p + "c", H);

  // The sum of `f(child at position l, l)`.
  const auto over_positions = [&](auto n, const auto& f) {
    return [&]<std::size_t... l>(std::index_sequence<l...>) { return (... + f(std::get<l>(kids)(n), int(l))); }
    (std::index_sequence_for<Kid...>());
  };
  const auto linear = [&](const auto& W_g, const auto& U_g, const auto& b_g, auto n, auto i) {
    return sum(D, [&](auto j) { return W_g(i, j) * x(n, j); }) +
           over_positions(n, [&](auto k, int l) { return sum(H, [&](auto j) { return U_g(l, i, j) * h(k, j); }); }) +
           b_g(i);
  };
  auto in = m.compute(p + "i", H, [&](auto n, auto i) { return sigmoid(linear(W_i, U_i, b_i, n, i)); });
  auto out = m.compute(p + "o", H, [&](auto n, auto i) { return sigmoid(linear(W_o, U_o, b_o, n, i)); });
  auto update = m.compute(p + "u", H, [&](auto n, auto i) { return tanh(linear(W_u, U_u, b_u, n, i)); });
  const auto forget = [&](int k) {
    const auto U_fk = [&](int l, auto i, auto j) { return U_f(k, l, i, j); };
    return m.compute(p + "f" + std::to_string(k), H,
                     [&](auto n, auto i) { return sigmoid(linear(W_f, U_fk, b_f, n, i)); });
  };
  std::vector<decltype(forget(0))> f;
  for (int k = 0; k < N; ++k) f.push_back(forget(k));
  auto c_body = m.compute(p + "c_body", H, [&](auto n, auto i) {
    return in(n, i) * update(n, i) +
           over_positions(n, [&](auto kid, int k) { return f[std::size_t(k)](n, i) * c(kid, i); });
  });
  auto h_body = m.compute(p + "h_body", H, [&](auto n, auto i) { return out(n, i) * tanh(c_body(n, i)); });
  auto [h_all, c_all] = m.recursion(h, h_body, c, c_body);
  return LstmStates{h_all, c_all};
}

/// The N-ary TreeLSTM over words: `nary_tree_lstm<Word>(word, std::tuple{left, right}, {.input = 256, .hidden = 256})`;
/// `word` as in `tree_lstm`. Weights: Emb [vocabulary, input] and those of `nary_tree_lstm_cell`. Gives the program and
/// its states h and c.
template <class Node, class T = float, class Word, class... Kid>
auto nary_tree_lstm(const Word& word, const std::tuple<Kid...>& kids, const Sizes& sizes,
                    Structure structure = cortex::tree) {
  Model<Node> m("nary_tree_lstm", structure);
  const CellShape shape{Dim("input", sizes.input), Dim("hidden", sizes.hidden)};
  auto x = input_of<T>(m, word, sizes.words(), shape.input);
  auto [h, c] = nary_tree_lstm_cell<T>(m, x, kids, shape);
  return TwoStates{m.program(h, c), h, c};
}

}  // namespace cortex::models
