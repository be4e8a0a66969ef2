// expect: give a reference to the container, or a std::span of its nodes
#include "prelude.hpp"

struct Parse {
  std::vector<Parse> kids() const { return kids_; }
  std::vector<Parse> kids_;
};

void build() {
  cortex::Model<Parse> m("parses", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  m.compute("x", H,
            [&](auto n, auto i) { return sum(cortex::children<&Parse::kids>(n), [&](auto k) { return h(k, i); }); });
}
