// expect: (P.2) recursive calls come first: a placeholder is read at a child, as in h(left(n), i), never at the node
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return h(n, i); });
}
