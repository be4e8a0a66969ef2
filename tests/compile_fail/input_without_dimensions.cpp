// expect: an input has at least one dimension
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.input<float>("W");
}
