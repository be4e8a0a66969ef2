// What tests spend their time in: the compiler, the interpreters, and the tests' own helpers. Compiled once, optimised
// and with every inline function kept, and linked first: a linker takes the first copy of an inline function that it
// meets, so that the tests themselves need no optimising, which makes them compile several times faster.
#include "cortex/cortex.hpp"
#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "cortex/pass/check_bounds.hpp"
#include "cortex/ra/bounded.hpp"
#include "cortex/ra/interpret.hpp"
#include "cortex/runtime/compile_graph.hpp"
#include "support/differential.hpp"
#include "support/golden.hpp"
#include "support/graphs.hpp"
#include "support/gru_models.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"
#include "support/odd_models.hpp"
#include "support/races.hpp"
#include "support/random_cases.hpp"
#include "support/random_loops.hpp"
#include "support/random_models.hpp"
#include "support/random_schedules.hpp"
#include "support/recursions.hpp"
#include "support/small_loops.hpp"

namespace cortex::ra {

template States<double> interpret(const Graph&, const NodeView&, const Weights&, const Arithmetic<double>&);
template States<Bounded> interpret(const Graph&, const NodeView&, const Weights&, const Arithmetic<Bounded>&);
template States<Bounded> interpret_from(const States<double>&, const Graph&, const NodeView&, const Weights&,
                                        const Arithmetic<Bounded>&);

}  // namespace cortex::ra
