// Where temporaries are computed and where copies of tensors lie (paper section 5, I7, I10): compute_inline,
// compute_at, cache_read, cache_write.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/loop_primitives.hpp"

namespace cortex::schedule {

namespace detail {

/// The loops around the only store to a temporary, and what they do.
struct Producer {
  ir::Stmt outermost;
  Vector<const ir::For*> loops;
  Vector<const ir::LetStmt*> lets;
  ir::Stmt inner;
  const ir::Store* store = nullptr;
};

inline int stores_in(const ir::Stmt& stmt, const ir::Buffer& buffer) {
  int count = 0;
  ir::visit_with(stmt, [&](const ir::Store& store) { count += store.buffer == buffer; });
  return count;
}

/// Takes apart the statement that computes `buffer` and nothing else that lasts.
inline Producer producer_of(const ir::Stmt& body, const ir::Buffer& buffer) {
  if (buffer->role != ir::Role::temp || buffer->scope == ir::Scope::local)
    refuse("'" + buffer->name + "' is no temporary of the whole program");
  if (const int stores = stores_in(body, buffer); stores != 1)
    refuse("'" + buffer->name + "' is stored in " + (stores ? "several places" : "no place"));
  Producer result;
  // The outermost statement that writes nothing else.
  const auto find = [&](auto& self, const ir::Stmt& s) -> void {
    if (stores_in(s, buffer) == 0) return;
    bool alone = true;
    for (const Access& access : lasting_accesses({s})) alone &= access.buffer == buffer ? access.write : !access.write;
    if (alone && (s.as<ir::For>() || s.as<ir::Store>())) {
      result.outermost = s;
      return;
    }
    if (const auto* block = s.as<ir::Block>())
      for (const ir::Stmt& each : block->stmts) self(self, each);
    else if (const auto* loop = s.as<ir::For>())
      self(self, loop->body);
    else if (const auto* let = s.as<ir::LetStmt>())
      self(self, let->body);
    else if (const auto* alloc = s.as<ir::Alloc>())
      self(self, alloc->body);
    else if (s.as<ir::If>())
      refuse("'" + buffer->name + "' is stored under a condition");
    else
      refuse("'" + buffer->name + "' is computed of itself");
  };
  find(find, body);
  ir::Stmt at = result.outermost;
  for (;;) {
    if (const auto* loop = at.as<ir::For>(); loop && loop->dim.kind() != DimKind::child) {
      need_serial(*loop);
      result.loops.push_back(loop);
      at = loop->body;
    } else if (const auto* let = at.as<ir::LetStmt>()) {
      result.lets.push_back(let);
      at = let->body;
    } else {
      break;
    }
  }
  result.inner = at;
  ir::visit_with(at, [&](const ir::Store& store) {
    if (store.buffer == buffer) result.store = &store;
  });
  ir::visit_with(at, [&](const ir::If&) { refuse("'" + buffer->name + "' is stored under a condition"); });
  return result;
}

/// The loads and stores of a program in the order of its text, each with the loops around it.
struct Event {
  ir::Buffer buffer;
  bool write = false;
  const void* node = nullptr;
  Vector<const ir::For*> loops;
};

inline Vector<Event> events_of(const ir::Stmt& body) {
  Vector<Event> events;
  Vector<const ir::For*> loops;
  const auto walk = [&](auto& self, const ir::Stmt& s) -> void {
    ir::visit_with(
        s,
        [&](const ir::For& loop) {
          loops.push_back(&loop);
          self(self, loop.body);
          loops.pop_back();
          return false;
        },
        [&](const ir::Load& load) {
          events.push_back({load.buffer, false, &load, loops});
        },
        [&](const ir::Store& store) {
          ir::visit_with(store.value, [&](const ir::Load& load) {
            events.push_back({load.buffer, false, &load, loops});
          });
          events.push_back({store.buffer, true, &store, loops});
          return false;
        });
  };
  walk(walk, body);
  return events;
}

/// How many loops two events have around them both.
inline std::size_t common_loops(const Event& a, const Event& b) {
  std::size_t n = 0;
  while (n < a.loops.size() && n < b.loops.size() && a.loops[n] == b.loops[n]) ++n;
  return n;
}

/// What the producer reads has to be the same where its work is to be done, at the loads of `buffer`.
inline void need_stable(const ir::Stmt& body, const Producer& producer, const ir::Buffer& buffer) {
  const Vector<Event> events = events_of(body);
  std::size_t stored = 0, last = 0, shared = ~std::size_t(0);
  for (std::size_t e = 0; e < events.size(); ++e)
    if (events[e].node == producer.store) stored = e;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (!(events[e].buffer == buffer) || events[e].write) continue;
    if (e < stored) refuse("'" + buffer->name + "' is read before it is computed");
    last = e;
    shared = std::min(shared, common_loops(events[e], events[stored]));
  }
  PointerSet reads;
  for (const Access& access : lasting_accesses({producer.outermost}))
    if (!access.write && !reads_child_state(access)) reads.insert(access.buffer.id());
  for (std::size_t e = 0; e < events.size(); ++e) {
    const Event& event = events[e];
    if (!event.write || !reads.contains(event.buffer.id())) continue;
    bool changes = e < stored ? common_loops(event, events[stored]) > shared : e < last;
    for (std::size_t r = stored; r < events.size() && e > stored; ++r)
      changes |= events[r].buffer == buffer && !events[r].write && common_loops(event, events[r]) > shared;
    if (changes)
      refuse("'" + event.buffer->name + "', which '" + buffer->name + "' is computed of, changes before its use");
  }
}

/// `body` with `other` in place of `statement`, a loop or a store.
inline ir::Stmt replaced(const ir::Stmt& body, const ir::Stmt& statement, const ir::Stmt& other) {
  return ir::mutate_with(
      body,
      [&](auto& self, const ir::For& loop) -> ir::Stmt {
        return &loop == statement.get() ? other : self.children(loop);
      },
      [&](auto& self, const ir::Store& store) -> ir::Stmt {
        return &store == statement.get() ? other : self.children(store);
      });
}
inline ir::Stmt without(const ir::Stmt& body, const ir::Stmt& statement) {
  return replaced(body, statement, ir::nothing());
}

/// The producer's variables, each as the index that stands at its place of `indices`; variables of loops that `indices`
/// leave open stay.
inline ir::Substitution bindings(const Producer& producer, const Vector<ir::Expr>& indices, const std::string& name) {
  ir::Substitution result;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    const ir::Expr& own = producer.store->indices[d];
    const auto same = ir::as_int(own);
    if (same && same == ir::as_int(indices[d])) continue;
    if (!own.as<ir::Var>() || !result.emplace(own.get(), indices[d]).second)
      refuse("'" + name + "' is not stored at one loop's variable for each dimension");
  }
  return result;
}

