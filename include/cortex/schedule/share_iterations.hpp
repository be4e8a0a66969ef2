// Gives each worker its iterations of the loops that workers share.
//
//   parallel for i = 0:n: f(i)   ->   for i = 0:n*(w+1)/W - n*w/W: f(n*w/W + i)      for worker w of W
//
// A loop over a whole dense dimension is cut between vectors, and the last worker has the rest: its slices are then
// those of tiles (`tile_nests`), and a worker finds what it has written itself wherever it looks. Loops in pieces are
// cut between pieces. Runs when loops are no longer looked at as shared: after barriers stand.
#pragma once

#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

/// The iterations that are one worker's.
struct Share {
  ir::Expr begin, end;
};

/// The share of the worker that runs, of a loop cut between units; the last worker has the rest. All that workers share
/// is cut so: barriers are left out where a worker finds its own.
inline Share share_of(const ir::Expr& extent, std::int64_t unit, const ir::Expr& workers = ir::num_workers()) {
  const ir::Expr worker = ir::worker(), next = worker + 1, units = extent / unit;
  return {worker * units / workers * unit, next * units / workers * unit + next / workers * (extent - units * unit)};
}

/// `vector`: how many elements of f32 a vector of the target has.
inline ir::Stmt share_iterations(const ir::Stmt& body, std::int64_t vector) {
  return ir::mutate_with(body, [vector](auto& self, const ir::For& loop) -> ir::Stmt {
    if (loop.loop != ir::ForKind::parallel) return self.children(loop);
    const bool whole = loop.dim.kind() == DimKind::dense && ir::as_int(loop.extent) == loop.dim.extent();
    const std::int64_t unit = whole && loop.piece == 1 ? vector : loop.piece;
    const Share own = share_of(loop.extent, unit);
    const ir::Expr var = ir::Var::make(loop.var.as<ir::Var>()->name);
    return ir::For::make(var, loop.dim, own.end - own.begin, ir::ForKind::serial,
                         self(ir::substitute(loop.body, {{loop.var.get(), own.begin + var}})));
  });
}

}  // namespace cortex::schedule
