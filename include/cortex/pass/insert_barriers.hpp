// Puts a barrier wherever one worker reads or writes what another wrote or read: in the loop that carries the
// dependence, and nowhere deeper (paper appendix A.4, I12).
//
//   for b: for n: parallel for i: h[n,i] = ... h[child(n),j] ...
//     ->
//   for b: {for n: parallel for i: h[n,i] = ... h[child(n),j] ...; barrier}
//
// Runs on nests whose parallel loops are marked (`share_work`) and not yet tiled. Two accesses need no barrier between
// them if both are at the worker's own slice of the same dimension, or one worker does both nests alone. Of a loop with
// barriers in it, only what stands before the first and after the last can meet what stands around the loop; a loop
// that always runs parts what is around it. Accesses at their own nodes do not meet if no node is in both their loops
// and fulfils both their conditions. Where nothing but temporaries of one batch would need the barrier at the loop's
// end, each gets a second copy instead, and iterations take turns:
//
//   for b: {parallel for i: z[n,i] = ..; barrier; for i: .. z[n,i] ..; barrier}
//     ->
//   for b: {parallel for i: z[n,b%2,i] = ..; barrier; for i: .. z[n,b%2,i] ..}
//
// The barrier inside keeps workers less than two iterations apart. `ir/races.hpp` finds a barrier that is missing from
// a run. Workers meet in each iteration that writes rows which serve several nodes, too (`recycle_states`): the
// linearizer counts on it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/share_work.hpp"

