// expect: a container of children is no number: use num_children
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.compute("x", H, [&](auto n, auto i) { return U(i, i) * kids(n); });
}
