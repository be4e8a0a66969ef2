// One functor in the hands of many threads.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/hand_made.hpp"
#include "support/in_child.hpp"

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

/// Of the model "sum", but each element comes from its neighbour's in the left child: workers read what others wrote
/// one node before, which the barrier alone orders.
void rotating_kernel(const codegen::KernelArgs* args) {
  const auto [sizes, l, r, id, emb, h, begin, end] = SumArgs(args);
  constexpr int width = SumArgs::width, row = SumArgs::row;
  for (std::int32_t n = sizes[0] - 1; n >= 0; --n) {
    for (std::int32_t i = begin; i < end; ++i)
      h[n * row + i] =
          n >= sizes[1] ? emb[id[n] * width + i] : h[l[n] * row + (i + 1) % width] / 3 + h[r[n] * row + i] * 1.1f;
    if (args->num_workers > 1) args->barrier(args->barrier_context);
  }
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

TEST_CASE("threads call several models over one pool, whose workers come and go, and get the same bits each time",
          "[runtime]") {
  const auto pool = std::make_shared<Workers>(3);
  runtime::Executable plain = sum_executable();
  plain.schedule = Schedule{}.workers(3);
  runtime::Executable rotating = plain;
  rotating.kernel = &rotating_kernel;
  const CompileOptions options = CompileOptions{}.with_workers(pool);
  std::vector<SumFunctor> models;
  for (int k = 0; k < 4; ++k)
    models.push_back(functor(k % 2 ? rotating : plain, options).bind("Emb", embedding(64, float(k + 1))));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const root = tree_of_depth(nodes, 6, id);
  const auto state = [](const auto& result, std::size_t r) {
    return std::vector<float>(result[r].begin(), result[r].end());
  };
  std::vector<std::vector<float>> right;  // alone, by one thread
  for (SumFunctor& model : models) {
    model.use(nullptr);
    right.push_back(state(model(root), 0));
    model.use(pool);
  }
  std::atomic<int> wrong{0}, running{6};
  on_threads(7, [&](int t) {
    if (t == 6) {  // takes pools away and gives others while calls are in flight
      for (int i = 0; running > 0; ++i) {
        models[std::size_t(i) % 4].use(i % 3 == 0 ? nullptr : i % 3 == 1 ? std::make_shared<Workers>(1) : pool);
        std::this_thread::yield();
      }
      return;
    }
    for (int i = 0; i < 200; ++i) {
      const std::size_t m = std::size_t(i * 7 + t) % 4;
      if (i % 5)
        wrong += state(models[m](root), 0) != right[m];
      else  // in a batch with others
        wrong += state(models[m]({root->left, root, root->right->left}), 1) != right[m];
    }
    --running;
  });
  CHECK(wrong == 0);
  CHECK(pool->available() == 3);
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

TEST_CASE("models that share a pool are called in child processes, too", "[runtime]") {
  const auto pool = std::make_shared<Workers>(2);
  runtime::Executable e = sum_executable();
  e.kernel = rotating_kernel;
  e.schedule = Schedule{}.workers(3);
  auto m = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", embedding(64));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const root = tree_of_depth(nodes, 5, id);
  std::vector<float> expected(8), out(8);
  m(root, expected);
  const int ended = in_child([&] {
    m(root, out);
    const bool right = out == expected;
    m.use(std::make_shared<Workers>(2));  // lets go of the parent's pool, too
    m(root, out);
    return right && out == expected ? 7 : 1;
  });
  CHECK(ended == 7);
  m(root, out);
  CHECK(out == expected);
}
