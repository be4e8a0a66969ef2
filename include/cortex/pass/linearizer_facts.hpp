// What the linearizer guarantees of its arrays, as facts that proofs may use: each a linear form that is not negative.
//
//   batch_begin(b), batch_length(b)   ->   num_nodes - batch_begin(b) - batch_length(b) >= 0
//   child(node)                       ->   child(node) - node - 1 >= 0
//
// The one place where they are written; tests/pass/linearizer_facts_test.cpp holds each against the linearizer itself.
// D1 to D4 are the paper's section 5 and appendix B: D2, the nodes of a batch have consecutive numbers, children lie
// above their parents, all leaves above all inner nodes; D3, `batch_begin` and `batch_length`; D4, the leaf check is
// one comparison. The other sources are the files of structure/ and runtime/ that are named.
//
// Of a call in several pieces (structure/pieces.hpp) a program sees one after the other. num_nodes is then the call's,
// as a row of that number stands for no node; num_internal is where the leaves of the piece begin, behind which stand
// those of the pieces before, where children may be. A piece may have no leaves, and has a batch for them all the same.
//
// A fact of an array at an index holds where the index lies inside the array, which `check_bounds` sees to for each
// read of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/pass/linear.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::pass {

/// What is known of the nodes of one program besides what holds for all.
struct KnownNodes {
  int parts = 0;                              // of each batch; 0: not known
  ir::Listed listed = ir::Listed::all_nodes;  // which nodes are listed by parts
  Vector<bool> required;                      // per named accessor: every inner node has that child
  Vector<int> components;                     // per field: elements
  Vector<std::int64_t> field_limit;  // per field: its values are checked to be in [0, limit); below 0: they are not
  Vector<int> field_weight;          // per field: its values are checked to be rows of that weight; below 0: not
  Vector<int> most_children;         // per container; 0: not known

  KnownNodes() = default;
  explicit KnownNodes(const ir::Program& program)
      : parts(program.parts),
        listed(program.listed),
        required(program.required_children),
        components(program.field_components) {}
};

/// The workspace refuses more visits of nodes than these, one for each root and each edge, and more members of roots
/// (structure/workspace.hpp, `max_visits`), and calls have at most so many workers (runtime/compile_steps.hpp,
/// `check_schedule`).
inline constexpr std::int64_t most_nodes = structure::most_visits, most_workers = Schedule::most_workers;

namespace detail {

/// Lists the facts of one atom. `holds` proves what a fact asks for, from what is known otherwise.
class LinearizerFacts {
 public:
  LinearizerFacts(Atoms& atoms, const KnownNodes& known, FunctionRef<bool(const Linear&)> holds, Vector<Linear>& facts)
      : atoms_(atoms), known_(known), holds_(holds), facts_(facts) {}

