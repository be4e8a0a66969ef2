// expect: a C++ variable keeps the type that it began with, which names the fields and children that its value reads
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.compute("x", H, [&](auto n, auto i) {
    auto sum = h(left(n), i);
    sum = sum + h(right(n), i);
    return sum;
  });
}
