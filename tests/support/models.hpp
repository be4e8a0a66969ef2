// Models that several tests use, written against the public DSL as a user would.
#pragma once

#include "cortex/dsl/model.hpp"
#include "cortex/structure/accessors.hpp"

namespace cortex::test {

/// A word of a binary parse tree: inner nodes have both children and no word.
struct Word {
  int id = -1;
  const Word* left = nullptr;
  const Word* right = nullptr;
};

inline constexpr auto left = cortex::child<&Word::left>;
inline constexpr auto right = cortex::child<&Word::right>;
inline constexpr auto word = cortex::field<&Word::id>;
inline constexpr auto kids = cortex::children<&Word::left, &Word::right>;

inline Dim hidden(int extent) { return Dim("hidden", extent); }

/// The paper's running example (Fig. 1, Listing 1).
inline auto tree_rnn(int extent) {
  Dim V{"vocabulary"}, H = hidden(extent);
  Model<Word> m("tree_rnn", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto rnn = m.placeholder<float>("rnn", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto lh = m.compute("lh", H, [&](auto n, auto i) { return rnn(left(n), i); });
  auto rh = m.compute("rh", H, [&](auto n, auto i) { return rnn(right(n), i); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return tanh(lh(n, i) + rh(n, i)); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, rec);
  return m.recursion_op(rnn, body);
}

/// A matrix for each child, and no two gates that read the same.
inline auto tree_fc(int extent) {
  Dim V{"vocabulary"}, H = hidden(extent);
  Model<Word> m("tree_fc", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), Wl = m.input<float>("Wl", H, H), Wr = m.input<float>("Wr", H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return Wl(i, j) * h(left(n), j); }) +
                sum(H, [&](auto j) { return Wr(i, j) * h(right(n), j); }));
  });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, rec);
  return m.recursion_op(h, body);
}

/// A matrix and a vector a phrase, which at words are rows of tables; matrices lie by columns, in their table too or
/// there by rows.
inline auto mv_phrases(int extent, bool table_by_rows = false) {
  Dim V{"vocabulary"}, H = hidden(extent);
  Model<Word> m("mv_phrases", cortex::tree);
  auto Emb_v = m.input<float>("Emb_v", V, H);
  auto Emb_M = m.input<float>("Emb_M", V, H, H);
  auto W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto v = m.placeholder<float>("v", H);
  auto M = m.placeholder<float>("M", H, H);
  auto leaf_v = m.compute("leaf_v", H, [&](auto n, auto i) { return Emb_v(word(n), i); });
  auto leaf_M = m.compute("leaf_M", H, H, [&](auto n, auto j, auto i) {
    return table_by_rows ? Emb_M(word(n), i, j) : Emb_M(word(n), j, i);
  });
  auto inner_v = m.compute("inner_v", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return M(left(n), j, i) * v(right(n), j); }));
  });
  auto inner_M = m.compute("inner_M", H, H, [&](auto n, auto j, auto i) {
    return sum(H, [&](auto k) { return W(i, k) * M(left(n), j, k); }) +
           sum(H, [&](auto k) { return U(i, k) * M(right(n), j, k); });
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  return m.recursion_op(v, m.if_then_else("v_body", leaf, leaf_v, inner_v), M,
                        m.if_then_else("M_body", leaf, leaf_M, inner_M));
}

/// Child-sum TreeLSTM (Tai et al. 2015) with words at leaves; states h and c.
inline auto tree_lstm(int extent) {
  Dim V{"vocabulary"}, H = hidden(extent);
  Model<Word> m("tree_lstm", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto Wi = m.input<float>("Wi", H, H), Wo = m.input<float>("Wo", H, H), Wu = m.input<float>("Wu", H, H);
  auto Ui = m.input<float>("Ui", H, H), Uo = m.input<float>("Uo", H, H), Uu = m.input<float>("Uu", H, H),
       Uf = m.input<float>("Uf", H, H);
  auto bi = m.input<float>("bi", H), bo = m.input<float>("bo", H), bu = m.input<float>("bu", H),
       bf = m.input<float>("bf", H);
  auto h = m.placeholder<float>("h", H);
  auto c = m.placeholder<float>("c", H);
  const auto of_word = [&](auto W, auto b) {
    return [=](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) + b(i); };
  };
  auto leaf_c = m.compute("leaf_c", H,
                          [&](auto n, auto i) { return sigmoid(of_word(Wi, bi)(n, i)) * tanh(of_word(Wu, bu)(n, i)); });
  auto leaf_h =
      m.compute("leaf_h", H, [&](auto n, auto i) { return sigmoid(of_word(Wo, bo)(n, i)) * tanh(leaf_c(n, i)); });
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  const auto of_sum = [&](auto U, auto b) {
    return [=](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + b(i); };
  };
  auto fc = m.compute("fc", H, [&](auto n, auto i) {
    return sum(kids(n),
               [&](auto k) { return sigmoid(sum(H, [&](auto j) { return Uf(i, j) * h(k, j); }) + bf(i)) * c(k, i); });
  });
  auto rec_c = m.compute("rec_c", H, [&](auto n, auto i) {
    return sigmoid(of_sum(Ui, bi)(n, i)) * tanh(of_sum(Uu, bu)(n, i)) + fc(n, i);
  });
  auto rec_h = m.compute("rec_h", H, [&](auto n, auto i) { return sigmoid(of_sum(Uo, bo)(n, i)) * tanh(rec_c(n, i)); });
  auto body_h = m.if_then_else(
      "body_h", [](auto n) { return is_leaf(n); }, leaf_h, rec_h);
  auto body_c = m.if_then_else(
      "body_c", [](auto n) { return is_leaf(n); }, leaf_c, rec_c);
  return m.recursion_op(h, body_h, c, body_c);
}

/// h = tanh(W x + U (sum of the children's h) + b) with a word at every node and no branch: at leaves the sum is empty.
inline auto dependency_rnn(int extent) {
  Dim V{"vocabulary"}, H = hidden(extent);
  Model<Word> m("dependency_rnn", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto wx =
      m.compute("wx", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }); });
  auto us = m.compute("us", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) { return tanh(wx(n, i) + us(n, i) + b(i)); });
  return m.recursion_op(h, body);
}

/// Child-sum TreeGRU (PAPER M3), words at leaves: two contractions a level, the second over what the first gives.
inline auto tree_gru(int extent) {
  Dim V{"vocabulary"}, H = hidden(extent);
  Model<Word> m("tree_gru", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto Ur = m.input<float>("Ur", H, H), Uz = m.input<float>("Uz", H, H), Uh = m.input<float>("Uh", H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto r =
      m.compute("r", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return Ur(i, j) * s(n, j); })); });
  auto z =
      m.compute("z", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return Uz(i, j) * s(n, j); })); });
  auto candidate = m.compute("candidate", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return Uh(i, j) * (r(n, j) * s(n, j)); }));
  });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return z(n, i) * s(n, i) + (1 - z(n, i)) * candidate(n, i); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, rec);
  return m.recursion_op(h, body);
}

/// Leaves have a state of their own that is the same for all: tanh(A h0), with h0 bound by the user.
inline auto common_initial_state(int extent) {
  Dim H = hidden(extent);
  Model<Word> m("common_initial_state", cortex::tree);
  auto A = m.input<float>("A", H, H);
  auto h0 = m.input<float>("h0", H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto, auto i) { return tanh(sum(H, [&](auto j) { return A(i, j) * h0(j); })); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return h(left(n), i) * h(right(n), i); });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, rec));
}

}  // namespace cortex::test
