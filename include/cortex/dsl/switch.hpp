// The cases of a switch: what `Model::switch_` takes.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/dsl/handles.hpp"

namespace cortex::dsl {

/// An operator for nodes of one kind, an enumerator of type `V` or an integer.
template <class V, class OpT>
struct Case {
  using Operator = OpT;
  using Kind = std::conditional_t<std::is_enum_v<V>, V, std::int64_t>;
  std::int64_t value;
  OpT op;
};
/// An operator for nodes of any other kind.
template <class OpT>
struct Otherwise {
  using Operator = OpT;
  using Kind = void;
  std::int64_t value;
  OpT op;
};

template <class T>
inline constexpr bool is_case = false;
template <class V, class OpT>
inline constexpr bool is_case<Case<V, OpT>> = true;
template <class T>
inline constexpr bool is_otherwise = false;
template <class OpT>
inline constexpr bool is_otherwise<Otherwise<OpT>> = true;

template <class... Cases>
inline constexpr bool otherwise_is_last = [] {
  const bool is_last[] = {is_otherwise<Cases>...};
  for (std::size_t i = 0; i + 1 < sizeof...(Cases); ++i)
    if (is_last[i]) return false;
  return true;
}();

/// Whether kinds are all integers or all enumerators of one type; what comes last may be `otherwise`.
template <class First, class... Rest>
inline constexpr bool of_one_kind = ((std::is_same_v<typename First::Kind, typename Rest::Kind> ||
                                      is_otherwise<Rest>)&&...);

namespace detail {

/// The value of a case, if 64 bits with a sign hold it: whether it is one that nodes can have is known with its switch.
template <class V>
std::int64_t case_value(V value) {
  if constexpr (std::is_enum_v<V>) {
    return case_value(static_cast<std::underlying_type_t<V>>(value));
  } else {
    const auto result = static_cast<std::int64_t>(value);
    if (value > V{} && result < 0)
      fail("case " + std::to_string(std::uint64_t(value)) + " of a switch does not fit 32 bits");
    return result;
  }
}

}  // namespace detail

/// The operator for nodes of kind `value`, an integer or an enumerator. Throws `Error{invalid_model}` for one that no
/// 64 bits hold.
template <class V, class OpT>
Case<V, OpT> when(V value, const OpT& op) {
  static_assert(std::is_integral_v<V> || std::is_enum_v<V>, "a case of a switch is an integer or an enumerator");
  static_assert(is_op<OpT>, "a case of a switch gives an operator, as compute and if_then_else give them");
  return {detail::case_value(value), op};
}

/// The operator for nodes of any kind that has no case.
template <class OpT>
Otherwise<OpT> otherwise(const OpT& op) {
  static_assert(is_op<OpT>, "a case of a switch gives an operator, as compute and if_then_else give them");
  return {0, op};
}

struct AnyCase {
  std::int64_t value;
  bool is_otherwise;
  ir::Buffer op;
};

/// The switch as branches, one for each case but the last, tried in order. `key` gives the key at a node.
template <class Key>
ir::Buffer add_switch(ModelState& state, const std::string& name, const Vector<AnyCase>& cases, const Key& key) {
  if (name.empty()) fail("model '" + state.graph.name + "': a switch needs a name");
  Vector<std::int64_t> values;
  for (const AnyCase& c : cases) {
    if (c.is_otherwise) continue;
    for (const std::int64_t value : values)
      if (value == c.value) fail("switch '" + name + "' has two cases for " + std::to_string(value));
    if (c.value != std::int32_t(c.value))
      fail("switch '" + name + "': case " + std::to_string(c.value) + " does not fit 32 bits");
    values.push_back(c.value);
  }
  if (values.empty()) fail("switch '" + name + "' has no case");
  const bool total = cases.back().is_otherwise;
  ir::Buffer rest = cases.back().op;
  const ir::Expr node = ir::Var::make("n"), k = key(node);
  if (!is_int(k.dtype())) fail("the key of switch '" + name + "' is a condition; a branch on it is an if_then_else");
  for (std::size_t i = values.size() - (total || values.size() == 1 ? 0 : 1); i-- > 0;) {
    const ir::Expr is_case = ir::binary(ir::BinaryOp::eq, k, ir::imm(values[i]));
    const bool first = i == 0;
    rest =
        add_branch(state, first ? name : free_name(state, name + "_" + std::to_string(i)), node, is_case, cases[i].op,
                   rest, int(i), first && !total ? k : ir::Expr(), first && !total ? values : Vector<std::int64_t>());
  }
  return rest;
}

}  // namespace cortex::dsl

namespace cortex {
using dsl::otherwise, dsl::when;
}  // namespace cortex
