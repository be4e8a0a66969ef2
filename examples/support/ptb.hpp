// Trees of words: files in the bracketed format of the Penn Treebank, as the Stanford Sentiment Treebank has them, and
// typed sentences.
//
//   (3 (2 It) (3 (3 (2 's) (2 good)) (2 .)))        label, then either one word or further trees; labels 0 to 4
//
// `Phrase` is a user's node type like any other: Cortex knows nothing of it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace examples {

struct Phrase {
  int label = 2;                  // sentiment, 0 (very negative) to 4 (very positive)
  int word = -1;                  // at leaves, an id of the vocabulary; -1 elsewhere
  const Phrase* left = nullptr;   // null at leaves
  const Phrase* right = nullptr;  // null at leaves
};

/// Words and their ids, which count from 0. With `Unknown::yes`, id 0 stands for words that are not in it.
class Vocabulary {
 public:
  enum class Unknown { no, yes };
  explicit Vocabulary(Unknown unknown = Unknown::no) {
    if (unknown == Unknown::yes) words_.push_back("<unknown>");
    has_unknown_ = unknown == Unknown::yes;
  }

  /// The id of `word`, a new one if it has none yet.
  int add(std::string_view word) {
    const auto [at, is_new] = ids_.try_emplace(std::string(word), int(words_.size()));
    if (is_new) words_.push_back(at->first);
    return at->second;
  }
  /// The id of `word`; of an absent one 0 with `Unknown::yes`, else -1.
  int find(std::string_view word) const {
    const auto at = ids_.find(std::string(word));
    return at != ids_.end() ? at->second : has_unknown_ ? 0 : -1;
  }
  const std::string& word(int id) const { return words_.at(std::size_t(id)); }
  int size() const { return int(words_.size()); }

 private:
  std::unordered_map<std::string, int> ids_;
  std::vector<std::string> words_;
  bool has_unknown_ = false;
};

/// Trees and the nodes that they are made of, one by one in a container that never moves them.
struct Treebank {
  std::deque<Phrase> nodes;
  std::vector<const Phrase*> trees;
  Vocabulary vocabulary;

  Treebank() = default;
  Treebank(Treebank&&) = default;
  Treebank& operator=(Treebank&&) = default;
  Treebank(const Treebank&) = delete;  // links would lead into the original

  Phrase* add(Phrase phrase) { return &nodes.emplace_back(phrase); }
};

namespace detail {

/// `children` as one binary tree that branches to the right; its inner nodes have the label of the whole. A single
/// child takes the place of its parent, whose label it gets.
inline Phrase* joined(Treebank& bank, int label, const std::vector<Phrase*>& children) {
  Phrase* tree = children.back();
  if (children.size() == 1) tree->label = label;
  for (std::size_t i = children.size() - 1; i-- > 0;) tree = bank.add({label, -1, children[i], tree});
  return tree;
}

/// Reads trees from a text with a stack of its own, so that any depth is fine.
class PtbParser {
 public:
  PtbParser(std::string_view text, std::string name, Treebank& bank)
      : text_(text), name_(std::move(name)), bank_(bank) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);  // the byte order mark of some editors
  }

  void run() {
    while (skip_space(), at_ < text_.size()) {
      if (text_[at_] == '(')
        open();
      else if (text_[at_] == ')')
        close();
      else
        word();
    }
    if (!open_.empty()) fail(open_.front().place, "this '(' is never closed");
  }

 private:
  struct Place {
    std::size_t line = 1, column = 1;
  };
  struct Open {
    Place place;
    int label = 0;
    int word = -1;
    std::vector<Phrase*> children;
  };

  [[noreturn]] void fail(const Place& place, const std::string& what) const {
    throw std::runtime_error(name_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " +
                             what);
  }

  /// One character on, columns counted in characters and not in the bytes of their UTF-8.
  void advance() {
    if (text_[at_] == '\n')
      ++here_.line, here_.column = 1;
    else if (!is_continuation(text_[at_]))
      ++here_.column;
    ++at_;
  }
  /// Whether a byte of UTF-8 belongs to the character before it.
  static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) advance();
  }
  std::string_view token() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != '(' && text_[at_] != ')') advance();
    return text_.substr(begin, at_ - begin);
  }
  /// `text` for a message: quoted, and cut if it is long.
  static std::string shown(std::string_view text) {
    constexpr std::size_t most = 40;
    std::size_t end = std::min(most, text.size());
    while (end < text.size() && end > 0 && is_continuation(text[end])) --end;
    std::string result = "'";
    result += text.substr(0, end);
    return result += end < text.size() ? "...'" : "'";
  }

  void open() {
    if (!open_.empty() && open_.back().word >= 0)
      fail(here_, "a '(' after the word " + shown(bank_.vocabulary.word(open_.back().word)) +
                      ": a node has one word or further trees, not both");
    Open node;
    node.place = here_;
    advance();
    skip_space();
    const Place place = here_;
    const std::string_view label = token();
    if (label.empty()) fail(place, "a label from 0 to 4 must follow the '('");
    if (label.size() != 1 || label[0] < '0' || label[0] > '4')
      fail(place, "the label is " + shown(label) + "; labels are 0, 1, 2, 3 and 4");
    node.label = label[0] - '0';
    open_.push_back(std::move(node));
  }

  void word() {
    const Place place = here_;
    const std::string_view text = token();
    if (open_.empty()) fail(place, shown(text) + " stands outside of any tree");
    Open& node = open_.back();
    if (node.word >= 0)
      fail(place, "a second word, " + shown(text) + ", after " + shown(bank_.vocabulary.word(node.word)) +
                      ": a node has one word or further trees");
    if (!node.children.empty())
      fail(place, "the word " + shown(text) + " after a tree: a node has one word or further trees, not both");
    node.word = bank_.vocabulary.add(text);
  }

  void close() {
    if (open_.empty()) fail(here_, "this ')' closes nothing");
    const Open node = std::move(open_.back());
    if (node.word < 0 && node.children.empty()) fail(node.place, "a node without word and without trees");
    open_.pop_back();
    advance();
    Phrase* const phrase = node.word >= 0 ? bank_.add({node.label, node.word, nullptr, nullptr})
                                          : joined(bank_, node.label, node.children);
    if (open_.empty())
      bank_.trees.push_back(phrase);
    else
      open_.back().children.push_back(phrase);
  }

  std::string_view text_;
  std::string name_;
  Treebank& bank_;
  std::size_t at_ = 0;
  Place here_;
  std::vector<Open> open_;
};

}  // namespace detail

