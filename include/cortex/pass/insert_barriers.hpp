// Puts a barrier wherever one worker reads or writes what another wrote or read: in the loop that carries the
// dependence, and nowhere deeper (paper appendix A.4, I12).
//
//   for b: for n: parallel for i: h[n,i] = ... h[child(n),j] ...
//     ->
//   for b: {for n: parallel for i: h[n,i] = ... h[child(n),j] ...; barrier}
//
// Runs on nests whose parallel loops are marked (`share_work`) and not yet tiled. Two accesses need no barrier between
// them if both are at the worker's own slice of the same dimension.
#pragma once

#include <vector>

#include "cortex/base/vectors.hpp"
#include "cortex/schedule/share_work.hpp"

namespace cortex::pass {

namespace detail {

/// An access, and whether it stays in the slice of the worker that does it.
struct SharedAccess {
  schedule::Access access;
  const void* slice = nullptr;  // the dimension whose slice it stays in
};

inline std::vector<SharedAccess> shared_accesses(const ir::Stmt& stmt) {
  std::vector<SharedAccess> result;
  schedule::for_each_nest(stmt, [&](const schedule::Nest& nest) {
    const bool sliced = !nest.loops.empty() && nest.loops.back().kind == ir::ForKind::parallel;
    for (const schedule::Access& access : schedule::accesses_of(nest.inner)) {
      if (access.buffer->scope == ir::Scope::worker) continue;
      const bool own = sliced && !access.indices.empty() && access.indices.back().same_as(nest.loops.back().var);
      result.push_back({access, own ? nest.loops.back().dim.id() : nullptr});
    }
  });
  return result;
}

/// Whether workers may meet on some element of the two lists. Within one iteration of the loop that carries the
/// dependence a child's state is not written.
inline bool meet(const std::vector<SharedAccess>& a, const std::vector<SharedAccess>& b, bool same_iteration) {
  for (const SharedAccess& x : a)
    for (const SharedAccess& y : b) {
      if (!(x.access.buffer == y.access.buffer) || (!x.access.write && !y.access.write)) continue;
      if (x.slice && x.slice == y.slice) continue;
      if (same_iteration && (schedule::reads_child_state(x.access) || schedule::reads_child_state(y.access))) continue;
      return true;
    }
  return false;
}

/// The statements of one block with barriers between them, and at the end if `carries`: the block is then a loop's
/// body, and the accesses after its last barrier meet those of the next iteration before its first.
inline std::vector<ir::Stmt> with_barriers(const std::vector<ir::Stmt>& stmts, bool carries) {
  std::vector<ir::Stmt> result;
  std::vector<SharedAccess> head, since;
  bool any = false;
  for (const ir::Stmt& stmt : stmts) {
    const auto here = shared_accesses(stmt);
    if (meet(since, here, carries)) {
      result.push_back(ir::Barrier::make());
      since.clear();
      any = true;
    }
    result.push_back(stmt);
    append(since, here);
    if (!any) head = since;
  }
  if (carries && meet(since, head, false)) result.push_back(ir::Barrier::make());
  return result;
}

}  // namespace detail

inline ir::Stmt insert_barriers(const ir::Stmt& body) {
  const auto between = [](const ir::Stmt& block, bool carries) {
    const std::vector<ir::Stmt> before = schedule::stmts_of(block), after = detail::with_barriers(before, carries);
    return after.size() == before.size() ? block : ir::Block::make(after);
  };
  const ir::Stmt inside = ir::mutate_with(body, [&](auto& self, const ir::For& outer) -> ir::Stmt {
    if (!(outer.dim == dims::all_batches || outer.dim == dims::sequence)) return handle_of(outer);
    if (schedule::is_shared_whole(handle_of(outer))) return handle_of(outer);
    const ir::Stmt with_inner = self.children(outer);  // a loop over single nodes may stand in one over batches
    const ir::For& loop = *with_inner.as<ir::For>();
    const auto* let = loop.body.as<ir::LetStmt>();
    const bool own = let && loop.dim == dims::sequence;  // a let that directly follows a loop over batches is a nest's
    ir::Stmt inner = between(own ? let->body : loop.body, true);
    if (inner.same_as(own ? let->body : loop.body)) return handle_of(loop);
    if (own) inner = ir::LetStmt::make(let->var, let->value, inner);
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner);
  });
  return between(inside, false);
}

}  // namespace cortex::pass
