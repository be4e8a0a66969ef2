// expect: (P.1) control flow depends on the structure alone: the condition of if_then_else is made of computed data
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.if_then_else([&](auto n) { return leaf(n, 0) > 0; }, leaf, leaf);
}
