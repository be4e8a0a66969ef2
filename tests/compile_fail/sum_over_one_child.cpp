// expect: a reduction runs over a dimension or over a container of children, such as kids(n), not over a node
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return sum(left(n), [&](auto k) { return h(k, i); }); });
}
