// Counts what a program does, by walking it: constant loop extents multiply, and loops whose extents a call decides
// give the unit in which the rest is counted.
//
//   for leaves: for i = 0:256: for r = 0:256: fma(W[i,r],Emb[word(node),r],..)
//     ->   131072 operations a leaf; of weights 256 KB a call and 1 KB a leaf
//
// Any level before register tiles: these write out one nest for each number of rows, of which a call runs one.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/ir/work_unit.hpp"

namespace cortex::ir {

/// Operations, for each `unit`.
struct Operations {
  WorkUnit unit;
  double flops = 0;      // floating-point operations; a multiply-add is 2
  double functions = 0;  // transcendental ones and sqrt
};

/// Elements of a weight that differ from each other, read for each `unit`.
struct WeightRead {
  Buffer weight;
  WorkUnit unit;
  double bytes = 0;
};

/// One nest of a program, a barrier, or the head of a loop that carries a dependence.
struct WorkItem {
  enum class Kind : std::uint8_t { nest, barrier, loop } kind = Kind::nest;
  int depth = 0;                // how many such loops are around
  WorkUnit unit;                // loop: what one iteration is; nest: what its rows are
  Vector<Buffer> stored;        // what outlives the nest
  Vector<Buffer> exchanged;     // of that, what workers read of each other's
  bool by_each_worker = false;  // each worker does all of it for itself
  bool tabulated = false;       // calls do none of it where there are tables
  int gates = 0;                // how many sums it accumulates side by side at most; 0: it has no contraction
  double matrix_rows = 1;       // of the largest matrix that it stores for each row; 1: it stores vectors
  Vector<Operations> operations;
  Vector<WeightRead> weights;
};

namespace detail {

class WorkCounter {
 public:
  Vector<WorkItem> run(const Stmt& body) {
    top(body, {}, 0);
    for (std::size_t i = 0; i < items_.size(); ++i)
      for (const Buffer& buffer : items_[i].stored)
        if (is_exchanged(buffer, i)) items_[i].exchanged.push_back(buffer);
    return std::move(items_);
  }

 private:
  /// Where a walk stands: what is counted for each of, how often for each, what one iteration of the loop that carries
  /// the dependence is, and the variables that follow from loops that workers share, if any: what these give to one
  /// worker is not done by each.
  struct Place {
    WorkUnit unit, iteration;
    double times = 1;
    Vector<Expr> shared;
  };

  // ---- nests ----

  static bool carries(const For& loop) { return loop.dim == dims::all_batches || loop.dim == dims::sequence; }

  void top(const Stmt& stmt, const Place& place, int depth) {
    if (const auto* block = stmt.as<Block>()) {
      for (const Stmt& s : block->stmts) top(s, place, depth);
    } else if (const auto* let = stmt.as<LetStmt>()) {
      top(let->body, in_let(*let, place), depth);
    } else if (const auto* loop = stmt.as<For>(); loop && carries(*loop)) {
      Place inside = in_loop(*loop, place);
      inside.iteration = inside.unit;
      add_item(WorkItem::Kind::loop, depth, inside.unit);
      top(loop->body, inside, depth + 1);
    } else if (const auto* barrier = stmt.as<Barrier>()) {
      if (barrier->among != Meeting::workers) return;  // inside a worker
      add_item(WorkItem::Kind::barrier, depth, place.unit);
    } else {
      add_item(WorkItem::Kind::nest, depth, place.unit);
      reads_.clear();
      walk(stmt, place);
      sum_reads();
    }
  }

  WorkItem& item() { return items_.back(); }

  void add_item(WorkItem::Kind kind, int depth, const WorkUnit& unit) {
    items_.emplace_back();
    item().kind = kind, item().depth = depth, item().unit = unit;
  }

  /// Whether `e` counts rows that tables may hold.
  static bool is_of_tables(const Expr& e) {
    const auto* call = e.as<UfCall>();
    using enum UfKind;
    if (!call || call->uf.accessor < 0) return false;
    const UfKind kind = call->uf.kind;
    return kind == num_nodes || kind == num_leaves || kind == num_internal || kind == part_length ||
           kind == listed_length;
  }

