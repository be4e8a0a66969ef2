// Lets temporaries that are never live at the same time lie in the same memory.
//
//   x[d_node,h] temp                                   x[d_node,h] temp
//   y[d_node,h] temp                                   y[d_node,h] temp in x
//   for n: x[n,i] = ..                           ->    (the same)
//   for b: for n: .. x[n,i] ..
//   for n: y[n,i] = ..
//   for b: for n: .. y[n,i] ..
//
// Runs when barriers stand and before nests are tiled: it needs to know where workers meet, and which nests a temporary
// stands in. Buffers stay apart until `flatten_storage` makes one of them, so that no pass between has to know, and
// what is printed says what was shared. After it they are one buffer, to the interpreters, to the runtime and to
// LLVM's alias scopes.
//
// How many rows a temporary has is known per call alone. So only those of one kind of rows (a row per node, per node of
// a batch, per edge of one container, ...) share: then the larger row decides, at compile time, and a call places
// nothing. Offsets worked out per call could also overlap rows of different kinds; a call would pay for that.
//
// A temporary is live from the first statement that touches it to the last, among the statements of the innermost loop
// around all of these; if its values may pass from one iteration of that loop to the next, all of the outermost loop
// around is its life. What is read at another node than a nest's own, such as a child, or at a root, shares with
// nobody: the row of zeros behind the last node is its own, and a call in pieces may read a row again that an earlier
// piece has stored. Two workers may be a barrier apart: what they share, and do not touch in their own slices alone,
// must have a barrier between the last use of the one and the first of the other, also around the loop.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/pass/insert_barriers.hpp"
#include "cortex/schedule/padded_layout.hpp"

namespace cortex::pass {

namespace detail {

class StorageSharer {
 public:
  explicit StorageSharer(bool several_workers) : several_workers_(several_workers) {}

  ir::Stmt run(const ir::Stmt& body) {
    regions_.push_back({});
    walk_block(body, 0);
    for (Temp& temp : temps_) settle(temp);
    for (std::size_t t = 0; t < temps_.size(); ++t)
      if (!temps_[t].elsewhere) place(t);
    const PointerMap<ir::Buffer> moved = homes();
    return moved.empty() ? body : ir::with_buffers(body, moved);
  }

 private:
  /// The statements of a loop that carries a dependence, or of the program (region 0).
  struct Region {
    int parent = -1, at = 0;  // which statement of the parent's it is
    int depth = 0;
    Vector<int> barriers;  // which of its own statements are barriers
  };
  /// A run of statements of a region, and whether a barrier stands inside of them before and after what they are about.
  struct Span {
    int region = 0, first = 0, last = 0;
    bool met_before = false, met_after = false;
  };
  struct Temp {
    ir::Buffer buffer;
    Span life;
    int first_store = -1, first_load = -1;  // numbers of nests
    bool elsewhere = false;                 // some access is not at the row of the nest's own node or edge
    Doer doer;                              // of all accesses; anyone: they differ
  };

  // ---- uses ----

  /// A temporary in memory; a packed or local one is none. One whose rows may be put in place before the program runs
  /// has its memory for itself.
  static bool is_temp(const ir::Buffer& buffer) {
    return buffer->role == ir::Role::temp && buffer->scope != ir::Scope::local && buffer->kept < 0;
  }

  void walk_block(const ir::Stmt& block, int region) {
    int at = 0;
    for (const ir::Stmt& stmt : schedule::stmts_of(block)) walk(stmt, region, at++);
  }

