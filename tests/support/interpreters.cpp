#include "support/interpreters.hpp"

namespace cortex::ra {

template States<double> interpret(const Graph&, const NodeView&, const Weights&, const Arithmetic<double>&);
template States<Bounded> interpret(const Graph&, const NodeView&, const Weights&, const Arithmetic<Bounded>&);

}  // namespace cortex::ra
