// Whether a program is legal at its level: which nodes may stand where, that everything is bound before it is used, and
// that a tensor's dimensions are indexed by loops over those dimensions (paper section 5, I4). A program that does not
// verify is a defect of the pass that made it.
//
//   ra          expressions of the operator graph: reductions, no vectors
//   loops       serial loops; no reductions, vectors or barriers
//   scheduled   all kinds of loops, vectors, and barriers outside of parallel loops and conditionals; those of threads
//               where all threads of a block come
//   device      serial loops and one offset a buffer, whose layout is known; of the functions only the worker's number
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::ir {

inline std::string_view to_string(Level level) {
  constexpr std::string_view names[] = {"ra", "loops", "scheduled", "device"};
  return names[std::size_t(level)];
}

namespace detail {

class Verifier {
 public:
  explicit Verifier(Level level) : level_(level) {}

  void program(const Program& p) {
    if (!p.body) fail("a program has a body", p.name);
    for (const Buffer& buffer : p.buffers) {
      if (buffer->scope == Scope::local) fail("a local buffer is not among the program's", buffer->name);
      if (!listed_.insert(buffer.id())) fail("a buffer is listed once", buffer->name);
    }
    whole_program_ = true;
    stmt(p.body);
  }

  /// An expression alone: its variables are bound by whoever uses it.
  void alone(const Expr& e) {
    free_variables_ = true;
    expr(e);
  }

  void stmt(const Stmt& s) {
    if (level_ == Level::ra) fail("there are no statements in the operator graph", s);
    switch (s->kind) {
      case StmtKind::for_: return loop(*s.as<For>());
      case StmtKind::let: {
        const auto& n = *s.as<LetStmt>();
        expr(n.value);
        return bound(n.var, nullptr, s, differs_by_thread(n.value), [&] { stmt(n.body); });
      }
      case StmtKind::store: return store(*s.as<Store>());
      case StmtKind::if_: return branch(*s.as<If>());
      case StmtKind::block:
        for (const Stmt& child : s.as<Block>()->stmts) stmt(child);
        return;
      case StmtKind::alloc: return alloc(*s.as<Alloc>());
      case StmtKind::mma: return mma(*s.as<Mma>());
      case StmtKind::join: return join(*s.as<Join>());
      case StmtKind::tile_rows: return expr(s.as<TileRows>()->rows);
      case StmtKind::tile_product: return tile_product(*s.as<TileProduct>());
      case StmtKind::barrier: return barrier(s);
      case StmtKind::prefetch:
        if (!vectors_allowed()) fail("nothing is prefetched before work is shared", s);
        return expr(s.as<Prefetch>()->place);
    }
  }

 private:
  bool vectors_allowed() const { return level_ == Level::scheduled || level_ == Level::device; }

  // ---- statements ----

  void loop(const For& n) {
    const Stmt self = handle_of(n);
    if (n.var.lanes() > 1 || !is_int(n.var.dtype()) || n.extent.lanes() > 1)
      fail("a loop counts with an integer", self);
    if (n.loop != ForKind::serial && level_ != Level::scheduled) fail("loops are serial", self);
    const bool copied = n.loop == ForKind::vectorized || n.loop == ForKind::unrolled;
    if (copied && !n.extent.as<IntImm>()) fail("a vectorized or unrolled loop has a constant extent", self);
    if (n.loop == ForKind::parts && !n.extent.as<IntImm>()) fail("a sum has a constant number of parts", self);
    if (const auto* extent = n.extent.as<IntImm>(); n.piece > 1 && (!extent || extent->value % n.piece))
      fail("a loop in pieces has a constant extent, a multiple of a piece", self);
    expr(n.extent);
    const int apart = n.loop == ForKind::parallel, vectors = n.loop == ForKind::vectorized;
    const int own = n.loop == ForKind::threads || differs_by_thread(n.extent);
    apart_ += apart, vectorized_ += vectors, by_thread_ += own;
    bound(n.var, &n, self, own, [&] { stmt(n.body); });
    apart_ -= apart, vectorized_ -= vectors, by_thread_ -= own;
  }

  void store(const Store& n) {
    const Stmt self = handle_of(n);
    const bool constant =
        n.buffer->role == Role::weight || n.buffer->role == Role::field || n.buffer->role == Role::index;
    if (constant && n.buffer->scope != Scope::local) fail("a call does not store to its inputs", self);
    const int lanes = access(n.buffer, n.indices, self);
    expr(n.value);
    if (n.value.lanes() != 1 && n.value.lanes() != lanes) fail("what is stored has as many lanes as its place", self);
  }

  void branch(const If& n) {
    expr(n.condition);
    const int own = differs_by_thread(n.condition);
    ++conditions_, by_thread_ += own;
    stmt(n.then_body);
    if (n.else_body) stmt(n.else_body);
    --conditions_, by_thread_ -= own;
  }

  void alloc(const Alloc& n) {
    const Stmt self = handle_of(n);
    for (const Dim& dim : n.buffer->dims)
      if (dim.extent() < 1) fail("a local buffer has constant extents", self);
    if (!allocated_.insert(n.buffer.id())) fail("a buffer is not allocated inside its own allocation", self);
    stmt(n.body);
    allocated_.erase(n.buffer.id());
  }

  void mma(const Mma& n) {
    const Stmt self = handle_of(n);
    if (!vectors_allowed()) fail("there are no warps before work is shared", self);
    if (!allocated_.contains(n.sum.id())) fail("a local buffer is used inside its allocation", self);
    expr(n.weights);
    for (const Expr& x : n.x) expr(x);
  }

  void tile_product(const TileProduct& n) {
    const Stmt self = handle_of(n);
    if (!vectors_allowed() || vectorized_) fail("products are tiled when work is shared, outside of vectors", self);
    if (!allocated_.contains(n.sums.id())) fail("a local buffer is used inside its allocation", self);
    for (const Expr& weights : n.weights) expr(weights);
    expr(n.x);
    expr(n.rows);
  }

  void join(const Join& n) {
    const Stmt self = handle_of(n);
    if (!vectors_allowed()) fail("there are no warps before work is shared", self);
    if (!allocated_.contains(n.sum.id()) || !allocated_.contains(n.terms.id()))
      fail("a local buffer is used inside its allocation", self);
  }

  void barrier(const Stmt& s) {
    if (!vectors_allowed()) fail("there are no barriers before work is shared", s);
    // The threads of a worker run its iterations of a parallel loop together; those of a warp may be asked the same.
    if (s.as<Barrier>()->among == Meeting::warp) return;
    const bool together = s.as<Barrier>()->among == Meeting::threads;
    if (vectorized_ || (apart_ && !together)) fail("no barrier stands inside a parallel or vectorized loop", s);
    if (conditions_ && !together) fail("no barrier stands inside a conditional", s);
    if (by_thread_) fail("a barrier stands where all threads of a block come", s);
  }

  // ---- expressions ----

  void expr(const Expr& e) {
    if (e.lanes() > 1 && !vectors_allowed()) fail("there are no vectors before loops are vectorized", e);
    switch (e->kind) {
      case ExprKind::int_imm:
      case ExprKind::float_imm: return;
      case ExprKind::var:
        if (!free_variables_ && !bound_.contains(e.get())) fail("a variable is used inside its scope", e);
        return;
      case ExprKind::unary: return expr(e.as<Unary>()->a);
      case ExprKind::binary: return each({e.as<Binary>()->a, e.as<Binary>()->b});
      case ExprKind::fma: return each({e.as<Fma>()->a, e.as<Fma>()->b, e.as<Fma>()->c});
      case ExprKind::select:
        return each({e.as<Select>()->condition, e.as<Select>()->then_value, e.as<Select>()->else_value});
      case ExprKind::cast: return expr(e.as<Cast>()->a);
      case ExprKind::load: return void(access(e.as<Load>()->buffer, e.as<Load>()->indices, e));
      case ExprKind::uf_call: return call(*e.as<UfCall>(), e);
      case ExprKind::reduce: return reduce(*e.as<Reduce>(), e);
      case ExprKind::let: {
        const auto& n = *e.as<Let>();
        expr(n.value);
        return bound(n.var, nullptr, e, differs_by_thread(n.value), [&] { expr(n.body); });
      }
      case ExprKind::ramp: return expr(e.as<Ramp>()->base);
      case ExprKind::broadcast: return expr(e.as<Broadcast>()->value);
    }
  }

  void each(std::initializer_list<Expr> parts) {
    for (const Expr& part : parts) expr(part);
  }

  void call(const UfCall& n, const Expr& e) {
    const bool of_worker =
        n.uf.kind == UfKind::worker || n.uf.kind == UfKind::num_workers || n.uf.kind == UfKind::thread;
    if (level_ == Level::device && !of_worker) fail("uninterpreted functions have got their meaning", e);
    for (const Expr& arg : n.args) {
      if (arg.lanes() > 1) fail("an uninterpreted function takes no vector", e);
      expr(arg);
    }
  }

  void reduce(const Reduce& n, const Expr& e) {
    if (level_ != Level::ra) fail("reductions have become loops", e);
    expr(n.axis.extent);
    bound(n.axis.var, nullptr, e, false, [&] { expr(n.body); });
  }

  // ---- buffers ----

  /// Checks an access; gives the number of lanes of what is read or written.
  template <class Handle>
  int access(const Buffer& buffer, const Vector<Expr>& indices, const Handle& self) {
    const bool local = buffer->scope == Scope::local, flat = level_ == Level::device && !(local && indices.empty());
    if (local && !allocated_.contains(buffer.id())) fail("a local buffer is used inside its allocation", self);
    if (!local && whole_program_ && !listed_.contains(buffer.id())) fail("a buffer is among the program's", self);
    if (!local && flat && buffer->layout.empty()) fail("a buffer has a layout", self);
    if (flat ? indices.size() != 1 : indices.size() != buffer->dims.size())
      fail(flat ? "a buffer has one index, an offset" : "a buffer has one index a dimension", self);
    int lanes = 1;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      expr(indices[d]);
      if (indices[d].lanes() > 1 && lanes > 1 && indices[d].lanes() != lanes)
        fail("the indices have equally many lanes", self);
      lanes = std::max(lanes, indices[d].lanes());
      if (!flat && !local) related(buffer->dims[d], indices[d], buffer, self);
    }
    if (lanes > 1 && buffer->lanes > 1) fail("a buffer of vectors has no vector index", self);
    return std::max(lanes, buffer->lanes);
  }

  /// I4: a loop over one dimension does not index another. The compiler's own dimensions are related by lets, and local
  /// buffers are the compiler's own; the number of a part is an index where a sum has no more terms than parts. What
  /// was `i + 0` in the operator graph, of the first elements of a longer dimension, is `i` here.
  template <class Handle>
  void related(const Dim& dim, const Expr& index, const Buffer& buffer, const Handle& self) const {
    const auto found = index.as<Var>() ? bound_.find(index.get()) : bound_.end();
    if (found == bound_.end() || !found->second || found->second->loop == ForKind::parts) return;
    const Dim& loop = found->second->dim;
    if (loop.kind() != DimKind::dense || (dim.kind() != DimKind::dense && dim.kind() != DimKind::open) || loop == dim)
      return;
    if (dim.kind() == DimKind::dense && loop.extent() <= dim.extent()) return;
    fail("dimension '" + dim.name() + "' of '" + buffer->name + "' is not indexed by a loop over '" + loop.name() + "'",
         self);
  }

  template <class Handle, class F>
  void bound(const Expr& var, const For* loop, const Handle& self, bool by_thread, F body) {
    if (!bound_.emplace(var.get(), loop).second) fail("a variable is not bound inside its own scope", self);
    if (by_thread) of_thread_.insert(var.get());
    body();
    if (by_thread) of_thread_.erase(var.get());
    bound_.erase(var.get());
  }

  /// Whether the threads of a block may have different values for `e`.
  bool differs_by_thread(const Expr& e) const {
    bool found = false;
    visit_with(
        e, [&](const Var& v) { found |= of_thread_.contains(&v); },
        [&](const UfCall& call) { found |= call.uf.kind == UfKind::thread; });
    return found;
  }

  // ---- messages ----

  template <class Handle>
  [[noreturn]] void fail(const std::string& rule, const Handle& node) const {
    fail(rule, print(node));
  }
  [[noreturn]] void fail(const std::string& rule, const std::string& node) const {
    constexpr std::size_t longest = 240;
    const bool cut = node.size() > longest;
    throw Error(Code::internal, "verify(" + std::string(to_string(level_)) + "): " + rule + ": " +
                                    (cut ? node.substr(0, longest) + " ..." : node));
  }

  Level level_;
  bool free_variables_ = false, whole_program_ = false;
  // How many loops or conditionals, around here, do not let a barrier stand.
  int apart_ = 0, vectorized_ = 0, conditions_ = 0, by_thread_ = 0;
  PointerMap<const For*> bound_;  // the loop of a loop's variable; null for a let's
  PointerSet listed_, allocated_, of_thread_;
};

}  // namespace detail

/// Throws `Error{internal}` naming the rule and the node that breaks it. An expression alone may have free variables; a
/// statement may not. A program's buffers are also held against its list of buffers.
inline void verify(const Expr& e, Level level) { detail::Verifier(level).alone(e); }
inline void verify(const Stmt& s, Level level) { detail::Verifier(level).stmt(s); }
inline void verify(const Program& p, Level level) { detail::Verifier(level).program(p); }

}  // namespace cortex::ir
