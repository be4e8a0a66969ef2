// expect: compile takes a complete program, which recursion_op or program gives, not a model
#include "cortex/runtime/functor.hpp"
#include "prelude.hpp"

void build() {
  Nodes nodes;
  cortex::compile(nodes.m);
}
