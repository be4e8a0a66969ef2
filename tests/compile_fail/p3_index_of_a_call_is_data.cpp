// expect: (P.3) recursive calls are independent: an argument of a recursive call is made of computed data
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return h(left(n), h(right(n), i)); });
}