/// Adds the trees in `text` to `bank`; `name` is what errors call the text. Nodes with more than two children branch to
/// the right, chains of single children collapse. Throws std::runtime_error: "name:line:column: what is wrong".
inline void parse_ptb(std::string_view text, const std::string& name, Treebank& bank) {
  detail::PtbParser(text, name, bank).run();
}

/// Adds the trees of a file to `bank`, as `parse_ptb`. Throws std::runtime_error also for a file that cannot be read or
/// holds no tree, and for a device. A pipe is read to its end.
inline void read_ptb(const std::filesystem::path& path, Treebank& bank) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw std::runtime_error(path.string() + " is a directory, not a file of trees");
  if (std::filesystem::is_character_file(path, ignored) || std::filesystem::is_block_file(path, ignored))
    throw std::runtime_error(path.string() + " is a device, which may never end, not a file of trees");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + " cannot be opened: " + std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad() || text.bad()) throw std::runtime_error(path.string() + " cannot be read");
  const std::size_t before = bank.trees.size();
  parse_ptb(text.str(), path.string(), bank);
  if (bank.trees.size() == before) throw std::runtime_error(path.string() + " holds no tree");
}

/// The words of a typed sentence: what stands between spaces, with the punctuation at a word's end split off.
inline std::vector<std::string> tokens(std::string_view sentence) {
  constexpr std::string_view space = " \t\r\n\v\f", punctuation = ".,;:!?";
  std::vector<std::string> result;
  for (std::size_t at = 0; (at = sentence.find_first_not_of(space, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(sentence.find_first_of(space, at), sentence.size());
    const std::string_view word = sentence.substr(at, end - at);
    const std::size_t last = word.find_last_not_of(punctuation);
    const std::size_t stem = last == std::string_view::npos ? 0 : last + 1;
    if (stem > 0) result.emplace_back(word.substr(0, stem));
    if (stem < word.size()) result.emplace_back(word.substr(stem));  // "..." stays one word
    at = end;
  }
  return result;
}

/// Adds a typed sentence to `bank` as a tree that branches to the right: It (is (a (dog .))). Throws std::runtime_error
/// for a sentence without words.
inline const Phrase* add_sentence(std::string_view sentence, Treebank& bank) {
  std::vector<Phrase*> leaves;
  for (const std::string& word : tokens(sentence))
    leaves.push_back(bank.add({2, bank.vocabulary.add(word), nullptr, nullptr}));
  if (leaves.empty()) throw std::runtime_error("a sentence needs at least one word");
  bank.trees.push_back(detail::joined(bank, 2, leaves));
  return bank.trees.back();
}

/// How large a tree is. The height of a leaf is 1.
struct Size {
  long nodes = 0, words = 0, height = 0;
};
inline Size size_of(const Phrase* tree) {
  Size size;
  std::vector<std::pair<const Phrase*, long>> open{{tree, 1}};
  while (!open.empty()) {
    const auto [phrase, level] = open.back();
    open.pop_back();
    ++size.nodes;
    size.words += !phrase->left;
    size.height = std::max(size.height, level);
    if (phrase->left) open.insert(open.end(), {{phrase->left, level + 1}, {phrase->right, level + 1}});
  }
  return size;
}

/// The directory of the examples' sources.
inline std::filesystem::path examples_directory() {
#ifdef CORTEX_EXAMPLES_DIR
  return CORTEX_EXAMPLES_DIR;
#else
  return std::filesystem::absolute(__FILE__).lexically_normal().parent_path().parent_path();
#endif
}

/// The directory of the Stanford Sentiment Treebank (train.txt, dev.txt, test.txt): the environment variable
/// CORTEX_SST, or shared/data/sst beside the repository.
inline std::optional<std::filesystem::path> find_sst() {
  std::error_code ignored;
  if (const char* given = std::getenv("CORTEX_SST"); given && *given) {
    std::filesystem::path path = given;
    if (!std::filesystem::is_directory(path, ignored)) path = path.parent_path();  // one of its files
    if (std::filesystem::exists(path / "test.txt", ignored)) return path;
    throw std::runtime_error("CORTEX_SST is '" + std::string(given) +
                             "', where there is no test.txt of the Stanford Sentiment Treebank");
  }
  const std::filesystem::path path = examples_directory().parent_path().parent_path() / "shared" / "data" / "sst";
  if (std::filesystem::exists(path / "test.txt", ignored)) return path;
  return std::nullopt;
}

}  // namespace examples