namespace cortex::pass {

namespace detail {

/// Who does an access: any worker, one that is always the same, or the one whose slice it stays in, of which dimension,
/// at which index, and in pieces of how many elements.
struct Doer {
  enum Kind : std::uint8_t { anyone, first_worker, last_worker, owner } kind = anyone;
  const void* dim = nullptr;
  std::size_t at = 0;
  std::int64_t piece = 0;
  friend bool operator==(const Doer&, const Doer&) = default;
};

/// An access, who does it, and for which nodes: those that a loop numbers so, if it is its nest's, on a condition.
struct SharedAccess {
  schedule::Access access;
  Doer doer;
  ir::Expr numbering, guard;
  bool inside = false;  // of a loop in what is looked at, whose variables mean something else elsewhere
};

inline Doer doer_of(const schedule::Nest& nest, const schedule::Access& access) {
  if (schedule::is_one_workers(nest)) return {Doer::first_worker};
  const schedule::LoopHeader* loop = schedule::shared_loop(nest);
  if (!loop || loop->kind != ir::ForKind::parallel) return {};
  if (ir::as_int(loop->extent) == loop->piece) return {Doer::last_worker};  // one piece
  for (std::size_t d = 0; d < access.indices.size(); ++d) {
    const void* dim = access.buffer->dims[d].id();
    const bool whole = ir::as_int(loop->extent) == access.buffer->dims[d].extent();  // else its slices are others
    if (access.indices[d].same_as(loop->var) && whole) return {Doer::owner, dim, d, loop->piece};
    if (const std::int64_t piece = schedule::piece_of(nest, access.indices[d])) return {Doer::owner, dim, d, piece};
  }
  return {};
}

/// The accesses of a statement that may come before any barrier in it, and those that may come after all.
struct Ends {
  Vector<SharedAccess> head, tail;
};

/// What every worker reads for the value of a variable.
inline Vector<SharedAccess> reads_of(const ir::Expr& value) {
  Vector<SharedAccess> reads;
  ir::visit_with(value, [&](const ir::Load& load) {
    if (ir::changes_in_calls(*load.buffer) && load.buffer->scope == ir::Scope::shared)
      reads.push_back({{load.buffer, load.indices, false}, {}, {}, {}});
  });
  return reads;
}

/// Whether workers meet at some barrier in `stmt` each time that they run it.
inline bool always_meet(const ir::Stmt& stmt) {
  if (stmt.as<ir::Barrier>()) return true;
  if (const auto* let = stmt.as<ir::LetStmt>()) return always_meet(let->body);
  if (const auto* block = stmt.as<ir::Block>()) return any_of(block->stmts, always_meet);
  const auto* loop = stmt.as<ir::For>();
  const auto* extent = loop ? loop->extent.as<ir::UfCall>() : nullptr;
  if (!extent || extent->uf.accessor >= 0) return false;
  // A call without nodes runs no program, and no batch of inner nodes is empty; there may be no leaves in a piece of a
  // call, and none of the nodes that no table has.
  using enum ir::UfKind;
  const ir::UfKind kind = extent->uf.kind;
  const bool runs = kind == num_nodes || kind == num_batches || kind == internal_batch_length;
  return runs && always_meet(loop->body);
}

/// A loop's are those of its body: either it does not run, or what is in the middle is between barriers.
inline Ends ends_of(const ir::Stmt& stmt) {
  Ends ends;
  if (const auto nest = schedule::parse_nest(stmt)) {
    for (const schedule::Access& access : schedule::accesses_of(nest->inner)) {
      if (access.buffer->scope == ir::Scope::worker) continue;
      const bool own = nest->let_var && !access.indices.empty() && access.indices[0].same_as(nest->let_var);
      ends.head.push_back({access, doer_of(*nest, access), own ? nest->let_value : ir::Expr(), nest->guard});
    }
    ends.tail = ends.head;
  } else if (const auto* loop = stmt.as<ir::For>()) {
    if (loop->loop == ir::ForKind::vectorized) schedule::refuse_outside();
    ends = ends_of(loop->body);
    for (SharedAccess& access : ends.head) access.inside = true;
    for (SharedAccess& access : ends.tail) access.inside = true;
    return ends;
  } else if (const auto* let = stmt.as<ir::LetStmt>()) {
    ends = ends_of(let->body);
    const Vector<SharedAccess> reads = reads_of(let->value);
    append(ends.head, reads);
    append(ends.tail, reads);
  } else if (const auto* block = stmt.as<ir::Block>()) {
    bool any = false;
    for (const ir::Stmt& s : block->stmts) {
      const Ends part = ends_of(s);
      if (!any) append(ends.head, part.head);
      if (always_meet(s)) ends.tail.clear(), any = true;
      append(ends.tail, part.tail);
    }
  } else if (!stmt.as<ir::Barrier>()) {
    schedule::refuse_outside();
  }
  return ends;
}

/// Whether no node has a number by the loops of both.
inline bool number_other_nodes(const SharedAccess& a, const SharedAccess& b) {
  const auto* x = a.numbering ? a.numbering.as<ir::UfCall>() : nullptr;
  const auto* y = b.numbering ? b.numbering.as<ir::UfCall>() : nullptr;
  if (!x || !y) return false;
  using enum ir::UfKind;
  const auto is_inner = [](const ir::UfCall& call) {
    return call.uf.kind == internal_node || call.uf.kind == internal_batch_node ||
           call.uf.kind == internal_sequence_node;
  };
  if ((x->uf.kind == leaf_node && is_inner(*y)) || (y->uf.kind == leaf_node && is_inner(*x))) return true;
  if (x->uf.kind != part_node || y->uf.kind != part_node) return false;
  const bool same_variables = !a.inside && !b.inside;
  return schedule::are_other_parts(x->args[0], y->args[0], same_variables) ||
         schedule::are_other_parts(y->args[0], x->args[0], same_variables);
}

/// Whether `condition` is of `node` alone: the same for every worker, each time.
inline bool is_of_node(const ir::Expr& condition, const ir::Expr& node) {
  bool result = true;
  ir::visit_with(
      condition, [&](const ir::Var& var) { result &= &var == node.get(); },
      [&](const ir::Load& load) { result &= load.buffer->role == ir::Role::index; },
      [&](const ir::UfCall& call) {
        using enum ir::UfKind;
        result &= call.uf.kind != worker && call.uf.kind != num_workers && call.uf.kind != thread;
      });
  return result;
}

/// Whether what holds of `x` does not hold of `y` if they are one node.
inline bool exclude(const ir::Expr& of_x, const ir::Expr& x, const ir::Expr& of_y, const ir::Expr& y) {
  if (!of_x || !of_y) return false;
  for (const ir::Expr& a : schedule::conjuncts(of_x))
    for (const ir::Expr& b : schedule::conjuncts(of_y)) {
      if (!is_of_node(a, x) || !is_of_node(b, y)) continue;
      const ir::Expr of_one = ir::substitute(b, {{y.get(), x}});
      if (ir::equal(ir::negation(a), of_one)) return true;
    }
  return false;
}

/// Whether the accesses, each at a node that a variable stands for, are at different ones.
inline bool at_other_nodes(const SharedAccess& x, const SharedAccess& y) {
  if (x.access.indices.empty() || !(x.access.buffer->dims[0] == dims::node)) return false;
  const ir::Expr &a = x.access.indices[0], &b = y.access.indices[0];
  if (!a.as<ir::Var>() || !b.as<ir::Var>()) return false;
  return number_other_nodes(x, y) || exclude(x.guard, a, y.guard, b);
}

/// Whether two workers may meet at some element, where `x` comes before `y`. A node's state is written once, and before
/// anything reads it; where its row serves others later, see `rows_to_wait_for`.
inline bool may_meet(const SharedAccess& x, const SharedAccess& y) {
  if (!(x.access.buffer == y.access.buffer) || (!x.access.write && !y.access.write)) return false;
  if (x.access.buffer->role == ir::Role::state && (!x.access.write || y.access.write)) return false;
  return (x.doer.kind == Doer::anyone || x.doer != y.doer) && !at_other_nodes(x, y);
}

/// What the statements of a block are.
enum class In : std::uint8_t {
  straight,    // done once
  dependence,  // the body of the loop that carries the dependence: of an iteration's nodes, none is another's child
  batch,       // the body of a loop over single nodes of one batch
  several,     // the body of a loop in which nodes may be others' children, such as an unrolled one
};

/// Whether `node` is one of a single batch.
inline bool is_of_batch(const ir::Expr& node) {
  const auto* call = node.as<ir::UfCall>();
  using enum ir::UfKind;
  return call && (call->uf.kind == batch_node || call->uf.kind == internal_batch_node || call->uf.kind == part_node);
}

/// Whether all nodes of a loop's body are of one batch, the same throughout.
inline bool is_of_one_batch(const ir::Stmt& body) {
  Vector<ir::Expr> batches;
  bool one = true;
  ir::visit_with(body, [&](const ir::UfCall& call) {
    if (!is_of_batch(ir::handle_of(call))) return;
    batches.push_back(call.args[0]);
    one &= call.args.size() == 2 && ir::equal(call.args[0], batches[0]);
  });
  ir::visit_with(body, [&](const ir::For& loop) {
    for (const ir::Expr& batch : batches) one &= !ir::uses(batch, loop.var);
  });
  return one && !batches.empty();
}

/// Whether workers may meet on some element of the two lists. Within one iteration of the loop that carries the
/// dependence a child's state is not written.
inline bool meet(const Vector<SharedAccess>& a, const Vector<SharedAccess>& b, bool same_iteration) {
  for (const SharedAccess& x : a)
    for (const SharedAccess& y : b) {
      if (!may_meet(x, y)) continue;
      if (same_iteration && (schedule::reads_child_state(x.access) || schedule::reads_child_state(y.access))) continue;
      return true;
    }
  return false;
}

/// A temporary of the nodes of one batch, of which there can be a copy for every other batch.
inline bool is_of_batch(const ir::Buffer& buffer) {
  const DimKind rows = ir::kind_of_rows(*buffer);
  return buffer->role == ir::Role::temp && (rows == DimKind::batch || rows == DimKind::batch_edge);
}

/// Whether an access is at a node of the iteration that does it: another iteration's nodes are others.
inline bool at_own_node(const schedule::Access& access) {
  return !access.indices.empty() && access.buffer->dims[0] == dims::node && access.indices[0].as<ir::Var>();
}

/// The same for the end of an iteration and the beginning of the next, which a barrier inside the loop would part if
/// temporaries of one batch alone were concerned: then these are put into `alternating`. The children of an iteration's
/// nodes are written in no later one, and in no other one at all if all nodes are of one batch.
inline bool meet_next(const Vector<SharedAccess>& end, const Vector<SharedAccess>& begin, bool one_batch,
                      bool barrier_inside, Vector<ir::Buffer>& alternating) {
  Vector<ir::Buffer> found;
  for (const SharedAccess& x : end)
    for (const SharedAccess& y : begin) {
      if (!may_meet(x, y) || schedule::reads_child_state(x.access)) continue;
      if (one_batch && schedule::reads_child_state(y.access)) continue;
      if (at_own_node(x.access) && at_own_node(y.access)) continue;
      const bool laid_out = !x.access.buffer->layout.empty();  // by hand, for rows that have no second copy
      if (!barrier_inside || !is_of_batch(x.access.buffer) || laid_out) return true;
      found.push_back(x.access.buffer);
    }
  append(alternating, found);
  return false;
}

/// The statements of one block, looked at one after the other.
struct Sequence {
  In in;
  Vector<SharedAccess> head, since;  // before the first barrier, and after the last
  bool any = false, nests = true;    // whether there is a barrier, and nothing but nests

