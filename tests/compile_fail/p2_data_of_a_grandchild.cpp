// expect: (P.2) recursive calls come first: structure and data are read at the node itself and at its children, not further
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return age(left(left(n))) * leaf(n, i); });
}
