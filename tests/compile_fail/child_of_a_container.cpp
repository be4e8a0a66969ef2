// expect: this member holds several children: cortex::children names them all
#include "prelude.hpp"

void build() {
  Nodes nodes;
  nodes.m.compute("x", H, [&](auto n, auto i) { return nodes.h(cortex::child<&Node::kids>(n), i); });
}
