// The arrays that the linearizer makes of a call's nodes: the contract between `structure/` and generated code.
//
// Every node has a number in [0, num_nodes), given as in the paper's appendix B; for a call in one piece:
//   - batch 0 holds the leaves, batch b nodes whose children stand in batches below it: by height, those whose highest
//     child stands in batch b - 1, or, where small batches are filled, others that no batch up to b waits for. The
//     nodes of a batch are independent of each other and have consecutive numbers;
//   - the numbers of batch b lie above those of batch b + 1, so children are numbered above their parents and all
//     leaves above all internal nodes;
//   - where the program branches on more than leaves, a batch is sorted into parts, one for each way through the
//     branches, and the nodes of a part have consecutive numbers.
// So `is_leaf(n)` is `n >= num_internal`, and a loop from num_nodes - 1 down to 0 meets children before parents.
// Where a node has no child the arrays hold num_nodes, so that code can read row num_nodes of a state, which callers
// keep all zero, and needs no test.
//
// A call in several pieces (structure/pieces.hpp) has such batches of each piece, one piece after the other. Inner
// nodes of the last piece have the lowest numbers, those of the first one the highest, and above them stand the leaves
// of the pieces in the same order. Children stand in lower batches of the same piece or in pieces before it, so that a
// piece may have no leaves of its own; its first batch is theirs in any case.
//
// Shapes are in elements. Every array begins at a cache line, is never null, and may be read up to `slack_bytes` past
// its end.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "cortex/structure/key.hpp"

