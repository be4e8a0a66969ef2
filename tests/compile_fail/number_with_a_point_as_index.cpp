// expect: an index is an integer
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto) { return Emb(word(n), 0.5); });
}
