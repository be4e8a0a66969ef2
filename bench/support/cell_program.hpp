// Random cells in Cortex.
#pragma once

#include <string>
#include <vector>

#include "cortex_models.hpp"
#include "random_cells.hpp"

namespace bench {

namespace detail {

/// `f(child, i)` of both children added up: by name where each has its own matrices, and else in a fold.
template <bool nary, class N, class F>
auto sum_of_children(N n, F f) {
  if constexpr (nary)
    return f(left(n), 0) + f(right(n), 1);
  else
    return sum(kids(n), [&](auto k) { return f(k, 0); });
}

struct CellInputs {
  using Matrix = cortex::dsl::Input<2>;
  using Matrices = std::vector<Matrix>;  // one for each child, or one for all
  using Bias = cortex::dsl::Input<1>;

  Matrix Emb, W;
  Bias b_c;
  std::vector<Matrices> U;  // [gate]
  std::vector<Bias> b;      // [gate]
  Matrices C;
};

inline CellInputs inputs_of(const Cell& cell, cortex::Model<Node>& m, const cortex::Dim& H) {
  const auto matrices = [&](const std::string& name) {
    CellInputs::Matrices all;
    for (std::size_t k = 0; k < cell.matrices(); ++k) all.push_back(m.input<float>(cell.matrix(name, k), H, H));
    return all;
  };
  const cortex::Dim V("vocabulary", vocabulary);
  CellInputs w{m.input<float>("Emb", V, H), m.input<float>("W", H, H), m.input<float>("b_c", H), {}, {}, {}};
  for (std::size_t g = 0; g < cell.gates.size(); ++g) {
    w.U.push_back(matrices("U" + std::to_string(g)));
    w.b.push_back(m.input<float>("b" + std::to_string(g), H));
  }
  w.C = cell.candidate_of_m ? CellInputs::Matrices{m.input<float>("C", H, H)} : matrices("C");
  return w;
}

template <bool nary>
auto program_of(const Cell& cell, int hidden) {
  const cortex::Dim H("hidden", hidden);
  cortex::Model<Node> m("cell", cortex::tree);
  const CellInputs w = inputs_of(cell, m, H);
  auto h = m.placeholder<float>("h", H);
  auto s =
      m.compute("s", H, [&](auto n, auto i) { return sum_of_children<nary>(n, [&](auto k, int) { return h(k, i); }); });
  const auto of_children = [&](const CellInputs::Matrices& matrix, auto n, auto i) {
    if constexpr (nary)
      return sum_of_children<true>(n, [&](auto k, int which) {
        return sum(H, [&](auto j) { return matrix[std::size_t(which)](i, j) * h(k, j); });
      });
    else
      return sum(H, [&](auto j) { return matrix[0](i, j) * s(n, j); });
  };
  const auto activated = [](const Cell::Gate& gate, auto x) { return gate.tanh ? tanh(x) : sigmoid(x); };

  auto kept = m.compute("m", H, [&](auto n, auto i) {
    auto mean = 0.5F * s(n, i);
    if (!cell.gates_children() && !cell.greatest) return mean;
    if (!cell.gates_children()) {
      if constexpr (nary)
        return max(h(left(n), i), h(right(n), i));
      else
        return maximum(kids(n), [&](auto k) { return h(k, i); });
    }
    return sum_of_children<nary>(n, [&](auto k, int which) {
      auto gated = h(k, i);
      for (std::size_t g = 0; g < cell.gates.size(); ++g)
        if (cell.gates[g].of_children)
          gated =
              gated * activated(cell.gates[g],
                                sum(H, [&](auto j) { return w.U[g][std::size_t(which)](i, j) * h(k, j); }) + w.b[g](i));
      return gated;
    });
  });
  const auto gate = [&](std::size_t g) {
    return m.compute("g" + std::to_string(g), H,
                     [&](auto n, auto i) { return activated(cell.gates[g], of_children(w.U[g], n, i) + w.b[g](i)); });
  };
  std::vector<decltype(gate(0))> gates;  // of the node
  std::vector<bool> mixes;
  for (std::size_t g = 0; g < cell.gates.size(); ++g)
    if (!cell.gates[g].of_children) gates.push_back(gate(g)), mixes.push_back(cell.gates[g].mixes);
  auto candidate = m.compute("c", H, [&](auto n, auto i) {
    if (cell.candidate_of_m) return tanh(sum(H, [&](auto j) { return w.C[0](i, j) * kept(n, j); }) + w.b_c(i));
    return tanh(of_children(w.C, n, i) + w.b_c(i));
  });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    auto value = candidate(n, i);
    for (std::size_t g = 0; g < gates.size(); ++g)
      value = mixes[g] ? gates[g](n, i) * value + (1 - gates[g](n, i)) * kept(n, i) : gates[g](n, i) * value;
    return value;
  });
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return w.W(i, j) * w.Emb(word(n), j); }) + w.b_c(i));
  });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
}

}  // namespace detail

/// Calls `take` with the program of a cell.
template <class Take>
decltype(auto) with_program(const Cell& cell, int hidden, Take take) {
  return cell.nary ? take(detail::program_of<true>(cell, hidden)) : take(detail::program_of<false>(cell, hidden));
}

}  // namespace bench
