// The primitives that reshape one loop or a nest of loops (paper section 5, I7, I11). Each is a pure function on a
// program with unique names, keeps what it computes, and refuses with a sentence what would not.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/schedule/independence.hpp"
#include "cortex/schedule/unroll_and_jam.hpp"

namespace cortex::schedule {

/// What is done with the iterations that fill no tile.
enum class Rest : std::uint8_t { loop, cases, guard };

namespace detail {

inline void need_serial(const ir::For& loop) {
  if (loop.loop == ir::ForKind::threads) refuse("loop '" + name_of(loop) + "' is shared by threads already");
  if (loop.loop != ir::ForKind::serial) refuse("loop '" + name_of(loop) + "' is parallel or vectorized already");
}
/// Loops count in 32 bits, with room for a last tile that is not full.
inline void need_factor(std::int64_t factor, std::int64_t least = 1, std::int64_t most = 1 << 16) {
  if (factor < least || factor > most)
    refuse("the factor is " + std::to_string(factor) + "; it has to be from " + std::to_string(least) + " to " +
           std::to_string(most));
}

/// The most copies of a loop's body that are worth their code, side by side in a vector's lanes, too.
inline constexpr std::int64_t most_copies = 64;

/// The constant extent of a loop of which there are to be copies, `least` or more.
inline std::int64_t need_copies(const ir::For& loop, std::int64_t least) {
  const auto extent = ir::as_int(loop.extent);
  if (!extent || *extent < least || *extent > most_copies)
    refuse("the extent of loop '" + name_of(loop) + "' is no constant " +
           (least > 0 ? "from " + std::to_string(least) + " to " : "up to ") + std::to_string(most_copies) +
           "; split it");
  return *extent;
}

inline void need_independent(const ir::For& loop) {
  if (const ir::Buffer through = carried_by(loop))
    refuse("iterations of '" + name_of(loop) + "' depend on each other through '" + through->name + "'");
}

/// Workers meet at barriers, which therefore stand under no condition.
inline void need_no_barrier(const ir::For& loop) {
  ir::visit_with(loop.body, [&](const ir::Barrier&) { refuse("there is a barrier in loop '" + name_of(loop) + "'"); });
}

inline ir::Stmt at(const ir::Stmt& body, const ir::Expr& var, const ir::Expr& value) {
  return ir::substitute(body, {{var.get(), value}});
}

/// The dimension of a part of `loop`, or of it and another: what asks for all rows of a batch finds none in a part.
inline Dim part_dim(const ir::For& loop) {
  return loop.dim.kind() == DimKind::dense ? loop.dim : Dim(loop.dim.name(), 0, loop.dim.kind());
}

/// `loop` over `extent` iterations from `begin` on, under another name.
inline ir::Stmt part_of(const ir::For& loop, const std::string& suffix, const ir::Expr& begin, const ir::Expr& extent,
                        const ir::Stmt& body) {
  const ir::Expr var = ir::Var::make(name_of(loop) + suffix, loop.var.type());
  return ir::For::make(var, part_dim(loop), extent, ir::ForKind::serial, at(body, loop.var, begin + var));
}

/// What a loop does, after the lets that it begins with: these say which node is at work.
inline ir::Stmt work_of(const ir::For& loop) {
  ir::Stmt work = loop.body;
  while (const auto* let = work.as<ir::LetStmt>()) work = let->body;
  return work;
}

/// `work` after the lets that `loop` begins with.
inline ir::Stmt with_lets_of(const ir::For& loop, const ir::Stmt& work) {
  Vector<const ir::LetStmt*> lets;
  for (const auto* let = loop.body.as<ir::LetStmt>(); let; let = let->body.as<ir::LetStmt>()) lets.push_back(let);
  return ir::with_lets(lets, work);
}

/// The `left` < `factor` iterations from `begin` on, each number of them apart, so that the loop's extent is constant.
inline ir::Stmt cases_of(const ir::For& loop, const ir::Expr& begin, const ir::Expr& left, std::int64_t factor) {
  ir::Stmt cases;
  for (std::int64_t count = factor - 1; count >= 1; --count) {
    const std::string suffix = ".r" + std::to_string(count);
    const ir::Stmt exactly = part_of(loop, suffix, begin, ir::imm(count), copy_of(loop.body, suffix));
    cases = ir::If::make(ir::binary(ir::BinaryOp::eq, left, ir::imm(count)), exactly, cases);
  }
  return cases;
}

}  // namespace detail

/// A loop as tiles of `factor` iterations, in two loops, and the rest peeled into a third:
///
///   for i = 0:n: f(i)   ->   for i.o = 0:n/16: for i.i = 0:16: f(i.o * 16 + i.i)
///                            for i.r = 0:n%16: f(n / 16 * 16 + i.r)
///
/// There is no rest where the factor divides a constant extent. `cases`: each size of the rest has a loop of its own of
/// constant extent. `guard`: no rest, but a last tile whose iterations beyond the end are left out by a condition.
inline ir::Stmt split_loop(const ir::Stmt& body, const std::string& name, std::int64_t factor, Rest kind = Rest::loop) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  detail::need_factor(factor);
  const ir::Expr outer = ir::Var::make(name + ".o", loop.var.type()),
                 inner = ir::Var::make(name + ".i", loop.var.type());
  const ir::Expr index = outer * factor + inner, left = loop.extent % factor;
  if (kind == Rest::cases && !ir::as_int(left)) detail::need_factor(factor, 1, detail::most_copies);
  const bool guard = kind == Rest::guard && ir::as_int(left) != 0;
  if (guard || (kind == Rest::cases && !ir::as_int(left))) detail::need_no_barrier(loop);
  ir::Stmt each = detail::at(loop.body, loop.var, index);
  if (guard) each = ir::If::make(ir::binary(ir::BinaryOp::lt, index, loop.extent), each);
  const ir::Expr tiles = guard ? (loop.extent + (factor - 1)) / factor : loop.extent / factor;
  const ir::Stmt tile = ir::For::make(inner, detail::part_dim(loop), ir::IntImm::make(factor, loop.var.dtype()),
                                      ir::ForKind::serial, each);
  Vector<ir::Stmt> stmts;
  if (ir::as_int(tiles) != 0)
    stmts.push_back(ir::For::make(outer, detail::part_dim(loop), tiles, ir::ForKind::serial, tile));
  if (!guard && ir::as_int(left) != 0) {
    const ir::Expr begin = loop.extent / factor * factor;
    stmts.push_back(kind == Rest::cases && !ir::as_int(left)
                        ? detail::cases_of(loop, begin, left, factor)
                        : detail::part_of(loop, ".r", begin, left, copy_of(loop.body, ".r")));
  }
  return with_loop(body, loop, ir::Block::make(stmts));
}

