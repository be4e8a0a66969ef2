// expect: an operator or placeholder is read at a node first
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto, auto i) { return leaf(i); });
}
