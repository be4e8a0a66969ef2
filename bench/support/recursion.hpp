// The models as anyone would write them in C++ by hand: a function that calls itself for the children, and then loops.
// In float it is a system like the others, on one thread; in double the reference that every system is held against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "../../examples/support/recursion.hpp"
#include "system.hpp"

namespace bench {

template <class Real>
class Recursion : public System {
 public:
  explicit Recursion(const Weights& w) : w_(w), H_(w.hidden), scratch_(8 * w.hidden) {
    switch (w.model) {
      case Model::treefc: W_ = forth({"W"}, 2 * H_), b_ = row({"b"}); break;
      case Model::treernn: W_ = forth({"W"}, H_), U_ = forth({"U"}, H_), b_ = row({"b"}); break;
      case Model::dagrnn: U_ = forth({"U"}, H_), b_ = row({"b"}); break;
      case Model::gated:
        W_ = forth({"W"}, H_), b_ = row({"b_a", "b_z", "b_c"});
        U_ = forth({"A_l", "Z_l"}, H_), U_right_ = forth({"A_r", "Z_r"}, H_), U_last_ = forth({"C"}, H_);
        break;
      case Model::treegru:
      case Model::simpletreegru:
        W_ = forth({"W_z", "W_h"}, H_), b_ = row({"b_r", "b_z", "b_h"});
        U_ = forth({"U_r", "U_z"}, H_), U_last_ = forth({"U_h"}, H_);
        break;
      case Model::treelstm:
        W_ = forth({"W_i", "W_o", "W_u"}, H_), b_ = row({"b_i", "b_o", "b_u", "b_f"});
        U_ = forth({"U_i", "U_o", "U_u"}, H_), U_last_ = forth({"U_f"}, H_);
        break;
      case Model::mvrnn: W_ = forth({"W_v"}, 2 * H_), U_ = forth({"W_M"}, 2 * H_); break;
      case Model::lstm:
      case Model::gru:
        W_ = forth({"weight_ih_l0"}, H_), U_ = forth({"weight_hh_l0"}, H_);
        b_ = row({"bias_ih_l0"}), b_last_ = row({"bias_hh_l0"});
        break;
    }
  }

  void run(const Roots& roots, float* out) override {
    each(roots, [&](std::size_t i, const Real* h) { std::copy_n(h, H_, out + i * H_); });
  }

  /// The first states of the roots, [root][hidden].
  std::vector<Real> first_states(const Roots& roots) {
    std::vector<Real> result(roots.size() * H_);
    each(roots, [&](std::size_t i, const Real* h) { std::copy_n(h, H_, result.data() + i * H_); });
    return result;
  }

 private:
  using Vector = std::vector<Real>;
  using Names = std::initializer_list<const char*>;

  /// What one level of the recursion holds while it waits for the next: the states of its children.
  struct Frame {
    Vector left, right;
  };

  Vector forth(Names names, std::size_t inputs) const {
    const std::vector<float> values = w_.stacked(names, inputs);
    return Vector(values.begin(), values.end());
  }
  Vector row(Names names) const {
    const std::vector<float> values = w_.concatenated(names);
    return Vector(values.begin(), values.end());
  }
  /// y = bias, which may be none, + the product of x and the matrix m[from][to].
  static void times(const Real* x, const Real* m, std::size_t from, std::size_t to, const Real* bias, Real* y) {
    if (bias)
      std::copy_n(bias, to, y);
    else
      std::fill_n(y, to, Real(0));
    examples::detail::add_product(x, m, from, to, y);
  }
  static Real sigmoid(Real x) { return Real(1) / (Real(1) + std::exp(-x)); }
  /// A word's vector, converted if this is not float.
  const Real* word_vector(const Node* n) {
    const float* const row = w_.word("Emb", n->word, H_);
    if constexpr (std::is_same_v<Real, float>) {
      return row;
    } else {
      word_.assign(row, row + H_);
      return word_.data();
    }
  }

  template <class Take>
  void each(const Roots& roots, Take take) {
    const std::size_t size = state_size(w_.model, H_);
    result_.resize(size);
    if (w_.model == Model::dagrnn) done_.clear();
    for (std::size_t i = 0; i < roots.size(); ++i) {
      if (w_.model == Model::dagrnn) {
        take(i, in_graph(roots[i]));
      } else if (w_.model == Model::lstm || w_.model == Model::gru) {
        take(i, in_sequence(roots[i]));
      } else {
        in_tree(roots[i], result_.data(), 0);
        take(i, result_.data());
      }
    }
  }

