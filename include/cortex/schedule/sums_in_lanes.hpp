// Sums, products and extremes over what a node has, in the lanes of vectors.
//
//   for r = 0:256: a = max(a, x[n,r])
//     ->
//   vectorized for l = 0:16: p[l] = -inf
//   for o = 0:16: vectorized for l = 0:16: p[l] = max(p[l], x[n,16 * o + l])
//   vectorized for l = 0:8: p[l] = max(p[l], p[l + 8])    # and so on by halves
//   a = max(a, p[0])
//
// For nests with one result a node, as a norm or a score is, or fewer than a vector: there are no vectors of results.
// Only shapes decide, so that a node's bits depend neither on the batch nor on the workers. Paper section 5, rfactor.
#pragma once

#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/schedule/pack_weights.hpp"
#include "cortex/schedule/rfactor.hpp"

namespace cortex::schedule {

namespace detail {

/// Whether the elements of a tensor's last dimension lie side by side.
inline bool is_side_by_side(const ir::Buffer& buffer) {
  if (buffer->layout.empty()) return true;
  const int last = int(buffer->dims.size()) - 1;
  int axes = 0;
  bool plain = true;
  for (const ir::Axis& axis : buffer->layout.axes)
    if (axis.source == last) ++axes, plain = axis.divisor == 1 && axis.modulus == 0 && axis.stride == 1;
  return axes == 1 && plain;
}

/// Whether `index` goes up by one with `var`.
inline bool ascends_with(const ir::Expr& index, const ir::Expr& var) {
  if (index.same_as(var)) return true;
  const auto* sum = index.as<ir::Binary>();
  return sum && sum->op == ir::BinaryOp::add &&
         ((ascends_with(sum->a, var) && !ir::uses(sum->b, var)) ||
          (ascends_with(sum->b, var) && !ir::uses(sum->a, var)));
}

}  // namespace detail

/// Whether the values of `e` for neighbouring `var` are read as vectors.
inline bool is_read_in_lanes(const ir::Expr& e, const ir::Expr& var) {
  bool in_lanes = true;
  const auto add = [&](bool fits) { in_lanes &= fits; };
  ir::visit_with(
      e,
      [&](const ir::Load& load) {
        for (std::size_t d = 0; d < load.indices.size(); ++d) {
          const bool last = d + 1 == load.indices.size();
          add(!ir::uses(load.indices[d], var) ||
              (last && detail::ascends_with(load.indices[d], var) && detail::is_side_by_side(load.buffer)));
        }
      },
      [&](const ir::UfCall& call) { add(!ir::uses(ir::handle_of(call), var)); }, [&](const ir::Let&) { add(false); });
  return in_lanes;
}

namespace detail {

/// Loops, each all that the one around does, of which the innermost reduces into numbers.
class LanesOfReduction {
 public:
  explicit LanesOfReduction(const ir::For& outermost, const Target& target) : loops_{&outermost} {
    while (const auto* next = loops_.back()->body.as<ir::For>()) loops_.push_back(next);
    const ir::For& loop = *loops_.back();
    std::string why;
    steps_ = reduction_steps(loop, why);
    if (steps_.empty()) return;
    lanes_ = lanes_of(target, steps_[0].store->buffer->dtype);
    const bool plain =
        all_of(loops_, [](const ir::For* l) { return l->loop == ir::ForKind::serial && ir::as_int(l->extent); }) &&
        loop.dim.kind() == DimKind::dense && *ir::as_int(loop.extent) >= 2 * lanes_ && lanes_ > 1;
    fits_ = plain && all_of(steps_, [&](const ReductionStep& step) {
              return step.store->indices.empty() && step.store->buffer->dtype == steps_[0].store->buffer->dtype &&
                     step.store->buffer->lanes == 1 && is_read_in_lanes(step.value, loop.var);
            });
  }

  bool fits() const { return fits_; }
  ir::Stmt in_lanes() const {
    const InParts parts = in_parts(*loops_.back(), steps_, lanes_, ir::ForKind::vectorized);
    ir::Stmt work = ir::Block::make(parts.loops);
    for (std::size_t i = loops_.size() - 1; i-- > 0;) {
      const ir::For& loop = *loops_[i];
      work = ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, work, loop.piece);
    }
    Vector<ir::Stmt> stmts{parts.clear, work};
    append(stmts, parts.combine);
    return ir::with_allocs(parts.buffers, ir::Block::make(stmts));
  }

 private:
  Vector<const ir::For*> loops_;
  Vector<ReductionStep> steps_;
  int lanes_ = 1;
  bool fits_ = false;
};

}  // namespace detail

/// A statement whose reductions into numbers are in lanes, where that fits.
struct SumsInLanes {
  ir::Stmt body;
  int some = 0, others = 0;  // reductions that are in lanes, and over other dense dimensions
};
inline SumsInLanes sums_in_lanes(const ir::Stmt& body, const Target& target) {
  SumsInLanes result;
  result.body = ir::mutate_with(body, [&](auto& self, const ir::For& loop) -> ir::Stmt {
    if (loop.loop == ir::ForKind::vectorized) return handle_of(loop);
    const detail::LanesOfReduction reduction(loop, target);
    ++(reduction.fits() ? result.some : result.others);
    return reduction.fits() ? reduction.in_lanes() : self.children(loop);
  });
  return result;
}

}  // namespace cortex::schedule
