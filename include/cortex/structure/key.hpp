// Keys: what branches ask of a node, as data that the linearizer evaluates before it numbers the nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"

namespace cortex::structure {

/// One step of a key: a stack machine over what is known of a node before it has a number.
struct KeyStep {
  enum class Op : std::uint8_t {
    constant,      // `value`
    field,         // component `component` of integer field `position`
    num_children,  // of container `position`
    num_parents,
    is_leaf,
    is_root,
    negate,
    absolute,
    logical_not,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    minimum,
    maximum,
    equal,
    not_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    select,  // condition, then, else
  };
  Op op = Op::constant;
  std::int64_t value = 0;
  int position = 0, component = 0;
};

using Key = Vector<KeyStep>;

inline bool asks(std::span<const KeyStep> key, KeyStep::Op op) {
  return std::any_of(key.begin(), key.end(), [&](const KeyStep& step) { return step.op == op; });
}

/// How many values a key may have to hold at once.
inline constexpr int most_key_depth = 64;

/// The value of a key. `Node` answers `field(position, component)`, `num_children(position)`, `num_parents()`,
/// `is_leaf()` and `is_root()`.
template <class Node>
std::int64_t evaluate(std::span<const KeyStep> key, const Node& node) {
  using enum KeyStep::Op;
  std::array<std::int64_t, most_key_depth> below;  // the top, which is below nothing, is at hand
  std::size_t depth = 0;
  std::int64_t top = 0;
  const auto push = [&](std::int64_t value) __attribute__((always_inline)) {
    if (depth == below.size()) throw Error(Code::internal, "the key of a branch is nested too deeply");
    below[depth++] = std::exchange(top, value);
  };
  const auto two = [&](auto f) { top = f(below[--depth], top); };
  // Fields are asked before they are held against 32 bits: of others nothing matters but that nothing overflows.
  const auto wrapped = [](auto f) {
    return [f](std::int64_t a, std::int64_t b) { return std::int64_t(f(std::uint64_t(a), std::uint64_t(b))); };
  };
  const auto negated = [](std::int64_t a) { return std::int64_t(0 - std::uint64_t(a)); };
  for (const KeyStep& step : key) {
    switch (step.op) {
      case constant: push(step.value); break;
      case field: push(node.field(step.position, step.component)); break;
      case num_children: push(node.num_children(step.position)); break;
      case num_parents: push(node.num_parents()); break;
      case is_leaf: push(node.is_leaf()); break;
      case is_root: push(node.is_root()); break;
      case negate: top = negated(top); break;
      case absolute: top = top < 0 ? negated(top) : top; break;
      case logical_not: top = !top; break;
      case add: two(wrapped([](auto a, auto b) { return a + b; })); break;
      case subtract: two(wrapped([](auto a, auto b) { return a - b; })); break;
      case multiply: two(wrapped([](auto a, auto b) { return a * b; })); break;
      case divide:  // by 0 as in generated code
        two([&](auto a, auto b) { return b == 0 ? a : b == -1 ? negated(a) : a / b; });
        break;
      case remainder: two([](auto a, auto b) { return b == 0 || b == -1 ? 0 : a % b; }); break;
      case minimum: two([](auto a, auto b) { return a < b ? a : b; }); break;
      case maximum: two([](auto a, auto b) { return a < b ? b : a; }); break;
      case equal: two([](auto a, auto b) -> std::int64_t { return a == b; }); break;
      case not_equal: two([](auto a, auto b) -> std::int64_t { return a != b; }); break;
      case less: two([](auto a, auto b) -> std::int64_t { return a < b; }); break;
      case less_equal: two([](auto a, auto b) -> std::int64_t { return a <= b; }); break;
      case logical_and: two([](auto a, auto b) -> std::int64_t { return a && b; }); break;
      case logical_or: two([](auto a, auto b) -> std::int64_t { return a || b; }); break;
      case select:
        depth -= 2;
        top = below[depth] ? below[depth + 1] : top;
        break;
    }
  }
  return top;
}

}  // namespace cortex::structure
