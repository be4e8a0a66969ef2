// expect: a field that is an array is read by component, as in ids(n)[0]
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return leaf(n, i) * ids(n); });
}
