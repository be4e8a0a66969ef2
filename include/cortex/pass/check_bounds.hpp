// Holds every read and write of a program against the declared extents of its buffer, and every uninterpreted function
// against the arrays that it stands for: in bounds, and by what, or not proved.
//
//   for n_idx = 0:num_nodes: node = all_nodes(n_idx): h[node,i] = Emb[word(node),i]
//     h[node], word(node): by rules;  h[..,i], Emb[..,i]: by intervals;  Emb[word(node)]: the user's, checked by calls
//
// Refuses what is out of bounds whatever the input. Changes nothing: tests run it after each pass, on any level above
// `device`. Paper section 5.1 (I5, I6).
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/pass/prove.hpp"
#include "cortex/pass/regions.hpp"

namespace cortex::pass {

/// How many indices are in bounds, by what proves them.
struct BoundsReport {
  ProofCounts loads, stores, functions;
  int checked_by_calls = 0;      // indices made of the nodes' data, which `runtime/guards.hpp` checks
  Vector<std::string> unproved;  // what the counts have as unproved, with where it stands
};

namespace detail {

class BoundsChecker final : ScopeWalk {
 public:
  BoundsChecker(const ir::Program& program, Prover& prover)
      : ScopeWalk(prover.scope(), false), program_(program), prover_(prover) {}

  BoundsReport run() {
    walk(program_.body);
    return std::move(report_);
  }

 private:
  // ---- what is read and written ----

  void access(const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool store) override {
    ProofCounts& counts = store ? report_.stores : report_.loads;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      const auto* ramp = indices[d].as<ir::Ramp>();
      const Linear low = scope().unchecked(ramp ? ramp->base : indices[d]);
      const Linear high = ramp ? low + (ramp->type.lanes - 1) : low;
      const Linear extent =
          buffer->role == ir::Role::index ? array_extent(*buffer, d) : extent_of(atoms(), buffer, d, store);
      const auto what = [&] {
        return ir::print(ir::Load::make(buffer, indices)) + ": index " + ir::print(indices[d]) + " (" +
               atoms().text(low) + ") of dimension '" + buffer->dims[d].name() + "' of '" + buffer->name + "'";
      };
      judge(low, high, extent, counts, is_data(buffer, d, indices[d]), what);
    }
  }

  /// Whether the index is made of the nodes' data, as `ra::index_checks` has it: those are held against the extents
  /// before the arithmetic. Of weights, this is any structure; in other buffers the nodes' rows are to be proved.
  static bool is_data(const ir::Buffer& buffer, std::size_t d, const ir::Expr& index) {
    const bool weight = buffer->role == ir::Role::weight;
    return (weight && buffer->dims[d].kind() == DimKind::open) || is_data(index, weight);
  }
  static bool is_data(const ir::Expr& index, bool of_any_structure) {
    bool data = false;
    ir::visit_with(
        index,
        [&](const ir::UfCall& call) {
          const bool structure = call.uf.kind != ir::UfKind::worker && call.uf.kind != ir::UfKind::num_workers;
          data |= of_any_structure ? structure : call.uf.kind == ir::UfKind::field;
        },
        [&](const ir::Load& load) {
          data |= load.buffer->role == ir::Role::index && (of_any_structure || load.buffer->slot >= ir::slot_of::field);
        });
    return data;
  }

  /// The extent of an array that `resolve_structure` has put in the place of a function.
  Linear array_extent(const ir::BufferInfo& buffer, std::size_t d) {
    namespace slot_of = ir::slot_of;
    const auto is = [&](Symbol symbol) { return atoms().form(symbol); };
    if (d > 0) return buffer.dims[d].extent();
    const int slot = buffer.slot;
    if (slot == slot_of::counts) return std::int64_t(ir::Count::size);
    if (slot <= slot_of::batch_length) return is(Symbol::num_batches);
    if (slot <= slot_of::part_length) return is(Symbol::num_batches).times(scope().known().parts);
    if (slot == slot_of::part_offset) return scope().known().parts + 1;
    if (slot == slot_of::part_list) return atoms().form(Symbol::part_offset, {Linear(scope().known().parts)});
    if (slot == slot_of::state_row) return is(Symbol::num_nodes) + 1;
    if (slot == slot_of::root) return is(Symbol::num_roots);
    if (slot == slot_of::group_begin) return is(Symbol::num_groups) + 1;
    if (slot == slot_of::group_node) return atoms().form(Symbol::group_begin, {is(Symbol::num_groups)});
    if (slot == slot_of::inner_begin) return is(Symbol::num_internal) + 1;
    if (slot == slot_of::inner_child) return atoms().form(Symbol::inner_begin, {is(Symbol::num_internal)});
    if (slot == slot_of::computes) return INT32_MAX;  // a constant index, as many as the program has tabulations
    if (slot >= slot_of::field) return is(Symbol::num_nodes);
    if (slot >= slot_of::edge_child)
      // One more: where a child is absent, element 0 is read in its place and thrown away, of an array that may be read
      // past its end (structure/arrays.hpp).
      return atoms().form(Symbol::edge_begin, slot - slot_of::edge_child, {is(Symbol::num_nodes)}) + 1;
    return is(Symbol::num_nodes) + (slot >= slot_of::edge_begin ? 1 : 0);
  }

