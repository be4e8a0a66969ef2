// expect: this member may have no value, and a field has one at each node
#include <optional>

#include "prelude.hpp"

struct Maybe {
  std::optional<int> word;
  const Maybe* next;
};

void build() {
  cortex::Model<Maybe> m("maybe", cortex::sequence);
  Words words;
  m.compute("x", H, [&](auto n, auto i) { return words.Emb(cortex::field<&Maybe::word>(n), i); });
}
