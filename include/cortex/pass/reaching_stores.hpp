// Which stores to temporaries no load sees: what they store is overwritten before it is read, is read at other nodes
// alone, or is read earlier alone.
//
//   for leaves: r[n,i] = ..; h[node,i] = f(..)       # dead: the only load of r is in the loop below,
//   for b: for n: r[n,i] = ..                        #   where this store comes first, to all that is read
//          for n: h[node,i] = g(r[n,i])
//
// A load sees a store that may come before it, unless one statement of the block that the load's nest stands in, before
// it, stores all that the load may read; or unless their regions in two statements of the program have no row in
// common. Everything is judged as if one worker ran the program: several give the same values, or there is a race.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/pass/regions.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::pass {

namespace detail {

/// Whether `given` asks for all that `wanted` asks for.
inline bool implies(const ir::Expr& given, const ir::Expr& wanted) {
  const Vector<ir::Expr> all = schedule::conjuncts(given);
  for (const ir::Expr& part : schedule::conjuncts(wanted)) {
    bool found = false;
    for (const ir::Expr& other : all) found |= ir::equal(part, other);
    if (!found) return false;
  }
  return true;
}

/// Whether `nest`, in the same iteration of all loops around both, stores every element that `load`, in the later nest
/// `reader`, may read.
class Covering {
 public:
  Covering(const schedule::Nest& nest, const schedule::Nest& reader)
      : nest_(nest), runs_(bool(nest.rows) == bool(reader.rows)) {
    for (const schedule::LoopHeader& loop : nest.loops) runs_ &= ir::as_int(loop.extent).value_or(0) > 0;
    if (!runs_) return;
    if (nest.rows) {
      runs_ = nest.rows->dim == reader.rows->dim && ir::equal(nest.rows->extent, reader.rows->extent);
      map_.emplace(nest.rows->var.get(), reader.rows->var);
    }
    if (nest.let_var && reader.let_var && ir::equal(ir::substitute(nest.let_value, map_), reader.let_value))
      map_.emplace(nest.let_var.get(), reader.let_var);
    if (nest.guard)
      runs_ &=
          bool(reader.guard) && Scope::is_pure(nest.guard) && implies(reader.guard, ir::substitute(nest.guard, map_));
  }

  bool operator()(const ir::Load& load) const { return runs_ && stores(nest_.inner, load); }

 private:
  bool stores(const ir::Stmt& stmt, const ir::Load& load) const {
    if (const auto* let = stmt.as<ir::LetStmt>()) return stores(let->body, load);
    if (const auto* alloc = stmt.as<ir::Alloc>()) return stores(alloc->body, load);
    if (const auto* store = stmt.as<ir::Store>()) return store->buffer == load.buffer && covers(*store, load);
    const auto* block = stmt.as<ir::Block>();
    if (!block) return false;
    for (const ir::Stmt& part : block->stmts)
      if (stores(part, load)) return true;
    return false;
  }

  bool covers(const ir::Store& store, const ir::Load& load) const {
    PointerSet own;
    for (std::size_t d = 0; d < store.indices.size(); ++d) {
      const schedule::LoopHeader* loop = loop_of(store.indices[d]);
      if (loop) {
        const bool every_worker = store.buffer->scope != ir::Scope::shared && loop->kind == ir::ForKind::parallel;
        const bool all = ir::as_int(loop->extent) == store.buffer->dims[d].extent();
        if (!all || every_worker || !own.insert(loop->var.get())) return false;
      } else if (!Scope::is_pure(store.indices[d]) ||
                 !ir::equal(ir::substitute(store.indices[d], map_), load.indices[d])) {
        return false;
      }
    }
    return true;
  }

  const schedule::LoopHeader* loop_of(const ir::Expr& index) const {
    for (const schedule::LoopHeader& loop : nest_.loops)
      if (loop.var.same_as(index)) return &loop;
    return nullptr;
  }

  const schedule::Nest& nest_;
  bool runs_;
  ir::Substitution map_;  // variables of the nest to those of the reader
};

/// Goes through a program once, noting where stores are, and what each load may see.
class UnseenStores {
 public:
  PointerSet run(const ir::Stmt& body) {
    PointerSet once;
    ir::visit_with(body, [&](const ir::Store& store) {
      const ir::BufferInfo& b = *store.buffer;
      const bool temp = b.role == ir::Role::temp && b.scope != ir::Scope::local && b.kept < 0;
      if (temp && !once.insert(store.buffer.id())) several_.insert(store.buffer.id());
    });
    PointerSet unseen, seen;
    if (several_.empty()) return unseen;
    stmts_ = schedule::stmts_of(body);
    regions_.resize(stmts_.size());
    for (std::size_t at = 0; at < stmts_.size(); ++at) enter(0, stmts_, at);
    for (const Place& store : stores_) (is_seen(store) ? seen : unseen).insert(store.node);
    for (const Place& store : stores_)  // a statement may stand at several places
      if (seen.contains(store.node)) unseen.erase(store.node);
    return unseen;
  }

 private:
  struct Step {
    int block;
    std::size_t at;
  };
  /// Statements of a block, the first of which stores all that a load in the last may read.
  struct Kill {
    int block;
    std::size_t first, last;
  };
  struct Place {
    const void* node;
    ir::Buffer buffer;
    int order = 0, loop = 0;  // when it comes, and the outermost loop around it; 0: none
    Vector<Step> path;        // of a store
    Vector<Kill> kills;       // of a load
  };
  struct Reader {
    schedule::Nest nest;
    const Vector<ir::Stmt>& stmts;
    Step step;
  };

