// Lesson 5: schedules. What they change, how a model is run, and what they do not: its results, but for rounding.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <vector>

// A phrase is a word, or consists of phrases; some negate what they consist of.
enum class Kind { plain, negation };
struct Phrase {
  int word = -1;
  Kind kind = Kind::plain;
  std::vector<const Phrase*> parts;
};
constexpr auto parts = cortex::children<&Phrase::parts>;
constexpr auto word = cortex::field<&Phrase::word>;
constexpr auto kind = cortex::field<&Phrase::kind>;

constexpr int hidden = 256, words = 50;

// At a word h = Emb[word]. Elsewhere s = sum of h over the parts, and h = tanh(s) if there is one part, tanh(N s) in a
// negation, tanh(U s) in any other phrase. Four cases, so three branches: on whether there are parts, on how many, and
// on a field.
auto model_of(cortex::Structure structure) {
  const cortex::Dim V{"vocabulary"}, H{"hidden", hidden};
  cortex::Model<Phrase> m("phrases", structure);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", H, H), N = m.input<float>("N", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(parts(n), [&](auto k) { return h(k, i); }); });
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto alone = m.compute("alone", H, [&](auto n, auto i) { return tanh(s(n, i)); });
  auto plain =
      m.compute("plain", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return U(i, j) * s(n, j); })); });
  auto negation =
      m.compute("negation", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return N(i, j) * s(n, j); })); });
  auto by_kind = m.switch_(
      "by_kind", [](auto n) { return kind(n); }, cortex::when(Kind::negation, negation), cortex::otherwise(plain));
  auto by_count = m.if_then_else(
      "by_count", [](auto n) { return num_children(parts(n)) == 1; }, alone, by_kind);
  auto body = m.if_then_else(
      "by_leaf", [](auto n) { return is_leaf(n); }, leaf, by_count);
  return m.recursion_op(h, body);
}

std::vector<float> numbers(std::size_t count, float scale) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = scale * std::sin(float(i * i % 1009));
  return result;
}
const std::vector<float> Emb = numbers(words * hidden, 1), U = numbers(hidden * hidden, 0.06F),
                         N = numbers(hidden * hidden, -0.09F);

std::vector<double> by_hand(const Phrase* n) {
  if (n->parts.empty()) return {Emb.begin() + n->word * hidden, Emb.begin() + (n->word + 1) * hidden};
  std::vector<double> s(hidden), h(hidden);
  for (const Phrase* part : n->parts) {
    const std::vector<double> of_part = by_hand(part);
    for (int i = 0; i < hidden; ++i) s[i] += of_part[i];
  }
  const std::vector<float>& M = n->kind == Kind::negation ? N : U;
  for (int i = 0; i < hidden; ++i) {
    for (int j = 0; j < hidden && n->parts.size() > 1; ++j) h[i] += double(M[i * hidden + j]) * s[j];
    h[i] = std::tanh(n->parts.size() == 1 ? s[i] : h[i]);
  }
  return h;
}

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

std::deque<Phrase> phrases;  // they stay where they are, so pointers to them hold
const Phrase* random_phrase(std::mt19937& random, int depth) {
  Phrase p{int(random() % words), random() % 4 ? Kind::plain : Kind::negation, {}};
  for (int count = depth > 0 ? 1 + int(random() % 3) : 0; count > 0; --count)
    p.parts.push_back(random_phrase(random, depth - 1 - int(random() % 2)));
  return &phrases.emplace_back(p);
}

int main() try {
  std::mt19937 random(1);
  std::vector<const Phrase*> roots;
  for (int i = 0; i < 10; ++i) roots.push_back(random_phrase(random, 8));
  std::printf("10 trees of %zu nodes\n", phrases.size());
  std::vector<std::vector<double>> expected;
  for (const Phrase* root : roots) expected.push_back(by_hand(root));

  // A schedule is a value. Each decision gives a changed copy, so decisions chain, in any order. Branches are named by
  // their handles or, as here, by their names.
  using cortex::Schedule;
  const Schedule standard = Schedule::standard(), parted = standard.specialize_if_else("by_count");
  struct Choice {
    const char* name;
    Schedule schedule;
  };
  const Choice choices[] = {
      // One node after the other, children first; each node asks all three questions.
      {"node by node", Schedule{}},
      // Nodes that do not depend on each other run together. Alone this changes little: each node still asks which
      // matrix is its own.
      {"batched", Schedule{}.dynamic_batch()},
      // A version of the program for each side of a branch, and nodes numbered so that those of one version follow each
      // other. Here leaves, which are known before anything is computed.
      {"batched, leaves apart", Schedule{}.dynamic_batch().specialize_if_else("by_leaf")},
      // What you get without a schedule: batched, leaves apart, a version for each case of a switch; and, where it
      // pays, small levels filled with nodes from below, equal subtrees computed once, what words decide read from
      // tables, and calls shared by the threads that are lent to them.
      {"standard", standard},
      // With the branch on counts no question is left: each version is products of one matrix with many nodes at once.
      {"standard, counts too", parted},
      // The recursion put into itself: batches are of subtrees of two levels. Whether that pays is the model's matter:
      // the paper found TreeRNN faster for it and TreeLSTM slower. It goes with leaves apart and no other branch.
      {"standard, unrolled by 2", standard.unroll("h", 2)},
      // Up to two threads share a call. They are lent, see `use` below; a call without any works alone.
      {"counts too, 2 workers", parted.workers(2)},
      // The C library's tanh in place of an approximation that is some 1e-7 off.
      {"counts too, exact tanh", parted.exact_activations()}};

  bool right = true;
  const auto program = model_of(cortex::tree);
  const auto threads = std::make_shared<cortex::Workers>(1);  // beside the thread that calls
  std::vector<std::vector<float>> of_one_thread;
  for (const Choice& choice : choices) {
    auto model = cortex::compile(program, choice.schedule);
    model.bind("Emb", Emb).bind("U", U).bind("N", N).use(threads);
    double difference = 0, best_us = 1e9;
    for (int run = 0; run < 200; ++run) {
      const auto start = std::chrono::steady_clock::now();
      const auto h = model(roots);
      best_us = std::fmin(best_us,
                          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      for (std::size_t r = 0; r < roots.size(); ++r)
        for (int i = 0; i < hidden; ++i) difference = larger(difference, std::abs(h[r][i] - expected[r][i]));
    }
    std::printf("%-24s best of 200 calls %7.1f us, largest difference from plain recursion %.1e\n", choice.name,
                best_us, difference);
    right &= difference < 1e-5;

    // Rounding may differ between schedules in the last place. Under one it never does: not from call to call, not with
    // the number of threads, not with what else is in the call.
    const auto all = model(roots), alone = model(roots[3]);
    for (int i = 0; i < hidden; ++i) right &= all[3][i] == alone[0][i];
    if (choice.schedule == parted)
      for (std::size_t r = 0; r < roots.size(); ++r) of_one_thread.emplace_back(all[r].begin(), all[r].end());
    if (choice.schedule == parted.workers(2))
      for (std::size_t r = 0; r < roots.size(); ++r)
        right &= std::equal(all[r].begin(), all[r].end(), of_one_thread[r].begin());
  }

  // A schedule that cannot be is refused when the model is compiled, with the reason. In a DAG two nodes may share a
  // child, which an unrolled recursion would compute once for each of them.
  const auto refused = cortex::try_compile(model_of(cortex::dag), standard.unroll("h", 2));
  if (refused) return 1;
  std::printf("refused: %s\n", refused.error().message.c_str());
  return right ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
