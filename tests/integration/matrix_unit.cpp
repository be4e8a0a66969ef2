// Models whose weights are stored as bf16, on CPUs with a matrix unit: beside vectors, and the promises that hold for
// these.
#include "cortex/jit/matrix_unit.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "support/compile.hpp"
#include "support/models.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr int words = 50;

/// `count` binary trees of 1 to 12 words.
struct Forest {
  std::deque<Word> nodes;
  std::vector<const Word*> roots;
  explicit Forest(int count, unsigned seed = 1) : random(seed) {
    for (int i = 0; i < count; ++i) roots.push_back(grow(1 + int(random() % 12)));
  }

 private:
  std::mt19937 random;
  const Word* grow(int size) {
    if (size == 1) return &nodes.emplace_back(Word{int(random() % words)});
    const int left = 1 + int(random() % unsigned(size - 1));
    const Word* const l = grow(left);
    return &nodes.emplace_back(Word{int(random() % words), l, grow(size - left)});
  }
};

void need_matrix_unit() {
  need_llvm();
  if (!best_target().matrix_unit || !jit::may_use_matrix_unit())
    skip("this CPU has no matrix unit for bf16, or does not give it to this process");
}

Schedule stored() { return Schedule::standard().store_weights(DType::bf16); }

template <class Functor>
void bind_all(Functor& model) {
  unsigned seed = 1;
  for (const runtime::WeightSpec& input : model.executable().weights) {
    std::size_t count = 1;
    for (const Dim& dim : input.dims) count *= std::size_t(dim.kind() == DimKind::open ? words : dim.extent());
    const bool matrix = input.dims.size() > 1 && input.dims[0].kind() != DimKind::open;
    model.bind(input.name, uniform(count, matrix ? 1 / std::sqrt(float(input.dims.back().extent())) : 1, seed++));
  }
}

template <class Program>
auto model_of(const Program& program, const Schedule& schedule) {
  auto model = compile_here(program, schedule);
  bind_all(model);
  return model;
}

template <class Functor>
std::vector<float> run(Functor& model, const std::vector<const Word*>& roots) {
  const auto result = model(roots);
  std::vector<float> all;
  for (std::size_t r = 0; r < result.size(); ++r) all.insert(all.end(), result[r].begin(), result[r].end());
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The greatest distance of two results.
float distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

auto lstm(int hidden, int input = 24) {
  return models::tree_lstm<Word>(word, kids, {.input = input, .hidden = hidden}).program;
}
auto gru(int hidden, int input = 24) {
  return models::tree_gru<Word>(word, kids, {.input = input, .hidden = hidden}).program;
}

}  // namespace

TEST_CASE("with a matrix unit weights of bf16 give what they give with vectors", "[matrix_unit][slow]") {
  need_matrix_unit();
  const Forest forest(20);
  for (const int hidden : {1, 16, 64, 70, 81, 100}) {
    INFO("hidden " << hidden);
    const auto check = [&](const auto& program) {
      auto tiles = model_of(program, stored()), vectors = model_of(program, stored().multiply_in_vectors());
      const std::vector<float> got = run(tiles, forest.roots), right = run(vectors, forest.roots);
      CHECK(distance(got, right) < 2e-6f);
      if (hidden >= 64) CHECK_FALSE(same_bits(got, right));  // or there would be no tiles
    };
    check(lstm(hidden));
    check(gru(hidden, hidden));
  }
}

TEST_CASE("in tiles a tree's bits do not depend on its batch, on workers, on groups or on tables", "[matrix_unit]") {
  need_matrix_unit();
  const Forest forest(37);
  const auto program = lstm(80);
  auto plain = model_of(program, stored().share_no_subtrees().tabulate_nothing());
  const std::vector<float> all = run(plain, forest.roots);
  for (std::size_t r = 0; r < forest.roots.size(); ++r) {
    const std::vector<float> one = run(plain, {forest.roots[r]});
    CHECK(std::memcmp(one.data(), &all[r * 80], 80 * sizeof(float)) == 0);
  }
  auto pool = std::make_shared<Workers>(3);
  for (const int workers : {1, 2, 3, 4})
    for (const int groups : {1, 2}) {
      INFO(workers << " workers, " << groups << " groups");
      auto model = model_of(program, stored().share_subtrees().tabulate().workers(workers).groups(groups));
      model.use(pool);
      for (int call = 0; call < 3; ++call) CHECK(same_bits(run(model, forest.roots), all));
    }
}

TEST_CASE("tables hold the bits that calls would compute, under every version of the program", "[matrix_unit][slow]") {
  need_matrix_unit();
  const Forest forest(12);
  const auto check = [&](const auto& program) {
    for (const bool batched : {false, true})
      for (const bool branches : {false, true})
        for (const bool leaves : {false, true}) {
          Schedule schedule = Schedule{}.store_weights(DType::bf16);
          schedule.batched = batched, schedule.specialize_every = branches, schedule.leaves_apart = leaves;
          INFO(to_string(schedule));
          auto plain = model_of(program, schedule), tables = model_of(program, schedule.tabulate());
          CHECK(same_bits(run(plain, forest.roots), run(tables, forest.roots)));
        }
  };
  check(lstm(72));
  check(gru(72, 72));
  check(models::tree_lstm<Word>(models::at_leaves(word), kids, {.input = 64, .hidden = 72}).program);
}

TEST_CASE("threads that call a model at the same time have a matrix unit each", "[matrix_unit]") {
  need_matrix_unit();
  const Forest forest(30);
  auto model = model_of(gru(64, 64), stored());
  const std::vector<float> right = run(model, forest.roots);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int call = 0; call < 50; ++call) wrong += !same_bits(run(model, forest.roots), right);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("NaN and infinity among a node's numbers make its results NaN, and no one else's", "[matrix_unit]") {
  need_matrix_unit();
  const Word plain{1}, odd{2}, high{3}, low{4};
  auto model = compile_here(lstm(80, 64), stored());
  bind_all(model);
  std::vector<float> table = uniform(std::size_t(words) * 64, 1, 7);
  const std::vector<float> before = run(model.bind("Emb", table), {&plain});
  table[2 * 64 + 3] = NAN, table[3 * 64 + 5] = INFINITY;
  for (int i = 0; i < 64; ++i) table[std::size_t(4 * 64 + i)] = 1e-40f;  // below the normal range: counts as 0
  const std::vector<float> got = run(model.bind("Emb", table), {&plain, &odd, &high, &low});
  CHECK(std::memcmp(got.data(), before.data(), before.size() * sizeof(float)) == 0);
  for (std::size_t i = 0; i < 80; ++i) {
    CHECK(std::isnan(got[80 + i]));
    CHECK(std::isnan(got[160 + i]));
    CHECK(std::isfinite(got[240 + i]));
  }
}

TEST_CASE("an explanation says what the matrix unit multiplies", "[matrix_unit][explain]") {
  need_matrix_unit();
  const std::string text = explain(model_of(lstm(80), stored()));
  CHECK_THAT(text, Catch::Contains("arithmetic is in f32, with products of the matrix unit") &&
                       Catch::Contains("packed for the matrix unit") && Catch::Contains("a matrix unit for bf16"));
  const std::string vectors = explain(model_of(lstm(80), stored().multiply_in_vectors()));
  CHECK_THAT(vectors, !Catch::Contains("products of the matrix unit") &&
                          !Catch::Contains("packed for the matrix unit") && !Catch::Contains("multiply for"));
  CHECK_THAT(explain(model_of(lstm(32), stored())),
             Catch::Contains("and not the matrix unit: a row has so few products that vectors make them sooner"));
}
