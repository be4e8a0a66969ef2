// expect: the branches of if_then_else have different numbers of dimensions
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto x = m.compute("x", [&](auto n) { return leaf(n, 0); });
  m.if_then_else([](auto n) { return is_leaf(n); }, leaf, x);
}