  // ---- trees: children before parents ----

  void in_tree(const Node* n, Real* out, std::size_t depth) {
    if (!n->left) return leaf(n, out);
    while (frames_.size() <= depth) {
      const std::size_t size = state_size(w_.model, H_);
      frames_.push_back(std::make_unique<Frame>(Frame{Vector(size), Vector(size)}));
    }
    Frame& own = *frames_[depth];
    in_tree(n->left, own.left.data(), depth + 1);
    in_tree(n->right, own.right.data(), depth + 1);
    inner(own.left.data(), own.right.data(), out);
  }

  void leaf(const Node* n, Real* out) {
    Real* const gates = scratch_.data();
    switch (w_.model) {
      case Model::treefc: std::copy_n(w_.word("Emb", n->word, H_), H_, out); break;
      case Model::treernn:
        times(word_vector(n), W_.data(), H_, H_, b_.data(), out);
        for (std::size_t i = 0; i < H_; ++i) out[i] = std::tanh(out[i]);
        break;
      case Model::gated:
        times(word_vector(n), W_.data(), H_, H_, b_.data() + 2 * H_, out);
        for (std::size_t i = 0; i < H_; ++i) out[i] = std::tanh(out[i]);
        break;
      case Model::treegru:
      case Model::simpletreegru:
        times(word_vector(n), W_.data(), H_, 2 * H_, b_.data() + H_, gates);
        for (std::size_t i = 0; i < H_; ++i) out[i] = (1 - sigmoid(gates[i])) * std::tanh(gates[H_ + i]);
        break;
      case Model::treelstm:
        times(word_vector(n), W_.data(), H_, 3 * H_, b_.data(), gates);
        std::fill_n(out + H_, H_, Real(0));
        tree_lstm_state(gates, out);
        break;
      default:
        std::copy_n(w_.word("Emb_v", n->word, H_), H_, out);
        std::copy_n(w_.word("Emb_M", n->word, H_ * H_), H_ * H_, out + H_);
    }
  }

  void inner(const Real* left, const Real* right, Real* out) {
    Real* const sum = scratch_.data();
    Real* const gates = scratch_.data() + H_;
    if (w_.model != Model::treefc && w_.model != Model::mvrnn)
      for (std::size_t i = 0; i < H_; ++i) sum[i] = left[i] + right[i];
    switch (w_.model) {
      case Model::treefc:
        times(left, W_.data(), H_, H_, b_.data(), out);
        examples::detail::add_product(right, W_.data() + H_ * H_, H_, H_, out);
        for (std::size_t i = 0; i < H_; ++i) out[i] = std::max(out[i], Real(0));
        break;
      case Model::treernn:
        times(sum, U_.data(), H_, H_, b_.data(), out);
        for (std::size_t i = 0; i < H_; ++i) out[i] = std::tanh(out[i]);
        break;
      case Model::gated: {
        times(left, U_.data(), H_, 2 * H_, b_.data(), gates);
        examples::detail::add_product(right, U_right_.data(), H_, 2 * H_, gates);
        for (std::size_t i = 0; i < H_; ++i) {
          const Real a = sigmoid(gates[i]);
          sum[i] = a * left[i] + (1 - a) * right[i];
        }
        times(sum, U_last_.data(), H_, H_, b_.data() + 2 * H_, out);
        for (std::size_t i = 0; i < H_; ++i) {
          const Real z = sigmoid(gates[H_ + i]);
          out[i] = z * std::tanh(out[i]) + (1 - z) * std::max(left[i], right[i]);
        }
        break;
      }
      case Model::treegru:
      case Model::simpletreegru: {
        times(sum, U_.data(), H_, 2 * H_, b_.data(), gates);
        Real* const reset = gates + 2 * H_;
        for (std::size_t i = 0; i < H_; ++i) reset[i] = sigmoid(gates[i]) * sum[i];
        times(reset, U_last_.data(), H_, H_, b_.data() + 2 * H_, out);
        for (std::size_t i = 0; i < H_; ++i) {
          const Real z = sigmoid(gates[H_ + i]);
          out[i] = (w_.model == Model::treegru ? z * sum[i] : 0) + (1 - z) * std::tanh(out[i]);
        }
        break;
      }
      case Model::treelstm: {
        times(sum, U_.data(), H_, 3 * H_, b_.data(), gates);
        Real* const forget = gates + 3 * H_;
        std::fill_n(out + H_, H_, Real(0));
        for (const Real* child : {left, right}) {
          times(child, U_last_.data(), H_, H_, b_.data() + 3 * H_, forget);
          for (std::size_t i = 0; i < H_; ++i) out[H_ + i] += sigmoid(forget[i]) * child[H_ + i];
        }
        tree_lstm_state(gates, out);
        break;
      }
      default: {
        Real* const both = scratch_.data();
        times(right, left + H_, H_, H_, nullptr, both);
        times(left, right + H_, H_, H_, nullptr, both + H_);
        times(both, W_.data(), 2 * H_, H_, nullptr, out);
        for (std::size_t i = 0; i < H_; ++i) out[i] = std::tanh(out[i]);
        for (std::size_t j = 0; j < H_; ++j) {
          Real* const column = out + H_ + j * H_;
          times(left + H_ + j * H_, U_.data(), H_, H_, nullptr, column);
          examples::detail::add_product(right + H_ + j * H_, U_.data() + H_ * H_, H_, H_, column);
        }
      }
    }
  }