/// Whether a variable of the producer that is bound to nothing is still needed.
inline void need_bound(const Producer& producer, const ir::Substitution& bound, const ir::Stmt& stmt,
                       const Vector<const ir::For*>& kept, const std::string& name) {
  for (const ir::For* loop : producer.loops) {
    const bool stays = contains(kept, loop);
    if (!stays && !bound.contains(loop->var.get()) && ir::uses(stmt, loop->var))
      refuse("'" + name + "' needs '" + name_of(*loop) + "', which its indices do not give");
  }
  for (const ir::LetStmt* let : producer.lets)
    if (!bound.contains(let->var.get()) && ir::uses(stmt, let->var))
      refuse("'" + name + "' needs '" + let->var.as<ir::Var>()->name + "', which its indices do not give");
}

}  // namespace detail

/// What moved may have left the scope of something that it uses. `what`: as an error names it.
inline ir::Stmt in_scope(const ir::Stmt& result, const std::string& what) {
  PointerSet bound;
  const auto need = [&](const void* id, const std::string& name) {
    if (!bound.contains(id)) refuse(what + " is computed of '" + name + "', which is unknown at its use");
  };
  const auto local = [&](const ir::Buffer& buffer) {
    if (buffer->scope == ir::Scope::local) need(buffer.id(), buffer->name);
  };
  const auto inside = [&](const void* id, auto&& walk) {
    const bool fresh = bound.insert(id);
    walk();
    if (fresh) bound.erase(id);
    return false;
  };
  const auto walk = [&](auto& self, const auto& root) -> void {
    ir::visit_with(
        root, [&](const ir::Var& v) { need(&v, v.name); }, [&](const ir::Load& load) { local(load.buffer); },
        [&](const ir::Store& store) { local(store.buffer); },
        [&](const ir::Let& let) {
          self(self, let.value);
          return inside(let.var.get(), [&] { self(self, let.body); });
        },
        [&](const ir::For& loop) {
          self(self, loop.extent);
          return inside(loop.var.get(), [&] { self(self, loop.body); });
        },
        [&](const ir::LetStmt& let) {
          self(self, let.value);
          return inside(let.var.get(), [&] { self(self, let.body); });
        },
        [&](const ir::Alloc& alloc) { return inside(alloc.buffer.id(), [&] { self(self, alloc.body); }); });
  };
  walk(walk, result);
  return result;
}

