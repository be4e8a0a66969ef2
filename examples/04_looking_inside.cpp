// Lesson 4: looking inside. What Cortex makes of a model at each stage, and what a schedule changes: the code, not the
// function.
//
//   04_looking_inside                                the stages in short, and the schedules compared
//   04_looking_inside ra|ilir|scheduled|tiled|llvm   one stage, whole, under the standard schedule
//   04_looking_inside explain                        what it all amounts to, whole
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cortex/explain.hpp>
#include <cstdio>
#include <string>
#include <vector>

struct Word {
  int id = -1;
  const Word* left = nullptr;
  const Word* right = nullptr;
};
constexpr auto left = cortex::child<&Word::left>;
constexpr auto right = cortex::child<&Word::right>;
constexpr auto word = cortex::field<&Word::id>;

constexpr int hidden = 64;
const cortex::Dim V{"vocabulary"}, H{"hidden", hidden};

// A TreeRNN: h = Emb[word] at a leaf, else tanh(U (h_left + h_right)).
auto tree_rnn() {
  cortex::Model<Word> m("tree_rnn", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", H, H);
  auto rnn = m.placeholder<float>("rnn", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto s = m.compute("s", H, [&](auto n, auto i) { return rnn(left(n), i) + rnn(right(n), i); });
  auto rec =
      m.compute("rec", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); })); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, rec);
  return m.recursion_op(rnn, body);
}

std::vector<float> numbers(std::size_t count, float scale) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = scale * std::sin(float(i * i % 1009));
  return result;
}
const std::vector<float> embedding = numbers(100 * hidden, 1), weights = numbers(hidden * hidden, 0.2F);

std::vector<float> by_hand(const Word* n) {
  if (!n->left) return {embedding.begin() + n->id * hidden, embedding.begin() + (n->id + 1) * hidden};
  const std::vector<float> l = by_hand(n->left), r = by_hand(n->right);
  std::vector<float> h(hidden);
  for (int i = 0; i < hidden; ++i) {
    for (int j = 0; j < hidden; ++j) h[i] += weights[i * hidden + j] * (l[j] + r[j]);
    h[i] = std::tanh(h[i]);
  }
  return h;
}

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

void print_head(const char* title, const std::string& text, int lines) {
  std::size_t end = 0;
  for (int line = 0; line < lines && end < text.size(); ++line)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  std::printf("---- %s\n%.*s%s\n", title, int(end), text.c_str(), end < text.size() ? "  ...\n" : "");
}

int main(int argc, char** argv) try {
  const auto program = tree_rnn();
  auto standard = cortex::compile(program);
  if (argc > 1 && std::string(argv[1]) == "explain") return std::puts(cortex::explain(standard).c_str()) < 0;
  if (argc > 1) return std::puts(standard.print(argv[1]).c_str()) < 0;

  // Stages. The operator graph is what you wrote. The loops (ILIR) have no recursion any more: they run over
  // numbered nodes, level by level, and read children through arrays. Scheduled, few of them are left, over packed
  // weights. The LLVM IR is those loops with register tiles and vectors.
  print_head("the operator graph (ra)", standard.print("ra"), 12);
  print_head("the loops (ilir)", standard.print("ilir"), 24);
  print_head("the loops that are left (scheduled)", standard.print("scheduled"), 24);
  print_head("the LLVM IR (llvm), in short", standard.print("llvm"), 6);

  // What they amount to: each decision of the schedule in words, operations and weights read nest by nest, every buffer
  // with its bytes, and what calls check.
  const std::string explanation = cortex::explain(standard);
  const std::size_t programs = explanation.find("\nloops as lowered");
  std::printf("---- explain, without the loops\n%s\n", explanation.substr(0, programs).c_str());
  const auto& times = standard.executable().times;
  std::printf("compiling took %.1f ms to loops, %.1f ms to LLVM IR, %.1f ms to machine code\n\n", times.lower,
              times.codegen, times.llvm);

  // A tree of 64 words, each level joined in pairs.
  std::vector<Word> nodes(127);
  for (int i = 0; i < 64; ++i) nodes[i].id = i;
  for (int i = 64, child = 0; i < 127; ++i, child += 2)
    nodes[i].left = &nodes[child], nodes[i].right = &nodes[child + 1];
  const Word* const root = &nodes.back();
  const std::vector<float> expected = by_hand(root);

  // Batched: levels instead of single nodes. Specialized: leaves and inner nodes have code of their own instead of a
  // question at each node. Each of the four is the same function; any other schedule is too.
  struct Choice {
    const char* name;
    cortex::Schedule schedule;
  };
  const Choice choices[] = {{"node by node", cortex::Schedule{}},
                            {"node by node, specialized", cortex::Schedule{}.specialize_if_else("body")},
                            {"batched", cortex::Schedule{}.dynamic_batch()},
                            {"batched, specialized", cortex::Schedule{}.dynamic_batch().specialize_if_else("body")}};
  bool right = true;
  for (const Choice& choice : choices) {
    auto model = cortex::compile(program, choice.schedule);
    model.bind("Emb", embedding).bind("U", weights);
    double difference = 0, best_us = 1e9;
    for (int run = 0; run < 200; ++run) {
      const auto start = std::chrono::steady_clock::now();
      const auto result = model(root);
      best_us = std::fmin(best_us,
                          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      for (int i = 0; i < hidden; ++i) difference = larger(difference, std::abs(result[0][i] - expected[i]));
    }
    std::printf("%-28s best of 200 calls %7.1f us, largest difference from plain recursion %.1e\n", choice.name,
                best_us, difference);
    right &= difference < 1e-5;
  }
  return right ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
