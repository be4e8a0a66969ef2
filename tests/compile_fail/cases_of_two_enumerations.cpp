// expect: the cases of switch_ are all integers, or enumerators of one type
#include "prelude.hpp"

enum class Kind { scan };
enum class Other { join = 1 };

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.switch_(
      "x", [&](auto n) { return word(n); }, cortex::when(Kind::scan, leaf), cortex::when(Other::join, leaf));
}
