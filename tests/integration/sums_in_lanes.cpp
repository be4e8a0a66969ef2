// Norms, scores and extremes over what a node has: in lanes of vectors, whatever the sizes, with the same bits for any
// batch and any number of workers.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "support/compile.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// h = tanh(a / sqrt(sum a^2 + 1) + max(a) + b(left, right)) with a = W (h_l + h_r), where b is a bilinear form; a leaf
/// looks h up.
template <class T>
auto normed(int extent) {
  Dim V{"vocabulary"}, H{"hidden", extent};
  Model<Word> m("normed", cortex::tree);
  auto Emb = m.input<T>("Emb", V, H);
  auto W = m.input<T>("W", H, H), B = m.input<T>("B", H, H);
  auto h = m.placeholder<T>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto a = m.compute("a", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return W(i, j) * (h(left(n), j) + h(right(n), j)); });
  });
  auto norm = m.compute("norm", [&](auto n) { return sqrt(sum(H, [&](auto i) { return a(n, i) * a(n, i); }) + T(1)); });
  auto top = m.compute("top", [&](auto n) { return maximum(H, [&](auto i) { return a(n, i); }); });
  auto form = m.compute("form", [&](auto n) {
    return sum(H, H, [&](auto i, auto j) { return h(left(n), i) * B(i, j) * h(right(n), j); });
  });
  auto inner = m.compute("inner", H, [&](auto n, auto i) { return tanh(a(n, i) / norm(n) + top(n) + form(n)); });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
}

template <class T>
struct Weights {
  explicit Weights(int extent) {
    const auto fill = [](std::vector<T>& to, std::size_t count, float scale, unsigned seed) {
      for (const float value : uniform(count, scale, seed)) to.push_back(T(value));
    };
    const std::size_t n = std::size_t(extent);
    fill(emb, 5 * n, 1, 1), fill(w, n * n, 0.2f, 2), fill(b, n * n, 0.1f, 3);
  }
  template <class F>
  void bind_to(F& model) const {
    model.bind("Emb", emb).bind("W", w).bind("B", b);
  }
  std::vector<T> emb, w, b;
};

template <class T>
std::vector<double> expected(const Word& n, const Weights<T>& weights, std::size_t extent) {
  std::vector<double> h(extent);
  if (!n.left) {
    for (std::size_t i = 0; i < extent; ++i) h[i] = double(weights.emb[std::size_t(n.id) * extent + i]);
    return h;
  }
  const auto l = expected(*n.left, weights, extent), r = expected(*n.right, weights, extent);
  std::vector<double> a(extent);
  double squares = 1, top = -INFINITY, form = 0;
  for (std::size_t i = 0; i < extent; ++i) {
    for (std::size_t j = 0; j < extent; ++j) {
      a[i] += double(weights.w[i * extent + j]) * (l[j] + r[j]);
      form += l[i] * double(weights.b[i * extent + j]) * r[j];
    }
    squares += a[i] * a[i], top = std::max(top, a[i]);
  }
  for (std::size_t i = 0; i < extent; ++i) h[i] = std::tanh(a[i] / std::sqrt(squares) + top + form);
  return h;
}

template <class T>
void check_normed(int extent, double within) {
  const Word a{0}, b{1}, c{2}, d{3}, e{4}, ab{-1, &a, &b}, cd{-1, &c, &d}, abcd{-1, &ab, &cd}, root{-1, &abcd, &e};
  const Weights<T> weights(extent);
  const auto program = normed<T>(extent);
  auto model = compile_here(program);
  weights.bind_to(model);
  const auto alone = model(root);
  const auto wanted = expected(root, weights, std::size_t(extent));
  INFO("H = " << extent << ", " << sizeof(T) << " bytes");
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(double(alone[0][i]) == Approx(wanted[i]).margin(within));
  for (const int threads : {1, 2}) {
    CompileOptions options;
    options.target = best_target();
    auto shared = compile(program, Schedule::standard(), options.with_workers(std::make_shared<Workers>(threads)));
    weights.bind_to(shared);
    const auto many = shared({&abcd, &root, &cd, &root});
    for (const std::size_t at : {std::size_t(1), std::size_t(3)})
      CHECK(std::equal(alone[0].begin(), alone[0].end(), many[at].begin()));
  }
}

}  // namespace

TEST_CASE("norms, extremes and bilinear forms are right for sizes that fill vectors and others", "[lanes][slow]") {
  for (const int extent : {1, 3, 16, 17, 32, 40, 100}) {
    check_normed<float>(extent, 2e-5);
    check_normed<double>(extent, 1e-12);
  }
}

