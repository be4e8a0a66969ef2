// The interpreters of the operator graph, which are compiled once for all tests.
#pragma once

#include "cortex/ra/bounded.hpp"
#include "cortex/ra/interpret.hpp"

namespace cortex::ra {

extern template States<double> interpret(const Graph&, const NodeView&, const Weights&, const Arithmetic<double>&);
extern template States<Bounded> interpret(const Graph&, const NodeView&, const Weights&, const Arithmetic<Bounded>&);

}  // namespace cortex::ra
