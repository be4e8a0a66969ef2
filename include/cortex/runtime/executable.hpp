// What the compile seam yields: a kernel and all that a call has to know of it. Plain data, immutable, shared by all
// calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/codegen/kernel_abi.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/index_checks.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/structure/arrays.hpp"
#include "cortex/structure/partition.hpp"

namespace cortex::runtime {

/// One input of the model: what is bound under `name`. Its position among the weights is `ir::Buffer::slot`.
struct WeightSpec {
  std::string name;
  DType dtype = DType::f32;
  Vector<Dim> dims;  // only the first may be open
  bool read = true;  // by an operator that a result depends on; else it need not be bound
};

/// One result of the recursion: a tensor at every node.
struct StateSpec {
  std::string name;
  DType dtype = DType::f32;
  Vector<Dim> dims;       // without the node dimension
  int buffer = -1;        // its number in `Program::buffers`
  bool at_roots = false;  // a readout: other nodes have none
};

/// How one field of the graph is read and checked by the linearizer: valid values are [0, extent), where the extent is
/// that of the first dimension of weight `weight`, or `limit` if that is not negative, whichever is less.
struct FieldSpec {
  structure::Where where = structure::Where::all;
  int weight = -1;          // slot of the weight whose first dimension the field indexes; -1: none
  std::int64_t limit = -1;  // fixed bound; -1: none
  std::string table{};      // the name of what the field indexes, for messages; empty: unnamed
  structure::Key guard{};   // of `where`, the nodes at which it is read; accessors go by their numbers in the graph
};

/// An index that is more than a field of the node, as in Emb(word(n) * 2 + i, j). Before the kernel runs, `index` is
/// evaluated at every node and for all values of the ranges' variables at which `guard` holds, and must lie inside the
/// dimension. Expressions are of the operator graph: integers, comparisons and the uninterpreted functions
/// child, kth_child, num_children, field and is_leaf, over `node` and the variables of the ranges before.
struct GuardedCheck {
  struct Range {
    ir::Expr var;
    ir::Expr extent;           // num_children(node) for the children of a reduction, a constant for a dense dimension
    bool ends_decide = false;  // the index is linear in it: inside for all values if it is for the first and the last
  };
  ir::Expr node;  // the variable that stands for the node
  Vector<Range> ranges;
  ir::Expr guard;  // empty: always
  ir::Expr index;
  ra::Indexed of;
  std::string where;      // the operator in which the index stands, for messages
  bool at_roots = false;  // of a readout: made at the roots alone
};

/// How many indices made of the nodes' data are checked, and by what the others are proved to be in bounds.
struct CheckCounts {
  int while_reading = 0;  // fields that the linearizer holds against the extent that they index
  int before_kernel = 0;  // `Executable::guarded`
  int by_rules = 0, by_intervals = 0, by_z3 = 0;
};

/// How long the parts of compiling took, in milliseconds.
struct CompileTimes {
  double lower = 0;    // operator graph to device-level ILIR
  double codegen = 0;  // device-level ILIR to LLVM IR text
  double llvm = 0;     // text to machine code
  double total() const { return lower + codegen + llvm; }
};

/// Gives the elements that `buffer`, a copy of a weight in another type or the scales of one, stores of `values`, which
/// are row-major of `extents`: row-major as well, of the extents that `extents` becomes. `fault` says what of the
/// values the type does not hold; empty: nothing.
using StoreWeight = Vector<std::byte> (*)(const ir::BufferInfo& buffer, const float* values,
                                          Vector<std::int64_t>& extents, std::string& fault);

/// A compiled model.
struct Executable {
  ir::Program program;                                                        // at device level
  codegen::Kernel kernel = nullptr;                                           // null: `interpret` does its work
  void (*interpret)(const void* code, const codegen::KernelArgs&) = nullptr;  // by several threads at once
  std::shared_ptr<const void> code;  // keeps the kernel's memory, or is what `interpret` runs
  StoreWeight store = nullptr;       // where the schedule stores weights in other types
  ra::Graph graph;
  Schedule schedule;
  Target target;
  Vector<WeightSpec> weights;        // one per input operator
  Vector<StateSpec> states;          // one per `Graph::states`
  int rows_apart = 0;                // `structure::Workspace::recycle_rows`
  bool overwrites_children = false;  // likewise
  Vector<FieldSpec> fields;          // one per `Graph::fields`
  Vector<GuardedCheck> guarded;
  Vector<Vector<GuardedCheck>> table_checks;  // per tabulation of parts of batches, whose rows have to pass them
  CheckCounts checks;
  structure::Partition partition;  // of batches; accessors go by their numbers in the graph
  bool shares_subtrees = false;    // equal ones are computed once
  int subtree_depth = 0;           // levels of the subtrees that unrolled recursions run over; 0: none does
  int level_fill = 1;              // nodes that small levels are filled up to
  int piece_nodes = 0;             // of the pieces that larger calls are computed in; 0: each as a whole
  int piece_width = 0;             // and nodes of their batches on average, else a call is left whole
  Vector<GroupRule> group_rules;   // where the schedule leaves groups to the compiler
  int groups_with_weights = 1;     // that have weights of their own; those after them share these
  int size_with_weights = 1;       // and groups of fewer workers share the first one's
  Vector<bool> read_whole;         // per buffer: weights of which groups have their own; words' rows are nobody's own
  Vector<TeamCost> team_costs;     // where it leaves workers out of calls that are not worth them
  double node_seconds = 0;         // that a node takes one worker, by the cost model; 0: not known
  ir::Program lowered;             // at level loops: what lowering makes of the graph
  ir::Program scheduled;           // the last one before register tiles write each nest out for each number of rows
  ir::Program tiled;               // the last one with functions of the structure in place of arrays
  std::string llvm_text;
  bool is_linked = false;  // the kernel was compiled elsewhere, and the program is linked with it
  CompileTimes times;
};

}  // namespace cortex::runtime