  void walk(const Stmt& stmt, const Place& place) {
    switch (stmt->kind) {
      case StmtKind::block:
        for (const Stmt& s : stmt.as<Block>()->stmts) walk(s, place);
        break;
      case StmtKind::alloc: walk(stmt.as<Alloc>()->body, place); break;
      case StmtKind::let: {
        const auto& let = *stmt.as<LetStmt>();
        value(let.value, place);
        walk(let.body, in_let(let, place));
        break;
      }
      case StmtKind::store: store(*stmt.as<Store>(), place); break;
      case StmtKind::if_: branch(*stmt.as<If>(), place); break;
      case StmtKind::for_: {
        const auto& loop = *stmt.as<For>();
        const Place inside = in_loop(loop, place);
        if (loop.dim.kind() == DimKind::batch || loop.dim.kind() == DimKind::batch_edge) item().unit = inside.unit;
        const int sums = loop.dim.kind() == DimKind::dense ? sums_in(loop.body) : 0;
        item().gates = std::max(item().gates, sums);
        sums_around_ += sums;
        walk(loop.body, inside);
        sums_around_ -= sums;
        break;
      }
      case StmtKind::mma:
      case StmtKind::tile_rows:
      case StmtKind::tile_product:
      case StmtKind::join:
      case StmtKind::barrier:
      case StmtKind::prefetch: break;
    }
  }

  /// How many accumulators the body of a loop adds to directly.
  static int sums_in(const Stmt& body) {
    if (const auto* let = body.as<LetStmt>()) return sums_in(let->body);
    const auto adds = [](const Stmt& s) {
      const auto* store = s.as<Store>();
      return store && store->buffer->scope == Scope::local;
    };
    const auto* block = body.as<Block>();
    return block ? int(std::count_if(block->stmts.begin(), block->stmts.end(), adds)) : int(adds(body));
  }

  void store(const Store& store, const Place& place) {
    value(store.value, place);
    if (store.buffer->scope == Scope::local) return;
    if (sums_around_ == 0) item().matrix_rows = std::max(item().matrix_rows, rows_stored(store.indices));
    note_access(store.buffer, store.indices, place, true);
    item().by_each_worker |= store.buffer->scope == Scope::worker && place.shared.empty();
    if (!contains(item().stored, store.buffer)) item().stored.push_back(store.buffer);
  }

  /// How many values all indices but the last one have together, by loops over dense dimensions; but for those by which
  /// the products' weights are chosen beside that one: each row has weights of its own then.
  double rows_stored(const Vector<Expr>& indices) const {
    double rows = 1;
    for (std::size_t d = 0; d + 1 < indices.size(); ++d) {
      const auto extent = dense_.find(indices[d].get());
      const bool own = any_of(reads_, [&](const Read& read) {
        return uses(read.load, indices[d]) && uses(read.load, indices.back()) && is_summed(read.load, indices);
      });
      if (extent != dense_.end() && !own) rows *= extent->second;
    }
    return rows;
  }

  /// Whether `load` is read for more than these indices.
  bool is_summed(const Expr& load, const Vector<Expr>& indices) const {
    bool summed = false;
    visit_with(load, [&](const Var& var) {
      summed |= dense_.contains(&var) && !any_of(indices, [&](const Expr& index) { return index.get() == &var; });
    });
    return summed;
  }

  void branch(const If& n, const Place& place) {
    value(n.condition, place);
    const auto* compared = n.condition.as<Binary>();
    item().tabulated |= compared && is_of_tables(compared->a);
    Place yes = place, no = place;
    const auto* negation = n.condition.as<Unary>();
    const bool negated = negation && negation->op == UnaryOp::logical_not;
    const auto* call = (negated ? negation->a : n.condition).as<UfCall>();
    if (call && call->uf.kind == UfKind::is_leaf && place.unit.is_any(WorkUnit::Kind::node)) {
      yes.unit.kind = negated ? WorkUnit::Kind::inner_node : WorkUnit::Kind::leaf;
      no.unit.kind = negated ? WorkUnit::Kind::leaf : WorkUnit::Kind::inner_node;
    } else if (!is_of_worker(n.condition)) {
      yes.unit.where += " where " + print(n.condition);
      no.unit.where += " where not " + print(n.condition);
    }
    if (!n.else_body) item().unit = yes.unit;
    walk(n.then_body, yes);
    if (n.else_body) walk(n.else_body, no);
  }

  // ---- what workers have of each other ----

  /// A read, or a store of some item, and the dimensions whose indices follow from a loop that workers share: a bit for
  /// each.
  struct SharedDims {
    Buffer buffer;
    unsigned dims;
    bool write;
    std::size_t item;
    friend bool operator==(const SharedDims&, const SharedDims&) = default;
  };

