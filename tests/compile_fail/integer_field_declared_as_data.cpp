// expect: an integer field is structure: it is read directly
#include "prelude.hpp"

void build() {
  Words words;
  auto& [m, Emb, h, leaf] = words;
  m.field("x", word);
}
