// The models benchmarked, in Cortex: those of the zoo, and two that differ from the zoo's.
#pragma once

#include <cortex/cortex.hpp>
#include <cortex/models/gru.hpp>
#include <cortex/models/lstm.hpp>
#include <cortex/models/tree_fc.hpp>
#include <cortex/models/tree_gru.hpp>
#include <cortex/models/tree_lstm.hpp>
#include <cortex/models/tree_rnn.hpp>
#include <utility>

#include "data.hpp"

namespace bench {

inline constexpr auto word = cortex::field<&Node::word>;
inline constexpr auto left = cortex::child<&Node::left>;
inline constexpr auto right = cortex::child<&Node::right>;
inline constexpr auto kids = cortex::children<&Node::left, &Node::right>;
inline constexpr auto previous = cortex::optional_child<&Node::left>;

/// h = tanh(e + U s + b), e being the word's vector.
inline auto dag_rnn(int hidden, int words) {
  const cortex::Dim V("vocabulary", words), H("hidden", hidden);
  cortex::Model<Node> m("dag_rnn", cortex::dag);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(Emb(word(n), i) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + b(i));
  });
  return m.recursion_op(h, body);
}

/// MV-RNN without biases. Matrices lie by columns, M(n, j, i) being row i of column j, in the table too.
inline auto mv_rnn(int hidden, int words) {
  const cortex::Dim V("vocabulary", words), H("hidden", hidden), side("side", 2);
  cortex::Model<Node> m("mv_rnn", cortex::tree);
  auto Emb_v = m.input<float>("Emb_v", V, H);
  auto Emb_M = m.input<float>("Emb_M", V, H, H);
  auto W_v = m.input<float>("W_v", H, side, H), W_M = m.input<float>("W_M", H, side, H);
  auto v = m.placeholder<float>("v", H);
  auto M = m.placeholder<float>("M", H, H);
  auto leaf_v = m.compute("leaf_v", H, [&](auto n, auto i) { return Emb_v(word(n), i); });
  auto leaf_M = m.compute("leaf_M", H, H, [&](auto n, auto j, auto i) { return Emb_M(word(n), j, i); });
  auto of_right = m.compute("M_left_v_right", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return M(left(n), j, i) * v(right(n), j); });
  });
  auto of_left = m.compute("M_right_v_left", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return M(right(n), j, i) * v(left(n), j); });
  });
  auto inner_v = m.compute("inner_v", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W_v(i, 0, j) * of_right(n, j); }) +
                sum(H, [&](auto j) { return W_v(i, 1, j) * of_left(n, j); }));
  });
  auto inner_M = m.compute("inner_M", H, H, [&](auto n, auto j, auto i) {
    return sum(H, [&](auto k) { return W_M(i, 0, k) * M(left(n), j, k); }) +
           sum(H, [&](auto k) { return W_M(i, 1, k) * M(right(n), j, k); });
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  auto v_body = m.if_then_else("v_body", leaf, leaf_v, inner_v);
  auto M_body = m.if_then_else("M_body", leaf, leaf_M, inner_M);
  return m.recursion_op(v, v_body, M, M_body);
}

/// A cell that is in no zoo: gates of both children, whose mixture a candidate is made of.
inline auto gated(int hidden, int words) {
  const cortex::Dim V("vocabulary", words), H("hidden", hidden);
  cortex::Model<Node> m("gated", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H), C = m.input<float>("C", H, H);
  auto A_l = m.input<float>("A_l", H, H), A_r = m.input<float>("A_r", H, H);
  auto Z_l = m.input<float>("Z_l", H, H), Z_r = m.input<float>("Z_r", H, H);
  auto b_a = m.input<float>("b_a", H), b_z = m.input<float>("b_z", H), b_c = m.input<float>("b_c", H);
  auto h = m.placeholder<float>("h", H);
  const auto gate = [&](const char* name, auto& of_left, auto& of_right, auto& b) {
    return m.compute(name, H, [&](auto n, auto i) {
      return sigmoid(sum(H, [&](auto j) { return of_left(i, j) * h(left(n), j); }) +
                     sum(H, [&](auto j) { return of_right(i, j) * h(right(n), j); }) + b(i));
    });
  };
  auto a = gate("a", A_l, A_r, b_a), z = gate("z", Z_l, Z_r, b_z);
  auto mixed =
      m.compute("mixed", H, [&](auto n, auto i) { return a(n, i) * h(left(n), i) + (1 - a(n, i)) * h(right(n), i); });
  auto candidate = m.compute("candidate", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return C(i, j) * mixed(n, j); }) + b_c(i));
  });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    return z(n, i) * candidate(n, i) + (1 - z(n, i)) * max(h(left(n), i), h(right(n), i));
  });
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) + b_c(i));
  });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
}

/// Calls `take` with the program of a model for so many words.
template <class Take>
decltype(auto) with_program(Model model, int hidden, Take take, int words = vocabulary) {
  using namespace cortex::models;
  const Sizes sizes{.vocabulary = words, .input = hidden, .hidden = hidden};
  switch (model) {
    case Model::treefc: return take(tree_fc<Node>(word, left, right, sizes).program);
    case Model::dagrnn: return take(dag_rnn(hidden, words));
    case Model::treegru: return take(tree_gru<Node>(at_leaves(word), kids, sizes).program);
    case Model::treelstm: return take(tree_lstm<Node>(at_leaves(word), kids, sizes).program);
    case Model::mvrnn: return take(mv_rnn(hidden, words));
    case Model::gated: return take(gated(hidden, words));
    case Model::lstm: return take(cortex::models::lstm<Node>(word, previous, sizes).program);
    case Model::treernn: return take(tree_rnn<Node>(at_leaves(word), kids, sizes).program);
    case Model::simpletreegru: return take(simple_tree_gru<Node>(at_leaves(word), kids, sizes).program);
    default: return take(cortex::models::gru<Node>(word, previous, sizes).program);
  }
}
/// With that which has such weights.
template <class Take>
decltype(auto) with_program(const Weights& weights, Take take) {
  return with_program(weights.model, int(weights.hidden), std::move(take), weights.words);
}

}  // namespace bench
