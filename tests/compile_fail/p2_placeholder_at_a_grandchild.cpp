// expect: (P.2) recursive calls come first: a placeholder is read at a child, never further away
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return h(left(right(n)), i); });
}
