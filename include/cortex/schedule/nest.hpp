// A loop nest taken apart: the loop over rows (nodes or edges of a batch), the condition, the loops over the output's
// dimensions, and what is done for one element. Passes that move or merge nests work on this view.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::schedule {

struct LoopHeader {
  ir::Expr var;
  Dim dim;
  ir::Expr extent;
  ir::ForKind kind = ir::ForKind::serial;
  std::int64_t piece = 1;
};

/// `for row: let = value: if guard: for loops...: inner`; without `rows` there is no row loop and no let, and rows
/// whose node is not used have no let.
struct Nest {
  std::optional<LoopHeader> rows;
  ir::Expr let_var, let_value;
  ir::Expr guard;
  Vector<LoopHeader> loops;
  ir::Stmt inner;
  const ir::For* level = nullptr;  // the innermost loop around that carries the recursion, where a walk has found it
};

inline bool is_row_dim(const Dim& dim) { return dim == dims::batch || dim == dims::batch_edge; }

/// Whether a loop, or the loop that it is a part of, carries the dependence of nodes on their children.
inline bool carries_recursion(const ir::For& loop) {
  return loop.dim.kind() == DimKind::all_batches || loop.dim.kind() == DimKind::sequence;
}

/// Whether `stmt` is stores, of values that may have names: what fused nests without loops leave below their condition.
inline bool is_stores(const ir::Stmt& stmt) {
  if (const auto* let = stmt.as<ir::LetStmt>()) return is_stores(let->body);
  const auto* block = stmt.as<ir::Block>();
  return block ? all_of(block->stmts, is_stores) : stmt.as<ir::Store>() != nullptr;
}

/// The let that names the node of the loop's row. Null: nothing needs the node; what the loop then begins with may be a
/// value of the row's element that has a name.
inline const ir::LetStmt* node_let(const ir::For& loop) {
  const auto* let = loop.body.as<ir::LetStmt>();
  return let && !is_float(let->value.dtype()) ? let : nullptr;
}

/// Takes `stmt` apart, or nothing if it is no such nest (a loop that carries a dependence, a block, a barrier).
inline std::optional<Nest> parse_nest(ir::Stmt stmt) {
  Nest nest;
  if (const auto* loop = stmt.as<ir::For>(); loop && is_row_dim(loop->dim)) {
    const ir::LetStmt* let = node_let(*loop);
    nest.rows = LoopHeader{loop->var, loop->dim, loop->extent, loop->loop, loop->piece};
    if (let) nest.let_var = let->var, nest.let_value = let->value;
    stmt = let ? let->body : loop->body;
  }
  if (const auto* branch = stmt.as<ir::If>(); branch && !branch->else_body) {
    nest.guard = branch->condition;
    stmt = branch->then_body;
  }
  while (const auto* loop = stmt.as<ir::For>()) {
    const DimKind kind = loop->dim.kind();
    if (kind != DimKind::dense && kind != DimKind::child && kind != DimKind::slice) return {};
    nest.loops.push_back({loop->var, loop->dim, loop->extent, loop->loop, loop->piece});
    stmt = loop->body;
  }
  const bool inside = nest.rows || !nest.loops.empty();
  const bool element = stmt.as<ir::Store>() || stmt.as<ir::Alloc>() || (nest.guard && is_stores(stmt)) ||
                       (inside && (stmt.as<ir::Block>() || stmt.as<ir::LetStmt>()));
  if (!element) return {};
  nest.inner = stmt;
  return nest;
}

/// `header`'s loop around `body`.
inline ir::Stmt loop_around(const LoopHeader& header, ir::Stmt body) {
  return ir::For::make(header.var, header.dim, header.extent, header.kind, std::move(body), header.piece);
}

/// `body` for each of `count` values of `var`: a loop, unless there is one value.
inline ir::Stmt loop_if_several(const ir::Expr& var, const Dim& dim, int count, ir::ForKind kind,
                                const ir::Stmt& body) {
  if (count == 1) return ir::substitute(body, {{var.get(), ir::imm(0)}});
  return ir::For::make(var, dim, ir::imm(count), kind, body);
}

inline ir::Stmt build_nest(const Nest& nest) {
  ir::Stmt stmt = nest.inner;
  for (const auto& loop : reversed(nest.loops)) stmt = loop_around(loop, stmt);
  if (nest.guard) stmt = ir::If::make(nest.guard, stmt);
  if (nest.let_var) stmt = ir::LetStmt::make(nest.let_var, nest.let_value, stmt);
  if (nest.rows) stmt = loop_around(*nest.rows, stmt);
  return stmt;
}

/// Whether `stmt` contracts over a dense dimension: it accumulates into a local buffer in such a loop.
inline bool has_contraction(const ir::Stmt& stmt) {
  bool found = false;
  ir::visit_with(stmt, [&](const ir::Alloc& alloc) {
    ir::visit_with(alloc.body, [&](const ir::For& loop) {
      found |= loop.dim.kind() == DimKind::dense && loop.loop == ir::ForKind::serial;
    });
  });
  return found;
}