  /// What `resolve_structure` reads for the function, held against the arrays.
  void function(const ir::UfCall& n) override {
    using K = ir::UfKind;
    Vector<Linear> a;
    for (const ir::Expr& arg : n.args) a.push_back(scope().unchecked(arg));
    const auto is = [&](Symbol symbol) { return atoms().form(symbol); };
    const auto at = [&](Symbol symbol, const Linear& index) { return atoms().form(symbol, {index}); };
    const auto below = [&](const Linear& index, const Linear& extent, bool data = false) {
      judge(index, index, extent, report_.functions, data,
            [&] { return ir::print(ir::handle_of(n)) + ": " + atoms().text(index) + ", of " + atoms().text(extent); });
    };
    switch (n.uf.kind) {
      case K::child:
      case K::num_children: return below(a[0], is(Symbol::num_nodes));
      case K::kth_child: return below(a[0], is(Symbol::num_nodes)), below(a[1], INT32_MAX);
      case K::field: {
        below(a[0], is(Symbol::num_nodes));
        const Vector<int>& components = scope().known().components;
        if (a.size() > 1) below(a[1], components.at(std::size_t(n.uf.accessor)), is_data(n.args[1], false));
        return;
      }
      case K::batch_node:
      case K::batch_length: return below(a[0], is(Symbol::num_batches));
      case K::internal_batch_node:
      case K::internal_batch_length: return below(a[0] + 1, is(Symbol::num_batches));
      case K::part_node:
      case K::part_length: return below(a[0], is(Symbol::num_batches).times(scope().known().parts));
      case K::listed_length:
        return below(a[0], scope().known().parts + 1), below(a[0] + a[1], scope().known().parts + 1);
      case K::listed_node:
        return below(at(Symbol::part_offset, a[0]) + a[1], at(Symbol::part_offset, {scope().known().parts}));
      case K::edge: return below(a[0], is(Symbol::num_nodes) + 1);
      case K::edge_child: return below(a[0], atoms().form(Symbol::edge_begin, n.uf.accessor, {is(Symbol::num_nodes)}));
      case K::span_edges: return below(a[0], is(Symbol::num_nodes) + 1), below(a[0] + a[1], is(Symbol::num_nodes) + 1);
      case K::root_node: return below(a[0], is(Symbol::num_roots));
      case K::group_length: return below(a[0], is(Symbol::num_groups));
      case K::group_node:
        return below(at(Symbol::group_begin, a[0]) + a[1], at(Symbol::group_begin, is(Symbol::num_groups)));
      case K::num_inner: return below(a[0], is(Symbol::num_internal));
      case K::inner_child:
        return below(at(Symbol::inner_begin, a[0]) + a[1], at(Symbol::inner_begin, is(Symbol::num_internal)));
      default: return;  // arithmetic alone: what uses the result is checked
    }
  }

  // ---- the verdict ----

  void judge(const Linear& low, const Linear& high, const Linear& extent, ProofCounts& counts, bool data,
             FunctionRef<std::string()> what) {
    const Proof below = prover_.never_negative(low);
    const Proof proof = below == Proof::no ? below : both(below, prover_.never_negative(extent - 1 - high));
    if (proof != Proof::no) return counts.add(proof);
    if (scope().never_negative(Linear(-1) - low, true)) refuse(what() + " is always negative");
    if (scope().never_negative(high - extent, true))
      refuse(what() + " is never below the extent, " + atoms().text(extent));
    if (data) return void(++report_.checked_by_calls);
    counts.add(Proof::no);
    report_.unproved.push_back(what() + place());
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::internal, "check_bounds: program '" + program_.name + "': " + what + place());
  }

  const ir::Program& program_;
  Prover& prover_;
  BoundsReport report_;
};

}  // namespace detail

/// Classifies every index of a program of a level above `device`. Throws `Error{internal}` that names the buffer, the
/// index and the loops around it for an index that is out of bounds for every input.
inline BoundsReport check_bounds(const ir::Program& program, bool use_z3 = true) {
  if (program.level == ir::Level::device)
    throw Error(Code::internal, "check_bounds: program '" + program.name + "' has offsets in place of indices");
  Prover prover(KnownNodes(program), use_z3);
  return detail::BoundsChecker(program, prover).run();
}

}  // namespace cortex::pass
