// expect: a result is read at the node itself, at a child or at a parent, never further away
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto all = m.recursion(h, leaf);
  m.compute("x", H, [&](auto n, auto i) { return all(left(left(n)), i); });
}