/// A temporary computed anew wherever it is read:
///
///   for i: t[i] = f(i); for j: h[j] = g(t[j])   ->   for j: h[j] = g(f(j))
inline ir::Stmt compute_inline(const ir::Stmt& body, const std::string& name) {
  const ir::Buffer buffer = buffer_named(body, name);
  const detail::Producer producer = detail::producer_of(body, buffer);
  if (!producer.inner.as<ir::Store>()) refuse("'" + name + "' is not computed by one expression");
  detail::need_stable(body, producer, buffer);
  const auto value_at = [&](auto& self, const ir::Load& load) -> ir::Expr {
    const ir::Expr inner = self.children(load);
    if (!(load.buffer == buffer)) return inner;
    const ir::Substitution bound = detail::bindings(producer, inner.template as<ir::Load>()->indices, name);
    detail::need_bound(producer, bound, producer.inner, {}, name);
    return ir::substitute(producer.store->value, bound);
  };
  return in_scope(ir::mutate_with(detail::without(body, producer.outermost), value_at), "'" + name + "'");
}

namespace detail {

/// `body` with other work in `loop`.
inline ir::Stmt with_work(const ir::Stmt& body, const ir::For& loop, const ir::Stmt& work) {
  const ir::Stmt whole = with_lets_of(loop, work);
  return with_loop(body, loop, ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, whole, loop.piece));
}

/// The variables that loops and lets inside of `work` bind.
inline PointerSet bound_inside(const ir::Stmt& work) {
  PointerSet bound;
  ir::visit_with(
      work, [&](const ir::For& inner) { bound.insert(inner.var.get()); },
      [&](const ir::LetStmt& let) { bound.insert(let.var.get()); });
  return bound;
}

/// How the accesses of `buffer` in `loop`'s work go: per dimension the one index that all have and that is the same
/// throughout the body, or none, where they cover the dimension.
inline Vector<ir::Expr> fixed_indices(const ir::For& loop, const ir::Buffer& buffer) {
  const ir::Stmt work = work_of(loop);
  const PointerSet inside = bound_inside(work);
  Vector<ir::Expr> fixed;
  bool first = true;
  const auto add = [&](const Vector<ir::Expr>& indices) {
    for (std::size_t d = 0; d < indices.size(); ++d) {
      const bool moves = ir::uses_any(indices[d], inside) || ir::has_loads(indices[d]);
      if (first)
        fixed.push_back(moves ? ir::Expr() : indices[d]);
      else if (fixed[d] && (moves || !ir::equal(fixed[d], indices[d])))
        fixed[d] = ir::Expr();
    }
    first = false;
  };
  ir::visit_with(
      work,
      [&](const ir::Load& load) {
        if (load.buffer == buffer && !reads_child_state({buffer, load.indices})) add(load.indices);
      },
      [&](const ir::Store& store) {
        if (store.buffer == buffer) add(store.indices);
      });
  if (first) refuse("'" + buffer->name + "' is not used in loop '" + name_of(loop) + "'");
  return fixed;
}

