// What the cases of this folder share: two node types, their accessors, and a model with an operator of each kind. A
// case is one mistake inside this; its first line says which words the compiler's answer must hold.
#pragma once

#include "cortex/dsl/model.hpp"

struct Word {
  int id;
  const Word* left;
  const Word* right;
  float age;
  float features[4];
  int ids[3];
};
struct Node {
  int id;
  std::vector<const Node*> kids;
};
constexpr auto left = cortex::child<&Word::left>;
constexpr auto right = cortex::child<&Word::right>;
constexpr auto word = cortex::field<&Word::id>;
constexpr auto age = cortex::field<&Word::age>;
constexpr auto features = cortex::field<&Word::features>;
constexpr auto ids = cortex::field<&Word::ids>;
constexpr auto kids = cortex::children<&Node::kids>;

inline const cortex::Dim V{"vocabulary"}, H{"hidden", 8}, E{"input", 4};

struct Words {
  cortex::Model<Word> m{"words", cortex::tree};
  cortex::Input<2> Emb = m.input<float>("Emb", V, H);
  cortex::Placeholder<Word, float, 1> h = m.placeholder<float>("h", H);
  cortex::Op<Word, 1, cortex::structure::Accessors<std::remove_const_t<decltype(word)>>> leaf =
      m.compute("leaf", H, [this](auto n, auto i) { return Emb(word(n), i); });
};

struct Nodes {
  cortex::Model<Node> m{"nodes", cortex::dag};
  cortex::Input<2> U = m.input<float>("U", H, H);
  cortex::Placeholder<Node, float, 1> h = m.placeholder<float>("h", H);
};
