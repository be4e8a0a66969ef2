// expect: cortex::parents has to name every link that the model reads
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto up = m.recursion(h, m.compute("x", H, [&](auto n, auto i) { return h(left(n), i) + h(right(n), i); }));
  auto down = m.placeholder<float>("down", H);
  m.recursion_op(down, m.compute("y", H, [&](auto n, auto i) {
    return up(n, i) + sum(cortex::parents<left>(n), [&](auto p) { return down(p, i); });
  }));
}
