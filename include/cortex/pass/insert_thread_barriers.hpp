// Puts a barrier of a block's threads between nests wherever one reads or writes what another wrote or read.
//
//   for b: {for n: for i: s[n,i] = ..; for n: for i: .. s[n,j] ..}
//     ->
//   for b: {for n: for i: s[n,i] = ..; barrier of threads; for n: for i: .. s[n,j] ..; barrier of threads}
//
// Which thread does what is not looked at: such a barrier costs little beside a nest. Of states, which are written once
// and before they are read, only a read after a write counts. Recent rows of states on chip are written again, but what
// a level reads of children's is in no row that it writes: there, too, a write after such a read waits for nothing
// before the next level. Runs after `insert_barriers`, whose barriers are ones of threads, too, after temporaries share
// memory, and when slices of weights are kept on chip. Where loops are scheduled by hand, barriers stand between the
// loops that threads share and what is one thread's (`share_bound_loops.hpp`), in place of nests, and at no end of a
// loop whose iterations do not meet.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/share_bound_loops.hpp"

namespace cortex::pass {

namespace detail {

class ThreadBarriers {
 public:
  explicit ThreadBarriers(bool by_hand) : by_hand_(by_hand) {}

  ir::Stmt run(const ir::Stmt& body) {
    Sequence all;
    return sequence(body, all);
  }

 private:
  /// Whether no barrier stands inside a statement: a nest, which threads will share, or what they do not go through
  /// together.
  bool is_whole(const ir::Stmt& stmt) const {
    return by_hand_ ? !schedule::is_together(stmt) : schedule::parse_nest(stmt).has_value();
  }
  /// Whether a loop's iterations never meet. Temporaries that share memory would be taken for others; by hand none do.
  bool are_apart(const ir::For& loop) const { return by_hand_ && !schedule::carried_by(loop); }

  /// The memory that statements touch.
  struct Touched {
    Vector<const void*> read, written;
    Vector<const void*> state_read, state_written;
    Vector<const void*> of_children;  // recent rows that are read
    void add(const Touched& other) {
      append(read, other.read);
      append(written, other.written);
      append(state_read, other.state_read);
      append(state_written, other.state_written);
      append(of_children, other.of_children);
    }
    Touched of_any_level() const {
      Touched result = *this;
      append(result.read, of_children);
      result.of_children.clear();
      return result;
    }
    /// Whether what follows has to wait for this; `same_level`: no child of the nodes of the one is one of the other's.
    bool meets(const Touched& next, bool same_level) const {
      return common(written, next.written) || common(written, next.read) || common(read, next.written) ||
             common(state_written, next.state_read) || common(written, next.of_children) ||
             (!same_level && common(of_children, next.written));
    }

   private:
    static bool common(const Vector<const void*>& a, const Vector<const void*>& b) {
      return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
    }
  };
  /// What has been touched since the last barrier, and what before the first.
  struct Sequence {
    Touched since, head;
    bool any = false;
    bool of_level = false;  // the body of a loop that carries the recursion
  };

  /// Whether a load is of a recent row of a child.
  static bool is_of_child(const ir::Load& load) {
    if (!ir::has_recent_rows(load.buffer->scope) || load.indices.empty()) return false;
    const auto* place = load.indices[0].as<ir::Binary>();
    const auto* node = place && place->op == ir::BinaryOp::mod ? place->a.as<ir::UfCall>() : nullptr;
    return node && ir::is_child(node->uf.kind);
  }

  static void touch(Touched& touched, const ir::Buffer& buffer, bool write) {
    if (!ir::changes_in_calls(*buffer) || buffer->scope == ir::Scope::local) return;
    const ir::Buffer& home = buffer->stored_in ? buffer->stored_in : buffer;
    if (buffer->role == ir::Role::state)
      (write ? touched.state_written : touched.state_read).push_back(home.id());
    else
      (write ? touched.written : touched.read).push_back(home.id());
  }

