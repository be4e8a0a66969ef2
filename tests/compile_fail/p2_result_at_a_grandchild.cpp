// expect: (P.2) recursive calls come first: a result is read at the node itself, at a child or at a parent
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto all = m.recursion(h, leaf);
  m.compute("x", H, [&](auto n, auto i) { return all(left(left(n)), i); });
}