/// The statements of a block, or the statement itself.
inline Vector<ir::Stmt> stmts_of(const ir::Stmt& stmt) {
  if (const auto* block = stmt.as<ir::Block>()) return block->stmts;
  return {stmt};
}

/// Whether `loop` goes through the children of a node, and for each through nothing but contractions.
inline bool contracts_each_child(const ir::For& loop) {
  return loop.dim.kind() == DimKind::child && all_of(stmts_of(loop.body), [](const ir::Stmt& s) {
           const auto* inner = s.as<ir::For>();
           return inner && (inner->dim.kind() == DimKind::dense || contracts_each_child(*inner));
         });
}

/// Whether the workers share some loop of the nest already, or a part of what it does.
inline bool has_shared_loop(const Nest& nest) {
  bool shared = nest.rows && nest.rows->kind == ir::ForKind::parallel;
  for (const LoopHeader& loop : nest.loops) shared |= loop.kind == ir::ForKind::parallel;
  ir::visit_with(nest.inner, [&](const ir::For& loop) { shared |= loop.loop == ir::ForKind::parallel; });
  return shared;
}

/// The conditions that all hold where `condition` does.
inline Vector<ir::Expr> conjuncts(const ir::Expr& condition) {
  const auto* both = condition.as<ir::Binary>();
  if (!both || both->op != ir::BinaryOp::logical_and) return {condition};
  Vector<ir::Expr> all = conjuncts(both->a);
  append(all, conjuncts(both->b));
  return all;
}

/// Whether the nest's condition is on which worker runs it.
inline bool is_one_workers(const Nest& nest) {
  bool found = false;
  if (nest.guard)
    ir::visit_with(nest.guard, [&](const ir::UfCall& call) { found |= call.uf.kind == ir::UfKind::worker; });
  return found;
}

/// Whether each worker runs iterations of `stmt` whole, and with it the nests inside.
inline bool is_shared_whole(const ir::Stmt& stmt) {
  const auto* loop = stmt.as<ir::For>();
  return loop && loop->loop == ir::ForKind::parallel && (loop->dim == dims::sequence || !parse_nest(stmt));
}

/// Whether nests that stand in a loop that workers share whole are meant too.
enum class SharedWhole : std::uint8_t { too, not_those };

/// The compiler's own schedule makes nothing but nests; a loop schedule by hand can make other things.
[[noreturn]] inline void refuse_outside() {
  throw Error(Code::invalid_schedule,
              "a statement outside of any nest: what works on whole nests comes before what takes them apart");
}

/// Calls `f` on each nest of `body`, in order; `level` is the loop around `body` that carries the recursion, if any.
inline void for_each_nest(const ir::Stmt& body, FunctionRef<void(const Nest&)> f, SharedWhole inside = SharedWhole::too,
                          const ir::For* level = nullptr) {
  if (inside == SharedWhole::not_those && is_shared_whole(body)) return;
  if (auto nest = parse_nest(body)) {
    nest->level = level;
    return f(*nest);
  }
  if (const auto* block = body.as<ir::Block>())
    for (const ir::Stmt& s : block->stmts) for_each_nest(s, f, inside, level);
  else if (const auto* loop = body.as<ir::For>())
    for_each_nest(loop->body, f, inside, carries_recursion(*loop) ? loop : level);
  else if (const auto* let = body.as<ir::LetStmt>())
    for_each_nest(let->body, f, inside, level);
  else if (!body.as<ir::Barrier>())
    refuse_outside();
}

/// `body` with each nest replaced by what `f` makes of it; an empty statement leaves the nest as it is. `level` as
/// above.
inline ir::Stmt map_nests(const ir::Stmt& body, FunctionRef<ir::Stmt(const Nest&)> f,
                          SharedWhole inside = SharedWhole::too, const ir::For* level = nullptr) {
  if (inside == SharedWhole::not_those && is_shared_whole(body)) return body;
  if (auto nest = parse_nest(body)) {
    nest->level = level;
    const ir::Stmt mapped = f(*nest);
    return mapped ? mapped : body;
  }
  if (const auto* block = body.as<ir::Block>()) {
    Vector<ir::Stmt> stmts;
    bool changed = false;
    for (const ir::Stmt& s : block->stmts) {
      stmts.push_back(map_nests(s, f, inside, level));
      changed |= !stmts.back().same_as(s);
    }
    return changed ? ir::Block::make(stmts) : body;
  }
  if (const auto* loop = body.as<ir::For>()) {
    const ir::Stmt inner = map_nests(loop->body, f, inside, carries_recursion(*loop) ? loop : level);
    if (inner.same_as(loop->body)) return body;
    return ir::For::make(loop->var, loop->dim, loop->extent, loop->loop, inner, loop->piece);
  }
  if (const auto* let = body.as<ir::LetStmt>()) {
    const ir::Stmt inner = map_nests(let->body, f, inside, level);
    return inner.same_as(let->body) ? body : ir::LetStmt::make(let->var, let->value, inner);
  }
  if (!body.as<ir::Barrier>()) refuse_outside();
  return body;
}

}  // namespace cortex::schedule
