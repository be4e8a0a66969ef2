// Random models compiled, and their results held against the equations interpreted.
#pragma once

#include <optional>
#include <string>

#include "support/compile.hpp"
#include "support/differential.hpp"

namespace cortex::test {

using RandomFunctor = Functor<Vertex, VertexSet, float>;

RandomFunctor compile_model(const GraphCase& model, const Schedule& schedule, const Target& target = best_target());
/// A functor of what was compiled from the model, with the model's weights.
RandomFunctor bound(const GraphCase& model, std::shared_ptr<const runtime::Executable> executable);

/// Whether every state of every node has the same bits in both; a readout has none away from the roots.
bool same_bits(const GraphCase& model, const RandomFunctor::Output& x, const RandomFunctor::Output& y,
               const Forest& forest);
bool same_bits(const GraphCase& model, const RandomFunctor& a, const RandomFunctor& b, const Forest& forest);

/// The first value outside its bound, as text; nothing if all are right.
std::optional<std::string> mismatch(const GraphCase& model, const RandomFunctor& functor, const Forest& forest);

/// Smaller and smaller forests, to print the smallest that still goes wrong.
std::string smallest_failure(const GraphCase& model, const RandomFunctor& functor, std::uint64_t seed);

}  // namespace cortex::test