  static bool uses_shared(const Expr& e, const Place& place) {
    return any_of(place.shared, [&](const Expr& var) { return uses(e, var); });
  }
  static Place in_let(const LetStmt& let, const Place& place) {
    Place inside = place;
    if (uses_shared(let.value, place)) inside.shared.push_back(let.var);
    return inside;
  }
  void note_access(const Buffer& buffer, const Vector<Expr>& indices, const Place& place, bool write) {
    if (buffer->role == Role::weight || buffer->scope != Scope::shared) return;
    SharedDims access{buffer, 0, write, write ? items_.size() - 1 : 0};
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (uses_shared(indices[d], place)) access.dims |= 1u << d;
    if (!contains(accesses_, access)) accesses_.push_back(access);
  }

  /// Whether some nest reads of the buffer by other dimensions than those by which workers write it in that item.
  bool is_exchanged(const Buffer& buffer, std::size_t item) const {
    for (const SharedDims& store : accesses_) {
      if (store.buffer != buffer || !store.write || store.item != item) continue;
      for (const SharedDims& read : accesses_)
        if (read.buffer == buffer && !read.write && !(read.dims & store.dims)) return true;
    }
    return false;
  }

  static bool is_of_worker(const Expr& condition) {
    bool found = false;
    visit_with(condition, [&](const UfCall& call) { found |= call.uf.kind == UfKind::worker; });
    return found;
  }

  // ---- loops ----

  Place in_loop(const For& loop, const Place& place) {
    Place inside = place;
    if (!items_.empty()) item().tabulated |= is_of_tables(loop.extent);
    if (loop.loop == ForKind::parallel) inside.shared.push_back(loop.var);
    if (const auto extent = as_int(loop.extent)) {
      extents_.insert_or_assign(loop.var.get(), double(*extent));
      if (loop.dim.kind() == DimKind::dense) dense_.insert_or_assign(loop.var.get(), double(*extent));
      inside.times *= double(*extent);
    } else {
      inside.unit = unit_of(loop, place);
    }
    return inside;
  }

  static WorkUnit unit_of(const For& loop, const Place& place) {
    using enum UfKind;
    using Kind = WorkUnit::Kind;
    const auto* extent = loop.extent.as<UfCall>();
    switch (extent ? extent->uf.kind : worker) {
      case num_nodes:
      case batch_length: return {Kind::node};
      case num_leaves: return {Kind::leaf};
      case num_internal:
      case internal_batch_length: return {Kind::inner_node};
      case num_batches:
      case num_internal_batches: return {Kind::level};
      case num_roots: return {Kind::root};
      case listed_length:
      case part_length: return {Kind::part_node, part_of(extent->args[0])};
      case num_groups: return {Kind::subtree_level};
      case group_length: return {Kind::subtree_top};
      case num_inner: return {Kind::below_top};
      case span_edges: return edge_of(row_unit(extent->args[1]));
      case num_children: return place.unit.is_any(Kind::root) ? WorkUnit{Kind::below_root} : edge_of(place.unit);
      default: return {Kind::iteration, 0, loop.dim.name()};
    }
  }

  /// What `count` counts, where it is how many nodes some rows are of.
  static WorkUnit row_unit(const Expr& count) {
    const auto* call = count.as<UfCall>();
    if (!call || call->uf.kind != UfKind::part_length) return {WorkUnit::Kind::node};
    return {WorkUnit::Kind::part_node, part_of(call->args[0])};
  }

  /// The part that `index`, a batch times the number of parts and the part, is of.
  static std::int64_t part_of(const Expr& index) {
    if (const auto constant = as_int(index)) return *constant;
    const auto* sum = index.as<Binary>();
    return sum && sum->op == BinaryOp::add ? as_int(sum->b).value_or(0) : 0;
  }

  // ---- expressions ----

  Operations& operations(const WorkUnit& unit) {
    for (Operations& known : item().operations)
      if (known.unit == unit) return known;
    return item().operations.emplace_back(Operations{unit});
  }

