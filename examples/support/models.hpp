// The models of the examples, written with Cortex over the node type of ptb.hpp. Lessons 1 and 3 explain them line by
// line; recursion.hpp has the same functions by hand.
#pragma once

#include <cortex/cortex.hpp>

#include "ptb.hpp"

namespace examples {

inline constexpr auto left = cortex::child<&Phrase::left>;
inline constexpr auto right = cortex::child<&Phrase::right>;
inline constexpr auto kids = cortex::children<&Phrase::left, &Phrase::right>;
inline constexpr auto word = cortex::field<&Phrase::word>;

/// The running example of the paper (figure 1, listing 1): h = Emb[word] at a leaf, tanh(h_left + h_right) elsewhere.
inline auto tree_rnn(int hidden) {
  const cortex::Dim V{"vocabulary"}, H{"hidden", hidden};
  cortex::Model<Phrase> m("tree_rnn", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto rnn = m.placeholder<float>("rnn", H);
  auto leaf_case = m.compute("leaf_case", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto lh = m.compute("lh", H, [&](auto n, auto i) { return rnn(left(n), i); });
  auto rh = m.compute("rh", H, [&](auto n, auto i) { return rnn(right(n), i); });
  auto recursive_case = m.compute("recursive_case", H, [&](auto n, auto i) { return tanh(lh(n, i) + rh(n, i)); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf_case, recursive_case);
  return m.recursion_op(rnn, body);
}

/// The child-sum TreeLSTM (Tai, Socher and Manning 2015) with words at leaves only. States: "h", "c".
inline auto tree_lstm(int input, int hidden) {
  const cortex::Dim V{"vocabulary"}, E{"input", input}, H{"hidden", hidden};
  cortex::Model<Phrase> m("tree_lstm", cortex::tree);
  auto Emb = m.input<float>("Emb", V, E);
  auto W_i = m.input<float>("W_i", H, E), W_o = m.input<float>("W_o", H, E), W_u = m.input<float>("W_u", H, E);
  auto U_i = m.input<float>("U_i", H, H), U_o = m.input<float>("U_o", H, H), U_u = m.input<float>("U_u", H, H),
       U_f = m.input<float>("U_f", H, H);
  auto b_i = m.input<float>("b_i", H), b_o = m.input<float>("b_o", H), b_u = m.input<float>("b_u", H),
       b_f = m.input<float>("b_f", H);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);

  auto of_word = [&](const auto& W, const auto& b, auto n, auto i) {
    return sum(E, [&](auto j) { return W(i, j) * Emb(word(n), j); }) + b(i);
  };
  auto leaf_i = m.compute("leaf_i", H, [&](auto n, auto i) { return sigmoid(of_word(W_i, b_i, n, i)); });
  auto leaf_o = m.compute("leaf_o", H, [&](auto n, auto i) { return sigmoid(of_word(W_o, b_o, n, i)); });
  auto leaf_u = m.compute("leaf_u", H, [&](auto n, auto i) { return tanh(of_word(W_u, b_u, n, i)); });
  auto leaf_c = m.compute("leaf_c", H, [&](auto n, auto i) { return leaf_i(n, i) * leaf_u(n, i); });
  auto leaf_h = m.compute("leaf_h", H, [&](auto n, auto i) { return leaf_o(n, i) * tanh(leaf_c(n, i)); });

  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto of_sum = [&](const auto& U, const auto& b, auto n, auto i) {
    return sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + b(i);
  };
  auto rec_i = m.compute("rec_i", H, [&](auto n, auto i) { return sigmoid(of_sum(U_i, b_i, n, i)); });
  auto rec_o = m.compute("rec_o", H, [&](auto n, auto i) { return sigmoid(of_sum(U_o, b_o, n, i)); });
  auto rec_u = m.compute("rec_u", H, [&](auto n, auto i) { return tanh(of_sum(U_u, b_u, n, i)); });
  auto fc = m.compute("fc", H, [&](auto n, auto i) {
    return sum(kids(n),
               [&](auto k) { return sigmoid(sum(H, [&](auto j) { return U_f(i, j) * h(k, j); }) + b_f(i)) * c(k, i); });
  });
  auto rec_c = m.compute("rec_c", H, [&](auto n, auto i) { return rec_i(n, i) * rec_u(n, i) + fc(n, i); });
  auto rec_h = m.compute("rec_h", H, [&](auto n, auto i) { return rec_o(n, i) * tanh(rec_c(n, i)); });

  auto is_word = [](auto n) { return is_leaf(n); };
  auto h_body = m.if_then_else("h_body", is_word, leaf_h, rec_h);
  auto c_body = m.if_then_else("c_body", is_word, leaf_c, rec_c);
  return m.recursion_op(h, h_body, c, c_body);
}

/// Binds every weight of `weights` to a compiled TreeLSTM.
template <class Functor, class Weights>
void bind_all(Functor& model, const Weights& weights) {
  weights.each([&](const char* name, const auto& values) { model.bind(name, values); });
}

}  // namespace examples