  void of(int number) {
    const Atom& atom = atoms_[number];
    const Linear self = Linear::of(number);
    const auto arg = [&](std::size_t i) -> const Linear& { return atom.args[i]; };
    const Linear nodes = is(Symbol::num_nodes), internal = is(Symbol::num_internal), leaves = is(Symbol::num_leaves);
    switch (atom.symbol) {
      // A call without nodes runs no kernel (runtime/call.hpp); some node is a leaf, of the first piece.
      case Symbol::num_nodes: return between(1, self, most_nodes);
      case Symbol::num_internal: return between(0, self, nodes - 1);
      case Symbol::num_leaves: return between(0, self, nodes - internal);
      // Parts have 32-bit numbers (structure/numbering.hpp, `lay_out_parts`).
      case Symbol::num_batches:
        return fact(Linear(INT32_MAX / std::max(known_.parts, 1)) - self), between(1, self, nodes);
      case Symbol::num_roots: return between(1, self, most_nodes);
      case Symbol::num_groups: return between(0, self, internal);
      // structure/arrays.hpp: n + child_step is the child of each inner node n.
      case Symbol::child_step: return between(0, self, nodes - internal);
      case Symbol::num_ranges: return between(1, self, 2);
      case Symbol::max_batch: return fact(self - leaves), between(1, self, nodes);
      case Symbol::max_batch_edges: return fact(self);
      case Symbol::num_rows: return fact(self);
      case Symbol::num_workers: return between(1, self, most_workers);
      case Symbol::worker: return between(0, self, is(Symbol::num_workers) - 1);
      case Symbol::batch_begin: return batch(self, atoms_.form(Symbol::batch_length, {arg(0)}), arg(0), 1);
      case Symbol::batch_length:
        if (holds_(arg(0) - 1)) fact(self - 1);  // no batch of inner nodes is empty (D3)
        return batch(atoms_.form(Symbol::batch_begin, {arg(0)}), self, arg(0), 1);
      case Symbol::part_begin: return batch(self, atoms_.form(Symbol::part_length, {arg(0)}), arg(0), known_.parts);
      case Symbol::part_length:
        fact(self);
        return batch(atoms_.form(Symbol::part_begin, {arg(0)}), self, arg(0), known_.parts);
      // structure/numbering.hpp, `list_parts`: each node is listed once at most.
      case Symbol::part_offset: between(0, self, nodes); return ascending(atom, self, Linear(known_.parts));
      case Symbol::part_list:
        return between(0, self, (known_.listed == ir::Listed::inner_nodes ? internal : nodes) - 1);
      case Symbol::range_begin: return range(self, atoms_.form(Symbol::range_length, {arg(0)}), arg(0));
      case Symbol::range_length: return range(atoms_.form(Symbol::range_begin, {arg(0)}), self, arg(0));
      case Symbol::root: return between(0, self, nodes - 1);
      // structure/subtrees.hpp: tops and the children inside subtrees are inner nodes, each in one list at most.
      case Symbol::group_begin: between(0, self, internal); return ascending(atom, self, is(Symbol::num_groups));
      case Symbol::group_node: return between(0, self, internal - 1);
      case Symbol::inner_begin: between(0, self, internal); return ascending(atom, self, internal);
      case Symbol::inner_child: return between(0, self, internal - 1);
      // D2: children lie above their parents, and num_nodes stands for none (structure/arrays.hpp).
      // Of a node that is not there the array holds nothing.
      case Symbol::child:
        if (!holds_(nodes - 1 - arg(0))) return;
        between(arg(0) + 1, self, nodes);
        return present(atom, self);
      case Symbol::kth_child:
        if (holds_(nodes - 1 - arg(0))) between(0, self, nodes);
        return;
      case Symbol::edge_begin:
        fact(self);
        ascending(atom, self, nodes);
        return edges(atom, self);
      case Symbol::edge_child: return between(0, self, nodes - 1);
      case Symbol::field:
        if (const std::int64_t limit = limit_of(atom.accessor); limit >= 0) between(0, self, limit - 1);
        if (const int weight = weight_of(atom.accessor); weight >= 0)
          between(0, self, is(Symbol::num_rows, weight) - 1);
        return;
      default: return;
    }
  }

 private:
  Linear is(Symbol symbol, int accessor = -1) { return atoms_.form(symbol, accessor); }
  void fact(Linear form) { facts_.push_back(std::move(form)); }
  void between(const Linear& low, const Linear& self, const Linear& high) {
    fact(self - low);
    fact(high - self);
  }

  std::int64_t limit_of(int field) const {
    return field >= 0 && std::size_t(field) < known_.field_limit.size() ? known_.field_limit[std::size_t(field)] : -1;
  }

  int weight_of(int field) const {
    return field >= 0 && std::size_t(field) < known_.field_weight.size() ? known_.field_weight[std::size_t(field)] : -1;
  }

  /// D3 of a batch, or of a part of one: `parts` of them in each batch, of which number 0 holds the leaves.
  void batch(const Linear& begin, const Linear& length, const Linear& number, int parts) {
    const Linear nodes = is(Symbol::num_nodes), internal = is(Symbol::num_internal), leaves = is(Symbol::num_leaves);
    // The closer bounds come first: who looks for some bound takes the first that there is.
    if (parts > 0 && holds_(number - parts)) {
      fact(internal - begin - length);
    } else if (parts > 0 && holds_(Linear(parts - 1) - number)) {
      fact(begin - internal);
      if (parts == 1) fact(internal - begin), fact(length - leaves), fact(leaves - length);
    }
    fact(begin);
    fact(length);
    fact(is(Symbol::max_batch) - length);
    fact(nodes - begin - length);
  }

  /// structure/pieces.hpp: a piece's inner nodes stand below its leaves.
  void range(const Linear& begin, const Linear& length, const Linear& number) {
    if (number.is(std::int64_t(ir::NodeRange::inner))) fact(is(Symbol::num_internal) - begin - length);
    fact(begin);
    fact(length);
    fact(is(Symbol::num_nodes) - begin - length);
  }

  /// Offsets ascend; the last of them is at `end`.
  void ascending(const Atom& atom, const Linear& self, const Linear& end) {
    const bool is_last = atom.args[0] == end;
    if (!is_last && holds_(end - atom.args[0])) fact(atoms_.form(atom.symbol, atom.accessor, {end}) - self);
    for (int i = atoms_.size(); i-- > 0;) {
      const Atom& other = atoms_[i];
      if (&other == &atom || other.symbol != atom.symbol || other.accessor != atom.accessor) continue;
      if (other.args[0] == end) continue;
      const Linear apart = atom.args[0] - other.args[0];
      if (holds_(apart))
        fact(self - Linear::of(i));
      else if (!is_last && holds_(apart.times(-1)))
        fact(Linear::of(i) - self);
    }
  }

