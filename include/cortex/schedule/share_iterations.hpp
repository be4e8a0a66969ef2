// Gives each worker its iterations of the loops that workers share.
//
//   parallel for i = 0:n: f(i)   ->   for i = 0:n*(w+1)/W - n*w/W: f(n*w/W + i)      for worker w of W
//
// Loops in pieces are cut between pieces. Runs when loops are no longer looked at as shared: after barriers stand.
#pragma once

#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

inline ir::Stmt share_iterations(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& loop) -> ir::Stmt {
    if (loop.loop != ir::ForKind::parallel) return self.children(loop);
    const ir::Expr worker = ir::call(ir::UfKind::worker, "worker"),
                   workers = ir::call(ir::UfKind::num_workers, "num_workers"), pieces = loop.extent / loop.piece;
    const ir::Expr begin = worker * pieces / workers * loop.piece, end = (worker + 1) * pieces / workers * loop.piece;
    const ir::Expr var = ir::Var::make(loop.var.as<ir::Var>()->name);
    return ir::For::make(var, loop.dim, end - begin, ir::ForKind::serial,
                         self(ir::substitute(loop.body, {{loop.var.get(), begin + var}})));
  });
}

}  // namespace cortex::schedule
