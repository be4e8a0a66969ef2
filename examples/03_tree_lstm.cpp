// Lesson 3: a child-sum TreeLSTM (Tai, Socher and Manning 2015): two states, any number of children, products with
// weights.
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

// A phrase is a word or consists of phrases, however many.
struct Phrase {
  int word = -1;
  std::vector<const Phrase*> parts;
};
constexpr auto parts = cortex::children<&Phrase::parts>;
constexpr auto word = cortex::field<&Phrase::word>;

constexpr int hidden = 64, input = 48;  // words' vectors need not be as long as states
using Weights = std::map<std::string, std::vector<float>>;

struct State {
  std::vector<double> h, c;
};
State by_hand(const Phrase* n, const Weights& weights);  // below, by plain recursion

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

int main() try {
  const cortex::Dim V{"vocabulary"}, E{"input", input}, H{"hidden", hidden};
  cortex::Model<Phrase> m("tree_lstm", cortex::tree.with_max_children(8));  // more would be refused by the call
  auto Emb = m.input<float>("Emb", V, E);
  auto W_i = m.input<float>("W_i", H, E), W_o = m.input<float>("W_o", H, E), W_u = m.input<float>("W_u", H, E);
  auto U_i = m.input<float>("U_i", H, H), U_o = m.input<float>("U_o", H, H), U_u = m.input<float>("U_u", H, H);
  auto U_f = m.input<float>("U_f", H, H);
  auto b_f = m.input<float>("b_f", H);

  // Two states a node, so two placeholders.
  auto h = m.placeholder<float>("h", H);
  auto c = m.placeholder<float>("c", H);

  // A lambda of your own can build what several operators share: here a row of a matrix times a word's vector. `sum`
  // over a dimension is a reduction; its lambda is given an index of that dimension, and no other fits W's second one.
  auto of_word = [&](const auto& W, auto n, auto i) {
    return sum(E, [&](auto j) { return W(i, j) * Emb(word(n), j); });
  };
  auto leaf_i = m.compute("leaf_i", H, [&](auto n, auto i) { return sigmoid(of_word(W_i, n, i)); });
  auto leaf_o = m.compute("leaf_o", H, [&](auto n, auto i) { return sigmoid(of_word(W_o, n, i)); });
  auto leaf_u = m.compute("leaf_u", H, [&](auto n, auto i) { return tanh(of_word(W_u, n, i)); });
  auto leaf_c = m.compute("leaf_c", H, [&](auto n, auto i) { return leaf_i(n, i) * leaf_u(n, i); });
  auto leaf_h = m.compute("leaf_h", H, [&](auto n, auto i) { return leaf_o(n, i) * tanh(leaf_c(n, i)); });

  // `sum` over the children is a fold: its lambda is given each child in turn, where placeholders can be read.
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(parts(n), [&](auto k) { return h(k, i); }); });
  auto of_sum = [&](const auto& U, auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }); };
  auto gate_i = m.compute("gate_i", H, [&](auto n, auto i) { return sigmoid(of_sum(U_i, n, i)); });
  auto gate_o = m.compute("gate_o", H, [&](auto n, auto i) { return sigmoid(of_sum(U_o, n, i)); });
  auto gate_u = m.compute("gate_u", H, [&](auto n, auto i) { return tanh(of_sum(U_u, n, i)); });

  // Each child is forgotten by a gate of its own: a reduction inside a fold. You write it where it is meant; that it is
  // a product of a matrix with all children of a level at once is for the compiler to find.
  auto kept = m.compute("kept", H, [&](auto n, auto i) {
    return sum(parts(n),
               [&](auto k) { return sigmoid(sum(H, [&](auto j) { return U_f(i, j) * h(k, j); }) + b_f(i)) * c(k, i); });
  });
  auto node_c = m.compute("node_c", H, [&](auto n, auto i) { return gate_i(n, i) * gate_u(n, i) + kept(n, i); });
  auto node_h = m.compute("node_h", H, [&](auto n, auto i) { return gate_o(n, i) * tanh(node_c(n, i)); });

  // A branch for each state, and both states together complete the model. The first pair is what `result[i]` shows.
  auto is_word = [](auto n) { return is_leaf(n); };
  auto all_h = m.if_then_else(is_word, leaf_h, node_h);
  auto all_c = m.if_then_else(is_word, leaf_c, node_c);
  auto model = cortex::compile(m.recursion_op(h, all_h, c, all_c));

  // Random weights. A handle names its weight as well as a string does; a shape, if given, is checked.
  std::mt19937 random(1);
  Weights weights;
  const auto fill = [&](const char* name, std::size_t count) -> const std::vector<float>& {
    std::vector<float>& values = weights[name];
    for (std::size_t i = 0; i < count; ++i) values.push_back(float(random() % 2001) / 8000.0F - 0.125F);
    return values;
  };
  model.bind(Emb, fill("Emb", 6 * input), {6, input});
  for (const char* name : {"W_i", "W_o", "W_u"}) model.bind(name, fill(name, hidden * input));
  for (const char* name : {"U_i", "U_o", "U_u", "U_f"}) model.bind(name, fill(name, hidden * hidden));
  model.bind("b_f", fill("b_f", hidden));

  // ((the old dog) barked) (.) with three, two and one parts.
  const Phrase the{0, {}}, old{1, {}}, dog{2, {}}, barked{3, {}}, dot{4, {}}, yes{5, {}};
  const Phrase noun{-1, {&the, &old, &dog}}, clause{-1, {&noun, &barked}}, end{-1, {&dot}},
      sentence{-1, {&clause, &end}};

  // One call for two trees, one of them a single word. Each node that the roots reach has both states in the result.
  const auto result = model({&sentence, &yes});
  double difference = 0;
  for (const Phrase* n : {&the, &old, &dog, &barked, &dot, &yes, &noun, &clause, &end, &sentence}) {
    const State expected = by_hand(n, weights);
    const std::span<const float> node_h = result.node(n, h), node_c = result.node(n, c);  // by placeholder ...
    for (int i = 0; i < hidden; ++i)
      difference = larger(difference, larger(std::abs(node_h[i] - expected.h[i]), std::abs(node_c[i] - expected.c[i])));
  }
  std::printf("c of the sentence: %.4f %.4f ...  of the word \"yes\": %.4f %.4f ...\n", result.root(0, "c")[0],
              result.root(0, "c")[1], result.root(1, c)[0], result.root(1, c)[1]);  // ... or by name
  std::printf("largest difference from plain recursion in double, h and c, all nodes: %.1e\n", difference);
  return difference < 5e-6 ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// The equations, by hand:  i, o = sigmoid(W x) or sigmoid(U s), u = tanh(W_u x) or tanh(U_u s), s = sum of h_k,