/// Two loops, the one directly in the other, as one; lets may stand between them:
///
///   for i = 0:n: for j = 0:8: f(i, j)   ->   for i.j = 0:n*8: f(i.j / 8, i.j % 8)
inline ir::Stmt fuse_loops(const ir::Stmt& body, const std::string& outer_name, const std::string& inner_name) {
  const ir::For& outer = loop_named(body, outer_name);
  const auto* inner = detail::work_of(outer).as<ir::For>();
  if (!inner || name_of(*inner) != inner_name)
    refuse("loop '" + inner_name + "' is not all that loop '" + outer_name + "' does");
  detail::need_serial(outer);
  detail::need_serial(*inner);
  const auto extent = ir::as_int(inner->extent);
  if (!extent) refuse("the extent of loop '" + inner_name + "' is not constant");
  const ir::Expr var = ir::Var::make(outer_name + "." + inner_name, outer.var.type());
  const ir::Stmt each = ir::substitute(detail::with_lets_of(outer, inner->body),
                                       {{outer.var.get(), var / *extent}, {inner->var.get(), var % *extent}});
  return with_loop(body, outer,
                   ir::For::make(var, detail::part_dim(outer), outer.extent * *extent, ir::ForKind::serial, each));
}

namespace detail {

/// Loops one directly in the other, with lets between them, from the outermost of some down to the innermost.
struct LoopPath {
  Vector<const ir::For*> loops;
  Vector<const ir::LetStmt*> lets;
  ir::Stmt inner;
};

inline LoopPath path_through(const ir::Stmt& body, const Vector<std::string>& names) {
  const auto is_named = [&](const ir::For& loop) { return contains(names, name_of(loop)); };
  const ir::For* first = nullptr;
  for (const std::string& name : names) {
    const ir::For& loop = loop_named(body, name);
    std::size_t inside = 0;
    ir::visit_with(ir::handle_of(loop), [&](const ir::For& each) { inside += is_named(each); });
    if (inside == names.size()) first = &loop;
  }
  LoopPath path;
  std::size_t met = 0;
  ir::Stmt at = first ? ir::handle_of(*first) : ir::Stmt();
  while (at && met < names.size()) {
    if (const auto* loop = at.as<ir::For>()) {
      path.loops.push_back(loop);
      met += is_named(*loop);
      at = loop->body;
    } else if (const auto* let = at.as<ir::LetStmt>()) {
      path.lets.push_back(let);
      at = let->body;
    } else {
      break;
    }
  }
  if (met < names.size()) refuse("the loops do not stand one directly in the other");
  path.inner = at;
  return path;
}

}  // namespace detail

