// expect: the node is of another type than the model
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  Nodes other;
  m.compute("x", H, [&](auto n, auto i) { return other.h(left(n), i); });
}
