// What is benchmarked: the models, their sizes and their weights.
//
//   treefc    h = relu(W [h_left; h_right] + b) over perfect binary trees of height 7; a leaf is its word's vector
//   dagrnn    h = tanh(e + U s + b) over grids of 10 x 10, e being the word's vector and s the sum over predecessors
//   treegru   child-sum TreeGRU, words at leaves only
//   treelstm  child-sum TreeLSTM, words at leaves only
//   mvrnn     v = tanh(W_v [M_left v_right; M_right v_left]), M = W_M [M_left; M_right]; both looked up at a leaf
//   lstm      the LSTM of torch.nn over sequences of 100
//   gru       the GRU of torch.nn, likewise
//   treernn   h = tanh(U s + b), at a leaf tanh(W x + b); and
//   simpletreegru, the TreeGRU with h = (1 - z) h': two that experiments with schedules are about
//   gated     a cell of nobody's: a = sigmoid(A [h_left; h_right] + b_a), z = sigmoid(Z [h_left; h_right] + b_z),
//             c = tanh(C (a h_left + (1 - a) h_right) + b_c), h = z c + (1 - z) max(h_left, h_right); at a leaf
//             tanh(W x + b_c)
//
// There are 1000 words where nothing else is said, and word vectors are as long as states.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/support/recursion.hpp"

namespace bench {

enum class Model { treefc, dagrnn, treegru, treelstm, mvrnn, lstm, gru, treernn, simpletreegru, gated };

inline constexpr std::array<const char*, 10> model_names{"treefc", "dagrnn", "treegru", "treelstm",      "mvrnn",
                                                         "lstm",   "gru",    "treernn", "simpletreegru", "gated"};
inline const char* name_of(Model model) { return model_names[std::size_t(model)]; }
inline Model model_named(std::string_view name) {
  for (std::size_t i = 0; i < model_names.size(); ++i)
    if (name == model_names[i]) return Model(i);
  throw std::runtime_error("no model is called '" + std::string(name) + "'");
}

/// The words that there are, but in the treebank's trees.
inline constexpr int vocabulary = 1000;

/// The numbers of a state: of two states the first, which is what systems are asked for, comes first.
inline std::size_t state_size(Model model, std::size_t hidden) {
  switch (model) {
    case Model::treelstm:
    case Model::lstm: return 2 * hidden;
    case Model::mvrnn: return hidden + hidden * hidden;
    default: return hidden;
  }
}

/// What a model is timed at where nothing else is said: the sizes of the paper's tables.
inline std::vector<int> usual_hidden(Model model) {
  return model == Model::mvrnn ? std::vector{64, 128} : std::vector{256, 512};
}

/// How far a state may be from the reference, the greatest element of which is `size`: rounding of sums of up to 2 H
/// products, in the mean, and of activations, over the levels of a tree.
inline double allowed_error(double size, std::size_t hidden) {
  return 1e-5 * std::max(size, 1.0) * std::sqrt(double(hidden) / 64 + 1);
}

/// The weights of a model, row-major, by the names that the model gives them. A matrix is [output, input].
struct Weights {
  Model model;
  std::size_t hidden;
  std::map<std::string, std::vector<float>> values;
  int words = vocabulary;

  const std::vector<float>& operator()(const std::string& name) const {
    const auto found = values.find(name);
    if (found == values.end()) throw std::runtime_error(std::string(name_of(model)) + " has no weight " + name);
    return found->second;
  }
  const float* word(const std::string& table, int word, std::size_t size) const {
    return (*this)(table).data() + std::size_t(word) * size;
  }
  /// Matrices of so many inputs side by side and transposed, [input][matrix][output]: the order in which a product of
  /// rows with them reads.
  std::vector<float> stacked(std::initializer_list<const char*> names, std::size_t inputs) const {
    std::vector<const std::vector<float>*> all;
    for (const char* name : names) all.push_back(&(*this)(name));
    std::vector<float> result;
    for (std::size_t j = 0; j < inputs; ++j)
      for (const std::vector<float>* m : all)
        for (std::size_t at = j; at < m->size(); at += inputs) result.push_back((*m)[at]);
    return result;
  }
  std::vector<float> concatenated(std::initializer_list<const char*> names) const {
    std::vector<float> result;
    for (const char* name : names) result.insert(result.end(), (*this)(name).begin(), (*this)(name).end());
    return result;
  }
};

/// Random weights from a fixed seed, at scales that keep states apart from 0 and from their limits at any depth.
inline Weights random_weights(Model model, int hidden, int words = vocabulary) {
  Weights w{model, std::size_t(hidden), {}, words};
  const std::size_t H = w.hidden, V = std::size_t(words);
  unsigned seed = 1;
  const auto add = [&](const std::string& name, std::size_t count, float scale) {
    w.values[name] = examples::random_weights(count, scale, seed++);
  };
  const float unit = 1.0F / std::sqrt(float(hidden));
  switch (model) {
    case Model::treefc:
      add("Emb", V * H, 1);
      add("W", 2 * H * H, std::sqrt(3.0F) * unit);  // relu halves the mean square, two children double it
      add("b", H, 0.1F);
      break;
    case Model::dagrnn:
      add("Emb", V * H, 1);
      add("U", H * H, unit);
      add("b", H, 0.1F);
      break;
    case Model::treernn:
      add("Emb", V * H, 1);
      add("W", H * H, unit);
      add("U", H * H, unit);
      add("b", H, 0.1F);
      break;
    case Model::gated:
      add("Emb", V * H, 1);
      for (const char* matrix : {"A_l", "A_r", "Z_l", "Z_r", "C", "W"}) add(matrix, H * H, unit);
      for (const char* bias : {"b_a", "b_z", "b_c"}) add(bias, H, 0.1F);
      break;
    case Model::treegru:
    case Model::simpletreegru:
    case Model::treelstm:
      add("Emb", V * H, 1);
      for (const char* gate : model == Model::treelstm ? std::vector{"i", "f", "o", "u"} : std::vector{"r", "z", "h"}) {
        add(std::string("W_") + gate, H * H, unit);
        add(std::string("U_") + gate, H * H, unit);
        add(std::string("b_") + gate, H, 0.1F);
      }
      break;
    case Model::mvrnn:  // matrices are kept by columns: [word, column, row]
      add("Emb_v", V * H, 1);
      add("Emb_M", V * H * H, 1.7F * unit);
      add("W_v", 2 * H * H, 1.2F * unit);
      add("W_M", 2 * H * H, std::sqrt(1.5F) * unit);
      break;
    case Model::lstm:
    case Model::gru: {
      const std::size_t gates = model == Model::lstm ? 4 : 3;
      add("Emb", V * H, 1);
      add("weight_ih_l0", gates * H * H, unit);
      add("weight_hh_l0", gates * H * H, unit);
      add("bias_ih_l0", gates * H, 0.1F);
      add("bias_hh_l0", gates * H, 0.1F);
      break;
    }
  }
  return w;
}

}  // namespace bench
