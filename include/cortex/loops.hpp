// Schedules of a program's loops and tensors by hand: `cortex::Loops`; and whole schedules as text, `to_string` and
// `parse_schedule`. Apart from `cortex/cortex.hpp`, which does not need them.
#pragma once

#include "cortex/pass/loops.hpp"
#include "cortex/pass/parse_schedule.hpp"
