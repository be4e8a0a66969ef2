// Lesson 6: DAGs. Nodes that several others lead to are computed once, whatever leads to them.
//
// First the pixels of an image under a DAG-RNN (Shuai et al. 2016), then a lattice of a speech recognizer's words, from
// which several hypotheses are read at once.
#include <algorithm>
#include <array>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

// A pixel has a colour, and is scanned after the one above and the one to the left, where there are such.
struct Pixel {
  std::array<float, 3> colour;
  const Pixel* above;
  const Pixel* left;
};
// `child` may be absent only where there is no child at all; `optional_child` anywhere. What is absent contributes
// nothing: its state is zero.
constexpr auto above = cortex::optional_child<&Pixel::above>;
constexpr auto left = cortex::optional_child<&Pixel::left>;
constexpr auto colour = cortex::field<&Pixel::colour>;

// A word of a lattice may follow any of several words, and several may follow it.
struct Arc {
  int word;
  std::vector<const Arc*> before;
};
constexpr auto before = cortex::children<&Arc::before>;
constexpr auto word = cortex::field<&Arc::word>;

constexpr int hidden = 64, words = 8;
std::vector<float> numbers(std::size_t count, float scale) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = scale * std::sin(float(i * i % 1009));
  return result;
}
const std::vector<float> W = numbers(hidden * 3, 0.5F), U = numbers(hidden * hidden, 0.05F), b = numbers(hidden, 0.1F),
                         Emb = numbers(words * hidden, 1);

// h = relu(x + U s + b), s the sum of h over the nodes before. By plain recursion, which must remember what it has
// done: 48,620 paths lead through a grid of 10 by 10.
using State = std::vector<double>;
template <class Node, class Input, class Before>
const State& by_hand(const Node* n, const Input& x, const Before& before, std::map<const Node*, State>& done) {
  if (const auto known = done.find(n); known != done.end()) return known->second;
  State s(hidden), h(hidden);
  for (const Node* k : before(n)) {
    const State& of_k = by_hand(k, x, before, done);
    for (int i = 0; i < hidden; ++i) s[i] += of_k[i];
  }
  for (int i = 0; i < hidden; ++i) {
    h[i] = x(n, i) + b[i];
    for (int j = 0; j < hidden; ++j) h[i] += double(U[i * hidden + j]) * s[j];
    h[i] = std::max(h[i], 0.0);
  }
  return done[n] = h;
}

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

double difference(std::span<const float> h, const State& expected) {
  double result = 0;
  for (int i = 0; i < hidden; ++i) result = larger(result, std::abs(h[i] - expected[i]));
  return result;
}

bool image() {
  const cortex::Dim E{"colour", 3}, H{"hidden", hidden};
  cortex::Model<Pixel> m("dag_rnn", cortex::dag);  // each call verifies that there is no cycle
  auto W = m.input<float>("W", H, E), U = m.input<float>("U", H, H);
  auto b = m.input<float>("b", H);
  auto x = m.field("x", colour, E);  // an array in each node is read through a name and a dimension of its own
  auto h = m.placeholder<float>("h", H);
  // The products with x do not depend on the recursion, so they are done ahead, for all pixels at once. To see it:
  // model.print("ilir"). `cortex::models::dag_rnn` is this model, ready made.
  auto s = m.compute("s", H, [&](auto n, auto i) { return h(above(n), i) + h(left(n), i); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return relu(sum(E, [&](auto j) { return W(i, j) * x(n, j); }) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }) +
                b(i));
  });
  auto model = cortex::compile(m.recursion_op(h, body));
  model.bind(W, ::W).bind(U, ::U).bind(b, ::b);

  // 10 by 10 pixels. The last one, at the bottom right, leads to all others: it is the root. Pixels of a diagonal do
  // not depend on each other, so a call runs 19 batches.
  constexpr int side = 10;
  std::vector<Pixel> pixels(side * side);
  for (int p = 0; p < side * side; ++p) {
    const float at = float(p) / (side * side);
    pixels[p] = {{at, 1 - at, at * at}, p < side ? nullptr : &pixels[p - side], p % side ? &pixels[p - 1] : nullptr};
  }
  const auto result = model(pixels.back());

  std::map<const Pixel*, State> done;
  const auto of_colour = [](const Pixel* n, int i) {
    double sum = 0;
    for (int j = 0; j < 3; ++j) sum += double(::W[i * 3 + j]) * n->colour[j];
    return sum;
  };
  const auto scanned_before = [](const Pixel* n) {
    std::vector<const Pixel*> both{n->above, n->left};
    std::erase(both, nullptr);
    return both;
  };
  double worst = 0;
  for (const Pixel& p : pixels)
    worst = larger(worst, difference(result.node(&p), by_hand(&p, of_colour, scanned_before, done)));
  std::printf("image: %zu nodes, largest difference from plain recursion %.1e\n", result.num_nodes(), worst);
  return result.num_nodes() == pixels.size() && worst < 1e-5;
}

auto lattice_model(cortex::Structure structure) {
  const cortex::Dim V{"vocabulary"}, H{"hidden", hidden};
  cortex::Model<Arc> m("lattice", structure);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(before(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return relu(Emb(word(n), i) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + b(i));
  });
  return m.recursion_op(h, body);
}

bool lattice() {
  //        ,- wreck -- a -.- nice -- beach      "recognize speech" or "wreck a nice beach"? Three words may come last,
  //   it -<                \                    so there are three roots. What they share is computed once, and a root
  //        `- recognize --- speech -- .         may stand below another one.
  const Arc it{0, {}}, wreck{1, {&it}}, a{2, {&wreck}}, nice{3, {&a}}, beach{4, {&nice}}, recognize{5, {&it}},
      speech{6, {&a, &recognize}}, dot{7, {&speech}};
  const std::vector<const Arc*> ends{&beach, &speech, &dot};
  auto model = cortex::compile(lattice_model(cortex::dag));
  model.bind("Emb", Emb).bind("U", U).bind("b", b);
  const auto result = model(ends);

  std::map<const Arc*, State> done;
  const auto of_word = [](const Arc* n, int i) { return double(Emb[n->word * hidden + i]); };
  const auto words_before = [](const Arc* n) { return n->before; };
  double worst = 0;
  for (std::size_t r = 0; r < ends.size(); ++r)
    worst = larger(worst, difference(result[r], by_hand(ends[r], of_word, words_before, done)));
  std::printf("lattice: %zu nodes below %zu roots, largest difference %.1e\n", result.num_nodes(), result.size(),
              worst);

  // Declared for trees, the same model refuses this input before it computes anything.
  auto for_trees = cortex::compile(lattice_model(cortex::tree));
  for_trees.bind("Emb", Emb).bind("U", U).bind("b", b);
  const auto refused = for_trees.try_call(ends);
  if (!refused) std::printf("declared for trees: %s\n", refused.error().message.c_str());
  return result.num_nodes() == 8 && worst < 1e-5 && !refused;
}

int main() try {
  const bool of_image = image(), of_lattice = lattice();
  return of_image && of_lattice ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