  /// Counts what computes `e`; a shared handle is computed once.
  void value(const Expr& e, const Place& place) {
    Operations sum;
    PointerSet seen;
    visit_with(
        e,
        [&](const Unary& n) {
          if (!seen.insert(&n)) return false;
          if (!is_float(n.type.dtype)) return true;
          using enum UnaryOp;
          if (is_transcendental(n.op) || n.op == sqrt) sum.functions += 1;
          if (n.op == relu || n.op == floor) sum.flops += 1;
          return true;
        },
        [&](const Binary& n) {
          if (!seen.insert(&n)) return false;
          if (is_transcendental(n.op))
            sum.functions += 2;  // an exponential and a logarithm
          else if (is_float(n.type.dtype))
            sum.flops += 1;
          return true;
        },
        [&](const Fma& n) {
          if (!seen.insert(&n)) return false;
          sum.flops += 2;
          return true;
        },
        [&](const Load& n) {
          if (!seen.insert(&n)) return false;
          if (n.buffer->role == Role::weight) reads_.push_back({handle_of(n), place});
          note_access(n.buffer, n.indices, place, false);
          return true;
        });
    if (sum.flops == 0 && sum.functions == 0) return;
    Operations& all = operations(place.unit);
    all.flops += sum.flops * place.times;
    all.functions += sum.functions * place.times;
  }

  // ---- weights ----

  struct Read {
    Expr load;
    Place place;
  };

  /// Of each weight the elements that the nest reads, the same ones counted once.
  void sum_reads() {
    Vector<Expr> counted;
    for (const Read& read : reads_) {
      const auto& load = *read.load.as<Load>();
      const auto same = [&](const Expr& other) { return equal(other, read.load); };
      if (any_of(counted, same)) continue;
      counted.push_back(read.load);
      double elements = 1;
      bool by_row = false;
      PointerSet loops;
      for (const Expr& index : load.indices)
        visit_with(
            index,
            [&](const Var& var) {
              const auto extent = extents_.find(&var);
              if (extent == extents_.end()) by_row = true;
              if (extent != extents_.end() && loops.insert(&var)) elements *= extent->second;
            },
            [&](const UfCall&) { return by_row = true, false; });
      const bool by_node = read.place.iteration.is_any(WorkUnit::Kind::node);  // of which a branch takes some
      add_read(load.buffer, by_row || by_node ? read.place.unit : read.place.iteration,
               elements * double(size_of(load.buffer->dtype)), by_row);
    }
  }

  void add_read(const Buffer& weight, const WorkUnit& unit, double bytes, bool by_row) {
    for (WeightRead& known : item().weights)
      if (known.weight == weight && known.unit == unit) {
        known.bytes += bytes;
        double whole = double(size_of(weight->dtype));
        for (const Dim& dim : weight->dims) whole *= double(dim.extent());
        if (!by_row && whole > 0) known.bytes = std::min(known.bytes, whole);
        return;
      }
    item().weights.push_back({weight, unit, bytes});
  }

  Vector<WorkItem> items_;
  PointerMap<double> extents_;  // of loops' variables
  PointerMap<double> dense_;    // of these, those of dense dimensions
  int sums_around_ = 0;         // accumulators of the loops around
  Vector<Read> reads_;          // of the nest at hand
  Vector<SharedDims> accesses_;
};

}  // namespace detail

/// The nests of `body` in order, with the barriers between them and the loops around.
inline Vector<WorkItem> count_work(const Stmt& body) { return detail::WorkCounter().run(body); }

/// The operations of all nests, by units in order of first appearance; what each worker does for itself counts once.
inline Vector<Operations> total_of(const Vector<WorkItem>& items) {
  Vector<Operations> total;
  for (const WorkItem& item : items)
    for (const Operations& more : item.operations) {
      auto at = std::find_if(total.begin(), total.end(), [&](const Operations& o) { return o.unit == more.unit; });
      if (at == total.end()) at = total.insert(at, {more.unit, 0, 0});
      at->flops += more.flops;
      at->functions += more.functions;
    }
  return total;
}

/// How many barriers a worker meets for each call and in each iteration of the loops that carry a dependence, by what
/// an iteration is. Loops of one unit count apart.
inline Vector<std::pair<WorkUnit, int>> barriers_of(const Vector<WorkItem>& items) {
  Vector<std::pair<WorkUnit, int>> result{{WorkUnit{WorkUnit::Kind::call}, 0}};
  Vector<std::size_t> around{0};  // the loops around, outermost first
  for (const WorkItem& item : items) {
    around.resize(std::size_t(item.depth) + 1);
    if (item.kind == WorkItem::Kind::barrier) ++result[around.back()].second;
    if (item.kind != WorkItem::Kind::loop) continue;
    around.push_back(result.size());
    result.emplace_back(item.unit, 0);
  }
  return result;
}

}  // namespace cortex::ir
