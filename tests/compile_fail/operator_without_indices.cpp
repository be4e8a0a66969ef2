// expect: an operator is read at a node and one index per dimension, as in op(n, i), before it is computed with
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto, auto) { return tanh(leaf + leaf); });
}
