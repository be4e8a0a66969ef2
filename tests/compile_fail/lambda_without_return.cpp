// expect: the lambda gives no value: is a return missing?
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { leaf(n, i); });
}