namespace cortex::structure {

/// A walk that passes its limit has entered a node's named children by then, which are fewer than these: so many
/// places, whose numbers are of 32 bits, lie behind the limit.
inline constexpr std::int32_t spare_places = 64;
/// The most visits of nodes that a call may have.
inline constexpr std::int32_t most_visits = INT32_MAX - spare_places;

/// The children that one `children` accessor yields, as compressed rows: node n's children are
/// child[begin[n]] .. child[begin[n + 1] - 1], in the order of the container. Edges are ordered by node number, so the
/// edges of a batch are contiguous.
struct Csr {
  const std::int32_t* begin;  // [num_nodes + 1]
  const std::int32_t* child;  // [num_edges] numbers of nodes
  std::int32_t num_edges;
  std::int32_t max_batch_edges;  // the most edges that the nodes of one batch have together
};

/// Rows of vector fields have a multiple of so many elements; for generated code `schedule::padded_layout` says so.
inline constexpr int row_multiple = 16;

/// The values of one field accessor, one row per node; 0 where the field is not read. Element k of node n is
/// data[n * stride + k] in the accessor's DType.
struct FieldArray {
  const void* data;     // [num_nodes, stride]; a row of a vector field is filled up with zeros
  std::int32_t stride;  // 1 for scalars; for vectors the number of components, rounded up by `row_multiple`
};

/// The inner nodes as subtrees of a few levels, for recursions that are unrolled: group g holds the nodes of batches
/// g * depth + 1 .. (g + 1) * depth, a subtree's nodes all stand in one group, and subtrees of a group do not depend on
/// each other.
struct Subtrees {
  std::int32_t num_groups = 0;
  const std::int32_t* group_begin = nullptr;  // [num_groups + 1]
  const std::int32_t* group_node = nullptr;   // the top of each subtree, group by group
  const std::int32_t* inner_begin = nullptr;  // [num_internal + 1]
  const std::int32_t* inner_child = nullptr;  // node n's children in its own subtree, each once
};

/// Everything that generated code knows of a call's nodes. Plain data: it points into the workspace that made it and
/// holds until that workspace's next run.
struct Arrays {
  std::int32_t num_nodes = 0;
  std::int32_t num_internal = 0;        // nodes that have children: the numbers [0, num_internal)
  std::int32_t num_roots = 0;           // as many as were given, repeated ones included
  std::int32_t child_step = 0;          // if not 0: of each inner node n of a sequence the child is n + child_step
  std::int32_t num_batches = 0;         // the greatest height + 1, or the batches of all pieces; 0 without nodes
  std::int32_t max_batch = 0;           // the greatest batch_length
  std::int32_t max_internal_batch = 0;  // the greatest batch_length of inner nodes' batches; 0 if there are none
  const std::int32_t* batch_begin = nullptr;   // [num_batches] lowest number in the batch
  const std::int32_t* batch_length = nullptr;  // [num_batches]
  const std::int32_t* root = nullptr;          // [num_roots] numbers of the roots, in the order given
  std::int32_t num_pieces = 1;                 // runs of batches, each of them over some of the roots
  const std::int32_t* piece_batch = nullptr;   // [num_pieces + 1] the first batch of each piece
  const std::int32_t* piece_root = nullptr;    // [num_pieces + 1] the first root of each piece
  std::int32_t num_parts = 1;                  // how many parts each batch has, by the program's branches
  const std::int32_t* part_begin = nullptr;    // [num_batches, num_parts] lowest number in the part
  const std::int32_t* part_length = nullptr;   // [num_batches, num_parts]
  const std::int32_t* part_offset = nullptr;   // [num_pieces, num_parts + 1] where each part's nodes begin in the list
  const std::int32_t* part_list = nullptr;     // [num_nodes] the nodes of each part of a piece's batches; as listed
  std::int32_t num_state_rows = 0;             // how many rows recycled states take, without that of no child
  const std::int32_t* state_row = nullptr;     // [num_nodes + 1] the row of each node, and of no child; as asked for
  const std::int32_t* const* child = nullptr;  // [child and optional_child accessors, in set order][num_nodes]
  const Csr* children = nullptr;               // [children accessors, then parents and members, in set order]
  const FieldArray* field = nullptr;           // [field accessors, in set order]
  Subtrees subtrees;                           // empty unless the program is unrolled
};

static_assert(std::is_standard_layout_v<Arrays> && std::is_trivially_copyable_v<Arrays>, "generated code reads it");

/// Nodes of consecutive numbers.
struct NodeNumbers {
  std::int32_t first = 0, count = 0;
};

/// The inner nodes of a piece of a call.
inline NodeNumbers inner_of(const Arrays& in, std::int32_t piece) {
  const std::int32_t lowest = in.piece_batch[piece] + 1, highest = in.piece_batch[piece + 1] - 1;
  if (highest < lowest) return {};
  const std::int32_t first = in.batch_begin[highest];
  return {first, in.batch_begin[lowest] + in.batch_length[lowest] - first};
}

/// The leaves of a piece of a call.
inline NodeNumbers leaves_of(const Arrays& in, std::int32_t piece) {
  const std::int32_t batch = in.piece_batch[piece];
  return {in.batch_begin[batch], in.batch_length[batch]};
}

/// By how many levels the uses of a row of a recycled state by two nodes lie apart: where several workers run a call,
/// these wait for each other once in each level between (`pass/insert_barriers.hpp`), so that whoever writes a row has
/// met all that have read it.
inline constexpr std::int32_t apart_of_one = 1, apart_of_workers = 2;

/// The nodes at which a field is read.
enum class Where : std::uint8_t { nowhere = 0, leaves = 1, internal = 2, all = 3 };

/// How the linearizer reads and checks one field accessor. Where the model does not read the field, the accessor is not
/// called.
struct FieldCheck {
  Where where = Where::all;
  std::int64_t limit = -1;           // integer fields: valid values are [0, limit); -1: any that fits 32 bits
  const char* table = nullptr;       // the name of what the field indexes, for messages; null: unnamed
  int components = 0;                // how many numbers a row of each node's own length has to have
  std::span<const KeyStep> guard{};  // it is read where this is not 0; empty: everywhere in `where`
};

}  // namespace cortex::structure
