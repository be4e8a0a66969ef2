// The sentiment model of sentiment/train.py: written with Cortex, and by hand.
//
// A binary TreeLSTM (Tai, Socher and Manning 2015, equations 9 to 14), words at leaves only, and a classifier at every
// node, so that each phrase of a sentence has a sentiment.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models.hpp"
#include "ptb.hpp"
#include "recursion.hpp"

namespace examples {

inline constexpr int sentiments = 5;  // very negative to very positive

/// The model: h and c at every node, and logits `[node, sentiment]`, its first result.
inline auto sentiment_model(int input, int hidden) {
  const cortex::Dim V{"vocabulary"}, D{"input", input}, H{"hidden", hidden}, S{"side", 2}, C{"sentiment", sentiments};
  cortex::Model<Phrase> m("sentiment", cortex::tree);
  auto Emb = m.input<float>("Emb", V, D);
  auto W_i = m.input<float>("W_i", H, D), W_o = m.input<float>("W_o", H, D), W_u = m.input<float>("W_u", H, D);
  auto U_i = m.input<float>("U_i", S, H, H), U_o = m.input<float>("U_o", S, H, H), U_u = m.input<float>("U_u", S, H, H);
  auto U_f = m.input<float>("U_f", S, S, H, H);
  auto b_i = m.input<float>("b_i", H), b_o = m.input<float>("b_o", H), b_u = m.input<float>("b_u", H),
       b_f = m.input<float>("b_f", H);
  auto W_s = m.input<float>("W_s", C, H);
  auto b_s = m.input<float>("b_s", C);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);

  auto of_word = [&](const auto& W, const auto& b, auto n, auto i) {
    return sum(D, [&](auto j) { return W(i, j) * Emb(word(n), j); }) + b(i);
  };
  auto word_c = m.compute(
      "word_c", H, [&](auto n, auto i) { return sigmoid(of_word(W_i, b_i, n, i)) * tanh(of_word(W_u, b_u, n, i)); });
  auto word_h =
      m.compute("word_h", H, [&](auto n, auto i) { return sigmoid(of_word(W_o, b_o, n, i)) * tanh(word_c(n, i)); });

  auto of_sides = [&](const auto& U, const auto& b, auto n, auto i) {
    return sum(H, [&](auto j) { return U(0, i, j) * h(left(n), j); }) +
           sum(H, [&](auto j) { return U(1, i, j) * h(right(n), j); }) + b(i);
  };
  auto forget = [&](int side, auto n, auto i) {
    return sigmoid(of_sides([&](int l, auto o, auto j) { return U_f(side, l, o, j); }, b_f, n, i));
  };
  auto phrase_c = m.compute("phrase_c", H, [&](auto n, auto i) {
    return sigmoid(of_sides(U_i, b_i, n, i)) * tanh(of_sides(U_u, b_u, n, i)) + forget(0, n, i) * c(left(n), i) +
           forget(1, n, i) * c(right(n), i);
  });
  auto phrase_h = m.compute("phrase_h", H,
                            [&](auto n, auto i) { return sigmoid(of_sides(U_o, b_o, n, i)) * tanh(phrase_c(n, i)); });

  auto is_word = [](auto n) { return is_leaf(n); };
  auto [h_all, c_all] = m.recursion(h, m.if_then_else("h_body", is_word, word_h, phrase_h),  //
                                    c, m.if_then_else("c_body", is_word, word_c, phrase_c));
  auto logits = m.output<float>(
      "logits", C, [&](auto n, auto s) { return sum(H, [&](auto j) { return W_s(s, j) * h_all(n, j); }) + b_s(s); });
  return m.program(logits, h_all, c_all);
}

/// What logits say: the probability of each sentiment, the likeliest, and whether positive outweighs negative.
struct Sentiment {
  std::array<double, sentiments> probability{};
  int fine = 0;
  bool positive = false;

  explicit Sentiment(std::span<const float> logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (std::size_t s = 0; s < probability.size(); ++s) total += probability[s] = std::exp(double(logits[s]) - most);
    for (double& p : probability) p /= total;
    fine = int(std::max_element(probability.begin(), probability.end()) - probability.begin());
    positive = probability[3] + probability[4] > probability[0] + probability[1];
  }
};

/// The words that the model was trained on, by line of the vocabulary file; word 0 stands for any other.
class TrainedWords {
 public:
  /// Throws std::runtime_error for a file that cannot be read.
  explicit TrainedWords(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(path.string() + " cannot be opened: it is the vocabulary of the sentiment model");
    int id = 0;
    for (std::string line; std::getline(in, line);) ids_.emplace(line, id++);
    size_ = id;
  }

