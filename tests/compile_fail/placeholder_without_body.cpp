// expect: recursion_op takes placeholders and their bodies in turn
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.recursion_op(h);
}