  /// An accessor that is not optional yields a child at every node that is no leaf (structure/failures.hpp,
  /// `null_child`). Below num_internal of a piece also stand leaves of later pieces, of which no program asks.
  void present(const Atom& atom, const Linear& self) {
    const auto a = std::size_t(atom.accessor);
    if (atom.accessor < 0 || a >= known_.required.size() || !known_.required[a]) return;
    if (holds_(is(Symbol::num_internal) - 1 - atom.args[0])) fact(is(Symbol::num_nodes) - 1 - self);
  }

  /// structure/arrays.hpp: the edges of a node, and of consecutive nodes of one batch, are at most max_batch_edges.
  void edges(const Atom& atom, const Linear& self) {
    const int container = atom.accessor, count = atoms_.size();
    if (atom.args[0] == is(Symbol::num_nodes)) fact(Linear(most_nodes) - self);  // visits, or members
    const bool bounded = std::size_t(container) < known_.most_children.size() && container >= 0;
    const int most = bounded ? known_.most_children[std::size_t(container)] : 0;
    for (int i = 0; i < count; ++i) {
      const Atom& other = atoms_[i];
      if (&other == &atom || other.symbol != Symbol::edge_begin || other.accessor != container) continue;
      span(atom.args[0], self, other.args[0], Linear::of(i), most);
      span(other.args[0], Linear::of(i), atom.args[0], self, most);
    }
  }
  void span(const Linear& first, const Linear& begin, const Linear& past, const Linear& end, int most) {
    const int container = atoms_[begin.terms[0].atom].accessor;
    const bool one = (past - first).is(1);
    if (one && most > 0) fact(Linear(most) - (end - begin));
    if (one || within_batch(first, past)) fact(is(Symbol::max_batch_edges, container) - (end - begin));
  }
  /// Whether the nodes first .. past stand in one batch, as far as the batch is known by its begin.
  bool within_batch(const Linear& first, const Linear& past) {
    if (first == is(Symbol::num_internal)) return holds_(first + is(Symbol::num_leaves) - past);
    const Atom* begin = atoms_.only(first);
    if (!begin || (begin->symbol != Symbol::batch_begin && begin->symbol != Symbol::part_begin)) return false;
    const Symbol length = begin->symbol == Symbol::batch_begin ? Symbol::batch_length : Symbol::part_length;
    return holds_(first + atoms_.form(length, {begin->args[0]}) - past);
  }

  Atoms& atoms_;
  const KnownNodes& known_;
  FunctionRef<bool(const Linear&)> holds_;
  Vector<Linear>& facts_;
};

}  // namespace detail

