// expect: the condition of if_then_else gives a condition on the structure
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.if_then_else([](auto) { return true; }, leaf, leaf);
}
