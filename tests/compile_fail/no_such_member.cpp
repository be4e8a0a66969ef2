// expect: the node type of the model has no such member
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
}
