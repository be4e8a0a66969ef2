// expect: a condition made of computed data chooses between data
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return leaf(n, select(leaf(n, i) > 0, i, 0)); });
}
