// Cells as users may invent them, which no ready-made model is like: attention, norms, bilinear forms, experts and
// others. Over binary trees, with words at leaves, where h = tanh(W x + b). Each says what it computes, h_k being the
// states of the children and s their sum, and what that costs: the products as they are written, but a sum of products
// with each child by one matrix as the one with s that it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cortex_models.hpp"
#include "cortex_system.hpp"
#include "floor.hpp"

namespace bench {

/// A cell: what a level of so many inner nodes costs, states having H elements, and how it is made.
struct InventedCell {
  std::string name;
  Work (*inner)(double H, double nodes);
  std::function<Weights(int hidden)> weights;  // random ones, by the names that its program gives them
  std::function<std::unique_ptr<CortexSystem>(const Weights&, const Recipe&)> compiled;

  std::vector<std::vector<Work>> work(std::size_t hidden, const Batches& batches) const {
    const double H = double(hidden);
    return work_of_trees(batches, [&](bool leaves, double nodes, double) {
      return leaves ? Work{2 * H * H * nodes, 4 * H * H, H * nodes, 1} : inner(H, nodes);
    });
  }
};

namespace invented {

/// What a level costs, by what each of its nodes does and by how many elements of weights all of them read.
inline Work level(double nodes, double multiply_adds, double weights, double activations, int barriers) {
  return {2 * multiply_adds * nodes, 4 * weights, activations * nodes, barriers};
}

inline constexpr int most_children = 2;

/// A program over words of one state, h, `inner(m, H, h)` giving what it is at inner nodes.
template <class Inner>
auto over_words(int hidden, Inner inner) {
  const cortex::Dim V("vocabulary", vocabulary), H("hidden", hidden);
  cortex::Model<Node> m("invented", cortex::tree.with_max_children(most_children));
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) + b(i));
  });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner(m, H, h)));
}

template <class H>
auto sum_of_states(cortex::Model<Node>& m, const cortex::Dim& size, const H& h) {
  return m.compute("s", size, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
}

/// The matrix of this name times an operator: [node, hidden].
template <class X>
auto product(cortex::Model<Node>& m, const std::string& matrix, const cortex::Dim& H, const X& x) {
  auto U = m.input<float>(matrix, H, H);
  return m.compute(matrix + "_product", H,
                   [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * x(n, j); }); });
}

/// An operator less its mean and over its deviation, both over its elements, with a gain and a shift for each.
template <class X>
auto normed(cortex::Model<Node>& m, const std::string& name, const cortex::Dim& H, const X& x) {
  const cortex::Dim one("one", 1);
  auto gain = m.input<float>("gain_" + name, H), shift = m.input<float>("shift_" + name, H);
  auto center = m.compute("mean_" + name, one, [&](auto n, auto) { return mean(H, [&](auto j) { return x(n, j); }); });
  auto variance = m.compute("variance_" + name, one, [&](auto n, auto) {
    return mean(H, [&](auto j) { return square(x(n, j) - center(n, 0)); });
  });
  return m.compute("normed_" + name, H, [&](auto n, auto i) {
    return gain(i) * (x(n, i) - center(n, 0)) * rsqrt(variance(n, 0) + 1e-5F) + shift(i);
  });
}

/// h = tanh(sum over k of U h_k + b)
inline auto each_child(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    auto U = m.template input<float>("U", H, H);
    auto b = m.template input<float>("b_u", H);
    return m.compute("inner", H, [&](auto n, auto i) {
      return tanh(sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return U(i, j) * h(k, j); }); }) + b(i));
    });
  });
}

/// h = tanh(C m + b), m being the mean of h_k weighed by softmax over k of v . tanh(A h_k + b_a)
inline auto attention(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    auto A = m.template input<float>("A", H, H), C = m.template input<float>("C", H, H);
    auto v = m.template input<float>("v", H), b_a = m.template input<float>("b_a", H);
    auto b = m.template input<float>("b_c", H);
    const auto score = [&](auto k) {
      return exp(
          sum(H, [&](auto i) { return v(i) * tanh(sum(H, [&](auto j) { return A(i, j) * h(k, j); }) + b_a(i)); }));
    };
    auto mean = m.compute("mean", H, [&](auto n, auto i) {
      return sum(kids(n), [&](auto k) { return score(k) * h(k, i); }) / sum(kids(n), [&](auto k) { return score(k); });
    });
    return m.compute("inner", H,
                     [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return C(i, j) * mean(n, j); }) + b(i)); });
  });
}

