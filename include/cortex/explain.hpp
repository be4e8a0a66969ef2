// What the compiler made of a model, in words and numbers: a header of its own, beside cortex.hpp.
#pragma once

#include <concepts>
#include <string>

#include "cortex/runtime/compile.hpp"
#if !CORTEX_COMPILED
#include "cortex/runtime/explain.hpp"
#endif

namespace cortex {

namespace runtime {

#if CORTEX_COMPILED
std::string explanation(const Executable& executable, const std::string& residence = {}, ThisAbi = {});
#else
inline std::string explanation(const Executable& executable, const std::string& residence = {}, ThisAbi = {}) {
  return explain_executable(executable, residence);
}
#endif

}  // namespace runtime

/// What the compiler made of a model, as text to read: the schedule in words; floating-point operations, weights read
/// and barriers, nest by nest; every buffer with its bytes and with whom it shares them; the checks that calls make;
/// the loops before and after the schedule; how long compiling took, which comes last and alone differs from run to
/// run. `model` is what `compile` gives, or a resident model, whose kernel stays on a GPU. A multiply-add counts as 2
/// operations. Numbers are for each leaf, inner node, edge (a node and one child), level or call: multiply by how many
/// of them your inputs have.
template <class Functor>
requires requires(const Functor& model) {
  { model.executable() } -> std::convertible_to<const runtime::Executable&>;
}
std::string explain(const Functor& model) {
  if constexpr (requires { model.residence(); })
    return runtime::explanation(model.executable(), model.residence());
  else
    return runtime::explanation(model.executable());
}

}  // namespace cortex