  /// Whether a barrier has to stand before what does `here`. `inside`: workers meet there in any case.
  bool parts(const Ends& here, bool inside) {
    const bool barrier = meet(since, here.head, in == In::dependence || in == In::batch);
    if (barrier || inside) since.clear();
    any |= barrier;
    append(since, here.tail);
    if (!any) append(head, here.head);
    any |= inside;
    return barrier;
  }
};

/// The statements with barriers between them. A variable's value is read where it is bound, and what is done with it
/// follows in the same block.
inline ir::Stmt with_barriers(const ir::Stmt& block, Sequence& sequence) {
  Vector<ir::Stmt> result;
  bool changed = false;
  for (const ir::Stmt& stmt : schedule::stmts_of(block)) {
    const auto* let = stmt.as<ir::LetStmt>();
    sequence.nests &= schedule::parse_nest(stmt).has_value();
    Ends here;
    if (let)
      here.head = here.tail = reads_of(let->value);
    else
      here = ends_of(stmt);
    if (sequence.parts(here, !let && always_meet(stmt))) result.push_back(ir::Barrier::make()), changed = true;
    const ir::Stmt inner = let ? with_barriers(let->body, sequence) : ir::Stmt();
    const bool same = !let || inner.same_as(let->body);
    result.push_back(same ? stmt : ir::LetStmt::make(let->var, let->value, inner));
    changed |= !same;
  }
  return changed ? ir::Block::make(result) : block;
}

/// The same, and a barrier at the end if it is a loop's body: then the accesses after its last barrier meet those of
/// the next iteration before its first.
inline ir::Stmt with_barriers(const ir::Stmt& block, In in, Vector<ir::Buffer>& alternating) {
  Sequence all{in, {}, {}};
  const ir::Stmt inside = with_barriers(block, all);
  const bool barrier = in != In::straight && meet_next(all.since, all.head, in == In::batch,
                                                       all.any && all.nests && in != In::several, alternating);
  return barrier ? ir::Block::make({inside, ir::Barrier::make()}) : inside;
}

/// The recycled states that workers do not each have a slice of for themselves throughout: whoever writes a row there
/// has to have met those who read what was in it.
inline PointerSet rows_to_wait_for(const ir::Stmt& body) {
  Vector<SharedAccess> met;
  PointerSet found;
  schedule::for_each_nest(body, [&](const schedule::Nest& nest) {
    for (const schedule::Access& access : schedule::accesses_of(nest.inner)) {
      if (!access.buffer->recycled) continue;
      const Doer doer = doer_of(nest, access);
      if (doer.kind == Doer::anyone) found.insert(access.buffer.id());
      for (const SharedAccess& other : met)
        if (other.access.buffer == access.buffer && other.doer != doer) found.insert(access.buffer.id());
      met.push_back({access, doer, {}, {}});
    }
  });
  return found;
}

inline bool writes_some(const ir::Stmt& body, const PointerSet& buffers) {
  bool found = false;
  ir::visit_with(body, [&](const ir::Store& store) { found |= buffers.contains(store.buffer.id()); });
  return found;
}

/// Temporaries with two copies of each row, of which the iterations of some loops take turns.
class Alternation {
 public:
  /// The iterations of `loop` take turns with the copies of `buffers`.
  void add(const ir::For& loop, const Vector<ir::Buffer>& buffers) {
    for (const ir::Buffer& buffer : buffers) {
      ir::BufferInfo info = *buffer;
      info.dims.insert(info.dims.begin() + 1, turn_);
      copies_.emplace(buffer.id(), ir::Buffer(std::move(info)));
      turns_[loop.var.get()].emplace(buffer.id(), loop.var % 2);
    }
  }