/// The same with four heads q of H / 4 elements, each with scores and values of its own: m_q is the mean of V_q h_k
/// weighed by softmax over k of v_q . tanh(A_q h_k + b_q), and h = tanh(sum over q of C_q m_q + b).
inline auto four_heads(int hidden) {
  return over_words(hidden, [&](auto& m, const auto& H, const auto& h) {
    const cortex::Dim Q("heads", 4), D("of_head", hidden / 4);
    auto A = m.template input<float>("A", Q, D, H), V = m.template input<float>("V", Q, D, H);
    auto C = m.template input<float>("C", H, Q, D);
    auto v = m.template input<float>("v", Q, D), b_a = m.template input<float>("b_a", Q, D);
    auto b = m.template input<float>("b_c", H);
    const auto score = [&](auto k, auto q) {
      return exp(sum(
          D, [&](auto d) { return v(q, d) * tanh(sum(H, [&](auto j) { return A(q, d, j) * h(k, j); }) + b_a(q, d)); }));
    };
    auto mean = m.compute("mean", Q, D, [&](auto n, auto q, auto d) {
      return sum(kids(n), [&](auto k) { return score(k, q) * sum(H, [&](auto j) { return V(q, d, j) * h(k, j); }); }) /
             sum(kids(n), [&](auto k) { return score(k, q); });
    });
    return m.compute("inner", H, [&](auto n, auto i) {
      return tanh(sum(Q, [&](auto q) { return sum(D, [&](auto d) { return C(i, q, d) * mean(n, q, d); }); }) + b(i));
    });
  });
}

/// A GRU, h = z s / 2 + (1 - z) c, each of whose gates is normed: r, z = sigmoid(norm(U s)), c = tanh(norm(U_c (r s)))
inline auto normed_gates(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    auto s = sum_of_states(m, H, h);
    auto r = normed(m, "r", H, product(m, "U_r", H, s)), z = normed(m, "z", H, product(m, "U_z", H, s));
    auto kept = m.compute("kept", H, [&](auto n, auto i) { return sigmoid(r(n, i)) * s(n, i); });
    auto c = normed(m, "c", H, product(m, "U_c", H, kept));
    auto gate = m.compute("gate", H, [&](auto n, auto i) { return sigmoid(z(n, i)); });
    return m.compute("inner", H,
                     [&](auto n, auto i) { return 0.5F * gate(n, i) * s(n, i) + (1 - gate(n, i)) * tanh(c(n, i)); });
  });
}

/// h = m + W_2 gelu(W_1 norm(m) + b_1) + b_2, m being the mean of h_k, with 2 H elements between the matrices
inline auto feed_forward(int hidden) {
  return over_words(hidden, [&](auto& m, const auto& H, const auto& h) {
    const cortex::Dim F("between", 2 * hidden);
    auto W_1 = m.template input<float>("W_1", F, H), W_2 = m.template input<float>("W_2", H, F);
    auto b_1 = m.template input<float>("b_1", F), b_2 = m.template input<float>("b_2", H);
    auto x = m.compute("x", H, [&](auto n, auto i) { return mean(kids(n), [&](auto k) { return h(k, i); }); });
    auto norm = normed(m, "x", H, x);
    auto between = m.compute("between", F, [&](auto n, auto f) {
      return gelu(sum(H, [&](auto j) { return W_1(f, j) * norm(n, j); }) + b_1(f));
    });
    return m.compute("inner", H, [&](auto n, auto i) {
      return x(n, i) + sum(F, [&](auto f) { return W_2(i, f) * between(n, f); }) + b_2(i);
    });
  });
}

