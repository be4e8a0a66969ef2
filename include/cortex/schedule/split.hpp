// Splitting loops: by a constant factor with the remainder apart, and a loop of variable extent into even tiles, each
// of whose sizes gets code of its own.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/schedule/unroll_and_jam.hpp"

namespace cortex::schedule {

/// `for x in [0, extent)` as tiles of `factor` followed by the rest one by one:
///
///   for o = 0:extent/factor: tile(o * factor)
///   for o = 0:extent%factor: single(extent/factor*factor + o)
///
/// A rest that is known to be empty is left out; one of known size is given to `rest` whole (peeling, I11): from its
/// first index, so many. One of unknown size, of a factor that is a power of two, is done in halves: if there are
/// factor/2 or more, these, then factor/4, and so on. `tile` is from the tile's first index, `single` for one index.
/// `multiple`: a number that the extent is known to be a multiple of, so that some rests are empty.
inline ir::Stmt split(const ir::Expr& extent, int factor, const Dim& dim, FunctionRef<ir::Stmt(ir::Expr)> tile,
                      FunctionRef<ir::Stmt(ir::Expr)> single, FunctionRef<ir::Stmt(ir::Expr, int)> rest,
                      int multiple = 1) {
  const auto loop = [&](const ir::Expr& count, const auto& body) -> ir::Stmt {
    if (ir::as_int(count) == 0) return ir::nothing();
    if (ir::as_int(count) == 1) return body(ir::imm(0));
    const ir::Expr var = ir::Var::make("o");
    return ir::For::make(var, dim, count, ir::ForKind::serial, body(var));
  };
  const ir::Expr tiles = extent / factor, left = extent % factor;
  const ir::Stmt main = loop(tiles, [&](const ir::Expr& o) { return tile(o * factor); });
  if (const auto known = ir::as_int(left))
    return *known ? ir::Block::make({main, rest(tiles * factor, int(*known))}) : main;
  if (multiple % factor == 0) return main;
  if ((factor & (factor - 1)) != 0)
    return ir::Block::make({main, loop(left, [&](const ir::Expr& o) { return single(tiles * factor + o); })});
  Vector<ir::Stmt> stmts{main};
  for (int half = factor / 2; half >= 1; half /= 2) {
    if (multiple % (2 * half) == 0) break;
    const ir::Expr twice = ir::imm(2 * half), first = extent / twice * twice;
    stmts.push_back(ir::If::make(ir::binary(ir::BinaryOp::ge, extent % twice, ir::imm(half)),
                                 half == 1 ? single(first) : rest(first, half)));
  }
  return ir::Block::make(stmts);
}

/// A loop over `extent` rows as the fewest tiles of at most `usual` rows, of sizes that differ by at most one; but one
/// tile of up to `most`, which is less than twice as many, where that holds all:
///
///   tiles = extent <= most ? 1 : ceil(extent / usual)
///   for t = 0:tiles: base = ...; rows = ...; body(base,rows)
inline ir::Stmt even_tiles(const ir::Expr& extent, int most, int usual, const Dim& dim,
                           FunctionRef<ir::Stmt(ir::Expr, ir::Expr)> body) {
  ir::require(usual <= most && most < 2 * usual, "tiles that are usually of other sizes than they may be");
  const auto var = [](const char* name) { return ir::Var::make(name); };
  const ir::Expr t = var("t"), total = var("rows_total"), tiles = var("tiles"), base = var("base"), rows = var("rows");
  const ir::Stmt work = body(base, rows);
  const ir::Expr each = total / tiles, longer = total % tiles;
  const ir::Expr one_more =
      ir::binary(ir::BinaryOp::min, ir::imm(1), ir::binary(ir::BinaryOp::max, ir::imm(0), longer - t));
  const ir::Stmt tile = ir::LetStmt::make(base, t * each + ir::binary(ir::BinaryOp::min, t, longer),
                                          ir::LetStmt::make(rows, each + one_more, work));
  const ir::Stmt loop = ir::For::make(t, dim, tiles, ir::ForKind::serial, tile);
  ir::Expr count = (total + (usual - 1)) / usual;
  if (usual < most)  // arithmetic that `pass/intervals.hpp` knows: from most + 1 on the other side is at least as many
    count = ir::binary(ir::BinaryOp::min, count, ir::binary(ir::BinaryOp::max, ir::imm(1), total - (most - 1)));
  return ir::LetStmt::make(total, extent, ir::LetStmt::make(tiles, count, loop));
}

/// The same with code of its own for each number of rows:
///
///   if rows == 1: body(base,1) else if rows == 2: body(base,2) ...
inline ir::Stmt split_evenly(const ir::Expr& extent, int most, int usual, const Dim& dim,
                             FunctionRef<ir::Stmt(ir::Expr, int)> body) {
  return even_tiles(extent, most, usual, dim, [&](const ir::Expr& base, const ir::Expr& rows) {
    ir::Stmt cases = body(base, most);
    for (int count = most - 1; count >= 1; --count)
      cases = ir::If::make(ir::binary(ir::BinaryOp::eq, rows, ir::imm(count)), body(base, count), cases);
    return cases;
  });
}

}  // namespace cortex::schedule
