// expect: a field is a number, a bool, an enumeration, or an array of fixed size
#include <string>

#include "prelude.hpp"

struct Text {
  std::string words;
  const Text* next;
};

void build() {
  cortex::Model<Text> m("texts", cortex::sequence);
  auto table = m.input<float>("table", V, H);
  m.compute("x", H, [&](auto n, auto i) { return table(cortex::field<&Text::words>(n), i); });
}
