// expect: the number of indices is not the number of dimensions
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return Emb(word(n), i, i); });
}