  /// h and c of the gates i, o, u, where c holds what is kept of the children's.
  void tree_lstm_state(const Real* gates, Real* out) const {
    for (std::size_t i = 0; i < H_; ++i) {
      out[H_ + i] += sigmoid(gates[i]) * std::tanh(gates[2 * H_ + i]);
      out[i] = sigmoid(gates[H_ + i]) * std::tanh(out[H_ + i]);
    }
  }

  // ---- graphs: each node once, known by its index ----

  const Real* in_graph(const Node* n) {
    const std::size_t index = std::size_t(n->index);
    if (index < done_.size() && done_[index]) return states_[index].data();
    const Real* const left = n->left ? in_graph(n->left) : nullptr;
    const Real* const right = n->right ? in_graph(n->right) : nullptr;
    if (index >= done_.size()) done_.resize(index + 1, false);
    if (index >= states_.size()) states_.resize(index + 1);
    std::vector<Real>& h = states_[index];
    h.resize(H_);
    Real* const sum = scratch_.data();
    for (std::size_t i = 0; i < H_; ++i) sum[i] = (left ? left[i] : 0) + (right ? right[i] : 0);
    if (left || right)
      times(sum, U_.data(), H_, H_, b_.data(), h.data());
    else
      std::copy_n(b_.data(), H_, h.data());
    const Real* const x = word_vector(n);
    for (std::size_t i = 0; i < H_; ++i) h[i] = std::tanh(h[i] + x[i]);
    done_[index] = true;
    return h.data();
  }

  // ---- sequences: from the first step to the last ----

  const Real* in_sequence(const Node* last) {
    steps_.clear();
    for (const Node* n = last; n; n = n->left) steps_.push_back(n);
    Real* const h = result_.data();
    std::fill(result_.begin(), result_.end(), Real(0));
    const std::size_t gates = W_.size() / (H_ * H_);
    Real* const x = scratch_.data();
    Real* const u = scratch_.data() + gates * H_;
    for (std::size_t s = steps_.size(); s-- > 0;) {
      times(word_vector(steps_[s]), W_.data(), H_, gates * H_, b_.data(), x);
      times(h, U_.data(), H_, gates * H_, b_last_.data(), u);
      if (w_.model == Model::lstm) {
        Real* const c = h + H_;
        for (std::size_t i = 0; i < H_; ++i) {
          const auto gate = [&](std::size_t g) { return x[g * H_ + i] + u[g * H_ + i]; };
          c[i] = sigmoid(gate(0)) * std::tanh(gate(2)) + sigmoid(gate(1)) * c[i];
          h[i] = sigmoid(gate(3)) * std::tanh(c[i]);
        }
      } else {
        for (std::size_t i = 0; i < H_; ++i) {
          const Real r = sigmoid(x[i] + u[i]), z = sigmoid(x[H_ + i] + u[H_ + i]);
          h[i] = (1 - z) * std::tanh(x[2 * H_ + i] + r * u[2 * H_ + i]) + z * h[i];
        }
      }
    }
    return h;
  }

  const Weights& w_;
  std::size_t H_;
  Vector W_, U_, U_right_, U_last_, b_, b_last_;
  Vector scratch_, word_, result_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<Vector> states_;  // of graphs
  std::vector<bool> done_;
  std::vector<const Node*> steps_;
};

}  // namespace bench