/// Loops that stand one directly in the other, in the order of `names`; loops between them keep their places.
///
///   reorder(j, i)   for i: for j: f(i, j)   ->   for j: for i: f(i, j)
inline ir::Stmt reorder_loops(const ir::Stmt& body, const Vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + std::ptrdiff_t(i), names[i]) != names.begin() + std::ptrdiff_t(i))
      refuse("loop '" + names[i] + "' is named twice");
  const detail::LoopPath path = detail::path_through(body, names);
  Vector<const ir::For*> order = path.loops;
  std::size_t next = 0;
  for (const ir::For*& place : order)
    if (contains(names, name_of(*place))) place = &loop_named(body, names[next++]);
  if (order == path.loops) return body;
  const auto position = [&](const ir::For* loop) {
    return std::find(order.begin(), order.end(), loop) - order.begin();
  };

  Vector<bool> dependent;
  for (const ir::For* loop : path.loops) dependent.push_back(bool(carried_by(*loop, path.loops)));
  for (std::size_t a = 0; a < path.loops.size(); ++a)
    for (std::size_t b = a + 1; b < path.loops.size(); ++b) {
      const ir::For &outer = *path.loops[a], &inner = *path.loops[b];
      if (position(&outer) < position(&inner)) continue;
      if (dependent[a] && dependent[b])
        refuse("iterations of '" + name_of(outer) + "' and '" + name_of(inner) + "' depend on each other through '" +
               carried_by(outer, path.loops)->name + "'");
    }

  ir::Stmt result = ir::with_lets(path.lets, path.inner);
  for (const auto& loop : reversed(order))
    result = ir::For::make(loop->var, loop->dim, loop->extent, loop->loop, result, loop->piece);
  // An extent may speak only of loops that still stand around it, and of no let: those are innermost now.
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto moved = [&](const ir::Expr& var) {
      if (ir::uses(order[i]->extent, var))
        refuse("the extent of loop '" + name_of(*order[i]) + "' depends on '" + var.as<ir::Var>()->name + "'");
    };
    for (std::size_t j = i + 1; j < order.size(); ++j) moved(order[j]->var);
    for (const ir::LetStmt* let : path.lets) moved(let->var);
  }
  return with_loop(body, *path.loops.front(), result);
}

