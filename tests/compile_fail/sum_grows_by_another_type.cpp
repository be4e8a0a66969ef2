// expect: the two together are of another type
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) {
    auto sum = Emb(3, i) * 1.0;
    sum += leaf(n, i);
    return sum;
  });
}
