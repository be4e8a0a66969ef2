// expect: (P.2) recursive calls come first: an operator is read at the node itself; at a child read a placeholder
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return leaf(left(n), i); });
}
