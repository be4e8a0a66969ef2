// expect: a container holds several nodes: reduce over them
#include "prelude.hpp"

void build() {
  Nodes nodes;
  nodes.m.compute("x", H, [&](auto n, auto i) { return nodes.h(kids(n), i); });
}
