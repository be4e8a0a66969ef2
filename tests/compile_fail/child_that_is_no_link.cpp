// expect: of anything else a captureless lambda makes one
#include <variant>

#include "prelude.hpp"

struct Leaf {};
struct Either {
  std::variant<Leaf, const Either*> of;
};

void build() {
  cortex::Model<Either> m("eithers", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  m.compute("x", H, [&](auto n, auto i) { return h(cortex::child<&Either::of>(n), i); });
}