/// A local buffer of the dimensions that are not fixed.
inline ir::Buffer local_part(const ir::Buffer& buffer, const Vector<ir::Expr>& fixed, const std::string& suffix) {
  ir::BufferInfo info;
  info.name = buffer->name + suffix;
  info.dtype = buffer->dtype;
  info.scope = ir::Scope::local;
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < fixed.size(); ++d)
    if (!fixed[d]) {
      if (buffer->dims[d].extent() < 1)
        refuse("dimension '" + buffer->dims[d].name() + "' of '" + buffer->name +
               "' has no constant extent, and is indexed in several ways");
      info.dims.push_back(buffer->dims[d]);
      elements *= buffer->dims[d].extent();
    }
  constexpr std::int64_t most = 1 << 16;
  if (elements > most)
    refuse("the part of '" + buffer->name + "' has " + std::to_string(elements) + " elements, more than " +
           std::to_string(most));
  return ir::Buffer(std::move(info));
}

/// `indices` without the fixed dimensions.
inline Vector<ir::Expr> open_indices(const Vector<ir::Expr>& indices, const Vector<ir::Expr>& fixed) {
  Vector<ir::Expr> result;
  for (std::size_t d = 0; d < indices.size(); ++d)
    if (!fixed[d]) result.push_back(indices[d]);
  return result;
}

/// `stmt` with `part` in place of `buffer`.
inline ir::Stmt through_part(const ir::Stmt& stmt, const ir::Buffer& buffer, const ir::Buffer& part,
                             const Vector<ir::Expr>& fixed) {
  return ir::with_places(stmt, [&](const ir::Buffer& at, const Vector<ir::Expr>& indices) -> ir::Place {
    if (!(at == buffer) || reads_child_state({buffer, indices})) return {};
    return ir::Place{part, open_indices(indices, fixed)};
  });
}

/// `for open dimensions: each(indices of the buffer, indices of the part)`.
template <class Each>
ir::Stmt over_part(const ir::Buffer& buffer, const Vector<ir::Expr>& fixed, const std::string& suffix, Each each) {
  Vector<ir::Expr> whole = fixed, open;
  for (std::size_t d = 0; d < fixed.size(); ++d)
    if (!fixed[d]) open.push_back(whole[d] = ir::Var::make(buffer->dims[d].name() + suffix));
  ir::Stmt result = each(whole, open);
  for (std::size_t d = fixed.size(); d-- > 0;)
    if (!fixed[d])
      result = ir::For::make(whole[d], buffer->dims[d], ir::imm(buffer->dims[d].extent()), ir::ForKind::serial, result);
  return result;
}

/// Refuses a buffer that `work` may not read at all: what is done ahead of it might be at an element that is not there.
inline void need_reads_for_certain(const ir::Stmt& work, const ir::Buffer& buffer) {
  const auto reads = [&](const ir::Stmt& s) {
    bool found = false;
    ir::visit_with(s, [&](const ir::Load& load) { found |= load.buffer == buffer; });
    return found;
  };
  ir::visit_with(
      work,
      [&](const ir::If& branch) {
        if (reads(ir::handle_of(branch))) refuse("'" + buffer->name + "' is read under a condition");
      },
      [&](const ir::For& inner) {
        if (!ir::as_int(inner.extent) && reads(inner.body))
          refuse("'" + buffer->name + "' is read in loop '" + name_of(inner) + "', which may have no iterations");
      });
}

/// The reads of a buffer in `work`, grouped: those of a group differ only in dimensions that loops and lets of `work`
/// walk over. A group is the indices that stand still, and nothing at the others.
class ReadGroups {
 public:
  ReadGroups(const ir::Stmt& work, const ir::Buffer& buffer) : inside_(bound_inside(work)) {
    ir::visit_with(work, [&](const ir::Load& load) {
      if (load.buffer == buffer) add(load);
    });
  }

  bool empty() const { return groups_.empty(); }
  std::size_t size() const { return groups_.size(); }
  const Vector<ir::Expr>& operator[](std::size_t group) const { return groups_[group]; }
  std::size_t group_of(const ir::Load& load) const {
    const Vector<ir::Expr> fixed = fixed_of(load);
    std::size_t group = 0;
    while (!same(groups_[group], fixed)) ++group;
    return group;
  }

