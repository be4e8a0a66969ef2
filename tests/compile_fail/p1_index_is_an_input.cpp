// expect: (P.1) control flow depends on the structure alone: an index is made of computed data
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return leaf(n, Emb(0, i) + 1); });
}
