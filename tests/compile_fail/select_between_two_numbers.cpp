// expect: select between two numbers does not say of which type
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return select(leaf(n, i) > 0, 1, 0); });
}