  // ---- the walk ----

  void enter(int block, const Vector<ir::Stmt>& stmts, std::size_t at) {
    path_.push_back({block, at});
    const auto nest = at > 0 ? schedule::parse_nest(stmts[at]) : std::nullopt;
    if (nest) readers_.push_back({*nest, stmts, path_.back()});
    walk(stmts[at]);
    if (nest) readers_.pop_back();
    path_.pop_back();
  }

  void walk(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: {
        const auto& n = *s.as<ir::For>();
        loads(n.extent);
        const bool outermost = loop_ == 0;
        if (outermost) loop_ = ++loops_;
        walk(n.body);
        if (outermost) loop_ = 0;
        return;
      }
      case ir::StmtKind::let: return loads(s.as<ir::LetStmt>()->value), walk(s.as<ir::LetStmt>()->body);
      case ir::StmtKind::if_: {
        const auto& n = *s.as<ir::If>();
        loads(n.condition);
        walk(n.then_body);
        if (n.else_body) walk(n.else_body);
        return;
      }
      case ir::StmtKind::block: {
        const int block = ++blocks_;
        const auto& stmts = s.as<ir::Block>()->stmts;
        for (std::size_t at = 0; at < stmts.size(); ++at) enter(block, stmts, at);
        return;
      }
      case ir::StmtKind::alloc: return walk(s.as<ir::Alloc>()->body);
      case ir::StmtKind::store: {
        const auto& n = *s.as<ir::Store>();
        for (const ir::Expr& index : n.indices) loads(index);
        loads(n.value);
        if (several_.contains(n.buffer.id())) stores_.push_back({&n, n.buffer, ++order_, loop_, path_, {}});
        return;
      }
      case ir::StmtKind::mma:  // made after such passes
      case ir::StmtKind::tile_rows:
      case ir::StmtKind::tile_product:
      case ir::StmtKind::join:
      case ir::StmtKind::barrier:
      case ir::StmtKind::prefetch: return;
    }
  }

  void loads(const ir::Expr& e) {
    ir::visit_with(e, [&](const ir::Load& load) {
      if (!several_.contains(load.buffer.id())) return;
      Place place{&load, load.buffer, ++order_, loop_, {path_[0]}, {}};
      for (const Reader& reader : readers_)
        for (std::size_t at = reader.step.at; at-- > 0;) {
          const auto nest = schedule::parse_nest(reader.stmts[at]);
          if (!nest || !Covering(*nest, reader.nest)(load)) continue;
          place.kills.push_back({reader.step.block, at, reader.step.at});
          break;
        }
      loads_.push_back(std::move(place));
    });
  }

  // ---- who sees what ----

  bool is_seen(const Place& store) {
    for (const Place& load : loads_)
      if (load.buffer == store.buffer && sees(load, store)) return true;
    return false;
  }

  bool sees(const Place& load, const Place& store) {
    if (load.order < store.order && (load.loop != store.loop || load.loop == 0)) return false;
    for (const Kill& kill : load.kills) {
      bool between = false;
      for (const Step& step : store.path)
        between |= step.block == kill.block && kill.first <= step.at && step.at <= kill.last;
      if (!between) return false;
    }
    return load.path[0].at == store.path[0].at || meet(store.buffer, store.path[0].at, load.path[0].at);
  }

  /// Whether the program's statement `reader` may read what its statement `writer` stores to `buffer`.
  bool meet(const ir::Buffer& buffer, std::size_t writer, std::size_t reader) {
    if (buffer->dims.empty() || !(buffer->dims[0] == dims::node)) return true;
    const Span *written = rows(buffer, writer, true), *read = rows(buffer, reader, false);
    if (!written || !read) return true;
    const auto ends_before = [&](const Span& a, const Span& b) {
      const Linear apart = b.low - a.low - a.extent;
      for (const Linear::Term& term : apart.terms)  // others are not the same in both statements
        if (scope_.atoms()[term.atom].symbol >= Symbol::worker) return false;
      return scope_.never_negative(apart, true);
    };
    return !ends_before(*written, *read) && !ends_before(*read, *written);
  }

  const Span* rows(const ir::Buffer& buffer, std::size_t stmt, bool written) {
    Vector<Region>& all = regions_[stmt];
    if (all.empty()) all = regions(stmts_[stmt], scope_);
    for (const Region& region : all)
      if (region.buffer == buffer && region.written == written) return &region.dims[0];
    return nullptr;
  }

  PointerSet several_;  // temporaries that several statements store to
  Vector<ir::Stmt> stmts_;
  Vector<Vector<Region>> regions_;  // of each of them, once asked for
  Scope scope_;
  Vector<Place> stores_, loads_;
  Vector<Step> path_;
  Vector<Reader> readers_;
  int order_ = 0, loops_ = 0, loop_ = 0, blocks_ = 0;
};

}  // namespace detail

/// The `ir::Store`s of `body` to temporaries whose values no load sees.
inline PointerSet unseen_stores(const ir::Stmt& body) { return detail::UnseenStores().run(body); }

}  // namespace cortex::pass
