// MV-RNN, the matrix-vector recursive network (Socher et al. 2012, equations 2 to 4): each word, and each phrase, is a
// vector and a matrix that acts on its neighbour.
#pragma once

#include <string>

#include "cortex/models/cell.hpp"

namespace cortex::models {

/// The states of an MV-RNN: v `[node, hidden]`, and M `[node, hidden, hidden]` transposed: [node, column, row].
template <class Vector, class Matrix>
struct MvStates {
  Vector v;
  Matrix M_transposed;
};
template <class Vector, class Matrix>
MvStates(Vector, Matrix) -> MvStates<Vector, Matrix>;

/// An MV-RNN by itself; `v` is the first state.
template <class ProgramT, class Vector, class Matrix>
struct MvModel {
  ProgramT program;
  Vector v;
  Matrix M_transposed;
};
template <class P, class Vector, class Matrix>
MvModel(P, Vector, Matrix) -> MvModel<P, Vector, Matrix>;

/// Adds an MV-RNN to `m`, over binary trees:
///
///   leaf: v = x_v, M = x_M;   else: v = tanh(W_v [M_left v_right; M_right v_left] + b),  M = W_M [M_left; M_right] + B
///
/// `x_v(n, i)` and `x_M(n, i, j)` are the inputs at leaves, operators or lambdas. `left(n)` and `right(n)` are the
/// children: accessors, or lambdas such as `[](auto n) { return kids(n)[0]; }`. Weights:
///
///   W_v [hidden, 2, hidden], b [hidden], W_M [hidden, 2, hidden], B [hidden, hidden]
///
/// Gives the states v, and M by columns: the columns of all nodes of a level then run through W_M as one product.
template <class T = float, class Node, class Xv, class XM, class Left, class Right>
auto mv_rnn_cell(Model<Node>& m, const Xv& x_v, const XM& x_M, const Left& left, const Right& right, const Dim& H,
                 const std::string& prefix = "") {
  const std::string& p = prefix;
  const Dim side("side", 2);
  auto W_v = m.template input<T>(p + "W_v", H, side, H), W_M = m.template input<T>(p + "W_M", H, side, H);
  auto b = m.template input<T>(p + "b", H);
  auto B = m.template input<T>(p + "B", H, H);
  auto v = m.template placeholder<T>(p + "v", H);
  auto M = m.template placeholder<T>(p + "M_transposed", H, H);  // M(n, j, i): row i of column j

  auto leaf_v = m.compute(p + "leaf_v", H, [&](auto n, auto i) { return x_v(n, i); });
  auto leaf_M = m.compute(p + "leaf_M", H, H, [&](auto n, auto j, auto i) { return x_M(n, i, j); });
  auto of_right = m.compute(p + "M_left_v_right", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return M(left(n), j, i) * v(right(n), j); });
  });
  auto of_left = m.compute(p + "M_right_v_left", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return M(right(n), j, i) * v(left(n), j); });
  });
  auto inner_v = m.compute(p + "inner_v", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W_v(i, 0, j) * of_right(n, j); }) +
                sum(H, [&](auto j) { return W_v(i, 1, j) * of_left(n, j); }) + b(i));
  });
  auto inner_M = m.compute(p + "inner_M", H, H, [&](auto n, auto j, auto i) {
    return sum(H, [&](auto k) { return W_M(i, 0, k) * M(left(n), j, k); }) +
           sum(H, [&](auto k) { return W_M(i, 1, k) * M(right(n), j, k); }) + B(i, j);
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  auto [v_all, M_all] = m.recursion(v, m.if_then_else(p + "v_body", leaf, leaf_v, inner_v), M,
                                    m.if_then_else(p + "M_body", leaf, leaf_M, inner_M));
  return MvStates{v_all, M_all};
}

/// MV-RNN over words at leaves: `mv_rnn<Word>(word, left, right, {.hidden = 64})`. Weights: Emb_v [vocabulary, hidden],
/// Emb_M [vocabulary, hidden, hidden], looked up by the integer field `word`, and those of `mv_rnn_cell`. Gives the
/// program and its states v and M_transposed.
template <class Node, class T = float, class Word, class Left, class Right>
auto mv_rnn(const Word& word, const Left& left, const Right& right, const Sizes& sizes) {
  Model<Node> m("mv_rnn", cortex::tree);
  const Dim V = sizes.words(), H("hidden", sizes.hidden);
  auto Emb_v = m.template input<T>("Emb_v", V, H);
  auto Emb_M = m.template input<T>("Emb_M", V, H, H);
  auto [v, M] = mv_rnn_cell<T>(
      m, [&](auto n, auto i) { return Emb_v(word(n), i); },
      [&](auto n, auto i, auto j) { return Emb_M(word(n), i, j); }, left, right, H);
  return MvModel{m.program(v, M), v, M};
}

}  // namespace cortex::models