/// The meaning of uninterpreted function `kind` as a form, the same as the pass `resolve_structure` gives it.
/// `holds` decides whether child k is known to be there.
inline Linear structure_form(Atoms& atoms, ir::UfKind kind, int accessor, const Vector<Linear>& a,
                             FunctionRef<bool(const Linear&)> holds) {
  using K = ir::UfKind;
  const auto is = [&](Symbol symbol) { return atoms.form(symbol); };
  const auto at = [&](Symbol symbol, const Linear& index) { return atoms.form(symbol, {index}); };
  const auto edge_begin = [&](const Linear& node) { return atoms.form(Symbol::edge_begin, accessor, {node}); };
  switch (kind) {
    case K::child: return atoms.form(Symbol::child, accessor, {a[0]});
    case K::kth_child: {
      const Linear count = edge_begin(a[0] + 1) - edge_begin(a[0]);
      if (holds(a[1]) && holds(count - a[1] - 1))
        return atoms.form(Symbol::edge_child, accessor, {edge_begin(a[0]) + a[1]});
      return atoms.form(Symbol::kth_child, accessor, a);
    }
    case K::num_children: return edge_begin(a[0] + 1) - edge_begin(a[0]);
    case K::field: return atoms.form(Symbol::field, accessor, a);
    case K::num_nodes: return is(Symbol::num_nodes);
    case K::num_leaves: return is(Symbol::num_leaves);
    case K::num_internal: return is(Symbol::num_internal);
    case K::num_batches: return is(Symbol::num_batches);
    case K::num_internal_batches: return is(Symbol::num_batches) - 1;  // there is a batch, as there is a node
    case K::all_node:
    case K::internal_node:
    case K::downward_node: return a[0];
    case K::leaf_node: return is(Symbol::num_internal) + a[0];
    case K::sequence_node: return is(Symbol::num_nodes) - 1 - a[0];
    case K::internal_sequence_node: return is(Symbol::num_internal) - 1 - a[0];
    case K::batch_node: return at(Symbol::batch_begin, a[0]) + a[1];
    case K::batch_length: return at(Symbol::batch_length, a[0]);
    case K::internal_batch_node: return at(Symbol::batch_begin, a[0] + 1) + a[1];
    case K::internal_batch_length: return at(Symbol::batch_length, a[0] + 1);
    case K::edge: return edge_begin(a[0]) + a[1];
    case K::edge_child: return atoms.form(Symbol::edge_child, accessor, {a[0]});
    case K::span_edges: return edge_begin(a[0] + a[1]) - edge_begin(a[0]);
    case K::num_roots: return is(Symbol::num_roots);
    case K::root_node: return at(Symbol::root, a[0]);
    case K::part_node: return at(Symbol::part_begin, a[0]) + a[1];
    case K::part_length: return at(Symbol::part_length, a[0]);
    case K::listed_node: return at(Symbol::part_list, at(Symbol::part_offset, a[0]) + a[1]);
    case K::listed_length: return at(Symbol::part_offset, a[0] + a[1]) - at(Symbol::part_offset, a[0]);
    case K::num_ranges: return is(Symbol::num_ranges);
    case K::range_node: return at(Symbol::range_begin, a[0]) + a[1];
    case K::range_length: return at(Symbol::range_length, a[0]);
    case K::num_groups: return is(Symbol::num_groups);
    case K::group_length: return at(Symbol::group_begin, a[0] + 1) - at(Symbol::group_begin, a[0]);
    case K::group_node: return at(Symbol::group_node, at(Symbol::group_begin, a[0]) + a[1]);
    case K::num_inner: return at(Symbol::inner_begin, a[0] + 1) - at(Symbol::inner_begin, a[0]);
    case K::inner_child: return at(Symbol::inner_child, at(Symbol::inner_begin, a[0]) + a[1]);
    case K::worker: return is(Symbol::worker);
    case K::num_workers: return is(Symbol::num_workers);
    case K::thread: break;   // no fact but its range
    case K::is_leaf: break;  // no integer
  }
  Linear lost;
  lost.lost = true;
  return lost;
}

/// An element of the linearizer's array `slot`, which `resolve_structure` has put in the place of a function.
inline Linear array_form(Atoms& atoms, int slot, const Vector<Linear>& a) {
  namespace slot_of = ir::slot_of;
  using ir::Count;
  if (slot == slot_of::counts && a.size() == 1) {
    const std::int64_t place = a[0].constant, first = std::int64_t(Count::range_begin);
    if (place >= first)  // behind it, the number of a range
      return place < std::int64_t(Count::range_length)
                 ? atoms.form(Symbol::range_begin, {a[0] - first})
                 : atoms.form(Symbol::range_length, {a[0] - std::int64_t(Count::range_length)});
    constexpr Symbol numbers[] = {Symbol::num_nodes, Symbol::num_internal, Symbol::num_leaves, Symbol::num_batches,
                                  Symbol::num_roots, Symbol::num_groups,   Symbol::child_step, Symbol::num_ranges};
    if (a[0].is_constant()) return atoms.form(numbers[std::size_t(place)]);
  }
  constexpr Symbol arrays[] = {Symbol::batch_begin, Symbol::batch_length, Symbol::part_begin,
                               Symbol::part_length, Symbol::root,         Symbol::group_begin,
                               Symbol::group_node,  Symbol::inner_begin,  Symbol::inner_child};
  if (slot >= slot_of::batch_begin && slot <= slot_of::inner_child)
    return atoms.form(arrays[std::size_t(slot - slot_of::batch_begin)], a);
  if (slot == slot_of::part_offset) return atoms.form(Symbol::part_offset, a);
  if (slot == slot_of::part_list) return atoms.form(Symbol::part_list, a);
  if (slot == slot_of::state_row) return a[0];  // as if each node had a row of its own, though they are fewer
  if (slot == slot_of::computes) return 1;      // else there are no rows, and nothing to say of them
  if (slot >= slot_of::field) return atoms.form(Symbol::field, slot - slot_of::field, a);
  if (slot >= slot_of::edge_child) return atoms.form(Symbol::edge_child, slot - slot_of::edge_child, a);
  if (slot >= slot_of::edge_begin) return atoms.form(Symbol::edge_begin, slot - slot_of::edge_begin, a);
  if (slot >= slot_of::child) return atoms.form(Symbol::child, slot - slot_of::child, a);
  Linear lost;
  lost.lost = true;
  return lost;
}

}  // namespace cortex::pass
