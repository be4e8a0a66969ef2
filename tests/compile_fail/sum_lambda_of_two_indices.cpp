// expect: the lambda of a reduction takes one index variable per dimension
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.compute("x", H, [&](auto, auto i) { return sum(H, [&](auto a, auto b) { return U(a, b) * U(i, i); }); });
}
