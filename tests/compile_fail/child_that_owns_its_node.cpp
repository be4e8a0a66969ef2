// expect: this getter gives a pointer that alone owns its node, which is gone before it is read
#include <memory>

#include "prelude.hpp"

struct Grown {
  int depth;
};
inline constexpr auto next = cortex::optional_child<[](const Grown& n) {
  return n.depth == 0 ? std::unique_ptr<Grown>() : std::make_unique<Grown>(Grown{n.depth - 1});
}>;

void build() {
  cortex::Model<Grown> m("grown", cortex::sequence);
  auto h = m.placeholder<float>("h", H);
  m.compute("x", H, [&](auto n, auto i) { return h(next(n), i); });
}