 private:
  void add(const ir::Load& load) {
    Vector<ir::Expr> fixed = fixed_of(load);
    for (const Vector<ir::Expr>& group : groups_) {
      if (same(group, fixed)) return;
      for (std::size_t d = 0; d < fixed.size(); ++d)
        if (bool(group[d]) != bool(fixed[d])) refuse("'" + load.buffer->name + "' is read along different dimensions");
    }
    groups_.push_back(std::move(fixed));
  }
  Vector<ir::Expr> fixed_of(const ir::Load& load) const {
    Vector<ir::Expr> fixed = load.indices;
    for (ir::Expr& index : fixed)
      if (ir::uses_any(index, inside_)) index = ir::Expr();
    return fixed;
  }
  static bool same(const Vector<ir::Expr>& a, const Vector<ir::Expr>& b) {
    for (std::size_t d = 0; d < a.size(); ++d)
      if (bool(a[d]) != bool(b[d]) || (a[d] && !ir::equal(a[d], b[d]))) return false;
    return true;
  }

  PointerSet inside_;
  Vector<Vector<ir::Expr>> groups_;
};

}  // namespace detail

/// A temporary computed where a loop needs it, into a local buffer of what the loop's body uses:
///
///   for n: for i: t[n,i] = f(n,i); for n.2: for j: for i.2: h[n.2,j] += t[n.2,i.2]
///     ->  compute_at(t, n.2)
///   for n.2: {for i: t[i] = f(n.2,i); for j: for i.2: h[n.2,j] += t[i.2]}
inline ir::Stmt compute_at(const ir::Stmt& body, const std::string& name, const std::string& loop_name) {
  const ir::Buffer buffer = buffer_named(body, name);
  const detail::Producer producer = detail::producer_of(body, buffer);
  detail::need_stable(body, producer, buffer);
  const ir::For& loop = loop_named(body, loop_name);
  int inside = 0, all = 0;
  const auto count = [&](const ir::Stmt& s, int& sum) {
    ir::visit_with(s, [&](const ir::Load& load) { sum += load.buffer == buffer; });
  };
  count(body, all);
  count(loop.body, inside);
  if (inside < all) refuse("'" + name + "' is also read outside of loop '" + loop_name + "'");
  const Vector<ir::Expr> fixed = detail::fixed_indices(loop, buffer);
  const ir::Substitution bound = detail::bindings(producer, fixed, name);
  const ir::Buffer part = detail::local_part(buffer, fixed, "");
  Vector<const ir::For*> kept;
  for (std::size_t d = 0; d < fixed.size(); ++d)
    for (const ir::For* each : producer.loops)
      if (!fixed[d] && producer.store->indices[d].same_as(each->var)) kept.push_back(each);
  if (kept.size() != detail::open_indices(fixed, fixed).size())
    refuse("'" + name + "' is not stored at one loop's variable for each dimension");
  ir::Stmt work = producer.inner;
  for (const auto& each : reversed(producer.loops))
    if (contains(kept, each)) work = ir::For::make(each->var, each->dim, each->extent, ir::ForKind::serial, work);
  detail::need_bound(producer, bound, work, kept, name);
  work = ir::substitute(work, bound);
  // A producer that stands in the loop stays where it is; else its work comes first.
  const ir::Stmt users = detail::work_of(loop);
  const bool ahead = detail::without(users, producer.outermost).same_as(users);
  if (ahead) detail::need_reads_for_certain(users, buffer);
  const ir::Stmt whole = ahead ? ir::Block::make({work, users}) : detail::replaced(users, producer.outermost, work);
  const ir::Stmt inner = ir::Alloc::make(part, detail::through_part(whole, buffer, part, fixed));
  return in_scope(detail::without(detail::with_work(body, loop, inner), producer.outermost), "'" + name + "'");
}

