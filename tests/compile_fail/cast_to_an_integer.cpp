// expect: cast<float> and cast<double> are the conversions that there are
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) { return cortex::cast<int>(leaf(n, i)); });
}
