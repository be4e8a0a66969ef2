// Has a worker go through its panels of packed weights backwards in every other sweep: what one sweep read last, and
// the cache still holds, the next reads first. Panels do not depend on each other, so results stay the same bits.
//
//   for b_idx: for t: for o = 0:n:        ->   for b_idx: for t: for o = 0:n:
//     .. W_packed[o * 16 + lane,r] ..            o.a = select((b_idx + t) % 2 == 1,n - 1 - o,o)
//                                                .. W_packed[o.a * 16 + lane,r] ..
//
// For weights that are more than the second-level cache keeps, which drops what was read longest ago: sweeps that all
// begin at the front find little of them there. Runs when nests are tiled.
#pragma once

#include <algorithm>

#include "cortex/ra/schedule.hpp"
#include "cortex/schedule/independence.hpp"
#include "cortex/schedule/machine_model.hpp"
#include "cortex/schedule/pack_weights.hpp"

namespace cortex::schedule {

namespace detail {

/// Whether iterations of the loop read packed weights each of its own, and may run in any order.
inline bool sweeps_over_panels(const ir::For& loop) {
  bool sums = false, panels = false;
  ir::visit_with(
      loop.body, [&](const ir::For&) { sums = true; },
      [&](const ir::Load& load) {
        for (const ir::Expr& index : load.indices) panels |= load.buffer->packed_from && ir::uses(index, loop.var);
      });
  return sums && panels && loop.loop == ir::ForKind::serial && !carried_by(loop);
}

/// `loop`, backwards where `count` is odd.
inline ir::Stmt there_and_back(const ir::For& loop, const ir::Expr& count) {
  const ir::Expr at = ir::Var::make(name_of(loop) + ".a", loop.var.type()),
                 odd = ir::binary(ir::BinaryOp::eq, count % 2, ir::imm(1)),
                 index = ir::Select::make(odd, loop.extent - 1 - loop.var, loop.var);
  return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop,
                       ir::LetStmt::make(at, index, ir::substitute(loop.body, {{loop.var.get(), at}})), loop.piece);
}

/// Whether a worker's slice of some level's weights is more than the cache keeps from one sweep to the next. Where the
/// compiler divides calls, that is all of them: a group may be one worker.
inline bool overflows(const ir::Stmt& body, const Schedule& schedule, double cache) {
  const int workers = schedule.num_groups == 0 ? 1 : std::max(schedule.max_workers / schedule.num_groups, 1);
  bool result = false;
  ir::visit_with(body, [&](const ir::For& loop) {
    result |= carries_recursion(loop) && packed_bytes(loop.body) > share_kept * cache * workers;
  });
  return result;
}

}  // namespace detail

/// `second_cache`: of a core, in bytes.
inline ir::Stmt alternate_sweeps(const ir::Stmt& body, const Schedule& schedule, double second_cache) {
  using enum Tiling::Sweeps;
  const Tiling::Sweeps asked = schedule.tiling.sweeps;
  if (asked == forward) return body;
  if (asked == where_it_pays && !detail::overflows(body, schedule, second_cache)) return body;
  ir::Expr count;  // of the sweeps before, up to an even number
  return ir::mutate_with(body, [&](auto& self, const ir::For& loop) -> ir::Stmt {
    if (count && detail::sweeps_over_panels(loop)) return detail::there_and_back(loop, count);
    const ir::Expr before = count;
    if (carries_recursion(loop) || is_row_dim(loop.dim)) count = count ? count + loop.var : loop.var;
    const ir::Stmt inner = self.children(loop);
    count = before;
    return inner;
  });
}

/// Whether `alternate_sweeps` has changed the program.
inline bool alternates(const ir::Stmt& body) {
  bool result = false;
  ir::visit_with(body, [&](const ir::For& loop) {
    const auto* let = loop.body.as<ir::LetStmt>();
    const auto* choice = let ? let->value.as<ir::Select>() : nullptr;
    result |= choice && choice->else_value.same_as(loop.var);
  });
  return result;
}

}  // namespace cortex::schedule
