// expect: otherwise(operator) is the last case of switch_
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.switch_("x", [](auto n) { return word(n); }, cortex::otherwise(leaf), cortex::when(0, leaf));
}
