// A model's program after each pass of the pipeline, and each of them held against the recursion as written.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/interpret.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/pass/pipeline.hpp"
#include "support/interpreters.hpp"

namespace cortex::test {

struct Snapshot {
  std::string pass;
  ir::Program program;
};

/// A target as far as passes look at it.
inline Target machine(int vector_bytes, int vector_registers = 16) {
  Target target;
  target.vector_bytes = vector_bytes;
  target.vector_registers = vector_registers;
  return target;
}

/// `schedule` with the branches on leaves specialized, and no others: for structures whose batches have no parts.
Schedule with_leaf_branches(Schedule schedule, const ra::Graph& graph);

/// The verified program after lowering and after each pass that changed it.
std::vector<Snapshot> passes_of(const ra::Graph& graph, const Schedule& schedule, const Target& target);

/// The program after the last run of `pass`; fails if it changed nothing.
ir::Program program_after(const std::string& pass, const ra::Graph& graph, const Schedule& schedule,
                          const Target& target = machine(16));

std::string text_after(const std::string& pass, const ra::Graph& graph, const Schedule& schedule,
                       const Target& target = machine(16));

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Weights for every input of `graph`: of about unit size, matrices by their fan-in; open dimensions get `open` rows.
ra::Weights weights_for(const ra::Graph& graph, int open, unsigned seed);

/// One call: nodes, their linearized arrays, weights, and what the recursion as written gives.
struct Reference {
  Reference(const ra::Graph& graph, const ra::NodeView& view, ir::StructureEnv env, std::vector<std::int32_t> number,
            ra::Weights weights);

  /// Where `program`, run by so many workers, gives another state: "" if nowhere to a relative 1e-9.
  std::string difference(const ir::Program& program, const ir::InterpretOptions& options = {}) const;

  /// Whether rounding alone may give `value`, far off as it is: a comparison of equal numbers goes either way.
  bool may_be(double value, std::size_t state, std::size_t node, std::size_t element) const;

  const ra::Graph& graph;
  const ra::NodeView& view;
  ra::Weights weights;
  ir::StructureEnv env;
  std::vector<std::int32_t> number;  // [node of the view]
  ra::States<double> states;
  mutable ra::States<ra::Bounded> bounded;  // when first asked for
  ir::Storage bound;
};

/// Where `graph`, lowered and run over a few random nodes, gives another state than the recursion as written, with the
/// standard schedule or node by node: "" if nowhere.
std::string lowered_difference(const ra::Graph& graph);

/// The first pass after which the program gives something else than `reference`, with what is wrong; "" if there is
/// none. From the pass on that puts the barriers in, also with several workers, in both orders.
std::string first_difference(const Reference& reference, const Schedule& schedule, const Target& target);

/// Holds `graph` against the recursion as written under every schedule of the recursion, with 1 and 3 workers, for
/// targets of every kind in turn.
void check_every_schedule(const ra::Graph& graph, const ra::NodeView& view, const ir::StructureEnv& env,
                          const std::vector<std::int32_t>& number, int words, int first_target = 0);

}  // namespace cortex::test
