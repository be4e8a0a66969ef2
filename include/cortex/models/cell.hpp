// What the models of the zoo share: sizes, inputs, and folds over whatever a node reads.
//
// A model comes in two forms. As a cell it adds its recursion to a model of yours and gives you the states:
//
//   cortex::Model<Word> m("mine", cortex::tree);
//   auto [h, c] = cortex::models::tree_lstm_cell(m, x, kids, {.input = D, .hidden = H});
//   auto mean = m.readout<float>("mean", H, [&](auto r, auto i) {
//     return sum(cortex::nodes(r), [&](auto n) { return h(n, i); }) / num_children(cortex::nodes(r));
//   });
//   auto f = cortex::compile(m.program(mean));
//
// and by itself it is a whole program over words:
//
//   auto m = cortex::models::tree_lstm<Word>(word, kids, {.input = 256, .hidden = 256});
//   auto f = cortex::compile(m.program);
//   f.bind("U_i", values);
//   auto r = f(roots);  // keep it: what root() gives is a view into it
//   r.root(0, m.c);
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "cortex/dsl/model.hpp"
#include "cortex/structure/accessors.hpp"

namespace cortex::models {

/// The sizes of a whole model. A vocabulary of 0 is as large as the embedding table that is bound.
struct Sizes {
  std::int64_t vocabulary = 0, input = 0, hidden = 0;

  Dim words() const { return vocabulary != 0 ? Dim("vocabulary", vocabulary) : Dim("vocabulary"); }
};

/// The dimensions of a cell, and what stands before the names of its weights, states and operators, which are unique in
/// a model: two cells in one model need different prefixes, such as "left." and "right.".
struct CellShape {
  Dim input, hidden;
  std::string prefix = "";
};

/// The states of an LSTM, both `[node, hidden]`.
template <class H, class C>
struct LstmStates {
  H h;
  C c;
};
template <class H, class C>
LstmStates(H, C) -> LstmStates<H, C>;

/// A whole model of one state: its program, and the state `[node, hidden]` as results name it.
template <class ProgramT, class H>
struct OneState {
  ProgramT program;
  H h;
};
template <class P, class H>
OneState(P, H) -> OneState<P, H>;

/// A whole model with the states of an LSTM, of which `h` is the first.
template <class ProgramT, class H, class C>
struct TwoStates {
  ProgramT program;
  H h;
  C c;
};
template <class P, class H, class C>
TwoStates(P, H, C) -> TwoStates<P, H, C>;

/// Marks an input that leaves alone have; see `at_leaves`.
template <class Accessor>
struct AtLeaves {
  Accessor accessor;
};

/// The input of a whole model that only leaves have, such as the words of a constituency tree:
/// `tree_lstm<Word>(at_leaves(word), kids, sizes)`. At other nodes x is 0, and the field is not read.
template <class Accessor>
AtLeaves<Accessor> at_leaves(const Accessor& accessor) {
  return {accessor};
}

/// The input x `[node, D]` of a whole model, by the type of the field: of an integer its row of the weight "Emb"
/// `[V, D]`, of an array of `T` the array itself.
template <class T, class Node, class Accessor>
auto input_of(Model<Node>& m, const Accessor& accessor, const Dim& V, const Dim& D) {
  if constexpr (is_float(Accessor::template dtype<Node>())) {
    return m.field("x", accessor, D);
  } else {
    auto Emb = m.template input<T>("Emb", V, D);
    return m.compute("x", D, [&](auto n, auto i) { return Emb(accessor(n), i); });
  }
}
/// The same at leaves; elsewhere 0.
template <class T, class Node, class Accessor>
auto input_of(Model<Node>& m, const AtLeaves<Accessor>& leaves, const Dim& V, const Dim& D) {
  auto x = input_of<T>(m, leaves.accessor, V, D);
  auto at_leaf = m.compute("x_at_leaf", D, [&](auto n, auto i) { return x(n, i); });
  auto none = m.compute("x_elsewhere", D, [](auto, auto) { return cast<T>(0); });
  return m.if_then_else(
      "x_or_0", [](auto n) { return is_leaf(n); }, at_leaf, none);
}

/// The sum of `f` over what a link leads to: all of a container (children, parents), or the one child. Where there is
/// none it is 0.
template <class Linked, class F>
auto sum_over(const Linked& linked, F&& f) {
  if constexpr (dsl::is_children<Linked>)
    return sum(linked, std::forward<F>(f));
  else
    return f(linked);
}

/// The weights of a gate: W `[hidden, input]`, U `[hidden, hidden]`, b `[hidden]`.
struct Gate {
  Input<2> W, U;
  Input<1> b;
};

/// The weights "W_<name>", "U_<name>", "b_<name>" (without a name "W", "U", "b").
template <class T, class Node>
Gate gate(Model<Node>& m, const CellShape& shape, const std::string& name = "") {
  const std::string end = name.empty() ? "" : "_" + name;
  return {m.template input<T>(shape.prefix + "W" + end, shape.hidden, shape.input),
          m.template input<T>(shape.prefix + "U" + end, shape.hidden, shape.hidden),
          m.template input<T>(shape.prefix + "b" + end, shape.hidden)};
}

}  // namespace cortex::models
