// Lesson 1: the running example of the paper (figure 1 and listing 1), from nodes to results.
//
// A recursive model computes a state for each node of a tree out of the states of its children. This one is about the
// smallest: a leaf's state is a row of an embedding table, and any other node's is tanh(h_left + h_right).
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <span>
#include <vector>

// Your nodes stay as they are: no base class, no registration, no copy into a graph of the library's own.
struct Word {
  int id;
  const Word* left;
  const Word* right;
};

// Accessors tell Cortex what to read of a node. They are types, made from the member pointers, so the code that walks
// your nodes is compiled for exactly these members and inlined.
constexpr auto left = cortex::child<&Word::left>;
constexpr auto right = cortex::child<&Word::right>;
constexpr auto word = cortex::field<&Word::id>;

// What Cortex must give: the same function, by plain recursion.
constexpr int hidden = 256;
std::vector<float> by_hand(const Word* n, const std::vector<float>& embedding) {
  if (!n->left) {
    const float* row = embedding.data() + n->id * hidden;
    return {row, row + hidden};
  }
  const std::vector<float> lh = by_hand(n->left, embedding), rh = by_hand(n->right, embedding);
  std::vector<float> h(hidden);
  for (int i = 0; i < hidden; ++i) h[i] = std::tanh(lh[i] + rh[i]);
  return h;
}

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

int main() try {
  // Dimensions have names. A tensor remembers the dimensions it was made with, so that an index of one dimension is
  // never used in another by mistake, even if both are 256. A vocabulary stays open: its extent is that of the table
  // bound below.
  const cortex::Dim V{"vocabulary"}, H{"hidden", hidden};

  // The model is declared over trees of Word, which every call then verifies: no cycle, no shared child.
  cortex::Model<Word> m("tree_rnn", cortex::tree);

  // A weight, and a placeholder, which stands for the results of the recursive calls.
  auto Emb = m.input<float>("Emb", V, H);
  auto rnn = m.placeholder<float>("rnn", H);

  // Operators give a tensor at each node, element by element: the lambda says what stands at index i of node n. It runs
  // once, here, with symbols in place of numbers. A placeholder is read at children, an operator at the node itself.
  auto leaf_case = m.compute("leaf_case", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto lh = m.compute("lh", H, [&](auto n, auto i) { return rnn(left(n), i); });
  auto rh = m.compute("rh", H, [&](auto n, auto i) { return rnn(right(n), i); });
  auto recursive_case = m.compute("recursive_case", H, [&](auto n, auto i) { return tanh(lh(n, i) + rh(n, i)); });

  // The base case and the recursive one, chosen by the structure. A choice by computed numbers would not compile: which
  // nodes a model visits must be known before it computes anything.
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf_case, recursive_case);

  // This ties the knot: what the calls give is what the body computes.
  auto out = m.recursion_op(rnn, body);

  // The schedule is apart from the model: it changes how fast the model is, and of its results the rounding at most
  // (lesson 5). These are the paper's two decisions: run nodes that do not depend on each other together, and compile
  // leaves apart from the rest. Without a schedule, `cortex::compile(out)` takes decisions at least as good.
  auto model = cortex::compile(out, cortex::Schedule{}.dynamic_batch(out).specialize_if_else(body));

  // Weights are bound by name, checked, and copied once into the layout that the code reads.
  const std::vector<const char*> vocabulary{"It", "is", "a", "dog", "."};
  std::vector<float> embedding(vocabulary.size() * hidden);
  for (std::size_t i = 0; i < embedding.size(); ++i) embedding[i] = std::sin(float(i));
  model.bind("Emb", embedding);

  // (It ((is (a dog)) .)
  const Word It{0, nullptr, nullptr}, is{1, nullptr, nullptr}, a{2, nullptr, nullptr}, dog{3, nullptr, nullptr},
      dot{4, nullptr, nullptr};
  const Word a_dog{-1, &a, &dog}, is_a_dog{-1, &is, &a_dog}, predicate{-1, &is_a_dog, &dot},
      sentence{-1, &It, &predicate};

  // A call takes one root or many, and computes everything below them in one go.
  const auto h = model({&sentence, &is_a_dog});
  const std::span<const float> of_sentence = h[0];        // the state of the first root
  const std::span<const float> of_noun = h.node(&a_dog);  // and of any node on the way
  std::printf("h(sentence) = %.4f %.4f %.4f ...  of %zu nodes and %zu roots\n", of_sentence[0], of_sentence[1],
              of_sentence[2], h.num_nodes(), h.size());

  double difference = 0;
  for (int i = 0; i < hidden; ++i) {
    difference = larger(difference, std::abs(of_sentence[i] - by_hand(&sentence, embedding)[i]));
    difference = larger(difference, std::abs(of_noun[i] - by_hand(&a_dog, embedding)[i]));
  }
  std::printf("largest difference from plain recursion: %.1e\n", difference);
  return difference < 2e-6 ? 0 : 1;  // tanh is an approximation, good to 3e-7, and four levels pass it on
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());  // says what is wrong, where, and what to do
  return 1;
}
