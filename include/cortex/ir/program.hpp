// A whole ILIR program: its buffers and its body.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex::ir {

/// How far a program has come; `verify` says which nodes are legal at each level.
enum class Level : std::uint8_t {
  ra,         // expressions of the operator graph: reductions, uninterpreted functions
  loops,      // loops and stores over logical indices; reductions are loops
  scheduled,  // also parallel, vectorized and unrolled loops, and barriers
  device,     // serial loops, one linear index a buffer, vectors; no uninterpreted function but the worker's number
};

/// Nests whose results at a node follow from some of its integer fields alone, or, `once`, from the weights alone. A
/// call need not run them if it finds the results in tables: with `counts` of their rows multiplied by
/// `slot_of::computes`[number of the tabulation], 0 or 1, they run or do not.
struct Tabulation {
  enum class Rows : std::uint8_t { once, all, leaves, internal };
  /// Parts of each batch, one behind the other, of whose nodes alone the rows are; none: of any.
  struct Parts {
    int first = 0, count = 0;
    friend bool operator==(const Parts&, const Parts&) = default;
  };
  /// An integer field, and the dimensions of weights that it indexes: its values lie below the least of their extents.
  struct Key {
    int field = 0;
    struct Bound {
      int weight = 0, dim = 0;  // the weight's slot
      friend bool operator==(const Bound&, const Bound&) = default;
    };
    Vector<Bound> bounds;
  };
  Rows rows = Rows::once;
  Parts parts{};
  Vector<Key> keys;     // by ascending field
  Vector<int> weights;  // slots of all that the results follow from
  Vector<int> states;   // of its results: numbers in `Program::buffers`
  Vector<int> temps;    // of its results: `BufferInfo::kept`
};

/// A state whose rows at leaves are not stored: they are rows of a weight, which a field of the node chooses.
struct InPlace {
  int state = 0;   // its number in `Program::buffers`
  int weight = 0;  // the weight's slot; its rows lie as the state's do
  int field = 0;
  Vector<int> dims;  // the weight's, in the state's order
};

/// Which nodes are listed by parts, those of a part of all batches in a row.
enum class Listed : std::uint8_t { nothing, inner_nodes, all_nodes };

/// A program. `buffers` are all that outlive a loop iteration, in the order in which the code is given them.
struct Program {
  std::string name;
  Vector<Buffer> buffers;
  Stmt body;
  Level level = Level::loops;
  Vector<int> field_components;     // per field of the nodes: how many elements each node has
  bool chains = false;              // the nodes are sequences, linked by one accessor alone
  int parts = 1;                    // of each batch, one for each way through the specialized branches
  Listed listed = Listed::nothing;  // what the program goes through by parts of all batches at once
  int results = -1;                 // how many of the states, from the first, are results of calls; -1: all
  bool may_be_divided = false;      // calls may be run one piece after the other (structure/pieces.hpp)
  Vector<Tabulation> tabulations;
  Vector<InPlace> in_place;
  Vector<bool> required_children;  // per named accessor: every inner node has that child
};

/// The number of `buffer` in `program`, or -1.
inline int index_of(const Program& program, const Buffer& buffer) {
  for (std::size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i] == buffer) return int(i);
  return -1;
}

/// Whether `buffer` is a state whose rows are large and that no call gives out: they may serve several nodes, one after
/// the other.
inline bool may_share_rows(const Program& program, const Buffer& buffer) {
  return buffer->role == Role::state && program.results >= 0 && has_large_rows(*buffer) &&
         index_of(program, buffer) >= program.results;
}

/// The integers that role-index buffer `counts` holds, by position: what the linearizer counts, and per container
/// the number of edges is in its offsets; then where the ranges of a piece's nodes begin and how long they are, in the
/// order of `NodeRange`. Generated code and `runtime/` read this one list.
enum class Count : std::uint8_t {
  nodes,
  internal,
  leaves,
  batches,
  roots,
  groups,
  child_step,
  ranges,
  range_begin,
  range_length = range_begin + 3,
  size = range_length + 3
};
using Counts = std::array<std::int32_t, std::size_t(Count::size)>;

/// Those of a whole call but for batches, roots and subtrees.
inline Counts counts_of_whole(std::int32_t nodes, std::int32_t internal) {
  Counts counts{};
  const auto set = [&](Count which, NodeRange range, std::int32_t to) {
    counts[std::size_t(which) + std::size_t(range)] = to;
  };
  counts[std::size_t(Count::nodes)] = nodes;
  counts[std::size_t(Count::internal)] = internal;
  counts[std::size_t(Count::leaves)] = nodes - internal;
  counts[std::size_t(Count::ranges)] = 1;
  set(Count::range_length, NodeRange::lower, nodes);
  set(Count::range_begin, NodeRange::upper, internal);
  set(Count::range_length, NodeRange::inner, internal);
  return counts;
}

/// The role-index buffers' slots. Arrays of accessor `a` have slot base + a.
namespace slot_of {
inline constexpr int counts = 0;         // [Count::size]
inline constexpr int batch_begin = 1;    // [num_batches]
inline constexpr int batch_length = 2;   // [num_batches]
inline constexpr int part_begin = 3;     // [num_batches * parts]
inline constexpr int part_length = 4;    // [num_batches * parts]
inline constexpr int root = 5;           // [num_roots]
inline constexpr int group_begin = 6;    // [num_groups + 1]
inline constexpr int group_node = 7;     // [subtrees]
inline constexpr int inner_begin = 8;    // [num_internal + 1]
inline constexpr int inner_child = 9;    // [children inside subtrees]
inline constexpr int computes = 10;      // [tabulations]
inline constexpr int part_offset = 11;   // [parts + 1]
inline constexpr int part_list = 12;     // [num_nodes]
inline constexpr int state_row = 13;     // [num_nodes + 1]
inline constexpr int child = 1000;       // [num_nodes], per named accessor
inline constexpr int edge_begin = 2000;  // [num_nodes + 1], per container
inline constexpr int edge_child = 3000;  // [num_edges], per container
inline constexpr int field = 4000;       // [num_nodes] or [num_nodes, stride], integer fields
}  // namespace slot_of

}  // namespace cortex::ir