/// h = g c + (1 - g) s / 2, c = tanh(C s + b), by a gate of four bilinear forms: g = sigmoid(G t + b_g), where
/// t_q = h_left . (B_q h_right), or, the same in `one_nest`, the sum over i and j of products of three
template <bool one_nest>
auto bilinear_gate(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    const cortex::Dim Q("forms", 4);
    auto B = m.template input<float>("B", Q, H, H);
    auto G = m.template input<float>("G", H, Q);
    auto b = m.template input<float>("b_c", H), b_g = m.template input<float>("b_g", H);
    auto t = m.compute("t", Q, [&](auto n, auto q) {
      return sum(H, [&](auto i) {
        if constexpr (one_nest)
          return sum(H, [&](auto j) { return h(left(n), i) * B(q, i, j) * h(right(n), j); });
        else
          return h(left(n), i) * sum(H, [&](auto j) { return B(q, i, j) * h(right(n), j); });
      });
    });
    auto g = m.compute(
        "g", H, [&](auto n, auto i) { return sigmoid(sum(Q, [&](auto q) { return G(i, q) * t(n, q); }) + b_g(i)); });
    auto s = sum_of_states(m, H, h);
    auto c = product(m, "C", H, s);
    return m.compute("inner", H,
                     [&](auto n, auto i) { return g(n, i) * tanh(c(n, i) + b(i)) + (1 - g(n, i)) * 0.5F * s(n, i); });
  });
}
inline Work bilinear_work(double H, double nodes) {
  return level(nodes, 5 * H * H + 8 * H, 5 * H * H + 4 * H, 2 * H, 2);
}

/// h_q = tanh(the sum over i and j of a_i V_qij b_j + b_q), a = A h_left and b = B h_right being of H / 8 elements: a
/// tensor network; the sum over j for itself, or as one sum of both in `one_nest`
template <bool one_nest>
auto tensor(int hidden) {
  return over_words(hidden, [&](auto& m, const auto& H, const auto& h) {
    const cortex::Dim D("projected", hidden / 8);
    auto A = m.template input<float>("A", D, H), B = m.template input<float>("B", D, H);
    auto V = m.template input<float>("V", H, D, D);
    auto b = m.template input<float>("b_q", H);
    auto of_left =
        m.compute("a", D, [&](auto n, auto d) { return sum(H, [&](auto j) { return A(d, j) * h(left(n), j); }); });
    auto of_right = m.compute("of_right", D,
                              [&](auto n, auto d) { return sum(H, [&](auto j) { return B(d, j) * h(right(n), j); }); });
    return m.compute("inner", H, [&](auto n, auto q) {
      return tanh(sum(D,
                      [&](auto i) {
                        if constexpr (one_nest)
                          return sum(D, [&](auto j) { return of_left(n, i) * V(q, i, j) * of_right(n, j); });
                        else
                          return of_left(n, i) * sum(D, [&](auto j) { return V(q, i, j) * of_right(n, j); });
                      }) +
                  b(q));
    });
  });
}
inline Work tensor_work(double H, double nodes) {
  const double D = H / 8;
  return level(nodes, H * D * D + H * D + 2 * D * H, H * D * D + 2 * D * H, H, 2);
}

/// h = the sum over four experts q of p_q tanh(E_q s + b_q), p = softmax(G s)
inline auto experts(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    const cortex::Dim Q("experts", 4);
    auto E = m.template input<float>("E", Q, H, H);
    auto G = m.template input<float>("G", Q, H), b = m.template input<float>("b_e", Q, H);
    auto s = sum_of_states(m, H, h);
    auto weight =
        m.compute("weight", Q, [&](auto n, auto q) { return exp(sum(H, [&](auto j) { return G(q, j) * s(n, j); })); });
    return m.compute("inner", H, [&](auto n, auto i) {
      return sum(Q,
                 [&](auto q) {
                   return weight(n, q) * tanh(sum(H, [&](auto j) { return E(q, i, j) * s(n, j); }) + b(q, i));
                 }) /
             sum(Q, [&](auto q) { return weight(n, q); });
    });
  });
}

