// expect: this member is a link: cortex::child or optional_child names it
#include "prelude.hpp"

void build() {
  Words words;
  words.m.compute("x", H, [&](auto n, auto i) { return words.Emb(cortex::field<&Word::left>(n), i); });
}
