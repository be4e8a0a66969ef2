// What the front end calls while a model is written: the checks of check.hpp, and shared_values.hpp. They belong to the
// compiler, and with `CORTEX_COMPILED` stand behind its seam: only declared here, they come from the library
// `cortex::compiled`.
#pragma once

#include "cortex/base/config.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ra/graph.hpp"
#if !CORTEX_COMPILED
#include "cortex/ra/check.hpp"
#include "cortex/ra/shared_values.hpp"
#endif

namespace cortex::ra {

#if CORTEX_COMPILED

/// `take_out_shared_values`: what `op` uses again and again, as operators to stand before it.
Vector<Op> shared_values(Op& op);

/// `check_op`: operator `number` against those before it. Throws `Error{invalid_model}`, as the others do.
void require_op(const Graph& graph, int number);

/// `check_states`: that each state joins a placeholder to an operator that can be its body, in a recursion that has an
/// order and reads what is computed before it.
void require_states(const Graph& graph);

/// `check`: the whole graph.
void require_well_formed(const Graph& graph);

/// `check_accessors`: that `keys` names all accessors that the recursions read.
void require_accessors(const Graph& graph, const Vector<const void*>& keys);

/// `operators_of`: which operators the states of `recursion` are made of.
Vector<bool> operators_needed(const Graph& graph, int recursion);

#else

inline Vector<Op> shared_values(Op& op) { return take_out_shared_values(op); }
inline void require_op(const Graph& graph, int number) { check_op(graph, number); }
inline void require_states(const Graph& graph) { check_states(graph); }
inline void require_well_formed(const Graph& graph) { check(graph); }
inline void require_accessors(const Graph& graph, const Vector<const void*>& keys) { check_accessors(graph, keys); }
inline Vector<bool> operators_needed(const Graph& graph, int recursion) { return operators_of(graph, recursion); }

#endif

}  // namespace cortex::ra
