// The primitives that move statements between loops: fusion of loops, among them reductions over the same axis, and
// distribution (paper section 5, I7).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/loop_primitives.hpp"

namespace cortex::schedule {

namespace detail {

/// Statements with the local buffers of all of them allocated around.
struct Lifted {
  Vector<ir::Buffer> buffers;
  Vector<ir::Stmt> stmts;

  ir::Stmt whole() const { return ir::with_allocs(buffers, ir::Block::make(stmts)); }
};

/// `alloc a: {s; t}; alloc b: u` as {a, b} around {s, t, u}: names are unique, so nothing is captured.
inline Lifted lifted(const ir::Stmt& stmt) {
  Lifted result;
  const auto lift = [&](auto& self, const ir::Stmt& s) -> void {
    if (const auto* alloc = s.as<ir::Alloc>()) {
      result.buffers.push_back(alloc->buffer);
      self(self, alloc->body);
    } else if (const auto* block = s.as<ir::Block>()) {
      for (const ir::Stmt& each : block->stmts) self(self, each);
    } else {
      result.stmts.push_back(s);
    }
  };
  lift(lift, stmt);
  return result;
}

/// Whether statements may not change places: they touch the same buffer, and one writes it.
inline bool conflict(const ir::Stmt& a, const ir::Stmt& b) {
  if (a.as<ir::Barrier>() || b.as<ir::Barrier>()) return true;
  for (const Access& x : lasting_accesses({a}))
    for (const Access& y : lasting_accesses({b}))
      if (x.buffer == y.buffer && (x.write || y.write)) return true;
  return false;
}

/// Statements between two loops: those that the later loop needs go before both, the others after both. What cannot go
/// is refused.
struct Between {
  Vector<ir::Stmt> before, after;
};

inline Between part(const Vector<ir::Stmt>& stmts, std::size_t first, std::size_t second) {
  Between result;
  for (std::size_t s = first + 1; s < second; ++s) {
    bool needed = conflict(stmts[s], stmts[second]);
    for (std::size_t later = s + 1; later < second && !needed; ++later)
      needed = conflict(stmts[s], stmts[later]) && conflict(stmts[later], stmts[second]);
    if (!needed) {
      result.after.push_back(stmts[s]);
      continue;
    }
    bool stuck = conflict(stmts[s], stmts[first]);
    for (const ir::Stmt& stays : result.after) stuck |= conflict(stays, stmts[s]);
    if (stuck) refuse("what stands between the loops is needed by the second and needs the first");
    result.before.push_back(stmts[s]);
  }
  return result;
}

inline ir::Stmt merged(const ir::For& first, const ir::For& second) {
  need_serial(first);
  need_serial(second);
  if (!(first.dim == second.dim) || !ir::equal(first.extent, second.extent))
    refuse("loops '" + name_of(first) + "' and '" + name_of(second) + "' have different dimensions or extents");
  const ir::Stmt then = at(second.body, second.var, first.var);
  const Surroundings around(first.var, {first.body, then});
  if (const ir::Buffer through = meeting(lasting_accesses({first.body}), lasting_accesses({then}), around))
    refuse("an iteration of '" + name_of(second) + "' needs others of '" + name_of(first) + "', through '" +
           through->name + "'");
  return ir::For::make(first.var, first.dim, first.extent, ir::ForKind::serial, ir::Block::make({first.body, then}));
}

}  // namespace detail

/// Two loops over the same iterations, in one block, as one; reductions over the same axis take one pass (the gates of
/// a cell):
///
///   a = 0; for j: a += U[j] * x[j]; p = a; b = 0; for k: b += V[k] * x[k]; q = b
///     ->
///   a = 0; b = 0; for j: {a += U[j] * x[j]; b += V[j] * x[j]}; p = a; q = b
inline ir::Stmt merge_loops(const ir::Stmt& body, const std::string& first_name, const std::string& second_name) {
  const ir::For &first = loop_named(body, first_name), &second = loop_named(body, second_name);
  bool done = false;
  const auto in_block = [&](auto& self, const auto& node) -> ir::Stmt {
    const detail::Lifted parts = detail::lifted(handle_of(node));
    std::optional<std::size_t> f, s;
    for (std::size_t i = 0; i < parts.stmts.size(); ++i) {
      if (parts.stmts[i].get() == &first) f = i;
      if (parts.stmts[i].get() == &second) s = i;
    }
    if (!f || !s) return self.children(node);
    if (*f >= *s) refuse("loop '" + first_name + "' stands after loop '" + second_name + "'");
    done = true;
    const detail::Between between = detail::part(parts.stmts, *f, *s);
    detail::Lifted result{parts.buffers, {}};
    result.stmts.assign(parts.stmts.begin(), parts.stmts.begin() + std::ptrdiff_t(*f));
    append(result.stmts, between.before);
    result.stmts.push_back(detail::merged(first, second));
    append(result.stmts, between.after);
    result.stmts.insert(result.stmts.end(), parts.stmts.begin() + std::ptrdiff_t(*s) + 1, parts.stmts.end());
    return result.whole();
  };
  const ir::Stmt result = ir::mutate_with(
      body, [&](auto& self, const ir::Block& block) -> ir::Stmt { return in_block(self, block); },
      [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt { return in_block(self, alloc); });
  if (!done) refuse("loops '" + first_name + "' and '" + second_name + "' do not stand in one block");
  return result;
}

namespace detail {

/// Local buffers that several of the statements use, with one more dimension: the iteration.
class Expansion {
 public:
  Expansion(const ir::For& loop, const Lifted& parts) : loop_(loop) {
    for (const ir::Buffer& buffer : parts.buffers) {
      int users = 0;
      for (const ir::Stmt& stmt : parts.stmts) users += uses(stmt, buffer);
      if (users < 2) {
        kept_.push_back(buffer);
        continue;
      }
      const auto extent = ir::as_int(loop.extent);
      if (!extent)
        refuse("'" + buffer->name + "' would have an element for each iteration of '" + name_of(loop) +
               "', whose extent is not constant; split it");
      ir::BufferInfo info = *buffer;
      info.dims.insert(info.dims.begin(), Dim(name_of(loop), *extent));
      wide_.buffers.push_back(ir::Buffer(std::move(info)));
      copies_.emplace(buffer.id(), wide_.buffers.back());
    }
  }

  ir::Stmt around(const ir::Stmt& body) const { return ir::with_allocs(wide_.buffers, body); }

  /// `stmt` in a loop of its own.
  ir::Stmt loop_of(const ir::Stmt& stmt, const std::string& suffix) const {
    Lifted own;
    for (const ir::Buffer& buffer : kept_)
      if (uses(stmt, buffer)) own.buffers.push_back(buffer);
    const auto of_iteration = [&](const ir::Buffer& buffer, const Vector<ir::Expr>& indices) -> ir::Place {
      const auto copy = copies_.find(buffer.id());
      if (copy == copies_.end()) return {};
      Vector<ir::Expr> place{loop_.var};
      append(place, indices);
      return ir::Place{copy->second, std::move(place)};
    };
    const ir::Stmt inner = ir::with_places(ir::with_allocs(own.buffers, stmt), of_iteration);
    return copy_of(ir::For::make(loop_.var, loop_.dim, loop_.extent, ir::ForKind::serial, inner), suffix);
  }

 private:
  static bool uses(const ir::Stmt& stmt, const ir::Buffer& buffer) {
    bool found = false;
    ir::visit_with(
        stmt, [&](const ir::Load& load) { found |= load.buffer == buffer; },
        [&](const ir::Store& store) { found |= store.buffer == buffer; });
    return found;
  }

  const ir::For& loop_;
  Vector<ir::Buffer> kept_;
  Lifted wide_;
  PointerMap<ir::Buffer> copies_;
};

}  // namespace detail

/// A loop for each statement of a loop's body; what one leaves to another in a local buffer gets an element for each
/// iteration (dense indexing by the iteration space, I9):
///
///   for i = 0:4: {a = 0; for j: a += W[i,j]; h[i] = a}
///     ->
///   for i: a[i] = 0; for i.2: for j: a[i.2] += W[i.2,j]; for i.3: h[i.3] = a[i.3]
inline ir::Stmt distribute_loop(const ir::Stmt& body, const std::string& name) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  Vector<const ir::LetStmt*> lets;
  ir::Stmt inner = loop.body;
  for (const auto* let = inner.as<ir::LetStmt>(); let; let = inner.as<ir::LetStmt>()) {
    lets.push_back(let);
    inner = let->body;
  }
  const detail::Lifted parts = detail::lifted(inner);
  if (parts.stmts.size() < 2) return body;
  detail::need_no_barrier(loop);  // one that parts an iteration from the next
  const auto is_own = [&](const Access& access) { return contains(parts.buffers, access.buffer); };
  Vector<Vector<Access>> accesses;
  for (const ir::Stmt& stmt : parts.stmts) erase_where(accesses.emplace_back(lasting_accesses({stmt})), is_own);
  Surroundings around(loop.var, {loop.body});
  if (carries_recursion(loop)) around.vary(loop);
  for (std::size_t a = 0; a < accesses.size(); ++a)
    for (std::size_t b = a + 1; b < accesses.size(); ++b)
      if (const ir::Buffer through = meeting(accesses[a], accesses[b], around))
        refuse("a later iteration of '" + name + "' needs an earlier one whole, through '" + through->name + "'");
  const detail::Expansion expansion(loop, parts);
  Vector<ir::Stmt> loops;
  for (std::size_t s = 0; s < parts.stmts.size(); ++s) {
    const ir::Stmt stmt = ir::with_lets(lets, parts.stmts[s]);
    loops.push_back(expansion.loop_of(stmt, s ? "." + std::to_string(s + 1) : ""));
  }
  return with_loop(body, loop, expansion.around(ir::Block::make(loops)));
}

}  // namespace cortex::schedule
