// expect: the node type of the model has no such member
#include "prelude.hpp"

void build() {
  Nodes nodes;
  auto& [m, U, h] = nodes;
  m.field("x", features, E);
}
