// The examples' reader of bracketed trees and typed sentences.
#include "../../examples/support/ptb.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

namespace {

using namespace examples;

/// A tree as text: leaves as word:label, other nodes as (label left right).
std::string shown(const Phrase* tree, const Treebank& bank) {
  if (!tree->left) return bank.vocabulary.word(tree->word) + ":" + std::to_string(tree->label);
  return "(" + std::to_string(tree->label) + " " + shown(tree->left, bank) + " " + shown(tree->right, bank) + ")";
}

std::string read(const std::string& text) {
  Treebank bank;
  parse_ptb(text, "text", bank);
  std::string result;
  for (const Phrase* tree : bank.trees) result += (result.empty() ? "" : " ") + shown(tree, bank);
  return result;
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("binary trees are read as they are, one or many to a line or over several") {
  CHECK(read("(3 (2 It) (4 works))\n(2 (2 a)\r\n\t(2 b)) (1 c)") == "(3 It:2 works:4) (2 a:2 b:2) c:1");
}

TEST_CASE("more than two children branch to the right") {
  CHECK(read("(4 (0 a) (1 b) (2 c) (3 d))") == "(4 a:0 (4 b:1 (4 c:2 d:3)))");
}

TEST_CASE("a chain of single children collapses to its last node, with the first label") {
  CHECK(read("(4 (3 (2 x)))") == "x:4");
  CHECK(read("(4 (3 (1 a) (2 b)))") == "(4 a:1 b:2)");
}

TEST_CASE("words are UTF-8, a byte order mark is skipped") {
  CHECK(read("\xEF\xBB\xBF(2 caf\xC3\xA9)") == "caf\xC3\xA9:2");
}

TEST_CASE("a word has one id") {
  Treebank bank;
  parse_ptb("(2 (2 a) (2 (2 b) (2 a)))", "text", bank);
  CHECK(bank.vocabulary.size() == 2);
  CHECK(bank.trees[0]->left->word == bank.trees[0]->right->right->word);
  CHECK(bank.vocabulary.find("b") == 1);
  CHECK(bank.vocabulary.find("z") == -1);
  CHECK(Vocabulary(Vocabulary::Unknown::yes).find("z") == 0);
}

TEST_CASE("errors say where and what") {
  CHECK(error_of("(2 a)\n(2 (2 a) (2 b)") == "text:2:1: this '(' is never closed");
  CHECK(error_of("(2 a))") == "text:1:6: this ')' closes nothing");
  CHECK(error_of("(5 a)") == "text:1:2: the label is '5'; labels are 0, 1, 2, 3 and 4");
  CHECK(error_of("(2 (2 \xC3\xA9) (NP a))") == "text:1:11: the label is 'NP'; labels are 0, 1, 2, 3 and 4");
  CHECK(error_of("(2)") == "text:1:1: a node without word and without trees");
  CHECK(error_of("(2 a b)") == "text:1:6: a second word, 'b', after 'a': a node has one word or further trees");
  CHECK(error_of("(2 (2 a) b)") ==
        "text:1:10: the word 'b' after a tree: a node has one word or further trees, not both");
  CHECK(error_of("(2 a (2 b))") ==
        "text:1:6: a '(' after the word 'a': a node has one word or further trees, not both");
  CHECK(error_of("()") == "text:1:2: a label from 0 to 4 must follow the '('");
  CHECK(error_of("a") == "text:1:1: 'a' stands outside of any tree");
}

TEST_CASE("a tree of a million levels is read without recursion") {
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "(2 (2 a) ";
  text += "(2 b)" + std::string(1000000, ')');
  Treebank bank;
  parse_ptb(text, "text", bank);
  CHECK(size_of(bank.trees[0]).height == 1000001);
}

TEST_CASE("files that cannot be read or hold no tree are refused") {
  Treebank bank;
  CHECK_THROWS_AS(read_ptb("no such file", bank), std::runtime_error);
  CHECK_THROWS_AS(read_ptb(".", bank), std::runtime_error);
  CHECK_THROWS_WITH(read_ptb("/dev/null", bank), Catch::Matchers::Contains("is a device"));  // as /dev/zero is
}

TEST_CASE("trees may come through a pipe") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const std::string text = "(2 (2 a) (2 b))";
  REQUIRE(::write(ends[1], text.data(), text.size()) == ssize_t(text.size()));
  ::close(ends[1]);
  Treebank bank;
  read_ptb("/dev/fd/" + std::to_string(ends[0]), bank);  // as the shell's <(command) is
  ::close(ends[0]);
  REQUIRE(bank.trees.size() == 1);
  CHECK(shown(bank.trees[0], bank) == "(2 a:2 b:2)");
}

TEST_CASE("a typed sentence branches to the right, punctuation at the end of words is split off") {
  Treebank bank;
  CHECK(shown(add_sentence("It's a  dog, really...", bank), bank) ==
        "(2 It's:2 (2 a:2 (2 dog:2 (2 ,:2 (2 really:2 ...:2)))))");
  CHECK(shown(add_sentence("yes", bank), bank) == "yes:2");
  CHECK_THROWS_AS(add_sentence(" \t", bank), std::runtime_error);
}

TEST_CASE("the examples' sentences are read whole") {
  Treebank bank;
  read_ptb(examples_directory() / "data" / "sentences.txt", bank);
  CHECK(bank.trees.size() == 102);
}
