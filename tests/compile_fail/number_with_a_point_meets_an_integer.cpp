// expect: a floating-point number meets an integer of the structure: convert that first
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return leaf(n, i) * (0.5 * word(n)); });
}