  void walk(const ir::Stmt& stmt, int region, int at) {
    if (stmt.as<ir::Barrier>()) return regions_[std::size_t(region)].barriers.push_back(at);
    if (const auto nest = schedule::parse_nest(stmt)) return use(*nest, {region, at, at});
    if (const auto* let = stmt.as<ir::LetStmt>()) {
      nodes_.emplace(let->var.get(), let->value);
      ++nests_;
      ir::visit_with(let->value, [&](const ir::Load& load) {
        use({load.buffer, load.indices, false}, {}, {region, at, at});
      });
      return walk(let->body, region, at);
    }
    if (stmt.as<ir::Block>()) return walk_in_order(stmt, region, at);
    const auto* loop = stmt.as<ir::For>();
    if (!loop) schedule::refuse_outside();
    ir::Stmt inner = loop->body;
    if (const auto* let = inner.as<ir::LetStmt>(); let && loop->dim == dims::sequence) {
      nodes_.emplace(let->var.get(), let->value);
      inner = let->body;
    }
    const int own = int(regions_.size());
    regions_.push_back({region, at, regions_[std::size_t(region)].depth + 1, {}});
    walk_block(inner, own);
  }

  /// A block below a let: all of it is one statement of the region.
  void walk_in_order(const ir::Stmt& block, int region, int at) {
    for (const ir::Stmt& stmt : schedule::stmts_of(block)) walk(stmt, region, at);
  }

  void use(const schedule::Nest& nest, const Span& here) {
    ++nests_;
    if (nest.let_var) nodes_.emplace(nest.let_var.get(), nest.let_value);
    for (const schedule::Access& access : schedule::accesses_of(nest.inner)) use(access, doer_of(nest, access), here);
  }

  void use(const schedule::Access& access, const Doer& doer, const Span& here) {
    if (!is_temp(access.buffer)) return;
    auto [number, fresh] = numbers_.emplace(access.buffer.id(), temps_.size());
    if (fresh) temps_.push_back({access.buffer, here, -1, -1, false, doer});
    Temp& temp = temps_[number->second];
    temp.life = joined(temp.life, here);
    int& first = access.write ? temp.first_store : temp.first_load;
    if (first < 0) first = nests_;
    temp.elsewhere |= !at_own_row(access);
    if (temp.doer != doer) temp.doer = {};
  }

  /// Whether `access` is at the row of a node or an edge that the loops around run over, and not at a child's, nor at a
  /// root's, which may have been computed with a piece of the call before (structure/pieces.hpp).
  bool at_own_row(const schedule::Access& access) const {
    const DimKind rows = ir::kind_of_rows(*access.buffer);
    if (rows != DimKind::node && rows != DimKind::edge) return true;
    ir::Expr index = access.indices[0];
    if (const auto* edge = index.as<ir::UfCall>(); edge && edge->uf.kind == ir::UfKind::edge) index = edge->args[0];
    if (!index.as<ir::Var>()) return false;
    const auto node = nodes_.find(index.get());
    if (node == nodes_.end()) return rows == DimKind::edge;
    const auto* call = node->second.as<ir::UfCall>();
    // What a loop over a subtree binds is a child of the node that the loop outside of it runs over.
    return !call || !(ir::is_child(call->uf.kind) || call->uf.kind == ir::UfKind::inner_child ||
                      call->uf.kind == ir::UfKind::root_node);
  }

  // ---- lives ----

  bool barrier_within(int region, int from, int to) const {
    const auto& barriers = regions_[std::size_t(region)].barriers;
    return any_of(barriers, [&](int at) { return from < at && at < to; });
  }

  Span outside(const Span& span) const {
    const Region& region = regions_[std::size_t(span.region)];
    return {region.parent, region.at, region.at, span.met_before || barrier_within(span.region, -1, span.first),
            span.met_after || barrier_within(span.region, span.last, INT32_MAX)};
  }

  /// The two spans as spans of the innermost region that holds both.
  std::pair<Span, Span> in_one_region(Span a, Span b) const {
    while (a.region != b.region) {
      const bool a_deeper = regions_[std::size_t(a.region)].depth >= regions_[std::size_t(b.region)].depth;
      Span& deeper = a_deeper ? a : b;
      deeper = outside(deeper);
    }
    return {a, b};
  }

  Span joined(const Span& x, const Span& y) const {
    const auto [a, b] = in_one_region(x, y);
    return {a.region, std::min(a.first, b.first), std::max(a.last, b.last)};
  }

