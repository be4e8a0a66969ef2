// Loops of a schedule by hand that the threads of a GPU's block share (I7: bind), and all that no loop shares for the
// first thread of each block.
//
//   for b: {x[b] = f(b); threads for i = 0:n: y[i] = x[b] * g(i)}
//     ->  rest_for_first_thread
//   for b: {if thread == 0: x[b] = f(b); threads for i = 0:n: y[i] = x[b] * g(i)}
//     ->  share_bound_loops
//   for b: {if thread == 0: x[b] = f(b); for i = 0:(n + 255 - thread) / 256: y[i * 256 + thread] = ..}
//
// Between the two passes stand the barriers of threads (`insert_thread_barriers`). A program in which nothing is bound
// is the first thread's whole.
#pragma once

#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/schedule/loop_primitives.hpp"

namespace cortex::schedule {

/// A loop whose iterations the threads of a block share.
inline ir::Stmt share_among_threads(const ir::Stmt& body, const std::string& name) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  return detail::with_kind(body, loop, ir::ForKind::threads);
}

namespace detail {

/// Refuses a loop of threads whose iterations are not each thread's own affair.
inline void check_loop_of_threads(const ir::For& loop) {
  need_independent(loop);
  PointerSet own;
  ir::visit_with(
      loop.body,
      [&](const ir::For& inner) {
        if (inner.loop == ir::ForKind::threads)
          refuse("loop '" + name_of(inner) + "' stands in loop '" + name_of(loop) + "', which is shared by threads");
        // Blocks meet nowhere inside of a nest.
        if (inner.loop == ir::ForKind::parallel && !parse_nest(ir::handle_of(loop)))
          refuse("loop '" + name_of(inner) + "', which is parallel, stands in loop '" + name_of(loop) +
                 "', which is shared by threads and does more than one nest");
      },
      [&](const ir::Alloc& alloc) { own.insert(alloc.buffer.id()); });
  ir::visit_with(loop.body, [&](const ir::Store& store) {
    if (store.buffer->scope == ir::Scope::local && !own.contains(store.buffer.id()))
      refuse("each thread has '" + store.buffer->name + "' for itself, and computes all of it");
  });
}

}  // namespace detail

/// Refuses a program whose threads would get into each other's way: whatever step made it so.
inline void check_loops_of_threads(const ir::Stmt& body) {
  ir::visit_with(body, [&](const ir::For& loop) {
    if (loop.loop == ir::ForKind::threads) detail::check_loop_of_threads(loop);
  });
}

/// Whether the threads of a block go through `stmt` together, because they share some of what is inside or meet there.
/// What is left is one thread's, or a loop of which each has its iterations.
inline bool is_together(const ir::Stmt& stmt) {
  const auto* own = stmt.as<ir::For>();
  bool found = false;
  if (own && own->loop == ir::ForKind::threads) return false;
  ir::visit_with(
      stmt, [&](const ir::For& loop) { found |= loop.loop == ir::ForKind::threads; },
      [&](const ir::Barrier&) { found = true; });
  return found;
}

namespace detail {

/// Whether `stmt` fills local buffers that are there before it: each thread has such for itself, and does all of it.
inline bool fills_own(const ir::Stmt& stmt) {
  PointerSet inside;
  ir::Buffer own, others;
  ir::visit_with(stmt, [&](const ir::Alloc& alloc) { inside.insert(alloc.buffer.id()); });
  ir::visit_with(stmt, [&](const ir::Store& store) {
    const bool local = store.buffer->scope == ir::Scope::local;
    if (!local || !inside.contains(store.buffer.id())) (local ? own : others) = store.buffer;
  });
  if (own && others)
    refuse("'" + others->name + "', which threads share, is written beside '" + own->name +
           "', which each of them has for itself; distribute that first");
  return bool(own);
}

}  // namespace detail

/// All that no loop shares among the threads of a block for the first of them, but for what each has for itself.
inline ir::Stmt rest_for_first_thread(const ir::Stmt& body) {
  const auto is_one_threads = [](const ir::Stmt& stmt) {
    const auto* loop = stmt.as<ir::For>();
    const bool shared = stmt.as<ir::Barrier>() || (loop && loop->loop == ir::ForKind::threads);
    return !shared && !is_together(stmt) && !detail::fills_own(stmt);
  };
  const auto first_threads = [](const ir::Stmt& stmt) {
    return ir::If::make(ir::binary(ir::BinaryOp::eq, ir::thread(), ir::imm(0)), stmt);
  };
  const auto one = [&](ir::Mutator& self, const ir::Stmt& stmt) {
    if (is_one_threads(stmt)) return first_threads(stmt);
    return is_together(stmt) ? self.children(*stmt.get()) : stmt;
  };
  return ir::mutate_with(
      body, [&](auto& self, const ir::For& loop) -> ir::Stmt { return one(self, handle_of(loop)); },
      [&](auto& self, const ir::If& branch) -> ir::Stmt { return one(self, handle_of(branch)); },
      [&](auto& self, const ir::LetStmt& let) -> ir::Stmt { return one(self, handle_of(let)); },
      [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt { return one(self, handle_of(alloc)); },
      [&](auto& self, const ir::Store& store) -> ir::Stmt { return one(self, handle_of(store)); },
      [&](auto& self, const ir::Block& block) -> ir::Stmt {
        Vector<ir::Stmt> stmts, run;  // what is one thread's and follows each other needs no barrier between
        const auto end_run = [&] {
          if (!run.empty()) stmts.push_back(first_threads(ir::Block::make(run)));
          run.clear();
        };
        for (const ir::Stmt& stmt : block.stmts) {
          const bool alone = is_one_threads(stmt);
          if (!alone) end_run();
          if (alone)
            run.push_back(stmt);
          else
            stmts.push_back(self(stmt));
        }
        end_run();
        bool same = stmts.size() == block.stmts.size();
        for (std::size_t i = 0; same && i < stmts.size(); ++i) same = stmts[i].same_as(block.stmts[i]);
        return same ? handle_of(block) : ir::Block::make(stmts);
      });
}

/// Gives each of `threads` threads its iterations of the loops that they share: neighbours have neighbouring ones.
inline ir::Stmt share_bound_loops(const ir::Stmt& body, int threads) {
  return ir::mutate_with(body, [threads](auto& self, const ir::For& loop) -> ir::Stmt {
    if (loop.loop != ir::ForKind::threads) return self.children(loop);
    const ir::Expr var = ir::Var::make(name_of(loop)), thread = ir::thread();
    const ir::Expr count = (loop.extent + (threads - 1) - thread) / threads;
    return ir::For::make(var, loop.dim, count, ir::ForKind::serial,
                         detail::at(loop.body, loop.var, var * threads + thread));
  });
}

}  // namespace cortex::schedule
