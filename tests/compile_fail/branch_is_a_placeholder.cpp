// expect: the branches of if_then_else are operators
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.if_then_else([](auto n) { return is_leaf(n); }, leaf, h);
}