/// Two loops, the one directly in the other, as tiles: split both, and the two loops inside the tiles innermost. The
/// outer one may leave a rest, in a loop of its own.
inline ir::Stmt tile_loops(const ir::Stmt& body, const std::string& outer, const std::string& inner,
                           std::int64_t outer_factor, std::int64_t inner_factor) {
  detail::need_factor(inner_factor);
  const auto extent = ir::as_int(loop_named(body, inner).extent);
  if (!extent || *extent % inner_factor)
    refuse("the extent of loop '" + inner + "' is no multiple of " + std::to_string(inner_factor) +
           "; split it, and reorder what is left");
  const auto rows = ir::as_int(loop_named(body, outer).extent);
  if (rows && *rows < outer_factor)
    refuse("loop '" + outer + "' has " + std::to_string(*rows) + " iterations, fewer than " +
           std::to_string(outer_factor));
  const ir::Stmt split = split_loop(split_loop(body, inner, inner_factor), outer, outer_factor);
  return reorder_loops(split, {outer + ".o", inner + ".o", outer + ".i", inner + ".i"});
}

/// A loop of constant extent as copies of its body.
inline ir::Stmt unroll_loop(const ir::Stmt& body, const std::string& name) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  const auto extent = ir::as_int(loop.extent);
  if (!extent) refuse("the extent of loop '" + name + "' is not constant; split it");
  if (*extent > detail::most_copies)
    refuse("loop '" + name + "' has " + std::to_string(*extent) + " iterations, more than " +
           std::to_string(detail::most_copies) + "; split it");
  Vector<ir::Stmt> copies;
  for (std::int64_t i = 0; i < *extent; ++i)
    copies.push_back(detail::at(i ? copy_of(loop.body, "." + std::to_string(i)) : loop.body, loop.var,
                                ir::IntImm::make(i, loop.var.dtype())));
  return with_loop(body, loop, ir::Block::make(copies));
}

/// The iterations of a loop of constant extent side by side, sharing the loops inside it: register tiles.
inline ir::Stmt jam_loop(const ir::Stmt& body, const std::string& name) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  const std::int64_t extent = detail::need_copies(loop, 0);
  detail::need_independent(loop);
  detail::need_no_barrier(loop);
  return with_loop(body, loop, extent ? unroll_and_jam(loop.body, loop.var, ir::imm(0), int(extent)) : ir::nothing());
}

namespace detail {

inline ir::Stmt with_kind(const ir::Stmt& body, const ir::For& loop, ir::ForKind kind) {
  return with_loop(body, loop, ir::For::make(loop.var, loop.dim, loop.extent, kind, loop.body));
}

/// Loops of one kind do not stand in each other.
inline void need_not_inside(const ir::Stmt& body, const ir::For& loop, ir::ForKind kind) {
  ir::visit_with(body, [&](const ir::For& around) {
    if (around.loop != kind) return;
    ir::visit_with(around.body, [&](const ir::For& inner) {
      if (&inner == &loop)
        refuse("loop '" + name_of(loop) + "' stands in loop '" + name_of(around) + "', which is " +
               (kind == ir::ForKind::parallel ? "parallel" : "vectorized"));
    });
  });
}

}  // namespace detail

/// The iterations of an innermost loop, or of one around loops whose bounds do not differ by iteration, in the lanes of
/// a vector.
inline ir::Stmt vectorize_loop(const ir::Stmt& body, const std::string& name) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  detail::need_copies(loop, 2);
  detail::need_independent(loop);
  detail::need_not_inside(body, loop, ir::ForKind::vectorized);
  PointerSet by_lane{loop.var.get()};
  const auto differs = [&](const ir::Expr& e, const char* what) {
    ir::visit_with(e, [&](const ir::Var& v) {
      if (by_lane.contains(&v)) refuse(std::string(what) + " inside loop '" + name + "' differs by iteration");
    });
  };
  ir::visit_with(
      loop.body,
      [&](const ir::LetStmt& let) {
        ir::visit_with(let.value, [&](const ir::Var& v) {
          if (by_lane.contains(&v)) by_lane.insert(let.var.get());
        });
      },
      [&](const ir::For& inner) { differs(inner.extent, "a loop's extent"); },
      [&](const ir::If& branch) { differs(branch.condition, "a condition"); },
      [&](const ir::UfCall& call) { differs(ir::handle_of(call), "what is asked of the structure"); },
      [&](const ir::Barrier&) { refuse("there is a barrier inside"); });
  ir::visit_with(loop.body, [&](const ir::For& inner) {
    if (inner.loop != ir::ForKind::serial) refuse("loop '" + name_of(inner) + "' inside is parallel or vectorized");
  });
  return detail::with_kind(body, loop, ir::ForKind::vectorized);
}

