// expect: (P.1) control flow depends on the structure alone: the key of switch_ is an integer of the structure
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.switch_("x", [&](auto n) { return leaf(n, 0); }, cortex::when(0, leaf));
}
