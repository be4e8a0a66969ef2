// expect: the condition of if_then_else is a lambda that takes a node
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.if_then_else("body", true, leaf, leaf);
}
