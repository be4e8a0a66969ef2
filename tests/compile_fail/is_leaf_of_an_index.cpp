// expect: is_leaf takes a node, as in is_leaf(n)
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.if_then_else([&](auto n) { return is_leaf(word(n)); }, leaf, leaf);
}
