// The operator graph that a user's lambdas become: the recursive API (paper section 3) as plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/expr.hpp"

namespace cortex::ra {

enum class OpKind : std::uint8_t {
  input,         // R1: weights and embedding tables, bound by name
  field,         // R1: floating-point data of the node
  placeholder,   // R2: the result of the recursive calls
  compute,       // R3: a loop nest over named dimensions
  if_then_else,  // R5: one of two operators, by a condition on the structure
};

/// One operator. Its tensor is `buffer`; reading it is an `ir::Load` of that buffer. All kinds but `input` have the
/// node dimension first, so `buffer->dims` is {d_node, dims...}, and are read at [node, indices...]: a placeholder at a
/// child of the current node, the others at the current node.
struct Op {
  OpKind kind = OpKind::compute;
  ir::Buffer buffer;
  Vector<Dim> dims;                // without the node dimension
  ir::Expr node;                   // compute, if_then_else: the variable that stands for the current node
  Vector<ir::Expr> index_vars;     // compute: one per dimension
  ir::Expr body;                   // compute: the value at [node, index_vars...]
  ir::Expr condition;              // if_then_else: over `node` and structure alone (P.1)
  int then_op = -1, else_op = -1;  // if_then_else: operators of the same dimensions and type
  int case_number = -1;            // if_then_else: which case of a switch_, from 0; -1: of none
  ir::Expr key;                    // the first case of a switch_ without otherwise: over `node`, an integer
  Vector<std::int64_t> cases;      // and the only values that it may have
  bool at_roots = false;           // compute: a readout, evaluated at the roots of a call alone
  const std::string& name() const { return buffer->name; }
};

/// R6: the operator `body` is the value that `placeholder` stands for, at each node. The recursions of a graph run one
/// after the other; each may read what those before it have computed, at the node itself too.
struct State {
  int placeholder;
  int body;
  int recursion = 0;
};

/// What the nodes in a container are to the node that has it. The nodes hold children alone; the others follow.
enum class Relation : std::uint8_t {
  children,
  parents,  // the distinct nodes that have it as a child, through any accessor that the model reads
  members,  // of a root: every node that it reaches, itself first; of any other node: none
};

/// A node accessor that the model reads. Uninterpreted functions and field buffers name it by its position in the list
/// of `Graph` that it is in: `children_named`, `containers` or `fields`.
struct Accessor {
  std::string name;
  const void* key;                         // identifies the accessor's C++ type
  bool optional = false;                   // child: may be absent at any node
  DType dtype = DType::i32;                // field: of one element
  int components = 1;                      // field: number of elements
  Relation relation = Relation::children;  // children: what they are
  bool own_length = false;                 // field: nodes say themselves how many they have, and must have `components`
  bool array = false;                      // field: read by component also where it has one
};

/// What kind of structure the model is declared for (R7).
enum class StructureKind : std::uint8_t { sequence, tree, dag };

struct Graph {
  std::string name;
  StructureKind structure = StructureKind::tree;
  int max_children = 0;  // 0: not declared
  Vector<Op> ops;        // an operator reads only placeholders and operators before it
  Vector<State> states;
  int results = -1;  // how many of the states, from the first, are results of calls; -1: all
  Vector<Accessor> children_named, containers, fields;

  /// The operator that `buffer` belongs to, or -1.
  int find(const ir::Buffer& buffer) const {
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].buffer == buffer) return int(i);
    return -1;
  }
  /// The operator of that name, or -1.
  int find(const std::string& op) const {
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].name() == op) return int(i);
    return -1;
  }
};

/// The names of all operators of a kind, in order.
inline Vector<std::string> names_of(const Graph& graph, OpKind kind) {
  Vector<std::string> names;
  for (const Op& op : graph.ops)
    if (op.kind == kind) names.push_back(op.name());
  return names;
}

inline int num_recursions(const Graph& graph) {
  int count = 0;
  for (const State& state : graph.states) count = std::max(count, state.recursion + 1);
  return count;
}

/// Whether a state's rows are large and no call gives them out: they may serve several nodes, one after the other.
inline bool may_share_rows(const Graph& graph, std::size_t state) {
  const Op& placeholder = graph.ops[std::size_t(graph.states[state].placeholder)];
  return graph.results >= 0 && state >= std::size_t(graph.results) && ir::has_large_rows(*placeholder.buffer);
}

/// The state that operator `placeholder` stands for, or -1.
inline int state_of(const Graph& graph, int placeholder) {
  for (std::size_t s = 0; s < graph.states.size(); ++s)
    if (graph.states[s].placeholder == placeholder) return int(s);
  return -1;
}

}  // namespace cortex::ra
