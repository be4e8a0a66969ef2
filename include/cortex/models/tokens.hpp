// Sequences of words for programs that have no nodes, but rows of numbers: of each number a node is made.
//
//   auto lstm = cortex::models::lstm<Token>(token_word, token_before, {.input = 300, .hidden = 150});
//   auto model = cortex::compile(lstm.program);
//   cortex::models::Sequences sentences;
//   sentences.add(std::vector{4, 8, 15});
//   auto h = model(sentences);               // h[0]: the state after the last word of the first sentence
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cortex/base/error.hpp"
#include "cortex/structure/accessors.hpp"

namespace cortex::models {

/// A word of a sequence, as a node. It lies in memory directly after the word before it, and so needs no link to it,
/// and is not copied: refer to it where it is.
struct Token {
  std::int32_t word = 0;
  bool first = true;  // of its sequence

  Token() = default;
  Token(std::int32_t of_word, bool is_first) : word(of_word), first(is_first) {}
  // A copy would stand after whatever lies before it. `Sequences` moves all of its tokens at once.
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  Token(Token&&) noexcept = default;
  Token& operator=(Token&&) noexcept = default;

  /// The token before this one in its sequence, or null.
  const Token* before() const { return first ? nullptr : this - 1; }
};

/// What a model reads of a token: its word, and the token before it.
inline constexpr auto token_word = field<&Token::word>;
inline constexpr auto token_before = optional_child<&Token::before>;

/// Sequences of words, which a call of a model over `Token`s takes for its roots: the last token of each, in order. A
/// call reads them, and keeps nothing of them. Memory is kept from one batch to the next by `clear`.
///
///   result.root(i, state)                     after sequence i
///   result.node(&sequences[i][t], state)      at its word t, as long as no sequence has been added since the call
class Sequences {
 public:
  Sequences() = default;
  Sequences(const Sequences& other) : ends_(other.ends_) {
    tokens_.reserve(other.tokens_.size());
    for (const Token& token : other.tokens_) tokens_.emplace_back(token.word, token.first);
  }
  Sequences(Sequences&& other) noexcept { swap(other); }
  Sequences& operator=(Sequences other) noexcept { return swap(other), *this; }

  /// A sequence for each of `batch`, a range of what `add` takes.
  template <class Batch>
  requires requires(const Batch& batch) { std::begin(*std::begin(batch)); }
  explicit Sequences(const Batch& batch) {
    for (auto&& words : batch) add(words);
  }

  /// Adds a sequence of the words in a range of integers, or of characters from 0 to 255 as in a std::string, first to
  /// last, and tells its number. Throws `Error{invalid_argument}` if there are none, and `Error{out_of_range}` for a
  /// word that 32 bits do not hold; then, as when memory runs out, it adds nothing. The tokens of other sequences may
  /// move.
  template <class Words>
  std::size_t add(Words&& words) {
    using Word = std::remove_cvref_t<decltype(*std::begin(words))>;
    static_assert(std::is_integral_v<Word> && !std::is_same_v<Word, bool>, "words are integers");
    using Number = std::conditional_t<std::is_same_v<Word, char>, unsigned char, Word>;
    using Wide = std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>;
    const std::size_t before = tokens_.size();
    try {
      for (const Word word : words) {
        const Wide number = Number(word);
        if (!std::in_range<std::int32_t>(number)) refuse_word(tokens_.size() - before, std::to_string(number));
        tokens_.push_back({std::int32_t(number), tokens_.size() == before});
      }
      if (tokens_.size() == before)
        throw Error(Code::invalid_argument, "sequence " + std::to_string(size()) +
                                                " has no words; its state would be that of its last one: leave it out");
      ends_.push_back(tokens_.size());
    } catch (...) {
      tokens_.resize(before);
      throw;
    }
    return size() - 1;
  }

  /// Forgets all sequences.
  void clear() { tokens_.clear(), ends_.clear(); }

  /// How many there are.
  std::size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }

  /// The tokens of a sequence, first to last. Throws `Error{invalid_argument}` if there are not so many sequences.
  std::span<const Token> operator[](std::size_t sequence) const {
    if (sequence >= size())
      throw Error(Code::invalid_argument,
                  "there is no sequence " + std::to_string(sequence) + " of " + std::to_string(size()));
    const std::size_t begin = sequence == 0 ? 0 : ends_[sequence - 1];
    return {tokens_.data() + begin, ends_[sequence] - begin};
  }

  /// Goes through the last tokens of all sequences.
  struct Iterator {
    const Token* tokens;
    const std::size_t* end;
    const Token* operator*() const { return tokens + (*end - 1); }
    Iterator& operator++() { return ++end, *this; }
    bool operator==(const Iterator& other) const { return end == other.end; }
  };
  Iterator begin() const { return {tokens_.data(), ends_.data()}; }
  Iterator end() const { return {tokens_.data(), ends_.data() + ends_.size()}; }

 private:
  void swap(Sequences& other) noexcept { tokens_.swap(other.tokens_), ends_.swap(other.ends_); }

  [[noreturn, gnu::cold]] void refuse_word(std::size_t at, const std::string& word) const {
    throw Error(Code::out_of_range, "word " + std::to_string(at) + " of sequence " + std::to_string(size()) + " is " +
                                        word + "; words are numbers of 32 bits");
  }

  std::vector<Token> tokens_;      // of all sequences, one after the other
  std::vector<std::size_t> ends_;  // where each ends
};

}  // namespace cortex::models
