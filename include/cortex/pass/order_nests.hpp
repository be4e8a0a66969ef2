// Puts small nests of a level that others of it wait for before larger ones that they have nothing to do with: on a
// GPU, threads that have no part of a small one go on with the large one before they meet.
//
//   for b: {for n: for i: for j: M[n,i,j] = ..; for n: for j: t[n,j] = ..; for n: for j: v[n,j] = .. t ..}
//     ->
//   for b: {for n: for j: t[n,j] = ..; for n: for i: for j: M[n,i,j] = ..; for n: for j: v[n,j] = .. t ..}
//
// Runs before work is shared and barriers stand. What is small is seen from the extents of a node's loops.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::pass {

namespace detail {

/// How many elements a nest has of each node; nothing where that is not known.
inline std::optional<std::int64_t> elements_of_node(const schedule::Nest& nest) {
  std::int64_t count = 1;
  for (const schedule::LoopHeader& loop : nest.loops) {
    const auto extent = ir::as_int(loop.extent);
    if (!extent) return {};
    count *= *extent;
  }
  return count;
}

/// Whether `second` may run before `first`, in the loop that carries the recursion, and should.
inline bool goes_first(const ir::Stmt& first, const ir::Stmt& second) {
  const auto a = schedule::parse_nest(first), b = schedule::parse_nest(second);
  if (!a || !b || !a->rows || !b->rows || !ir::equal(a->rows->extent, b->rows->extent)) return false;
  const auto large = elements_of_node(*a), small = elements_of_node(*b);
  return large && small && *small < *large &&
         schedule::dependence(schedule::accesses_of(first), schedule::accesses_of(second), true) ==
             schedule::Dependence::none;
}

/// Whether a later nest of the level depends on one.
inline bool is_waited_for(const Vector<ir::Stmt>& level, std::size_t nest) {
  bool waits = false;
  for (std::size_t later = nest + 1; later < level.size(); ++later)
    waits |= schedule::dependence(schedule::accesses_of(level[nest]), schedule::accesses_of(level[later]), true) !=
             schedule::Dependence::none;
  return waits;
}

}  // namespace detail

inline ir::Stmt order_nests(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& loop) -> ir::Stmt {
    if (!schedule::carries_recursion(loop)) return self.children(loop);
    Vector<ir::Stmt> stmts = schedule::stmts_of(loop.body);
    bool any = false;
    for (std::size_t i = 1; i < stmts.size(); ++i) {
      if (!detail::is_waited_for(stmts, i)) continue;
      for (std::size_t at = i; at > 0 && detail::goes_first(stmts[at - 1], stmts[at]); --at)
        std::swap(stmts[at - 1], stmts[at]), any = true;
    }
    if (!any) return self.children(loop);
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::Block::make(stmts), loop.piece);
  });
}

}  // namespace cortex::pass