/// What a loop's body reads of a tensor in a local copy, made at the start of each iteration. Where it is read through
/// several indices that stand still (a node's children), the copy has one more dimension, with an entry for each (I10):
///
///   for n: for i: for j: .. h[first(n),j] + h[second(n),j] ..
///     ->  cache_read(h, n)
///   for n: {for j: c[0,j] = h[first(n),j]; for j: c[1,j] = h[second(n),j]; for i: for j: .. c[0,j] + c[1,j] ..}
inline ir::Stmt cache_read(const ir::Stmt& body, const std::string& name, const std::string& loop_name) {
  const ir::Buffer buffer = buffer_named(body, name);
  const ir::For& loop = loop_named(body, loop_name);
  if (buffer->scope == ir::Scope::local) refuse("'" + name + "' is local already");
  if (detail::stores_in(loop.body, buffer)) {
    for (const Access& access : lasting_accesses({loop.body}))
      if (access.buffer == buffer && !access.write && !reads_child_state(access))
        refuse("'" + name + "' is written in loop '" + loop_name + "'");
  }
  const ir::Stmt work = detail::work_of(loop);
  detail::need_reads_for_certain(work, buffer);
  const detail::ReadGroups groups(work, buffer);
  if (groups.empty()) refuse("'" + name + "' is not read in loop '" + loop_name + "'");
  const bool several = groups.size() > 1;
  ir::BufferInfo info = *detail::local_part(buffer, groups[0], "_cache");
  if (several) info.dims.insert(info.dims.begin(), Dim("entry", std::int64_t(groups.size())));
  const ir::Buffer cache(std::move(info));
  const auto entry = [&](std::size_t group, Vector<ir::Expr> open) {
    if (several) open.insert(open.begin(), ir::imm(std::int64_t(group)));
    return open;
  };
  Vector<ir::Stmt> stmts;
  for (std::size_t g = 0; g < groups.size(); ++g)
    stmts.push_back(detail::over_part(buffer, groups[g], ".c", [&](const auto& whole, const auto& open) {
      return ir::Store::make(cache, entry(g, open), ir::Load::make(buffer, whole));
    }));
  stmts.push_back(ir::mutate_with(work, [&](auto& self, const ir::Load& load) -> ir::Expr {
    const ir::Expr inner = self.children(load);
    if (!(load.buffer == buffer)) return inner;
    const std::size_t g = groups.group_of(load);
    return ir::Load::make(cache, entry(g, detail::open_indices(inner.template as<ir::Load>()->indices, groups[g])));
  }));
  return detail::with_work(body, loop, ir::Alloc::make(cache, ir::Block::make(stmts)));
}

/// What a loop's body writes of a tensor collected in a local buffer, and stored at the end of each iteration:
///
///   for n: for i: h[n,i] = f(i)   ->   for n: {for i: c[i] = f(i); for j: h[n,j] = c[j]}
inline ir::Stmt cache_write(const ir::Stmt& body, const std::string& name, const std::string& loop_name) {
  const ir::Buffer buffer = buffer_named(body, name);
  const ir::For& loop = loop_named(body, loop_name);
  if (buffer->scope == ir::Scope::local) refuse("'" + name + "' is local already");
  if (!detail::stores_in(loop.body, buffer)) refuse("'" + name + "' is not written in loop '" + loop_name + "'");
  ir::visit_with(loop.body, [&](const ir::Load& load) {
    if (load.buffer == buffer && !reads_child_state({buffer, load.indices}))
      refuse("'" + name + "' is read in loop '" + loop_name + "' too");
  });
  ir::visit_with(loop.body, [&](const ir::If& branch) {
    if (detail::stores_in(ir::handle_of(branch), buffer)) refuse("'" + name + "' is stored under a condition");
  });
  const Vector<ir::Expr> fixed = detail::fixed_indices(loop, buffer);
  // Each open dimension has to be stored whole, by a loop over it.
  ir::visit_with(loop.body, [&](const ir::Store& store) {
    if (!(store.buffer == buffer)) return;
    for (std::size_t d = 0; d < fixed.size(); ++d) {
      bool covered = bool(fixed[d]);
      ir::visit_with(loop.body, [&](const ir::For& inner) {
        covered |= store.indices[d].same_as(inner.var) && ir::as_int(inner.extent) == buffer->dims[d].extent();
      });
      if (!covered) refuse("dimension '" + buffer->dims[d].name() + "' of '" + name + "' is not stored whole");
    }
  });
  const ir::Buffer part = detail::local_part(buffer, fixed, "_cache");
  const ir::Stmt copy = detail::over_part(buffer, fixed, ".c", [&](const auto& whole, const auto& open) {
    return ir::Store::make(buffer, whole, ir::Load::make(part, open));
  });
  const ir::Stmt inner =
      ir::Alloc::make(part, ir::Block::make({detail::through_part(detail::work_of(loop), buffer, part, fixed), copy}));
  return detail::with_work(body, loop, inner);
}

}  // namespace cortex::schedule
