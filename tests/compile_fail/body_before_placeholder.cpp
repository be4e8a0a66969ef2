// expect: recursion_op takes placeholders and their bodies in turn: here no placeholder stands first
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.recursion_op(leaf, h);
}
