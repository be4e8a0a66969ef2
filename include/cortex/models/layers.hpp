// Layers of sequence models as torch.nn stacks them: what a layer reads, and how layers follow each other.
#pragma once

#include <string>
#include <type_traits>

#include "cortex/models/cell.hpp"

namespace cortex::models::detail {

/// A layer's input: an operator `x(n, j)` over one dimension.
template <class X>
struct Features {
  X x;
  Dim size;

  /// The weight `[gates, hidden, input]`, and its product with the input, `(gate, n, i)`.
  template <class T, class Node>
  auto times(Model<Node>& m, const std::string& weight, const Dim& G, const Dim& H) const {
    auto W = m.template input<T>(weight, G, H, size);
    return [W, x = x, size = size](int gate, auto n, auto i) {
      return sum(size, [&](auto j) { return W(gate, i, j) * x(n, j); });
    };
  }
};
template <class X>
Features(X, Dim) -> Features<X>;

/// The states of both directions side by side, the input of a later layer that goes both ways.
template <class Forward, class Reverse>
struct BothWays {
  Forward forward;
  Reverse reverse;
  Dim size;

  /// As above; torch's `[gates * hidden, 2 * hidden]` is `[gates, hidden, 2, hidden]` here, the same numbers.
  template <class T, class Node>
  auto times(Model<Node>& m, const std::string& weight, const Dim& G, const Dim& H) const {
    auto W = m.template input<T>(weight, G, H, Dim("directions", 2), size);
    return [W, both = *this](int gate, auto n, auto i) {
      return sum(both.size, [&](auto j) { return W(gate, i, 0, j) * both.forward(n, j); }) +
             sum(both.size, [&](auto j) { return W(gate, i, 1, j) * both.reverse(n, j); });
    };
  }
};
template <class F, class R>
BothWays(F, R, Dim) -> BothWays<F, R>;

/// Calls `layer(input, number)` for the layers number .. Count - 1, each with the h of the one before, and gives what
/// the last gives.
template <int Count, int Number = 0, class Layer, class Input>
auto stack(const Layer& layer, const Input& input, const Dim& H) {
  static_assert(Count > 0, "a model has at least one layer");
  auto states = layer(input, Number);
  if constexpr (Number + 1 == Count)
    return states;
  else if constexpr (requires { states.reverse; })
    return stack<Count, Number + 1>(layer, BothWays{states.forward.h, states.reverse.h, H}, H);
  else
    return stack<Count, Number + 1>(layer, Features{states.h, H}, H);
}

/// The state of a layer that has but one.
template <class H>
struct LayerState {
  H h;
};
template <class H>
LayerState(H) -> LayerState<H>;

/// The accessor of the steps that come after, by that of the step before.
template <class Previous>
inline constexpr auto next_of = cortex::parents<std::remove_cvref_t<Previous>{}>;

}  // namespace cortex::models::detail

namespace cortex::models {

/// The states of two directions over a sequence, each with an `h`.
template <class Forward, class Reverse>
struct Directions {
  Forward forward;
  Reverse reverse;
};
template <class F, class R>
Directions(F, R) -> Directions<F, R>;

/// A whole model in both directions: its program and the last layer's states, `forward.h`, `reverse.h`. Calls give
/// forward.h first.
template <class ProgramT, class Forward, class Reverse>
struct BothDirections {
  ProgramT program;
  Forward forward;
  Reverse reverse;
};
template <class P, class F, class R>
BothDirections(P, F, R) -> BothDirections<P, F, R>;

}  // namespace cortex::models
