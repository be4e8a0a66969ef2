// expect: a placeholder and its body have different numbers of dimensions
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto x = m.compute("x", [&](auto n) { return leaf(n, 0); });
  m.recursion_op(h, x);
}
