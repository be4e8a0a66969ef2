// expect: the dimensions of a tensor are Dims
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.placeholder<float>("c", 256);
}