//                          c = i u + sum of sigmoid(U_f h_k + b_f) c_k,  h = o tanh(c).
State by_hand(const Phrase* n, const Weights& weights) {
  const auto times = [&](const char* name, const auto& x, int i) {
    double sum = 0;
    for (std::size_t j = 0; j < x.size(); ++j) sum += double(weights.at(name)[std::size_t(i) * x.size() + j]) * x[j];
    return sum;
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const bool leaf = n->parts.empty();
  std::vector<State> kids;
  for (const Phrase* part : n->parts) kids.push_back(by_hand(part, weights));
  std::vector<double> x(leaf ? input : hidden, 0.0);
  for (const State& kid : kids)
    for (int i = 0; i < hidden; ++i) x[i] += kid.h[i];
  if (leaf)
    for (int i = 0; i < input; ++i) x[i] = weights.at("Emb")[n->word * input + i];
  State state{std::vector<double>(hidden), std::vector<double>(hidden)};
  for (int i = 0; i < hidden; ++i) {
    state.c[i] = sigmoid(times(leaf ? "W_i" : "U_i", x, i)) * std::tanh(times(leaf ? "W_u" : "U_u", x, i));
    for (const State& kid : kids) state.c[i] += sigmoid(times("U_f", kid.h, i) + weights.at("b_f")[i]) * kid.c[i];
    state.h[i] = sigmoid(times(leaf ? "W_o" : "U_o", x, i)) * std::tanh(state.c[i]);
  }
  return state;
}
