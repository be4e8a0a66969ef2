// The models of the zoo as plain recursion over the nodes, in double: written from the equations in PAPER.md, sharing
// nothing with the library.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cortex::test {

/// A node that is whatever a test makes of it: in a tree or a graph `kids` are its children, and `at` the same by
/// position, null where there is none; in a sequence `before` is the step before.
struct Item {
  int word = -1;
  std::vector<const Item*> kids;
  const Item *left = nullptr, *right = nullptr, *third = nullptr;
  const Item* before = nullptr;
  std::array<float, 5> features{};

  std::array<const Item*, 3> at() const { return {left, right, third}; }
};

using Numbers = std::vector<double>;
using NamedNumbers = std::map<std::string, Numbers>;

/// What a node's states are, by name.
using States = std::map<std::string, Numbers>;
/// A model by hand: the states of a node, from those of its neighbours, which it asks for itself.
using Oracle = std::function<const States&(const Item*)>;

/// Every node once, however many nodes ask for it. `rule(self, node)` gives the node's states.
template <class Rule>
Oracle recursively(Rule rule) {
  auto done = std::make_shared<std::map<const Item*, States>>();
  auto self = std::make_shared<std::function<const States&(const Item*)>>();
  const std::weak_ptr<std::function<const States&(const Item*)>> again = self;
  *self = [=](const Item* n) -> const States& {
    if (const auto found = done->find(n); found != done->end()) return found->second;
    return (*done)[n] = rule([&](const Item* k) -> const States& { return (*again.lock())(k); }, n);
  };
  return [self](const Item* n) -> const States& { return (*self)(n); };
}

