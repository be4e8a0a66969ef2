// expect: num_children takes a container of children, as in num_children(kids(n)), not a node
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.compute("x", H, [&](auto n, auto i) { return U(i, i) * num_children(n); });
}
