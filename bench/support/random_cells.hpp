// Gated cells that are in no zoo, drawn at random: what the compiler reaches where nobody has looked. Over binary
// trees, with words at leaves, where h = tanh(W x + b_c); h_k are the states of the children k:
//
//   g = f(sum over k of U_k h_k + b)                       each gate of the node, f being sigmoid or tanh
//   g_k = f(U_k h_k + b)                                   each gate of the children
//   m = sum over k of h_k times its gates                  or, without such gates, the children's mean or greatest
//   c = tanh(C m + b_c) or tanh(sum over k of C_k h_k + b_c)
//   h = c, times a gate of the node, or mixed with m by one, g h + (1 - g) m, for one after the other
//
// In an N-ary cell children have matrices of their own, in a child-sum cell one, which multiplies the sum of states.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../../examples/support/recursion.hpp"
#include "floor.hpp"
#include "system.hpp"

namespace bench {

struct Cell {
  struct Gate {
    bool of_children = false, tanh = false;
    bool mixes = false;  // of the node's: whether it mixes or multiplies
  };
  bool nary = false;
  std::vector<Gate> gates;      // 1 to 4
  bool greatest = false;        // whether m, without gates of children, is the greatest of them
  bool candidate_of_m = false;  // or of the children's states
  std::size_t matrices() const { return nary ? 2 : 1; }
  bool gates_children() const {
    return std::any_of(gates.begin(), gates.end(), [](const Gate& gate) { return gate.of_children; });
  }
  /// A matrix of gate number `gate`, or "C" of children.
  std::string matrix(const std::string& of, std::size_t child) const { return nary ? of + "_" + "lr"[child] : of; }
};

/// The next cell. The generator's own numbers are the same everywhere; distributions are not.
inline Cell random_cell(std::mt19937& random) {
  const auto either = [&] { return random() % 2 == 1; };
  Cell cell;
  cell.nary = either();
  cell.gates.resize(1 + random() % 4);
  for (Cell::Gate& gate : cell.gates) gate.of_children = either(), gate.tanh = either(), gate.mixes = either();
  cell.greatest = either();
  const bool mixed = std::any_of(cell.gates.begin(), cell.gates.end(),
                                 [](const Cell::Gate& gate) { return !gate.of_children && gate.mixes; });
  cell.candidate_of_m = either() || (cell.gates_children() && !mixed);  // no gate is in vain
  return cell;
}

inline std::string description(const Cell& cell) {
  std::string text = cell.nary ? "N-ary" : "child-sum";
  for (const Cell::Gate& gate : cell.gates)
    text += std::string(", ") + (gate.tanh ? "tanh" : "sigmoid") +
            (gate.of_children ? " of children"
             : gate.mixes     ? " mixes"
                              : " multiplies");
  text += cell.gates_children() ? "" : cell.greatest ? ", m the greatest" : ", m the mean";
  return text + (cell.candidate_of_m ? ", candidate of m" : ", candidate of children");
}

/// Weights by the names that the cell's program gives them.
inline Weights random_weights(const Cell& cell, int hidden) {
  Weights w{Model::gated, std::size_t(hidden), {}};
  const std::size_t H = w.hidden;
  const float unit = 1.0F / std::sqrt(float(hidden));
  unsigned seed = 1;
  const auto add = [&](const std::string& name, std::size_t count, float scale) {
    w.values[name] = examples::random_weights(count, scale, seed++);
  };
  add("Emb", std::size_t(vocabulary) * H, 1);
  add("W", H * H, unit);
  add("b_c", H, 0.1F);
  for (std::size_t g = 0; g < cell.gates.size(); ++g) {
    for (std::size_t k = 0; k < cell.matrices(); ++k) add(cell.matrix("U" + std::to_string(g), k), H * H, unit);
    add("b" + std::to_string(g), H, 0.1F);
  }
  for (std::size_t k = 0; k < (cell.candidate_of_m ? 1 : cell.matrices()); ++k)
    add(cell.candidate_of_m ? "C" : cell.matrix("C", k), H * H, unit);
  return w;
}

/// What a level of it costs, counted as the zoo's are.
inline Work work_of_level(const Cell& cell, double H, bool leaves, double nodes) {
  if (leaves) return {2 * H * H * nodes, 4 * H * H, H * nodes, 1};
  Work work{0, 0, H * nodes, 1};
  const double matrices = double(cell.matrices());
  const auto product = [&](double rows, double of_matrices) {
    work.flops += 2 * H * H * rows * nodes, work.weight_bytes += 4 * H * H * of_matrices;
  };
  for (const Cell::Gate& gate : cell.gates) {
    product(gate.of_children ? 2 : matrices, matrices);  // the sum of states is one row
    work.activations += (gate.of_children ? 2 : 1) * H * nodes;
  }
  product(cell.candidate_of_m ? 1 : matrices, cell.candidate_of_m ? 1 : matrices);
  if (cell.candidate_of_m && cell.gates_children()) ++work.barriers;  // m is of products itself
  return work;
}

inline std::vector<std::vector<Work>> work_of(const Cell& cell, std::size_t hidden, const Batches& batches) {
  return work_of_trees(
      batches, [&](bool leaves, double nodes, double) { return work_of_level(cell, double(hidden), leaves, nodes); });
}

/// The cell as plain recursion in double: the reference.
class CellRecursion {
 public:
  CellRecursion(const Cell& cell, const Weights& weights) : cell_(cell), w_(weights), H_(weights.hidden) {
    for (const auto& [name, values] : w_.values)
      if (values.size() == H_ * H_) {
        const std::vector<float> forth = w_.stacked({name.c_str()}, H_);
        matrices_[name].assign(forth.begin(), forth.end());
      }
  }

