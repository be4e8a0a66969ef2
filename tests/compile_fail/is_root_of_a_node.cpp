// expect: is_root takes the parents of a node
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.if_then_else("x", [](auto n) { return is_root(n); }, leaf, leaf);
}