  /// Nothing but rows of an iteration's own nodes or edges, stored before they are read, stays in its iteration.
  void settle(Temp& temp) const {
    const DimKind rows = ir::kind_of_rows(*temp.buffer);
    const bool stored_first = temp.first_store >= 0 && (temp.first_load < 0 || temp.first_store <= temp.first_load);
    if (rows != DimKind::dense && stored_first && !temp.elsewhere) return;
    while (temp.life.region != 0) temp.life = outside(temp.life);
  }

  // ---- who shares with whom ----

  bool may_share(const Temp& x, const Temp& y) const {
    const ir::BufferInfo &a = *x.buffer, &b = *y.buffer;
    if (a.dtype != b.dtype || a.scope != b.scope || a.slot != b.slot || ir::kind_of_rows(a) != ir::kind_of_rows(b))
      return false;
    auto [before, after] = in_one_region(x.life, y.life);
    if (after.first < before.first) std::swap(before, after);
    if (after.first <= before.last) return false;
    if (!several_workers_ || a.scope == ir::Scope::worker) return true;
    // Each worker touches its own columns alone, and those of the one are those of the other.
    if (x.doer.kind == Doer::owner && x.doer == y.doer && same_dims(a, b)) return true;
    const bool apart = before.met_after || after.met_before || barrier_within(before.region, before.last, after.first);
    const bool around = before.region == 0 || before.met_before || after.met_after ||
                        barrier_within(before.region, -1, before.first) ||
                        barrier_within(before.region, after.last, INT32_MAX);
    return apart && around;
  }

  static bool same_dims(const ir::BufferInfo& a, const ir::BufferInfo& b) {
    return std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end());
  }

  /// Elements of a row, or of all of a temporary without rows.
  static std::int64_t row_size(const ir::Buffer& buffer) {
    const ir::Layout layout = schedule::padded_layout(*buffer);
    return layout.row_size ? layout.row_size : layout.fixed_size;
  }

  /// Puts a temporary where it adds least: with others whose rows are large enough, the closest first, or alone.
  void place(std::size_t temp) {
    const std::int64_t size = row_size(temps_[temp].buffer);
    Vector<std::size_t>* best = nullptr;
    std::int64_t least = 0;
    for (Vector<std::size_t>& group : groups_) {
      std::int64_t largest = 0;
      bool fits = true;
      for (const std::size_t other : group) {
        fits = fits && may_share(temps_[other], temps_[temp]);
        largest = std::max(largest, row_size(temps_[other].buffer));
      }
      const std::int64_t added = std::max<std::int64_t>(size - largest, 0),
                         left = std::max<std::int64_t>(largest - size, 0);
      if (!fits || (best && added + left >= least)) continue;
      best = &group, least = added + left;
    }
    if (best)
      best->push_back(temp);
    else
      groups_.push_back({temp});
  }

  /// What each temporary becomes that lies in another's memory, which is the largest of its group.
  PointerMap<ir::Buffer> homes() const {
    PointerMap<ir::Buffer> result;
    for (const Vector<std::size_t>& group : groups_) {
      ir::Buffer largest = temps_[group[0]].buffer;
      for (const std::size_t t : group)
        if (row_size(temps_[t].buffer) > row_size(largest)) largest = temps_[t].buffer;
      for (const std::size_t t : group) {
        if (temps_[t].buffer == largest) continue;
        ir::BufferInfo info = *temps_[t].buffer;
        info.stored_in = largest;
        result.emplace(temps_[t].buffer.id(), ir::Buffer(std::move(info)));
      }
    }
    return result;
  }

  const bool several_workers_;
  Vector<Region> regions_;
  Vector<Temp> temps_;  // in order of their first uses
  PointerMap<std::size_t> numbers_;
  PointerMap<ir::Expr> nodes_;  // what variables stand for
  Vector<Vector<std::size_t>> groups_;
  int nests_ = 0;
};

}  // namespace detail

/// `several_workers`: more than one may run the program, with the barriers that it has.
inline ir::Stmt share_storage(const ir::Stmt& body, bool several_workers) {
  return detail::StorageSharer(several_workers).run(body);
}

}  // namespace cortex::pass
