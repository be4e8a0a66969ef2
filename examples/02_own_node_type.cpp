// Lesson 2: the same model over five node types, none of which knows of Cortex.
//
// A model reads nodes through accessors alone. Written as a template over them, it serves whatever your program has:
// raw pointers or smart ones, containers of children, indices into an array, structs adapted with Boost.Hana.
#include <array>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cortex/structure/hana_struct.hpp>  // child_named and its kin, for the last of the five
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

constexpr int hidden = 32, words = 5;

// h = Emb[word] at a leaf, else tanh(h_left + h_right); the accessors are parameters.
template <class Node, class Left, class Right, class Word>
auto tree_rnn(Left left, Right right, Word word) {
  const cortex::Dim V{"vocabulary"}, H{"hidden", hidden};
  cortex::Model<Node> m("tree_rnn", cortex::tree);
  auto Emb = m.template input<float>("Emb", V, H);
  auto rnn = m.template placeholder<float>("rnn", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return tanh(rnn(left(n), i) + rnn(right(n), i)); });
  auto body = m.if_then_else([](auto n) { return is_leaf(n); }, leaf, rec);
  return m.recursion_op(rnn, body);
}

std::vector<float> embedding() {
  std::vector<float> values(words * hidden);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(float(i));
  return values;
}

// By hand, on the tree that all five build: (0 ((1 (2 3)) 4)).
std::array<float, hidden> expected() {
  const std::vector<float> e = embedding();
  std::array<float, hidden> h;
  for (int i = 0; i < hidden; ++i) {
    const auto leaf = [&](int word) { return e[word * hidden + i]; };
    h[i] = std::tanh(leaf(0) + std::tanh(std::tanh(leaf(1) + std::tanh(leaf(2) + leaf(3))) + leaf(4)));
  }
  return h;
}

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

bool check(const char* what, std::span<const float> h) {
  const auto right = expected();
  double difference = 0;
  for (int i = 0; i < hidden; ++i) difference = larger(difference, std::abs(h[i] - right[i]));
  std::printf("%-36s largest difference from plain C++: %.1e\n", what, difference);
  return difference < 2e-6;
}

// 1. Children owned by std::unique_ptr, in named members. The pointers are followed where they are; nothing is copied.
struct Owned {
  int word = -1;
  std::unique_ptr<Owned> left, right;
  explicit Owned(int word) : word(word) {}
  Owned(Owned l, Owned r) : left(std::make_unique<Owned>(std::move(l))), right(std::make_unique<Owned>(std::move(r))) {}
};

// 2. The data inside a struct of the node: an accessor is a path of members.
struct Token {
  int id = -1;
};
struct Parse {
  Token token;
  struct Links {
    const Parse *left = nullptr, *right = nullptr;
  } links;
};

// 3. Any number of children in a std::vector, here by value; the model names the first and the second.
struct Kids {
  int word = -1;
  std::vector<Kids> kids;
};
constexpr auto kids = cortex::children<&Kids::kids>;

// 4. Nodes in one array, children as indices; -1 is none. A call is then given the array too: an arena.
struct Slot {
  int word = -1, left = -1, right = -1;
};

// 5. A struct adapted with Boost.Hana: its members have names at compile time, and accessors find them by name.
struct Adapted {
  int word = -1;
  const Adapted* left = nullptr;
  const Adapted* right = nullptr;
};
BOOST_HANA_ADAPT_STRUCT(Adapted, word, left, right);

int main() try {
  bool right = true;
  {
    auto model = cortex::compile(
        tree_rnn<Owned>(cortex::child<&Owned::left>, cortex::child<&Owned::right>, cortex::field<&Owned::word>));
    model.bind("Emb", embedding());
    const Owned root(Owned(0), Owned(Owned(Owned(1), Owned(Owned(2), Owned(3))), Owned(4)));
    right &= check("std::unique_ptr", model(root)[0]);  // a call takes a node, a pointer, or a range of either
  }
  {
    auto model = cortex::compile(tree_rnn<Parse>(cortex::child<&Parse::links, &Parse::Links::left>,
                                                 cortex::child<&Parse::links, &Parse::Links::right>,
                                                 cortex::field<&Parse::token, &Token::id>));
    model.bind("Emb", embedding());
    const Parse a{{0}, {}}, b{{1}, {}}, c{{2}, {}}, d{{3}, {}}, e{{4}, {}};
    const Parse cd{{}, {&c, &d}}, bcd{{}, {&b, &cd}}, bcde{{}, {&bcd, &e}}, root{{}, {&a, &bcde}};
    right &= check("pointers inside a member", model(root)[0]);
  }
  {
    // An accessor can also be made on the spot. kids(n)[0] is the first child of n wherever a model asks for a child.
    auto model = cortex::compile(tree_rnn<Kids>([](auto n) { return kids(n)[0]; }, [](auto n) { return kids(n)[1]; },
                                                cortex::field<&Kids::word>));
    model.bind("Emb", embedding());
    const Kids root{-1, {{0, {}}, {-1, {{-1, {{1, {}}, {-1, {{2, {}}, {3, {}}}}}}, {4, {}}}}}};
    right &= check("std::vector of nodes", model(root)[0]);
  }
  {
    auto model = cortex::compile(
        tree_rnn<Slot>(cortex::child<&Slot::left>, cortex::child<&Slot::right>, cortex::field<&Slot::word>));
    model.bind("Emb", embedding());
    const std::vector<Slot> slots{{0}, {1}, {2}, {3}, {4}, {-1, 2, 3}, {-1, 1, 5}, {-1, 6, 4}, {-1, 0, 7}};
    right &= check("indices into an array", model(cortex::arena(slots), 8)[0]);
  }
  {
    auto model =
        cortex::compile(tree_rnn<Adapted>(cortex::child_named<Adapted, "left">, cortex::child_named<Adapted, "right">,
                                          cortex::field_named<Adapted, "word">));
    model.bind("Emb", embedding());
    const Adapted a{0}, b{1}, c{2}, d{3}, e{4};
    const Adapted cd{-1, &c, &d}, bcd{-1, &b, &cd}, bcde{-1, &bcd, &e}, root{-1, &a, &bcde};
    right &= check("a struct adapted with Boost.Hana", model(&root)[0]);
  }
  return right ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
