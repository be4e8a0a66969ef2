// expect: the first result of this model has elements of another type: AnyFunctor names it after the node
#include "cortex/cortex.hpp"
#include "prelude.hpp"

void build() {
  cortex::Model<Node> m("doubles", cortex::tree);
  auto h = m.placeholder<double>("h", H);
  auto x = m.compute("x", H, [&](auto n, auto i) { return 1.0 + sum(kids(n), [&](auto k) { return h(k, i); }); });
  cortex::AnyFunctor<Node> model = cortex::compile(m.recursion_op(h, x));
}
