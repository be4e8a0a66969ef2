// expect: the k-th child of a container is kids(n)[k]
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.compute("x", H, [&](auto n, auto i) { return h(n.through(kids, 0), i); });
}
