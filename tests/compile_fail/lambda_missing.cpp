// expect: a lambda that takes the node and one index variable per dimension
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, E);
}
