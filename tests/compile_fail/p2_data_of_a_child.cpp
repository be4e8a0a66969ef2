// expect: (P.2) recursive calls come first: floating-point data is read at the node itself
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return age(left(n)) * leaf(n, i); });
}