/// Refuses local buffers that each lane of a vectorized loop has for itself and indexes by the lane: such a buffer is
/// one of vectors, in which no lane goes its own way.
inline void check_lanes(const ir::Stmt& body) {
  ir::visit_with(body, [&](const ir::For& loop) {
    if (loop.loop != ir::ForKind::vectorized) return;
    PointerSet own, by_lane{loop.var.get()};
    ir::visit_with(
        loop.body, [&](const ir::Alloc& alloc) { own.insert(alloc.buffer.id()); },
        [&](const ir::LetStmt& let) {
          ir::visit_with(let.value, [&](const ir::Var& v) {
            if (by_lane.contains(&v)) by_lane.insert(let.var.get());
          });
        });
    const auto need = [&](const ir::Buffer& buffer, const Vector<ir::Expr>& indices) {
      for (const ir::Expr& index : indices)
        ir::visit_with(index, [&](const ir::Var& v) {
          if (own.contains(buffer.id()) && by_lane.contains(&v))
            refuse("'" + buffer->name + "' in loop '" + name_of(loop) + "', which is vectorized, is indexed by its " +
                   "iteration");
        });
    };
    ir::visit_with(
        loop.body, [&](const ir::Load& load) { need(load.buffer, load.indices); },
        [&](const ir::Store& store) { need(store.buffer, store.indices); });
  });
}

/// Refuses local buffers that together are too large for a thread's stack, on which they lie.
inline void check_locals(const ir::Stmt& body) {
  constexpr std::int64_t most = 1 << 20;  // bytes
  std::int64_t bytes = 0, largest = 0;
  std::string name;
  const auto add = [&](auto& self, const ir::Stmt& stmt, std::int64_t lanes) -> void {
    ir::visit_with(
        stmt,
        [&](const ir::For& loop) {
          if (loop.loop != ir::ForKind::vectorized) return true;
          self(self, loop.body, lanes * ir::as_int(loop.extent).value_or(1));  // a part of its dimension
          return false;
        },
        [&](const ir::Alloc& alloc) {
          const std::int64_t size = lanes * std::int64_t(ir::dense_bytes(*alloc.buffer));
          bytes += size;
          if (size > largest) largest = size, name = alloc.buffer->name;
        });
  };
  add(add, body, 1);
  if (bytes > most)
    refuse("local buffers such as '" + name + "' take " + std::to_string(bytes >> 10) + " KB of a thread's stack, " +
           "more than " + std::to_string(most >> 10));
}

/// A loop whose iterations the workers of a call share.
inline ir::Stmt share_loop(const ir::Stmt& body, const std::string& name) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  detail::need_independent(loop);
  detail::need_not_inside(body, loop, ir::ForKind::parallel);
  detail::need_not_inside(body, loop, ir::ForKind::vectorized);
  ir::visit_with(loop.body, [&](const ir::For& inner) {
    if (inner.loop == ir::ForKind::parallel) refuse("loop '" + name_of(inner) + "' inside is parallel already");
  });
  for (const Access& access : lasting_accesses({loop.body}))
    if (access.write && access.buffer->scope != ir::Scope::shared)
      refuse("each worker has '" + access.buffer->name + "' for itself, and computes all of it");
  ir::visit_with(body, [&](const ir::If& branch) {
    bool by_worker = false, near = false;
    ir::visit_with(branch.condition, [&](const ir::UfCall& call) { by_worker |= call.uf.kind == ir::UfKind::worker; });
    ir::visit_with(loop.body, [&](const ir::If& inside) { near |= &inside == &branch; });
    ir::visit_with(ir::handle_of(branch), [&](const ir::For& inside) { near |= &inside == &loop; });
    if (by_worker && near) refuse("what loop '" + name + "' does is the first worker's alone");
  });
  return detail::with_kind(body, loop, ir::ForKind::parallel);
}

}  // namespace cortex::schedule
