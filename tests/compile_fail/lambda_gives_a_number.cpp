// expect: make it of a number or of an integer of the structure with cast<float>(...)
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto, auto) { return 0.0; });
}
