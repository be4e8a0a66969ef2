// One functor in the hands of many threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/hand_made.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// Runs `f(t)` on `count` threads.
template <class F>
void on_threads(int count, F f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("eight threads call one functor a thousand times each", "[runtime]") {
  const auto m = functor(sum_executable()).bind("Emb", embedding(64));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const large = tree_of_depth(nodes, 6, id);
  const Word* const small = large->left;
  std::atomic<int> wrong{0};
  on_threads(8, [&](int t) {
    std::vector<float> out(8);
    for (int i = 0; i < 1000; ++i) {
      const bool whole = (i + t) % 3 == 0;
      const float expected = whole ? 64 * 65 / 2 : 32 * 33 / 2;
      const auto r = m(whole ? large : small);
      wrong += r[0][0] != expected;
      if (i % 4 == 0) m(small, out), wrong += out[0] != 32 * 33 / 2;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("calls see one set of weights each while others are bound", "[runtime]") {
  auto m = functor(sum_executable()).bind("Emb", embedding(64));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const root = tree_of_depth(nodes, 6, id);
  std::atomic<int> wrong{0}, running{3};
  on_threads(5, [&](int t) {
    if (t >= 3) {
      for (float scale = 1; running > 0; scale = scale < 9 ? scale + 1 : 1) m.bind("Emb", embedding(64, scale));
      return;
    }
    for (int i = 0; i < 1000; ++i) {
      const auto r = m(root);
      const float scale = r[0][0] / (64 * 65 / 2);
      wrong += scale != float(int(scale)) || scale < 1 || scale > 9 || r[0][7] != r[0][0] + 7 * 64;
    }
    --running;
  });
  CHECK(wrong == 0);
}

TEST_CASE("the next call of the thread that binds has the new weights", "[runtime]") {
  auto m = functor(sum_executable());
  const Word leaf{1};
  int wrong = 0;
  for (float scale = 1; scale < 100; ++scale) {
    m.bind("Emb", embedding(2, scale));
    wrong += m(leaf)[0][0] != 2 * scale;
  }
  CHECK(wrong == 0);
}

TEST_CASE("models and threads share one pool of workers", "[runtime]") {
  CompileOptions options;
  options.workers = std::make_shared<Workers>(3);
  runtime::Executable e = sum_executable();
  e.schedule = Schedule{}.workers(4);
  const auto first = functor(e, options).bind("Emb", embedding(64)),
             second = functor(e, options).bind("Emb", embedding(64, 2));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const root = tree_of_depth(nodes, 6, id);
  std::atomic<int> wrong{0};
  on_threads(4, [&](int t) {
    for (int i = 0; i < 300; ++i) {
      const auto r = (t % 2 ? second : first)(root);
      wrong += r[0][0] != (t % 2 ? 2 : 1) * 64 * 65 / 2 || r[0][7] != r[0][0] + 7 * 64;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("results outlive their functor in other threads", "[runtime]") {
  std::atomic<int> wrong{0};
  const Word leaf{1};
  for (int round = 0; round < 100; ++round) {
    auto m = std::make_unique<SumFunctor>(functor(sum_executable()).bind("Emb", embedding(2)));
    std::vector<SumFunctor::Output> results;
    for (int t = 0; t < 4; ++t) results.push_back((*m)(leaf));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&wrong, r = std::move(results[std::size_t(t)])] { wrong += r[0][0] != 2; });
    m.reset();
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(wrong == 0);
}
