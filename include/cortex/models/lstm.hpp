// The LSTM over sequences, with the equations, the weights and their names of torch.nn.LSTM: one direction or both, one
// layer or several.
#pragma once

#include <string>

#include "cortex/models/layers.hpp"

namespace cortex::models {

namespace detail {

template <class T, class Node, class LayerInput, class Previous>
auto lstm_layer(Model<Node>& m, const LayerInput& input, const Previous& previous, const Dim& H,
                const std::string& prefix, const std::string& suffix) {
  const auto named = [&](const char* name) { return prefix + name + suffix; };
  const Dim G("gates", 4);
  constexpr int in = 0, forget = 1, update = 2, out = 3;  // torch's order
  auto W_times_x = input.template times<T>(m, named("weight_ih"), G, H);
  auto U = m.template input<T>(named("weight_hh"), G, H, H);
  auto b_x = m.template input<T>(named("bias_ih"), G, H), b_h = m.template input<T>(named("bias_hh"), G, H);
  auto h = m.template placeholder<T>(named("h"), H), c = m.template placeholder<T>(named("c"), H);

  auto before = m.compute(named("h_before"), H,
                          [&](auto n, auto i) { return sum_over(previous(n), [&](auto p) { return h(p, i); }); });
  auto c_before = m.compute(named("c_before"), H,
                            [&](auto n, auto i) { return sum_over(previous(n), [&](auto p) { return c(p, i); }); });
  const auto linear = [&](int gate, auto n, auto i) {
    return W_times_x(gate, n, i) + sum(H, [&](auto j) { return U(gate, i, j) * before(n, j); }) +
           (b_x(gate, i) + b_h(gate, i));
  };
  auto i_gate = m.compute(named("i"), H, [&](auto n, auto i) { return sigmoid(linear(in, n, i)); });
  auto f_gate = m.compute(named("f"), H, [&](auto n, auto i) { return sigmoid(linear(forget, n, i)); });
  auto g_gate = m.compute(named("g"), H, [&](auto n, auto i) { return tanh(linear(update, n, i)); });
  auto o_gate = m.compute(named("o"), H, [&](auto n, auto i) { return sigmoid(linear(out, n, i)); });
  auto c_body = m.compute(named("c_body"), H,
                          [&](auto n, auto i) { return i_gate(n, i) * g_gate(n, i) + f_gate(n, i) * c_before(n, i); });
  auto h_body = m.compute(named("h_body"), H, [&](auto n, auto i) { return o_gate(n, i) * tanh(c_body(n, i)); });
  auto [h_all, c_all] = m.recursion(h, h_body, c, c_body);
  return LstmStates{h_all, c_all};
}

}  // namespace detail

/// Adds one layer of an LSTM to `m`, in one direction:
///
///   i, f, o = sigmoid(W x + b_ih + U h_before + b_hh);   g = tanh(W_g x + b_ih_g + U_g h_before + b_hh_g)
///   c = f c_before + i g;   h = o tanh(c)
///
/// `x(n, j)` is the input, an operator `[node, shape.input]` or a lambda. `previous(n)` is the step before: one child,
/// such as `optional_child<&Step::previous>`; for the other direction the step after, `cortex::parents<previous>`.
/// Weights, gates in the order i, f, g, o, so that torch's `[4 hidden, ...]` binds as it is:
///
///   weight_ih_l0 [4, hidden, input], weight_hh_l0 [4, hidden, hidden], bias_ih_l0, bias_hh_l0 [4, hidden]
///
/// `suffix` is what ends all names. Gives the states h and c, `[node, hidden]` of `T`.
template <class T = float, class Node, class X, class Previous>
auto lstm_cell(Model<Node>& m, const X& x, const Previous& previous, const CellShape& shape,
               const std::string& suffix = "_l0") {
  return detail::lstm_layer<T>(m, detail::Features{x, shape.input}, previous, shape.hidden, shape.prefix, suffix);
}

/// The LSTM over sequences: `lstm<Step>(word, previous, {.input = 256, .hidden = 256})`, of two layers
/// `lstm<Step, float, 2>(...)`. `previous` is the accessor of the step before, and a sequence's root its last step;
/// `word` as in `tree_lstm`. (Words that are no nodes become `Token`s: models/tokens.hpp.) Weights: Emb [vocabulary,
/// input] and those of `lstm_cell` for each layer, with the names of torch's state dict (weight_ih_l1 [4, hidden,
/// hidden]). Sequences may share their first steps if `structure` is `cortex::dag`. Gives the program and the states h
/// and c of the last layer.
template <class Node, class T = float, int Layers = 1, class Word, class Previous>
auto lstm(const Word& word, const Previous& previous, const Sizes& sizes, Structure structure = cortex::sequence) {
  Model<Node> m("lstm", structure);
  const Dim D("input", sizes.input), H("hidden", sizes.hidden);
  const auto layer = [&](const auto& input, int number) {
    return detail::lstm_layer<T>(m, input, previous, H, "", "_l" + std::to_string(number));
  };
  auto [h, c] = detail::stack<Layers>(layer, detail::Features{input_of<T>(m, word, sizes.words(), D), D}, H);
  return TwoStates{m.program(h, c), h, c};
}

/// The LSTM in both directions, each layer reading both of the one before; otherwise as `lstm`. Torch's output at a
/// step is h forward and then h reverse. Weights end in "_l0" and "_l0_reverse" and so on, those of later layers being
/// weight_ih_l1 [4, hidden, 2, hidden]. Gives the program and the last layer's states: forward.h, reverse.h, forward.c,
/// reverse.c.
template <class Node, class T = float, int Layers = 1, class Word, class Previous>
auto bidirectional_lstm(const Word& word, const Previous& previous, const Sizes& sizes) {
  Model<Node> m("bidirectional_lstm", cortex::sequence);
  const Dim D("input", sizes.input), H("hidden", sizes.hidden);
  const auto layer = [&](const auto& input, int number) {
    const std::string suffix = "_l" + std::to_string(number);
    auto forward = detail::lstm_layer<T>(m, input, previous, H, "", suffix);
    return Directions{forward, detail::lstm_layer<T>(m, input, detail::next_of<Previous>, H, "", suffix + "_reverse")};
  };
  auto [f, r] = detail::stack<Layers>(layer, detail::Features{input_of<T>(m, word, sizes.words(), D), D}, H);
  return BothDirections{m.program(f.h, r.h, f.c, r.c), f, r};
}

}  // namespace cortex::models
