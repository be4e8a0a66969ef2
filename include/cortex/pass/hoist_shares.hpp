// Computes where a worker's slices begin and end once a call, and not at each tile: divisions take longer than a row of
// a small tile.
//
//   for t = 0:tiles: for o = 0:(worker + 1) / num_workers - worker / num_workers: f(worker / num_workers + o)
//     ->
//   share = (worker + 1) / num_workers; share.2 = worker / num_workers
//   for t = 0:tiles: for o = 0:share - share.2: f(share.2 + o)
//
// Runs when loops are no longer looked at as shared.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex::pass {

namespace detail {

/// Whether `e` is made of which worker runs, how many there are, and constants.
inline bool is_of_workers_alone(const ir::Expr& e) {
  if (e.as<ir::IntImm>()) return true;
  if (const auto* binary = e.as<ir::Binary>()) return is_of_workers_alone(binary->a) && is_of_workers_alone(binary->b);
  const auto* call = e.as<ir::UfCall>();
  return call && (call->uf.kind == ir::UfKind::worker || call->uf.kind == ir::UfKind::num_workers);
}

}  // namespace detail

inline ir::Stmt hoist_shares(const ir::Stmt& body) {
  Vector<std::pair<ir::Expr, ir::Expr>> shares;
  const auto once = [&](const ir::Expr& share) {
    for (const auto& [var, value] : shares)
      if (ir::equal(value, share)) return var;
    return shares.emplace_back(ir::Var::make("share", share.type()), share).first;
  };
  const ir::Stmt rest = ir::mutate_with(body, [&](auto& self, const ir::Binary& n) -> ir::Expr {
    const bool divides = n.op == ir::BinaryOp::div || n.op == ir::BinaryOp::mod;
    const ir::Expr e = handle_of(n);
    return divides && detail::is_of_workers_alone(e) ? once(e) : self.children(n);
  });
  return ir::with_lets(shares, rest);
}

}  // namespace cortex::pass
