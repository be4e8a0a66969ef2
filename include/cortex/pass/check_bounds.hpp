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
#include "cortex/ir/print.hpp"
#include "cortex/pass/regions.hpp"

namespace cortex::pass {

/// How many indices are in bounds, by what proves them.
struct BoundsReport {
  ProofCounts loads, stores, functions;
  int checked_by_calls = 0;      // indices made of the nodes' data, which `runtime/guards.hpp` checks
  Vector<std::string> unproved;  // what the counts have as unproved, with where it stands
};

namespace detail {

class BoundsChecker {
 public:
  explicit BoundsChecker(const ir::Program& program, bool use_z3)
      : program_(program), prover_(KnownNodes(program), use_z3) {}

  BoundsReport run() {
    stmt(program_.body);
    return std::move(report_);
  }

 private:
  Scope& scope() { return prover_.scope(); }
  Atoms& atoms() { return prover_.scope().atoms(); }

  // ---- the walk ----

  void inside(const std::string& place, FunctionRef<void()> walk) {
    places_.push_back(place);
    scope().within([&] { walk(); });
    places_.pop_back();
  }

  void stmt(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: {
        const auto& n = *s.as<ir::For>();
        expr(n.extent);
        if (scope().never_negative(Linear() - scope().linear(n.extent), true)) return;  // never runs
        return inside("for " + ir::print(n.var) + " = 0:" + ir::print(n.extent), [&] {
          scope().enter_loop(n.var, n.extent);
          stmt(n.body);
        });
      }
      case ir::StmtKind::let: {
        const auto& n = *s.as<ir::LetStmt>();
        expr(n.value);
        return inside(ir::print(n.var) + " = " + ir::print(n.value), [&] {
          scope().enter_let(n.var, n.value);
          stmt(n.body);
        });
      }
      case ir::StmtKind::if_: {
        const auto& n = *s.as<ir::If>();
        expr(n.condition);
        for (const bool taken : {true, false}) {
          const ir::Stmt& side = taken ? n.then_body : n.else_body;
          if (!side || scope().entails(n.condition, !taken, true)) continue;  // never runs
          inside((taken ? "if " : "if not ") + ir::print(n.condition), [&] {
            scope().assume(n.condition, taken);
            stmt(side);
          });
        }
        return;
      }
      case ir::StmtKind::block:
        for (const ir::Stmt& part : s.as<ir::Block>()->stmts) stmt(part);
        return;
      case ir::StmtKind::alloc: return stmt(s.as<ir::Alloc>()->body);
      case ir::StmtKind::store: {
        const auto& n = *s.as<ir::Store>();
        for (const ir::Expr& index : n.indices) expr(index);
        expr(n.value);
        return access(n.buffer, n.indices, true, report_.stores);
      }
      case ir::StmtKind::barrier:
      case ir::StmtKind::prefetch: return;
    }
  }

  /// All of `e`, both arms of selects included: generated code evaluates them both.
  void expr(const ir::Expr& e) {
    ir::visit_with(
        e,
        [&](const ir::Let& n) {
          expr(n.value);
          scope().within([&] {
            scope().enter_let(n.var, n.value);
            expr(n.body);
          });
          return false;
        },
        [&](const ir::Load& load) { access(load.buffer, load.indices, false, report_.loads); },
        [&](const ir::UfCall& call) { function(call); });
  }

  // ---- what is read and written ----

  void access(const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool store, ProofCounts& counts) {
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
      judge(low, high, extent, counts, buffer->role == ir::Role::weight && is_data(buffer, d, indices[d]), what);
    }
  }

  /// Whether the index is made of the nodes' data, as `ra::index_checks` has it: those are held against the weights
  /// bound, before the arithmetic.
  static bool is_data(const ir::Buffer& buffer, std::size_t d, const ir::Expr& index) {
    bool data = buffer->dims[d].kind() == DimKind::open;
    ir::visit_with(
        index,
        [&](const ir::UfCall& call) {
          data |= call.uf.kind != ir::UfKind::worker && call.uf.kind != ir::UfKind::num_workers;
        },
        [&](const ir::Load& load) { data |= load.buffer->role == ir::Role::index; });
    return data;
  }