  /// The program with the copies. Loops that take no turns use the first. Only once all barriers stand: until then the
  /// loops that share a temporary must be seen to share it.
  ir::Stmt apply(const ir::Stmt& body) const { return copies_.empty() ? body : in_loop(body, {}); }

 private:
  using Turns = PointerMap<ir::Expr>;

  ir::Stmt in_loop(const ir::Stmt& body, const Turns& turns) const {
    const auto at_turn = [&](const ir::Buffer& buffer, Vector<ir::Expr> indices) -> ir::Place {
      const auto to = copies_.find(buffer.id());
      if (to == copies_.end()) return {};
      const auto turn = turns.find(buffer.id());
      indices.insert(indices.begin() + 1, turn == turns.end() ? ir::imm(0) : turn->second);
      return ir::Place{to->second, std::move(indices)};
    };
    return ir::with_places(body, at_turn, [&](auto& self, const ir::For& loop) -> ir::Stmt {
      const auto own = turns_.find(loop.var.get());
      if (own == turns_.end()) return self.children(loop);
      return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, in_loop(loop.body, own->second), loop.piece);
    });
  }

  const Dim turn_{"turn", 2};
  PointerMap<ir::Buffer> copies_;
  PointerMap<Turns> turns_;  // of each loop that takes turns
};

}  // namespace detail

