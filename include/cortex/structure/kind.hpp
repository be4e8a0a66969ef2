// The kind of structure that a model is declared for, and the most children that one of its nodes has (R7).
#pragma once

#include <cstdint>
#include <string>

#include "cortex/base/error.hpp"

namespace cortex {

namespace structure {

/// What the links between nodes may look like. Every kind may hold several roots, the same root twice, and a root
/// that stands inside another root's structure; no kind may hold a cycle.
enum class Kind : std::uint8_t {
  sequence,  // a node has at most one child and at most one parent
  tree,      // a node has at most one parent
  dag,       // a node may have any number of parents
};

constexpr const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::sequence: return "sequence";
    case Kind::tree: return "tree";
    case Kind::dag: return "dag";
  }
  return "?";
}

}  // namespace structure

/// The structure that a model is declared for: `cortex::tree`, or `cortex::tree.with_max_children(5)`. The linearizer
/// verifies it on every call.
struct Structure {
  structure::Kind kind;
  int max_children = 0;  // 0: no bound is declared

  /// The same kind, where no node has more than `bound` children. The number of a node's children is the greatest of:
  /// how many of its named children (`child`, `optional_child`) are present; how many entries one `children` accessor
  /// has; how many distinct nodes are reached through all accessors. Throws `Error{invalid_argument}` for a bound below
  /// 1; without a bound the kinds stand by themselves, as in `cortex::tree`.
  constexpr Structure with_max_children(int bound) const {
    if (bound < 1)
      throw Error(Code::invalid_argument, "with_max_children: the bound is " + std::to_string(bound) +
                                              "; the least is 1, and cortex::tree by itself has none");
    return {kind, bound};
  }

  /// The most children that a node may have, whether by the kind or by the declared bound.
  constexpr std::int32_t child_bound() const {
    if (kind == structure::Kind::sequence) return 1;
    return max_children > 0 ? max_children : INT32_MAX;
  }

  friend constexpr bool operator==(const Structure&, const Structure&) = default;
};

/// A chain: each node has at most one child.
inline constexpr Structure sequence{structure::Kind::sequence, 0};
/// A tree, or several: no node is the child of two parents.
inline constexpr Structure tree{structure::Kind::tree, 0};
/// A directed acyclic graph: nodes may share children.
inline constexpr Structure dag{structure::Kind::dag, 0};

}  // namespace cortex
