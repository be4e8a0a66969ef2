// expect: (P.1) control flow depends on the structure alone: C++'s if, ?: and loops cannot look at a value
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return is_leaf(n) ? leaf(n, i) : leaf(n, 0); });
}
