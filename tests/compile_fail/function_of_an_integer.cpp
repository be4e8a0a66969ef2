// expect: a function of an integer of the structure: convert that first
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto) { return tanh(word(n)); });
}
