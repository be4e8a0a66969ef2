// expect: (P.1) control flow depends on the structure alone: C++'s loops cannot go over children
#include "prelude.hpp"

void build() {
  Nodes nodes;
  nodes.m.compute("x", H, [&](auto n, auto i) {
    auto sum = nodes.U(i, i) * 0;
    for (const auto& k : kids(n)) sum = sum + nodes.h(k, i);
    return sum;
  });
}
