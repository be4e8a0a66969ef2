// expect: cortex::nodes are those that a root reaches by the links that the model reads, and this one reads none
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  auto sum_of = m.readout<float>("sum", [](auto r) { return sum(cortex::nodes(r), [](auto n) { return age(n); }); });
  m.program(sum_of);
}