/// A multiplicative LSTM, whose gates i, f, o, u are of x = (A h_left) (B h_right), element by element:
/// c = i u + f (c_left + c_right), h = o tanh(c). At leaves c = W x + b, h = tanh(c).
inline auto multiplicative_lstm(int hidden) {
  const cortex::Dim V("vocabulary", vocabulary), H("hidden", hidden);
  cortex::Model<Node> m("invented", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
  auto A = m.input<float>("A", H, H), B = m.input<float>("B", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  auto leaf_c = m.compute(
      "leaf_c", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) + b(i); });
  auto leaf_h = m.compute("leaf_h", H, [&](auto n, auto i) { return tanh(leaf_c(n, i)); });
  auto x = m.compute("x", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return A(i, j) * h(left(n), j); }) *
           sum(H, [&](auto j) { return B(i, j) * h(right(n), j); });
  });
  const auto gate = [&](const std::string& name) {
    auto b_gate = m.input<float>("b_" + name, H);
    auto of_x = product(m, "U_" + name, H, x);
    return m.compute(name, H, [&](auto n, auto i) { return of_x(n, i) + b_gate(i); });
  };
  auto in = gate("i"), forget = gate("f"), out = gate("o"), update = gate("u");
  auto inner_c = m.compute("inner_c", H, [&](auto n, auto i) {
    return sigmoid(in(n, i)) * tanh(update(n, i)) + sigmoid(forget(n, i)) * (c(left(n), i) + c(right(n), i));
  });
  auto inner_h = m.compute("inner_h", H, [&](auto n, auto i) { return sigmoid(out(n, i)) * tanh(inner_c(n, i)); });
  const auto at_leaves = [](auto n) { return is_leaf(n); };
  auto h_body = m.if_then_else("h_body", at_leaves, leaf_h, inner_h);
  auto c_body = m.if_then_else("c_body", at_leaves, leaf_c, inner_c);
  return m.recursion_op(h, h_body, c, c_body);
}

inline constexpr int num_tags = 8;

/// h = tanh(U_t s + b), t being the node's tag: its number in the batch modulo 8, since its word is told at leaves
/// alone
inline auto matrix_by_tag(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    const cortex::Dim T("tags", num_tags);
    auto U = m.template input<float>("U", T, H, H);
    auto b = m.template input<float>("b_u", H);
    auto s = sum_of_states(m, H, h);
    return m.compute("inner", H, [&](auto n, auto i) {
      const auto tag = cortex::field<&Node::index>(n) % num_tags;
      return tanh(sum(H, [&](auto j) { return U(tag, i, j) * s(n, j); }) + b(i));
    });
  });
}

/// h = tanh(sum over k of U_k h_k + b), k being the position of the child
inline auto matrix_by_position(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    const cortex::Dim P("positions", most_children);
    auto U = m.template input<float>("U", P, H, H);
    auto b = m.template input<float>("b_u", H);
    return m.compute("inner", H, [&](auto n, auto i) {
      return tanh(
          sum(kids(n),
              [&](auto k, auto position) { return sum(H, [&](auto j) { return U(position, i, j) * h(k, j); }); }) +
          b(i));
    });
  });
}

/// h = tanh(sum over k of U_t h_k + b), t being the child's tag, as that of a node above: as an arc's label
inline auto matrix_by_arc(int hidden) {
  return over_words(hidden, [](auto& m, const auto& H, const auto& h) {
    const cortex::Dim T("tags", num_tags);
    auto U = m.template input<float>("U", T, H, H);
    auto b = m.template input<float>("b_u", H);
    return m.compute("inner", H, [&](auto n, auto i) {
      const auto product = [&](auto k) {
        return sum(H, [&](auto j) { return U(cortex::field<&Node::index>(k) % num_tags, i, j) * h(k, j); });
      };
      return tanh(sum(kids(n), product) + b(i));
    });
  });
}

