// Rows of words as nodes of the models over sequences.
#include "cortex/models/tokens.hpp"

#include <catch2/catch.hpp>
#include <list>
#include <ranges>

#include "cortex/models/lstm.hpp"
#include "models/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using models::Sequences;
using models::Token;

namespace {

auto lstm_of_tokens() {
  return models::bidirectional_lstm<Token>(models::token_word, models::token_before,
                                           {.vocabulary = vocabulary, .input = 5, .hidden = 7});
}

std::vector<int> words_of(std::span<const Token> tokens) {
  std::vector<int> words;
  for (const Token& token : tokens) words.push_back(token.word);
  return words;
}

}  // namespace

TEST_CASE("rows of words give what linked nodes give, at every word", "[models]") {
  const Items items = forest(Shape::sequence, 4, 9, 1);
  Sequences sequences;
  std::vector<std::vector<const Item*>> steps;
  for (const Item* root : items.roots) {
    std::vector<const Item*>& row = steps.emplace_back();
    for (const Item* step = root; step != nullptr; step = step->before) row.insert(row.begin(), step);
    std::vector<int> words;
    for (const Item* step : row) words.push_back(step->word);
    CHECK(sequences.add(words) == steps.size() - 1);
  }
  const auto linked =
      models::bidirectional_lstm<Item>(word, before, {.vocabulary = vocabulary, .input = 5, .hidden = 7});
  const auto rows = lstm_of_tokens();
  auto of_items = compile_here(linked.program);
  auto of_tokens = compile_here(rows.program);
  const auto weights = random_weights(rows.program.graph(), 1);
  bind_all<float>(of_items, weights), bind_all<float>(of_tokens, weights);
  const auto right = of_items(items.roots);
  const auto result = of_tokens(sequences);
  const auto same = [](std::span<const float> a, std::span<const float> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  for (std::size_t s = 0; s < steps.size(); ++s) {
    CHECK(same(result[s], right[s]));
    REQUIRE(sequences[s].size() == steps[s].size());
    for (std::size_t t = 0; t < steps[s].size(); ++t)
      CHECK(same(result.node(&sequences[s][t], rows.reverse.h), right.node(steps[s][t], linked.reverse.h)));
  }
  CHECK(same(AnyFunctor<Token>(of_tokens)(sequences)[1], right[1]));
}

TEST_CASE("words come from any range of integers, and memory serves the next batch", "[models]") {
  Sequences sequences(std::vector<std::vector<std::int64_t>>{{4, 8, 15}, {16}});
  const short array[] = {23, 42};
  CHECK(sequences.add(array) == 2);
  CHECK(sequences.add(std::list<unsigned char>{4, 255}) == 3);
  CHECK(sequences.add(std::initializer_list<int>{-1}) == 4);
  CHECK(words_of(sequences[0]) == std::vector{4, 8, 15});
  CHECK(words_of(sequences[1]) == std::vector{16});
  CHECK(words_of(sequences[2]) == std::vector{23, 42});
  CHECK(words_of(sequences[3]) == std::vector{4, 255});
  CHECK(words_of(sequences[4]) == std::vector{-1});
  std::vector<const Token*> roots;
  for (const Token* root : sequences) roots.push_back(root);
  REQUIRE(roots.size() == sequences.size());
  for (std::size_t s = 0; s < roots.size(); ++s) CHECK(roots[s] == &sequences[s].back());
  CHECK(sequences[0][0].before() == nullptr);
  CHECK(sequences[0][2].before() == &sequences[0][1]);
  CHECK(sequences[2][0].before() == nullptr);

  const Token* memory = &sequences[0][0];
  sequences.clear();
  CHECK(sequences.empty());
  sequences.add(std::vector{7});
  CHECK(&sequences[0][0] == memory);
  CHECK(words_of(sequences[0]) == std::vector{7});
}

TEST_CASE("sequences are copied whole, and a token is not copied out of its own", "[models]") {
  static_assert(!std::is_copy_constructible_v<Token> && !std::is_copy_assignable_v<Token>);
  Sequences sequences(std::vector<std::vector<int>>{{1, 2}, {3}});
  Sequences copy = sequences;
  sequences.clear();
  REQUIRE(copy.size() == 2);
  CHECK(words_of(copy[0]) == std::vector{1, 2});
  CHECK(copy[0][0].before() == nullptr);
  CHECK(copy[0][1].before() == &copy[0][0]);
  CHECK(copy[1][0].before() == nullptr);
  const Token* memory = &copy[0][0];
  sequences = std::move(copy);
  CHECK(&sequences[0][0] == memory);
  copy = sequences;
  CHECK(words_of(copy[1]) == std::vector{3});
}

TEST_CASE("a sequence that is refused leaves the others as they are", "[models][refusal]") {
  Sequences sequences;
  sequences.add(std::vector{1, 2});
  const auto refused = [&](const auto& words) {
    const auto added = attempt([&] { return sequences.add(words); });
    REQUIRE_FALSE(added);
    CHECK(sequences.size() == 1);
    CHECK(words_of(sequences[0]) == std::vector{1, 2});
    return added.error();
  };
  const Error none = refused(std::vector<int>{});
  CHECK(none.code == Code::invalid_argument);
  CHECK_THAT(none.message, Contains("sequence 1 has no words"));
  const Error large = refused(std::vector<std::int64_t>{3, std::int64_t(1) << 31});
  CHECK(large.code == Code::out_of_range);
  CHECK_THAT(large.message, Contains("word 1 of sequence 1 is 2147483648"));
  sequences.add(std::vector{3});
  CHECK(words_of(sequences[1]) == std::vector{3});
  CHECK(sequences[1][0].before() == nullptr);
  CHECK_THROWS_WITH(sequences[2], Contains("no sequence 2 of 2"));

  auto model = compile_here(lstm_of_tokens().program);
  bind_all<float>(model, random_weights(lstm_of_tokens().program.graph(), 1));
  CHECK(model(Sequences()).num_nodes() == 0);
  sequences.add(std::vector{0, vocabulary});
  const auto answer = model.try_call(sequences);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Code::out_of_range);
  CHECK(answer.error().node == &sequences[2][1]);
}

TEST_CASE("characters are words from 0 to 255, and views are ranges of words", "[models]") {
  Sequences sequences;
  sequences.add(std::string("h\xc3\xa9"));
  CHECK(words_of(sequences[0]) == std::vector{104, 0xc3, 0xa9});
  sequences.add(std::u32string(U"h\u00e9"));
  CHECK(words_of(sequences[1]) == std::vector{104, 0xe9});
  const std::vector<signed char> bytes{-1, 5};
  CHECK_THROWS_AS(sequences.add(std::vector{std::uint64_t(-1)}), Error);
  sequences.add(bytes);
  CHECK(words_of(sequences[2]) == std::vector{-1, 5});
  sequences.add(bytes | std::views::filter([](int word) { return word >= 0; }));
  CHECK(words_of(sequences[3]) == std::vector{5});
}