  int size() const { return size_; }
  /// The word's number; its letters A to Z are made small first, as in training.
  int find(std::string word) const {
    for (char& c : word)
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    const auto found = ids_.find(word);
    return found == ids_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<std::string, int> ids_;
  int size_ = 0;
};

/// Trees whose leaves hold numbers of trained words, and the words as they were written.
struct Sentences {
  Treebank bank;
  std::unordered_map<const Phrase*, std::string> text;  // of leaves

  Sentences(Treebank read, const TrainedWords& words) : bank(std::move(read)) {
    for (Phrase& phrase : bank.nodes)
      if (phrase.word >= 0) {
        const std::string& written = text[&phrase] = bank.vocabulary.word(phrase.word);
        phrase.word = words.find(written);
      }
  }
};

/// Weights by name, row-major, as the file holds them.
using SentimentWeights = std::map<std::string, std::vector<float>>;

/// The same model as a function that calls itself: the logits of a phrase.
class PlainSentiment {
 public:
  PlainSentiment(const SentimentWeights& weights, int input, int hidden)
      : input_(std::size_t(input)),
        hidden_(std::size_t(hidden)),
        emb_(weights.at("Emb")),
        W_s_(weights.at("W_s")),
        b_s_(weights.at("b_s")) {
    for (const char* gate : {"i", "o", "u"})
      word_.push_back(turned(weights.at(std::string("W_") + gate), 0, hidden_, input_));
    for (std::size_t side = 0; side < 2; ++side) {
      for (const char* gate : {"i", "o", "u"})
        side_[side].push_back(turned(weights.at(std::string("U_") + gate), side, hidden_, hidden_));
      for (std::size_t of = 0; of < 2; ++of)
        side_[side].push_back(turned(weights.at("U_f"), of * 2 + side, hidden_, hidden_));
    }
    for (const char* gate : {"i", "o", "u", "f", "f"}) bias_.push_back(weights.at(std::string("b_") + gate));
  }

  std::array<float, sentiments> operator()(const Phrase* phrase) const {
    const State state = visit(phrase);
    std::array<float, sentiments> logits;
    for (std::size_t s = 0; s < logits.size(); ++s) {
      logits[s] = b_s_[s];
      for (std::size_t j = 0; j < hidden_; ++j) logits[s] += W_s_[s * hidden_ + j] * state.h[j];
    }
    return logits;
  }

 private:
  struct State {
    std::vector<float> h, c;
  };

  /// Matrix `number` of a stack of matrices [to][from], as [from][to].
  static std::vector<float> turned(const std::vector<float>& stack, std::size_t number, std::size_t to,
                                   std::size_t from) {
    std::vector<float> result(to * from);
    const float* matrix = stack.data() + number * to * from;
    for (std::size_t i = 0; i < to; ++i)
      for (std::size_t j = 0; j < from; ++j) result[j * to + i] = matrix[i * from + j];
    return result;
  }

  State visit(const Phrase* phrase) const {
    std::vector<std::vector<float>> gate;
    State left, right;
    if (phrase->left) {
      left = visit(phrase->left), right = visit(phrase->right);
      gate.assign(bias_.begin(), bias_.end());
      for (std::size_t g = 0; g < gate.size(); ++g) {
        detail::add_product(left.h.data(), side_[0][g].data(), hidden_, hidden_, gate[g].data());
        detail::add_product(right.h.data(), side_[1][g].data(), hidden_, hidden_, gate[g].data());
      }
    } else {
      gate.assign(bias_.begin(), bias_.begin() + 3);
      const float* x = emb_.data() + std::size_t(phrase->word) * input_;
      for (std::size_t g = 0; g < 3; ++g) detail::add_product(x, word_[g].data(), input_, hidden_, gate[g].data());
    }
    State state{std::vector<float>(hidden_), std::vector<float>(hidden_)};
    for (std::size_t i = 0; i < hidden_; ++i) {
      state.c[i] = detail::sigmoid(gate[0][i]) * std::tanh(gate[2][i]);
      if (phrase->left)
        state.c[i] += detail::sigmoid(gate[3][i]) * left.c[i] + detail::sigmoid(gate[4][i]) * right.c[i];
      state.h[i] = detail::sigmoid(gate[1][i]) * std::tanh(state.c[i]);
    }
    return state;
  }

  std::size_t input_, hidden_;
  std::vector<float> emb_, W_s_, b_s_;
  std::vector<std::vector<float>> word_, side_[2], bias_;  // by gate: i, o, u, and f of the left and of the right
};

}  // namespace examples
