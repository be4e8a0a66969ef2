// The running example in a user's project, held against plain recursion.
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

#ifdef PACKAGE_VERSION
static_assert(std::string_view(CORTEX_VERSION) == PACKAGE_VERSION);
static_assert(CORTEX_VERSION_MAJOR == PACKAGE_VERSION_MAJOR && CORTEX_VERSION_MINOR == PACKAGE_VERSION_MINOR &&
              CORTEX_VERSION_PATCH == PACKAGE_VERSION_PATCH);
#endif

struct Word {
  int id;
  const Word* left;
  const Word* right;
};

constexpr auto left = cortex::child<&Word::left>;
constexpr auto right = cortex::child<&Word::right>;
constexpr auto word = cortex::field<&Word::id>;

constexpr int hidden = 256, words = 3;

float expected(const std::vector<float>& embedding, const Word& node, int i) {
  if (!node.left) return embedding[std::size_t(node.id * hidden + i)];
  return std::tanh(expected(embedding, *node.left, i) + expected(embedding, *node.right, i));
}

int other();

int main() try {
  cortex::Dim V{"vocabulary"}, H{"hidden", hidden};
  cortex::Model<Word> tree_rnn("tree_rnn", cortex::tree);
  auto Emb = tree_rnn.input<float>("Emb", V, H);
  auto rnn = tree_rnn.placeholder<float>("rnn", H);
  auto leaf = tree_rnn.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto lh = tree_rnn.compute("lh", H, [&](auto n, auto i) { return rnn(left(n), i); });
  auto rh = tree_rnn.compute("rh", H, [&](auto n, auto i) { return rnn(right(n), i); });
  auto rec = tree_rnn.compute("rec", H, [&](auto n, auto i) { return tanh(lh(n, i) + rh(n, i)); });
  auto body = tree_rnn.if_then_else([](auto n) { return is_leaf(n); }, leaf, rec);
  auto out = tree_rnn.recursion_op(rnn, body);

  cortex::CompileOptions options;
#if !CORTEX_LLVM
  options.target = cortex::Target::interpreter();
#endif
  auto model = cortex::compile(out, cortex::Schedule{}.dynamic_batch(out).specialize_if_else(body), options);

  std::vector<float> embedding(words * hidden);
  for (std::size_t i = 0; i < embedding.size(); ++i) embedding[i] = 0.01f * float(i % 97) - 0.5f;
  model.bind("Emb", embedding);

  const Word a{0, nullptr, nullptr}, b{1, nullptr, nullptr}, c{2, nullptr, nullptr};
  const Word ab{-1, &a, &b}, abc{-1, &ab, &c};
  const std::vector<const Word*> roots{&abc};
  const auto h = model(roots);
  float worst = 0;
  for (int i = 0; i < hidden; ++i)
    worst = std::fmax(worst, std::fabs(h[0][std::size_t(i)] - expected(embedding, abc, i)));
  std::printf("%s %d\n", worst < 1e-5f ? "same as plain recursion" : "WRONG", other());
  return worst < 1e-5f ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
