// expect: a loop over layers begins with one that reads all that they read, such as the first layer
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto top = leaf;
  top = m.compute("x", H, [&](auto n, auto i) { return top(n, i) + h(left(n), i); });
}