inline ir::Stmt insert_barriers(const ir::Stmt& body) {
  using detail::In;
  detail::Alternation alternation;
  const PointerSet waited_for = detail::rows_to_wait_for(body);
  const auto in_loop = [&](auto& self, const ir::For& outer) -> ir::Stmt {
    if (outer.loop != ir::ForKind::serial || schedule::parse_nest(handle_of(outer))) return handle_of(outer);
    const ir::Stmt with_inner = self.children(outer);  // a loop over single nodes may stand in one over batches
    const ir::For& loop = *with_inner.as<ir::For>();
    const auto* let = loop.body.as<ir::LetStmt>();
    // A let that directly follows a loop over batches is a nest's.
    const bool own = let && loop.dim.kind() != DimKind::all_batches;
    const bool whole = loop.dim == dims::all_batches || loop.dim == dims::sequence;
    const bool subtree = own && schedule::is_top_of_group(let->value);  // its other nodes are children of the top
    const In in = own && detail::is_of_batch(let->value)                             ? In::batch
                  : !subtree && (own || whole || detail::is_of_one_batch(loop.body)) ? In::dependence
                                                                                     : In::several;
    Vector<ir::Buffer> alternating;
    ir::Stmt inner = detail::with_barriers(own ? let->body : loop.body, in, alternating);
    if (schedule::carries_recursion(loop) && detail::writes_some(inner, waited_for) && !detail::always_meet(inner))
      inner = ir::Block::make({inner, ir::Barrier::make()});
    if (inner.same_as(own ? let->body : loop.body)) return handle_of(loop);
    alternation.add(loop, alternating);
    if (own) inner = ir::LetStmt::make(let->var, let->value, inner);
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner, loop.piece);
  };
  // A condition or a local buffer is a nest's.
  const ir::Stmt inside = ir::mutate_with(
      body, in_loop, [](auto&, const ir::If& branch) -> ir::Stmt { return handle_of(branch); },
      [](auto&, const ir::Alloc& alloc) -> ir::Stmt { return handle_of(alloc); });
  Vector<ir::Buffer> none;
  return alternation.apply(detail::with_barriers(inside, In::straight, none));
}

}  // namespace cortex::pass
