// The GRU over sequences: with the equations, the weights and their names of torch.nn.GRU, and the one of the Cortex
// paper (Cho et al. 2014), whose reset gate comes before the product.
#pragma once

#include <string>

#include "cortex/models/layers.hpp"
#include "cortex/models/tree_gru.hpp"

namespace cortex::models {

namespace detail {

template <class T, class Node, class LayerInput, class Previous>
auto gru_layer(Model<Node>& m, const LayerInput& input, const Previous& previous, const Dim& H,
               const std::string& prefix, const std::string& suffix) {
  const auto named = [&](const char* name) { return prefix + name + suffix; };
  const Dim G("gates", 3);
  constexpr int reset = 0, update = 1, candidate = 2;  // torch's order
  auto W_times_x = input.template times<T>(m, named("weight_ih"), G, H);
  auto U = m.template input<T>(named("weight_hh"), G, H, H);
  auto b_x = m.template input<T>(named("bias_ih"), G, H), b_h = m.template input<T>(named("bias_hh"), G, H);
  auto h = m.template placeholder<T>(named("h"), H);

  auto before = m.compute(named("h_before"), H,
                          [&](auto n, auto i) { return sum_over(previous(n), [&](auto p) { return h(p, i); }); });
  const auto U_times_h = [&](int gate, auto n, auto i) {
    return sum(H, [&](auto j) { return U(gate, i, j) * before(n, j); });
  };
  const auto linear = [&](int gate, auto n, auto i) {
    return W_times_x(gate, n, i) + U_times_h(gate, n, i) + (b_x(gate, i) + b_h(gate, i));
  };
  auto r = m.compute(named("r"), H, [&](auto n, auto i) { return sigmoid(linear(reset, n, i)); });
  auto z = m.compute(named("z"), H, [&](auto n, auto i) { return sigmoid(linear(update, n, i)); });
  auto n_gate = m.compute(named("n"), H, [&](auto n, auto i) {
    return tanh(W_times_x(candidate, n, i) + b_x(candidate, i) +
                r(n, i) * (U_times_h(candidate, n, i) + b_h(candidate, i)));
  });
  auto body = m.compute(named("h_body"), H,
                        [&](auto n, auto i) { return (1 - z(n, i)) * n_gate(n, i) + z(n, i) * before(n, i); });
  auto h_all = m.recursion(h, body);
  return LayerState{h_all};
}

}  // namespace detail

/// Adds one layer of torch's GRU to `m`, in one direction:
///
///   r, z = sigmoid(W x + b_ih + U h_before + b_hh);   h' = tanh(W_n x + b_ih_n + r (U_n h_before + b_hh_n))
///   h = (1 - z) h' + z h_before
///
/// `x`, `previous` and `suffix` as in `lstm_cell`. Weights, gates in the order r, z, n:
///
///   weight_ih_l0 [3, hidden, input], weight_hh_l0 [3, hidden, hidden], bias_ih_l0, bias_hh_l0 [3, hidden]
///
/// Gives the state h, `[node, hidden]` of `T`.
template <class T = float, class Node, class X, class Previous>
auto gru_cell(Model<Node>& m, const X& x, const Previous& previous, const CellShape& shape,
              const std::string& suffix = "_l0") {
  return detail::gru_layer<T>(m, detail::Features{x, shape.input}, previous, shape.hidden, shape.prefix, suffix).h;
}

/// Torch's GRU over sequences: `gru<Step>(word, previous, {.input = 256, .hidden = 256})`, of two layers
/// `gru<Step, float, 2>(...)`. Arguments, and the names of weights, as in `lstm`. Gives the program and the last
/// layer's state h.
template <class Node, class T = float, int Layers = 1, class Word, class Previous>
auto gru(const Word& word, const Previous& previous, const Sizes& sizes, Structure structure = cortex::sequence) {
  Model<Node> m("gru", structure);
  const Dim D("input", sizes.input), H("hidden", sizes.hidden);
  const auto layer = [&](const auto& input, int number) {
    return detail::gru_layer<T>(m, input, previous, H, "", "_l" + std::to_string(number));
  };
  auto [h] = detail::stack<Layers>(layer, detail::Features{input_of<T>(m, word, sizes.words(), D), D}, H);
  return OneState{m.program(h), h};
}

/// Torch's GRU in both directions; as `bidirectional_lstm`. Gives the program and the last layer's forward.h and
/// reverse.h.
template <class Node, class T = float, int Layers = 1, class Word, class Previous>
auto bidirectional_gru(const Word& word, const Previous& previous, const Sizes& sizes) {
  Model<Node> m("bidirectional_gru", cortex::sequence);
  const Dim D("input", sizes.input), H("hidden", sizes.hidden);
  const auto layer = [&](const auto& input, int number) {
    const std::string suffix = "_l" + std::to_string(number);
    auto forward = detail::gru_layer<T>(m, input, previous, H, "", suffix);
    return Directions{forward, detail::gru_layer<T>(m, input, detail::next_of<Previous>, H, "", suffix + "_reverse")};
  };
  auto [f, r] = detail::stack<Layers>(layer, detail::Features{input_of<T>(m, word, sizes.words(), D), D}, H);
  return BothDirections{m.program(f.h, r.h), f, r};
}

/// The GRU whose reset gate comes before the product, over sequences:
///
///   r, z = sigmoid(W x + U h_before + b);   h' = tanh(W_h x + U_h (r h_before) + b_h);   h = z h_before + (1 - z) h'
///
/// A TreeGRU where every node has at most one child: as a cell it is `tree_gru_cell`, and weights are named as there.
template <class Node, class T = float, class Word, class Previous>
auto gru_reset_before(const Word& word, const Previous& previous, const Sizes& sizes,
                      Structure structure = cortex::sequence) {
  return detail::tree_gru<Node, T, false>("gru_reset_before", word, previous, sizes, structure);
}

}  // namespace cortex::models
