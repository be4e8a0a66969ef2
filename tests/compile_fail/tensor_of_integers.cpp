// expect: the elements of a tensor are float or double
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.input<int>("W", H);
}
