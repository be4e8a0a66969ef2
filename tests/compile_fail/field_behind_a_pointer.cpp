// expect: a field's data lies in the node: of what this pointer leads to
#include <memory>

#include "prelude.hpp"

struct Features {
  std::shared_ptr<std::vector<float>> values;
  const Features* next;
};

void build() {
  cortex::Model<Features> m("features", cortex::sequence);
  m.field("x", cortex::field<&Features::values>, H);
}