inline Numbers operator+(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
inline Numbers operator*(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}
template <class F>
Numbers each(Numbers a, F f) {
  for (double& x : a) x = f(x);
  return a;
}
inline Numbers sigmoid(const Numbers& a) {
  return each(a, [](double x) { return 1 / (1 + std::exp(-x)); });
}
inline Numbers tanh(const Numbers& a) {
  return each(a, [](double x) { return std::tanh(x); });
}
inline Numbers relu(const Numbers& a) {
  return each(a, [](double x) { return x > 0 ? x : 0; });
}
inline Numbers one_minus(const Numbers& a) {
  return each(a, [](double x) { return 1 - x; });
}

/// Weights, and the sizes of a model.
struct Weights {
  NamedNumbers values;
  std::size_t D, H;  // input, hidden

  /// Element `number` of a weight that is a list of tensors of `size` elements.
  Numbers part(const std::string& name, std::size_t number, std::size_t size) const {
    const auto begin = values.at(name).begin() + std::ptrdiff_t(number * size);
    return Numbers(begin, begin + std::ptrdiff_t(size));
  }
  const Numbers& operator()(const std::string& name) const { return values.at(name); }
  Numbers row(const std::string& table, int word, std::size_t size) const {
    return part(table, std::size_t(word), size);
  }
  Numbers zeros() const { return Numbers(H); }

  /// The matrix `name` [H, x.size()] times x; of several behind each other the one of that number.
  Numbers times(const std::string& name, const Numbers& x, std::size_t number = 0) const {
    return product(values.at(name).data() + number * H * x.size(), x.size(), x);
  }
  /// The half `side` of a matrix [H, 2, H] times x.
  Numbers half(const std::string& name, std::size_t side, const Numbers& x) const {
    return product(values.at(name).data() + side * H, 2 * H, x);
  }
  /// The same times a matrix [H, H].
  Numbers half_of_matrix(const std::string& name, std::size_t side, const Numbers& M) const {
    Numbers result(H * H);
    const double* w = values.at(name).data() + side * H;
    for (std::size_t i = 0; i < H; ++i)
      for (std::size_t k = 0; k < H; ++k)
        for (std::size_t j = 0; j < H; ++j) result[i * H + j] += w[i * 2 * H + k] * M[k * H + j];
    return result;
  }
  /// W x + U s + b.
  Numbers linear(const std::string& gate, const Numbers& x, const Numbers& s) const {
    return times("W" + gate, x) + times("U" + gate, s) + values.at("b" + gate);
  }
  Numbers product(const double* w, std::size_t stride, const Numbers& x) const {
    Numbers result(H);
    for (std::size_t i = 0; i < H; ++i)
      for (std::size_t j = 0; j < x.size(); ++j) result[i] += w[i * stride + j] * x[j];
    return result;
  }
};

/// A node's input, by default its word's row of Emb.
using InputOf = std::function<Numbers(const Item*)>;
inline InputOf word_vector(const Weights& w) {
  return [&w](const Item* n) { return w.row("Emb", n->word, w.D); };
}

template <class Self>
Numbers sum_of_kids(const Weights& w, const Self& self, const Item* n) {
  Numbers s = w.zeros();
  for (const Item* k : n->kids) s = s + self(k).at("h");
  return s;
}

inline Oracle tree_fc_by_hand(const Weights& w) {
  return recursively([&w](const auto& self, const Item* n) -> States {
    if (n->kids.empty()) return {{"h", w.row("Emb", n->word, w.H)}};
    return {{"h", relu(w.half("W", 0, self(n->left).at("h")) + w.half("W", 1, self(n->right).at("h")) + w("b"))}};
  });
}

inline Oracle simple_rnn_by_hand(const Weights& w, Numbers (*activation)(const Numbers&)) {
  return recursively([&w, activation, x = word_vector(w)](const auto& self, const Item* n) -> States {
    return {{"h", activation(w.linear("", x(n), sum_of_kids(w, self, n)))}};
  });
}

inline Oracle tree_gru_by_hand(const Weights& w, bool simple, InputOf x) {
  return recursively([&w, simple, x](const auto& self, const Item* n) -> States {
    const Numbers s = sum_of_kids(w, self, n);
    const Numbers r = sigmoid(w.linear("_r", x(n), s)), z = sigmoid(w.linear("_z", x(n), s));
    const Numbers fresh = one_minus(z) * tanh(w.linear("_h", x(n), r * s));
    return {{"h", simple ? fresh : z * s + fresh}};
  });
}

inline Oracle tree_lstm_by_hand(const Weights& w, InputOf x) {
  return recursively([&w, x](const auto& self, const Item* n) -> States {
    const Numbers s = sum_of_kids(w, self, n);
    Numbers c = sigmoid(w.linear("_i", x(n), s)) * tanh(w.linear("_u", x(n), s));
    for (const Item* k : n->kids) c = c + sigmoid(w.linear("_f", x(n), self(k).at("h"))) * self(k).at("c");
    return {{"h", sigmoid(w.linear("_o", x(n), s)) * tanh(c)}, {"c", c}};
  });
}

inline Oracle nary_tree_lstm_by_hand(const Weights& w, std::size_t N) {
  return recursively([&w, N, x = word_vector(w)](const auto& self, const Item* n) -> States {
    const auto kids = n->at();
    const auto linear = [&](const std::string& gate, std::size_t first) {
      Numbers a = w.times("W" + gate, x(n)) + w("b" + gate);
      for (std::size_t l = 0; l < N; ++l)
        if (kids[l]) a = a + w.times("U" + gate, self(kids[l]).at("h"), first + l);
      return a;
    };
    Numbers c = sigmoid(linear("_i", 0)) * tanh(linear("_u", 0));
    for (std::size_t k = 0; k < N; ++k)
      if (kids[k]) c = c + sigmoid(linear("_f", k * N)) * self(kids[k]).at("c");
    return {{"h", sigmoid(linear("_o", 0)) * tanh(c)}, {"c", c}};
  });
}

inline Numbers transposed(const Numbers& M, std::size_t H) {
  Numbers result(H * H);
  for (std::size_t i = 0; i < H; ++i)
    for (std::size_t j = 0; j < H; ++j) result[j * H + i] = M[i * H + j];
  return result;
}

/// MV-RNN with M as it is written, whose transpose the model holds.
inline Oracle mv_rnn_by_hand(const Weights& w) {
  const Oracle by_hand = recursively([&w](const auto& self, const Item* n) -> States {
    if (n->kids.empty()) return {{"v", w.row("Emb_v", n->word, w.H)}, {"M", w.row("Emb_M", n->word, w.H * w.H)}};
    const States &l = self(n->left), &r = self(n->right);
    const Numbers a = w.product(l.at("M").data(), w.H, r.at("v")), b = w.product(r.at("M").data(), w.H, l.at("v"));
    return {{"v", tanh(w.half("W_v", 0, a) + w.half("W_v", 1, b) + w("b"))},
            {"M", w.half_of_matrix("W_M", 0, l.at("M")) + w.half_of_matrix("W_M", 1, r.at("M")) + w("B")}};
  });
  return recursively([&w, by_hand](const auto&, const Item* n) -> States {
    return {{"v", by_hand(n).at("v")}, {"M_transposed", transposed(by_hand(n).at("M"), w.H)}};
  });
}

/// One layer over sequences, as torch.nn has it, whose names end in `suffix`. `x` is its input and `neighbour` the step
/// that it reads.
struct LayerByHand {
  const Weights& w;
  std::string suffix;
  InputOf x;
  std::function<const Item*(const Item*)> neighbour;

  /// Of gate `g`: W x + b_ih, and U h_before + b_hh.
  std::pair<Numbers, Numbers> halves(std::size_t g, const Item* n, const Numbers& h) const {
    return {w.times("weight_ih" + suffix, x(n), g) + w.part("bias_ih" + suffix, g, w.H),
            w.times("weight_hh" + suffix, h, g) + w.part("bias_hh" + suffix, g, w.H)};
  }
  Oracle lstm() const {
    return recursively([*this](const auto& self, const Item* n) -> States {
      const Item* before = neighbour(n);
      const Numbers h = before ? self(before).at("h" + suffix) : w.zeros();
      const auto gate = [&](std::size_t g) {
        const auto [a, b] = halves(g, n, h);
        return a + b;
      };
      Numbers c = sigmoid(gate(0)) * tanh(gate(2));
      if (before) c = c + sigmoid(gate(1)) * self(before).at("c" + suffix);
      return {{"h" + suffix, sigmoid(gate(3)) * tanh(c)}, {"c" + suffix, c}};
    });
  }
  Oracle gru() const {
    return recursively([*this](const auto& self, const Item* n) -> States {
      const Item* before = neighbour(n);
      const Numbers h = before ? self(before).at("h" + suffix) : w.zeros();
      const auto [r_x, r_h] = halves(0, n, h);
      const auto [z_x, z_h] = halves(1, n, h);
      const auto [n_x, n_h] = halves(2, n, h);
      const Numbers r = sigmoid(r_x + r_h), z = sigmoid(z_x + z_h);
      return {{"h" + suffix, one_minus(z) * tanh(n_x + r * n_h) + z * h}};
    });
  }
};

/// Several layers, each reading what the one before gives: in both directions h forward and then h reverse.
inline Oracle layers_by_hand(const Weights& w, int layers, bool both, bool gru,
                             std::function<const Item*(const Item*)> next) {
  InputOf x = word_vector(w);
  const auto before = [](const Item* n) { return n->before; };
  std::vector<Oracle> all;
  for (int k = 0; k < layers; ++k) {
    const std::string forward = "_l" + std::to_string(k), reverse = forward + "_reverse";
    const auto layer = [&](const std::string& suffix, std::function<const Item*(const Item*)> neighbour) {
      const LayerByHand by_hand{w, suffix, x, neighbour};
      all.push_back(gru ? by_hand.gru() : by_hand.lstm());
      return all.back();
    };
    const Oracle f = layer(forward, before);
    if (!both) {
      x = [=](const Item* n) { return f(n).at("h" + forward); };
      continue;
    }
    const Oracle r = layer(reverse, next);
    x = [=](const Item* n) {
      Numbers side_by_side = f(n).at("h" + forward);
      const Numbers& second = r(n).at("h" + reverse);
      side_by_side.insert(side_by_side.end(), second.begin(), second.end());
      return side_by_side;
    };
  }
  return recursively([all](const auto&, const Item* n) {
    States states;
    for (const Oracle& layer : all)
      for (const auto& [name, values] : layer(n)) states[name] = values;
    return states;
  });
}

}  // namespace cortex::test
