// Keys: what branches ask of a node, as data that the linearizer evaluates before it numbers the nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

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
  std::array<std::int64_t, most_key_depth> stack;
  std::size_t top = 0;
  const auto push = [&](std::int64_t value) {
    if (top == stack.size()) throw Error(Code::internal, "the key of a branch is nested too deeply");
    stack[top++] = value;
  };
  const auto two = [&](auto f) {
    --top;
    stack[top - 1] = f(stack[top - 1], stack[top]);
  };
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
      case negate: stack[top - 1] = negated(stack[top - 1]); break;
      case absolute: stack[top - 1] = stack[top - 1] < 0 ? negated(stack[top - 1]) : stack[top - 1]; break;
      case logical_not: stack[top - 1] = !stack[top - 1]; break;
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
        top -= 2;
        stack[top - 1] = stack[top - 1] ? stack[top] : stack[top + 1];
        break;
    }
  }
  return stack[0];
}

}  // namespace cortex::structure
