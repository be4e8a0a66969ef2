// expect: (P.2) recursive calls come first: a reduction over the children of another node
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.compute("x", H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k) { return sum(kids(k), [&](auto g) { return h(g, i); }); });
  });
}
