// expect: an array of floating-point numbers needs a dimension: declare it
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return features(n) * leaf(n, i); });
}
