// expect: this link may have no value: name a getter or a lambda that gives a null pointer
#include <optional>

#include "prelude.hpp"

struct Maybe {
  std::optional<int> next;
};

void build() {
  cortex::Model<Maybe> m("maybe", cortex::sequence);
  auto h = m.placeholder<float>("h", H);
  m.compute("x", H, [&](auto n, auto i) { return h(cortex::optional_child<&Maybe::next>(n), i); });
}