  template <class Node>
  static Touched touched_by(const Node& node) {
    Touched result;
    ir::visit_with(
        node,
        [&](const ir::Load& load) {
          if (is_of_child(load))
            result.of_children.push_back(load.buffer.id());
          else
            touch(result, load.buffer, false);
        },
        [&](const ir::Store& store) { touch(result, store.buffer, true); });
    return result;
  }
  /// A barrier before what begins with `head` and ends with `tail`, if one is needed.
  static void step(Sequence& all, Vector<ir::Stmt>& out, const Touched& head, const Touched& tail) {
    if (all.since.meets(head, all.of_level)) {
      out.push_back(ir::Barrier::make(ir::Meeting::threads));
      all.since = {};
      all.any = true;
    }
    if (!all.any) all.head.add(head);
    all.since.add(tail);
  }

  ir::Stmt sequence(const ir::Stmt& block, Sequence& all) const {
    Vector<ir::Stmt> out;
    bool changed = false;
    const Vector<ir::Stmt> stmts = schedule::stmts_of(block);
    for (const ir::Stmt& stmt : stmts) {
      ir::Stmt result = stmt;
      if (stmt.as<ir::Barrier>()) {
        all.since = {};
        all.any = true;
      } else if (is_whole(stmt)) {
        const Touched here = touched_by(stmt);
        step(all, out, here, here);
      } else if (const auto* let = stmt.as<ir::LetStmt>()) {
        const Touched here = touched_by(let->value);
        step(all, out, here, here);
        const ir::Stmt body = sequence(let->body, all);
        if (!body.same_as(let->body)) result = ir::LetStmt::make(let->var, let->value, body);
      } else if (const auto* loop = stmt.as<ir::For>()) {
        Sequence inside;
        inside.of_level = !by_hand_ && schedule::carries_recursion(*loop);
        ir::Stmt body = sequence(loop->body, inside);
        if (inside.since.meets(inside.head, false) && !are_apart(*loop)) {
          body = ir::Block::make({body, ir::Barrier::make(ir::Meeting::threads)});
          inside.since = {};
        }
        step(all, out, inside.head.of_any_level(), inside.since.of_any_level());
        if (!body.same_as(loop->body))
          result = ir::For::make(loop->var, loop->dim, loop->extent, loop->loop, body, loop->piece);
      } else if (const auto* branch = stmt.as<ir::If>()) {
        result = sides(*branch, all, out);
      } else if (const auto* alloc = stmt.as<ir::Alloc>()) {
        const ir::Stmt body = sequence(alloc->body, all);
        if (!body.same_as(alloc->body)) result = ir::Alloc::make(alloc->buffer, body);
      } else {
        schedule::refuse_outside();
      }
      changed |= !result.same_as(stmt);
      out.push_back(result);
    }
    return changed || out.size() != stmts.size() ? ir::Block::make(out) : block;
  }

  /// Either side may run, with the barriers inside of it.
  ir::Stmt sides(const ir::If& branch, Sequence& all, Vector<ir::Stmt>& out) const {
    Sequence first, second;
    const ir::Stmt then_body = sequence(branch.then_body, first);
    const ir::Stmt else_body = branch.else_body ? sequence(branch.else_body, second) : ir::Stmt();
    Touched head = touched_by(branch.condition), tail = head;
    head.add(first.head), head.add(second.head);
    tail.add(first.since), tail.add(second.since);
    step(all, out, head, tail);
    const bool same = then_body.same_as(branch.then_body) && else_body.same_as(branch.else_body);
    return same ? handle_of(branch) : ir::If::make(branch.condition, then_body, else_body);
  }

  const bool by_hand_;
};

}  // namespace detail

inline ir::Stmt insert_thread_barriers(const ir::Stmt& body) { return detail::ThreadBarriers(false).run(body); }

/// The same where a schedule by hand says which loops threads share.
inline ir::Stmt insert_thread_barriers_by_hand(const ir::Stmt& body) { return detail::ThreadBarriers(true).run(body); }

}  // namespace cortex::pass
