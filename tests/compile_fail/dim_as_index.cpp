// expect: an index is an index variable or an integer, not a Dim
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto) { return Emb(word(n), H); });
}
