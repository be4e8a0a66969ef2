// expect: (P.3) recursive calls are independent: an argument of a recursive call is made of computed data
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.compute("x", H, [&](auto n, auto i) { return h(kids(n)[h(kids(n)[0], i)], i); });
}