/// h = tanh(c + b), where c_i is the sum over j of l_j r_{(i + j) mod H}, l and r being h_left and h_right over the
/// fourth root of H: their circular correlation, as in holographic embeddings
inline auto circular_correlation(int hidden) {
  return over_words(hidden, [&](auto& m, const auto& H, const auto& h) {
    auto b = m.template input<float>("b_c", H);
    const float scale = 1 / std::sqrt(float(hidden));
    return m.compute("inner", H, [&](auto n, auto i) {
      return tanh(scale * sum(H, [&](auto j) { return h(left(n), j) * h(right(n), (i + j) % hidden); }) + b(i));
    });
  });
}

/// Random weights at scales that keep states apart from 0 and from their limits at any depth.
inline Weights random_weights(const cortex::ra::Graph& graph, int hidden) {
  Weights w{Model::gated, std::size_t(hidden), {}};
  unsigned seed = 1;
  for (const cortex::ra::Op& op : graph.ops) {
    if (op.kind != cortex::ra::OpKind::input) continue;
    std::size_t count = 1;
    for (const cortex::Dim& dim : op.dims) count *= std::size_t(dim.extent());
    const std::string& name = op.name();
    const bool whole = name == "Emb" || name.rfind("gain_", 0) == 0,
               bias = name[0] == 'b' || name.rfind("shift_", 0) == 0;
    const float scale = whole ? 1 : bias ? 0.1F : 1 / std::sqrt(float(op.dims.back().extent()));
    w.values[name] = examples::random_weights(count, scale, seed++);
  }
  return w;
}

template <class Program>
InventedCell cell(std::string name, Work (*inner)(double, double), Program program) {
  return {std::move(name), inner, [=](int hidden) { return random_weights(program(hidden).graph(), hidden); },
          [=](const Weights& weights, const Recipe& recipe) {
            return compiled(program(int(weights.hidden)), recipe, weights);
          }};
}

}  // namespace invented

/// All of them, each with what it costs. A barrier stands behind each product that all of another one, or a sum over a
/// node's elements, is made of.
inline std::vector<InventedCell> invented_cells() {
  using namespace invented;
  return {
      cell(
          "each_child", [](double H, double nodes) { return level(nodes, H * H, H * H, H, 1); }, each_child),
      cell(
          "attention", [](double H, double nodes) { return level(nodes, 3 * H * H + 4 * H, 2 * H * H, 3 * H, 2); },
          attention),
      cell(
          "four_heads", [](double H, double nodes) { return level(nodes, 5 * H * H + 4 * H, 3 * H * H, 3 * H, 2); },
          four_heads),
      cell(
          "normed_gates", [](double H, double nodes) { return level(nodes, 3 * H * H, 3 * H * H, 3 * H, 3); },
          normed_gates),
      cell(
          "feed_forward", [](double H, double nodes) { return level(nodes, 4 * H * H, 4 * H * H, 2 * H, 2); },
          feed_forward),
      cell("bilinear_gate", bilinear_work, bilinear_gate<false>),
      cell("bilinear_one_nest", bilinear_work, bilinear_gate<true>),
      cell("tensor", tensor_work, tensor<false>),
      cell("tensor_one_nest", tensor_work, tensor<true>),
      cell(
          "experts",
          [](double H, double nodes) { return level(nodes, 4 * H * H + 8 * H, 4 * H * H + 4 * H, 4 * H, 1); }, experts),
      cell(
          "multiplicative_lstm", [](double H, double nodes) { return level(nodes, 6 * H * H, 6 * H * H, 5 * H, 2); },
          multiplicative_lstm),
      cell(
          "matrix_by_tag",
          [](double H, double nodes) { return level(nodes, H * H, std::min<double>(nodes, num_tags) * H * H, H, 1); },
          matrix_by_tag),
      cell(
          "matrix_by_position", [](double H, double nodes) { return level(nodes, 2 * H * H, 2 * H * H, H, 1); },
          matrix_by_position),
      cell(
          "matrix_by_arc",
          [](double H, double nodes) {
            return level(nodes, 2 * H * H, std::min<double>(2 * nodes, num_tags) * H * H, H, 1);
          },
          matrix_by_arc),
      cell(
          "circular_correlation", [](double H, double nodes) { return level(nodes, H * H, 0, H, 1); },
          circular_correlation),
  };
}

}  // namespace bench
