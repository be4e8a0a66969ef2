// expect: dynamic_batch takes nothing, or the program, a state or an operator, or the name of one
#include "cortex/ra/schedule.hpp"
#include "prelude.hpp"

void build() { (void)cortex::Schedule{}.dynamic_batch(42); }
