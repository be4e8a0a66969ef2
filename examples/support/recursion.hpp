// The models of the examples as anyone would write them in C++ by hand: a function that calls itself for the children,
// and then loops. What Cortex computes is held against this, and how fast it is too.
//
// `Real` is float, as in Cortex, or double, where this is the reference that shows the rounding of both.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include "ptb.hpp"

// As fast as the compiler makes them, in whatever way the program around them is built: each loop is there for AVX-512,
// for AVX2 and for any CPU, and the program takes the one that fits when it starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define EXAMPLES_VECTORISED \
  [[maybe_unused, gnu::optimize("O3"), gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define EXAMPLES_VECTORISED [[maybe_unused]]
#endif

namespace examples {

namespace detail {

// Two overloads in place of a template, because versions for several CPUs are made of plain functions only.
/// y += the product of the vector x, of `from` elements, and the matrix w[from][to]. The inner loop runs over outputs:
/// consecutive addresses and no sum across a vector register.
EXAMPLES_VECTORISED static void add_product(const float* x, const float* w, std::size_t from, std::size_t to,
                                            float* __restrict y) {
  for (std::size_t j = 0; j < from; ++j)
    for (std::size_t i = 0; i < to; ++i) y[i] += x[j] * w[j * to + i];
}
EXAMPLES_VECTORISED static void add_product(const double* x, const double* w, std::size_t from, std::size_t to,
                                            double* __restrict y) {
  for (std::size_t j = 0; j < from; ++j)
    for (std::size_t i = 0; i < to; ++i) y[i] += x[j] * w[j * to + i];
}

template <class Real>
Real sigmoid(Real x) {
  return Real(1) / (Real(1) + std::exp(-x));
}

}  // namespace detail

/// Numbers for a weight, the same on every machine: uniform in [-scale, scale].
inline std::vector<float> random_weights(std::size_t count, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> result(count);
  // Not std::uniform_real_distribution, whose numbers differ between libraries.
  for (float& x : result) x = (float(random() >> 8) / float(1 << 23) - 1.0F) * scale;
  return result;
}

/// The running example of the paper (figure 1, listing 1): a leaf is its word's row of `embedding`, [word][hidden]; any
/// other node is tanh(left + right).
template <class Real>
class TreeRnn {
 public:
  TreeRnn(const std::vector<float>& embedding, int hidden)
      : embedding_(embedding.begin(), embedding.end()), hidden_(std::size_t(hidden)) {}

  std::vector<Real> operator()(const Phrase* phrase) const {
    if (!phrase->left) {
      const Real* row = embedding_.data() + std::size_t(phrase->word) * hidden_;
      return {row, row + hidden_};
    }
    std::vector<Real> h = (*this)(phrase->left);
    const std::vector<Real> right = (*this)(phrase->right);
    for (std::size_t i = 0; i < hidden_; ++i) h[i] = std::tanh(h[i] + right[i]);
    return h;
  }

 private:
  std::vector<Real> embedding_;
  std::size_t hidden_;
};

/// The weights of a child-sum TreeLSTM (Tai, Socher and Manning 2015) over trees with words at their leaves only. Each
/// is row-major and named as the model names it: W [hidden, input] for the words' vectors, U [hidden, hidden] for the
/// children's states, b [hidden].
struct TreeLstmWeights {
  int vocabulary = 0, input = 0, hidden = 0;
  std::vector<float> Emb;  // [vocabulary, input]
  std::vector<float> W_i, W_o, W_u, U_i, U_o, U_u, U_f, b_i, b_o, b_u, b_f;

  /// Random ones from a fixed seed, at the scale that keeps states of any hidden size apart from 0 and 1.
  static TreeLstmWeights random(int vocabulary, int input, int hidden) {
    TreeLstmWeights w;
    w.vocabulary = vocabulary, w.input = input, w.hidden = hidden;
    const std::size_t h = std::size_t(hidden), e = std::size_t(input);
    const float scale = 1.0F / std::sqrt(float(hidden));
    unsigned seed = 1;
    w.Emb = random_weights(std::size_t(vocabulary) * e, 1.0F, seed++);
    for (auto* W : {&w.W_i, &w.W_o, &w.W_u}) *W = random_weights(h * e, scale, seed++);
    for (auto* U : {&w.U_i, &w.U_o, &w.U_u, &w.U_f}) *U = random_weights(h * h, scale, seed++);
    for (auto* b : {&w.b_i, &w.b_o, &w.b_u, &w.b_f}) *b = random_weights(h, scale, seed++);
    return w;
  }

  /// Calls `bind(name, values)` for each weight.
  template <class Bind>
  void each(Bind&& bind) const {
    bind("Emb", Emb);
    bind("W_i", W_i), bind("W_o", W_o), bind("W_u", W_u);
    bind("U_i", U_i), bind("U_o", U_o), bind("U_u", U_u), bind("U_f", U_f);
    bind("b_i", b_i), bind("b_o", b_o), bind("b_u", b_u), bind("b_f", b_f);
  }
};

/// The matrices [rows][columns] side by side and transposed: [column][matrix][row], in the order in which a product by
/// columns reads them.
template <class Real>
std::vector<Real> stacked(std::initializer_list<const std::vector<float>*> matrices, std::size_t columns) {
  const std::size_t rows = (*matrices.begin())->size() / columns;
  std::vector<Real> result(matrices.size() * rows * columns);
  std::size_t at = 0;
  for (std::size_t j = 0; j < columns; ++j)
    for (const std::vector<float>* m : matrices)
      for (std::size_t i = 0; i < rows; ++i) result[at++] = Real((*m)[i * columns + j]);
  return result;
}

/// The TreeLSTM by recursion: children before parents, one node at a time.
///   leaf:  i, o = sigmoid(W x + b), u = tanh(W_u x + b_u);  c = i u
///   else:  i, o = sigmoid(U s + b), u = tanh(U_u s + b_u), s = sum of h_k;
///          c = i u + sum of sigmoid(U_f h_k + b_f) c_k
///   both:  h = o tanh(c)
/// Memory is allocated the first time that the recursion gets so deep. One call at a time.
template <class Real>
class TreeLstm {
 public:
  explicit TreeLstm(const TreeLstmWeights& w)
      : hidden_(std::size_t(w.hidden)),
        input_(std::size_t(w.input)),
        embedding_(w.Emb.begin(), w.Emb.end()),
        W_(stacked<Real>({&w.W_i, &w.W_o, &w.W_u}, input_)),
        U_(stacked<Real>({&w.U_i, &w.U_o, &w.U_u}, hidden_)),
        U_f_(stacked<Real>({&w.U_f}, hidden_)),
        b_(stacked<Real>({&w.b_i, &w.b_o, &w.b_u}, 1)),
        b_f_(w.b_f.begin(), w.b_f.end()) {}

  /// The state h of `tree`: `hidden` numbers, valid until the next call.
  const Real* operator()(const Phrase* tree) {
    Level& top = level(0);
    run(tree, 0, top.h[0].data(), top.c[0].data());
    return top.h[0].data();
  }

 private:
  /// What one level of the recursion holds while it waits for the next: its children's states, and the gates.
  struct Level {
    std::vector<Real> h[2], c[2], sum, gates, forget;
    explicit Level(std::size_t n)
        : h{std::vector<Real>(n), std::vector<Real>(n)}, c{h[0], h[0]}, sum(n), gates(3 * n), forget(n) {}
  };
  Level& level(std::size_t depth) {
    while (levels_.size() <= depth) levels_.push_back(std::make_unique<Level>(hidden_));
    return *levels_[depth];
  }

  void run(const Phrase* phrase, std::size_t depth, Real* h, Real* c) {
    const std::size_t n = hidden_;
    Level& own = level(depth + 1);
    Real* const gates = own.gates.data();
    if (!phrase->left) {
      std::copy(b_.begin(), b_.end(), gates);
      detail::add_product(embedding_.data() + std::size_t(phrase->word) * input_, W_.data(), input_, 3 * n, gates);
      std::fill(c, c + n, Real(0));
    } else {
      run(phrase->left, depth + 1, own.h[0].data(), own.c[0].data());
      run(phrase->right, depth + 1, own.h[1].data(), own.c[1].data());
      for (std::size_t i = 0; i < n; ++i) own.sum[i] = own.h[0][i] + own.h[1][i];
      std::copy(b_.begin(), b_.end(), gates);
      detail::add_product(own.sum.data(), U_.data(), n, 3 * n, gates);
      std::fill(c, c + n, Real(0));
      for (int k = 0; k < 2; ++k) {
        own.forget = b_f_;
        detail::add_product(own.h[k].data(), U_f_.data(), n, n, own.forget.data());
        for (std::size_t i = 0; i < n; ++i) c[i] += detail::sigmoid(own.forget[i]) * own.c[k][i];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      c[i] += detail::sigmoid(gates[i]) * std::tanh(gates[2 * n + i]);
      h[i] = detail::sigmoid(gates[n + i]) * std::tanh(c[i]);
    }
  }

  std::size_t hidden_, input_;
  std::vector<Real> embedding_, W_, U_, U_f_, b_,
      b_f_;  // W_ [input][3 gates][hidden], U_ likewise, U_f_ [hidden][hidden]
  std::vector<std::unique_ptr<Level>> levels_;
};

/// The largest difference between `count` numbers; NaN if one is.
template <class A, class B>
double largest_difference(const A* a, const B* b, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = std::abs(double(a[i]) - double(b[i]));
    if (std::isnan(difference)) return difference;
    most = std::max(most, difference);
  }
  return most;
}

}  // namespace examples