  /// The extent of an array that `resolve_structure` has put in the place of a function.
  Linear array_extent(const ir::BufferInfo& buffer, std::size_t d) {
    namespace slots = ir::slots;
    const auto is = [&](Symbol symbol) { return atoms().form(symbol); };
    if (d > 0) return buffer.dims[d].extent();
    const int slot = buffer.slot;
    if (slot == slots::counts) return std::int64_t(ir::Count::size);
    if (slot <= slots::batch_length) return is(Symbol::num_batches);
    if (slot <= slots::part_length) return is(Symbol::num_batches).times(scope().known().parts);
    if (slot == slots::root) return is(Symbol::num_roots);
    if (slot == slots::group_begin) return is(Symbol::num_groups) + 1;
    if (slot == slots::group_node) return atoms().form(Symbol::group_begin, {is(Symbol::num_groups)});
    if (slot == slots::inner_begin) return is(Symbol::num_internal) + 1;
    if (slot == slots::inner_child) return atoms().form(Symbol::inner_begin, {is(Symbol::num_internal)});
    if (slot == slots::computes) return INT32_MAX;  // a constant index, as many as the program has tabulations
    if (slot >= slots::field) return is(Symbol::num_nodes);
    if (slot >= slots::edge_child)
      // One more: where a child is absent, element 0 is read in its place and thrown away, of an array that may be read
      // past its end (structure/arrays.hpp).
      return atoms().form(Symbol::edge_begin, slot - slots::edge_child, {is(Symbol::num_nodes)}) + 1;
    return is(Symbol::num_nodes) + (slot >= slots::edge_begin ? 1 : 0);
  }

  /// What `resolve_structure` reads for the function, held against the arrays.
  void function(const ir::UfCall& n) {
    using K = ir::UfKind;
    Vector<Linear> a;
    for (const ir::Expr& arg : n.args) a.push_back(scope().unchecked(arg));
    const auto is = [&](Symbol symbol) { return atoms().form(symbol); };
    const auto at = [&](Symbol symbol, const Linear& index) { return atoms().form(symbol, {index}); };
    const auto below = [&](const Linear& index, const Linear& extent) {
      judge(index, index, extent, report_.functions, false,
            [&] { return ir::print(ir::handle_of(n)) + ": " + atoms().text(index) + ", of " + atoms().text(extent); });
    };
    switch (n.uf.kind) {
      case K::child:
      case K::num_children: return below(a[0], is(Symbol::num_nodes));
      case K::kth_child: return below(a[0], is(Symbol::num_nodes)), below(a[1], INT32_MAX);
      case K::field: {
        below(a[0], is(Symbol::num_nodes));
        const Vector<int>& components = scope().known().components;
        if (a.size() > 1) below(a[1], components.at(std::size_t(n.uf.accessor)));
        return;
      }
      case K::batch_node:
      case K::batch_length: return below(a[0], is(Symbol::num_batches));
      case K::internal_batch_node:
      case K::internal_batch_length: return below(a[0] + 1, is(Symbol::num_batches));
      case K::part_node:
      case K::part_length: return below(a[0], is(Symbol::num_batches).times(scope().known().parts));
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

  std::string place() const {
    std::string text;
    for (const std::string& outer : places_) text += (text.empty() ? "; inside " : "; ") + outer;
    return text;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Code::internal, "check_bounds: program '" + program_.name + "': " + what + place());
  }

  const ir::Program& program_;
  Prover prover_;
  BoundsReport report_;
  Vector<std::string> places_;  // loops, lets and conditions around here
};

}  // namespace detail

/// Classifies every index of a program of a level above `device`. Throws `Error{internal}` that names the buffer, the
/// index and the loops around it for an index that is out of bounds for every input.
inline BoundsReport check_bounds(const ir::Program& program, bool use_z3 = true) {
  if (program.level == ir::Level::device)
    throw Error(Code::internal, "check_bounds: program '" + program.name + "' has offsets in place of indices");
  return detail::BoundsChecker(program, use_z3).run();
}

}  // namespace cortex::pass
