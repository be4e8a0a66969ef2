// Schedules of a program's loops and tensors by hand: `cortex::Loops`. Apart from `cortex/cortex.hpp`, which does not
// need it.
#pragma once

#include "cortex/pass/loops.hpp"