TEST_CASE("norms of each of a few gates read rows as they lie", "[lanes]") {
  constexpr int extent = 40, gates = 3;
  Dim V{"vocabulary"}, H{"hidden", extent}, G{"gates", gates};
  Model<Word> m("gated_norm", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", G, H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto a = m.compute("a", G, H, [&](auto n, auto q, auto i) {
    return sum(H, [&](auto j) { return U(q, i, j) * (h(left(n), j) + h(right(n), j)); });
  });
  auto mean = m.compute("mean", G,
                        [&](auto n, auto q) { return sum(H, [&](auto i) { return a(n, q, i); }) * (1.0f / extent); });
  auto inner = m.compute("inner", H,
                         [&](auto n, auto i) { return tanh(sum(G, [&](auto q) { return a(n, q, i) - mean(n, q); })); });
  const auto program = m.recursion_op(h, m.if_then_else(
                                             "body", [](auto n) { return is_leaf(n); }, leaf, inner));
  auto model = compile_here(program);
  const auto emb = uniform(2 * extent, 1, 1), u = uniform(gates * extent * extent, 0.2f, 2);
  model.bind("Emb", emb).bind("U", u);
  const Word x{0}, y{1}, root{-1, &x, &y};
  const auto result = model(root);
  std::vector<double> sum(extent);
  for (int q = 0; q < gates; ++q) {
    std::vector<double> row(extent);
    double all = 0;
    for (int i = 0; i < extent; ++i) {
      for (int j = 0; j < extent; ++j)
        row[std::size_t(i)] += double(u[std::size_t((q * extent + i) * extent + j)]) *
                               (double(emb[std::size_t(j)]) + double(emb[std::size_t(extent + j)]));
      all += row[std::size_t(i)] / extent;
    }
    for (int i = 0; i < extent; ++i) sum[std::size_t(i)] += row[std::size_t(i)] - all;
  }
  for (int i = 0; i < extent; ++i)
    CHECK(double(result[0][std::size_t(i)]) == Approx(std::tanh(sum[std::size_t(i)])).margin(2e-5));
}

TEST_CASE("rows that are read around their end give the same for any number of workers, forth and back", "[lanes]") {
  const Word a{0}, b{1}, c{2}, ab{-1, &a, &b}, root{-1, &ab, &c};
  for (const int extent : {1, 3, 16, 17, 40, 96}) {
    const std::size_t n = std::size_t(extent);
    const std::vector<float> emb = uniform(5 * n, 1, 1);
    for (const bool forth : {true, false}) {
      INFO("H = " << extent << (forth ? ", forth" : ", back"));
      Dim V{"vocabulary"}, H{"hidden", extent};
      Model<Word> m("circular", cortex::tree);
      auto Emb = m.input<float>("Emb", V, H);
      auto h = m.placeholder<float>("h", H);
      auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
      auto inner = m.compute("inner", H, [&](auto n, auto i) {
        return tanh(
            sum(H, [&](auto j) { return h(left(n), j) * h(right(n), (forth ? i + j : i - j + extent) % extent); }));
      });
      const auto program = m.recursion_op(h, m.if_then_else(
                                                 "body", [](auto n) { return is_leaf(n); }, leaf, inner));
      const auto correlated = [&](const std::vector<double>& l, const std::vector<double>& r) {
        std::vector<double> result(n);
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t j = 0; j < n; ++j) result[i] += l[j] * r[(forth ? i + j : i + n - j) % n];
          result[i] = std::tanh(result[i]);
        }
        return result;
      };
      const auto of_word = [&](int id) {
        return std::vector<double>(emb.begin() + std::ptrdiff_t(std::size_t(id) * n),
                                   emb.begin() + std::ptrdiff_t(std::size_t(id + 1) * n));
      };
      const auto wanted = correlated(correlated(of_word(0), of_word(1)), of_word(2));
      auto alone = compile_here(program);
      alone.bind("Emb", emb);
      const auto state = alone(root);
      for (std::size_t i = 0; i < n; ++i) CHECK(double(state[0][i]) == Approx(wanted[i]).margin(1e-4));
      CompileOptions options;
      options.target = best_target();
      auto shared = compile(program, Schedule::standard(), options.with_workers(std::make_shared<Workers>(2)));
      shared.bind("Emb", emb);
      const auto many = shared({&ab, &root});
      CHECK(std::equal(state[0].begin(), state[0].end(), many[1].begin()));
    }
  }
}
