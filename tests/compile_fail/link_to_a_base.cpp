// expect: this link leads to another type than the model's nodes
#include "prelude.hpp"

struct Expression {
  virtual ~Expression() = default;
};
struct Negation : Expression {
  const Expression* of;
};

void build() {
  cortex::Model<Negation> m("negations", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  m.compute("x", H, [&](auto n, auto i) { return h(cortex::child<&Negation::of>(n), i); });
}