  /// The states of the roots of each batch, [batch][root, hidden].
  std::vector<std::vector<double>> states(const Batches& batches) const {
    std::vector<std::vector<double>> result;
    for (const Roots& roots : batches.roots) {
      result.emplace_back();
      for (const Node* root : roots) {
        const Vector h = state(root);
        result.back().insert(result.back().end(), h.begin(), h.end());
      }
    }
    return result;
  }

 private:
  using Vector = std::vector<double>;

  Vector bias(const std::string& name) const { return {w_(name).begin(), w_(name).end()}; }
  void add_product(const std::string& matrix, const Vector& x, Vector& y) const {
    examples::detail::add_product(x.data(), matrices_.at(matrix).data(), H_, H_, y.data());
  }
  static void apply(bool tanh, Vector& x) {
    for (double& one : x) one = tanh ? std::tanh(one) : examples::detail::sigmoid(one);
  }
  /// `bias` and the product of all children, each with its matrix.
  Vector of_children(const std::string& matrix, const std::string& from, const Vector (&h)[2]) const {
    Vector y = bias(from);
    for (std::size_t k = 0; k < 2; ++k) add_product(cell_.matrix(matrix, k), h[k], y);
    return y;
  }

  Vector state(const Node* n) const {
    if (!n->left) {
      const float* const x = w_.word("Emb", n->word, H_);
      Vector h = bias("b_c");
      add_product("W", Vector(x, x + H_), h);
      apply(true, h);
      return h;
    }
    const Vector h[2] = {state(n->left), state(n->right)}, m = kept(h);
    Vector c = bias("b_c");
    if (cell_.candidate_of_m)
      add_product("C", m, c);
    else
      c = of_children("C", "b_c", h);
    apply(true, c);
    for (std::size_t g = 0; g < cell_.gates.size(); ++g) {
      const Cell::Gate& gate = cell_.gates[g];
      if (gate.of_children) continue;
      Vector value = of_children("U" + std::to_string(g), "b" + std::to_string(g), h);
      apply(gate.tanh, value);
      for (std::size_t i = 0; i < H_; ++i) c[i] = value[i] * c[i] + (gate.mixes ? (1 - value[i]) * m[i] : 0);
    }
    return c;
  }

  Vector kept(const Vector (&h)[2]) const {
    Vector m(H_);
    if (!cell_.gates_children()) {
      for (std::size_t i = 0; i < H_; ++i)
        m[i] = cell_.greatest ? std::max(h[0][i], h[1][i]) : 0.5 * (h[0][i] + h[1][i]);
      return m;
    }
    for (std::size_t k = 0; k < 2; ++k) {
      Vector gated = h[k];
      for (std::size_t g = 0; g < cell_.gates.size(); ++g) {
        if (!cell_.gates[g].of_children) continue;
        Vector value = bias("b" + std::to_string(g));
        add_product(cell_.matrix("U" + std::to_string(g), k), h[k], value);
        apply(cell_.gates[g].tanh, value);
        for (std::size_t i = 0; i < H_; ++i) gated[i] *= value[i];
      }
      for (std::size_t i = 0; i < H_; ++i) m[i] += gated[i];
    }
    return m;
  }

  Cell cell_;
  const Weights& w_;
  std::size_t H_;
  std::map<std::string, Vector> matrices_;  // [input][output]
};

}  // namespace bench
