// expect: a remainder is of integers of the structure
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return leaf(n, i) % 2; });
}
