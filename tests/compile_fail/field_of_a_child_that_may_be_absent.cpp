// expect: this child may be absent, and then has neither structure nor data
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return Emb(word(left(n)), i); });
}
