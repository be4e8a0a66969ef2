// expect: the results of a program are what recursion, output and readout give
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.program(leaf);
}
