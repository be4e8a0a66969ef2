// Structural equality: whether two expressions or statements say the same, whatever their bound variables are called.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex::ir {

namespace detail {

/// Compares two trees under a renaming of what is bound inside of them: variables and local buffers of the left one to
/// those of the right one, in both directions one to one.
class Equality {
 public:
  bool operator()(const Expr& a, const Expr& b) {
    if (renamed_ == 0 && a.same_as(b)) return true;
    if (!a || !b) return !a && !b;
    if (a->kind != b->kind || a.type() != b.type()) return false;
    switch (a->kind) {
      case ExprKind::int_imm: return a.as<IntImm>()->value == b.as<IntImm>()->value;
      case ExprKind::float_imm:  // by bits: 0 and -0 are different constants, and a NaN equals itself
        return std::bit_cast<std::uint64_t>(a.as<FloatImm>()->value) ==
               std::bit_cast<std::uint64_t>(b.as<FloatImm>()->value);
      case ExprKind::var: return same(a.get(), b.get());
      case ExprKind::unary: return of(*a.as<Unary>(), *b.as<Unary>());
      case ExprKind::binary: return of(*a.as<Binary>(), *b.as<Binary>());
      case ExprKind::fma: return of(*a.as<Fma>(), *b.as<Fma>());
      case ExprKind::select: return of(*a.as<Select>(), *b.as<Select>());
      case ExprKind::cast: return (*this)(a.as<Cast>()->a, b.as<Cast>()->a);
      case ExprKind::load: return of(*a.as<Load>(), *b.as<Load>());
      case ExprKind::uf_call:
        return a.as<UfCall>()->uf == b.as<UfCall>()->uf && all(a.as<UfCall>()->args, b.as<UfCall>()->args);
      case ExprKind::reduce: return of(*a.as<Reduce>(), *b.as<Reduce>());
      case ExprKind::let: return of(*a.as<Let>(), *b.as<Let>());
      case ExprKind::ramp: return (*this)(a.as<Ramp>()->base, b.as<Ramp>()->base);
      case ExprKind::broadcast: return (*this)(a.as<Broadcast>()->value, b.as<Broadcast>()->value);
    }
    return false;
  }

  bool operator()(const Stmt& a, const Stmt& b) {
    if (renamed_ == 0 && a.same_as(b)) return true;
    if (!a || !b) return !a && !b;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
      case StmtKind::for_: return of(*a.as<For>(), *b.as<For>());
      case StmtKind::let: return of(*a.as<LetStmt>(), *b.as<LetStmt>());
      case StmtKind::store: return of(*a.as<Store>(), *b.as<Store>());
      case StmtKind::if_: return of(*a.as<If>(), *b.as<If>());
      case StmtKind::block: return all(a.as<Block>()->stmts, b.as<Block>()->stmts);
      case StmtKind::alloc: return of(*a.as<Alloc>(), *b.as<Alloc>());
      case StmtKind::mma:
        return same(a.as<Mma>()->sum.id(), b.as<Mma>()->sum.id()) &&
               (*this)(a.as<Mma>()->weights, b.as<Mma>()->weights) && all(a.as<Mma>()->x, b.as<Mma>()->x);
      case StmtKind::tile_rows: return (*this)(a.as<TileRows>()->rows, b.as<TileRows>()->rows);
      case StmtKind::tile_product: return of(*a.as<TileProduct>(), *b.as<TileProduct>());
      case StmtKind::join:
        return same(a.as<Join>()->sum.id(), b.as<Join>()->sum.id()) &&
               same(a.as<Join>()->terms.id(), b.as<Join>()->terms.id()) &&
               a.as<Join>()->threads == b.as<Join>()->threads;
      case StmtKind::barrier: return a.as<Barrier>()->among == b.as<Barrier>()->among;
      case StmtKind::prefetch: return (*this)(a.as<Prefetch>()->place, b.as<Prefetch>()->place);
    }
    return false;
  }

 private:
  bool of(const Unary& a, const Unary& b) { return a.op == b.op && a.exact == b.exact && (*this)(a.a, b.a); }
  bool of(const Binary& a, const Binary& b) { return a.op == b.op && (*this)(a.a, b.a) && (*this)(a.b, b.b); }
  bool of(const Fma& a, const Fma& b) { return (*this)(a.a, b.a) && (*this)(a.b, b.b) && (*this)(a.c, b.c); }
  bool of(const Select& a, const Select& b) {
    return (*this)(a.condition, b.condition) && (*this)(a.then_value, b.then_value) &&
           (*this)(a.else_value, b.else_value);
  }
  bool of(const Load& a, const Load& b) { return same(a.buffer.id(), b.buffer.id()) && all(a.indices, b.indices); }
  bool of(const Reduce& a, const Reduce& b) {
    return a.op == b.op && a.axis.dim == b.axis.dim && (*this)(a.axis.extent, b.axis.extent) &&
           inside(a.axis.var, b.axis.var, a.body, b.body);
  }
  bool of(const Let& a, const Let& b) { return (*this)(a.value, b.value) && inside(a.var, b.var, a.body, b.body); }

  bool of(const For& a, const For& b) {
    return a.loop == b.loop && a.piece == b.piece && a.dim == b.dim && (*this)(a.extent, b.extent) &&
           inside(a.var, b.var, a.body, b.body);
  }
  bool of(const LetStmt& a, const LetStmt& b) {
    return (*this)(a.value, b.value) && inside(a.var, b.var, a.body, b.body);
  }
  bool of(const Store& a, const Store& b) {
    return same(a.buffer.id(), b.buffer.id()) && all(a.indices, b.indices) && (*this)(a.value, b.value);
  }
  bool of(const If& a, const If& b) {
    return (*this)(a.condition, b.condition) && (*this)(a.then_body, b.then_body) && (*this)(a.else_body, b.else_body);
  }
  bool of(const TileProduct& a, const TileProduct& b) {
    return same(a.sums.id(), b.sums.id()) && all(a.weights, b.weights) && (*this)(a.x, b.x) &&
           (*this)(a.rows, b.rows) && a.shape == b.shape;
  }
  bool of(const Alloc& a, const Alloc& b) {
    const BufferInfo &x = *a.buffer, &y = *b.buffer;
    const bool alike = x.dtype == y.dtype && x.dims == y.dims && x.lanes == y.lanes && x.layout == y.layout;
    return alike && under(a.buffer.id(), b.buffer.id(), a.body, b.body);
  }

  template <class Handle>
  bool all(const Vector<Handle>& a, const Vector<Handle>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(*this)(a[i], b[i])) return false;
    return true;
  }

  template <class Handle>
  bool inside(const Expr& x, const Expr& y, const Handle& a, const Handle& b) {
    return x.type() == y.type() && under(x.get(), y.get(), a, b);
  }

  /// Whether `a` and `b` are equal where `x` is called `y`.
  template <class Handle>
  bool under(const void* x, const void* y, const Handle& a, const Handle& b) {
    bound_.emplace_back(x, y);
    renamed_ += x != y;
    const bool result = (*this)(a, b);
    renamed_ -= x != y;
    bound_.pop_back();
    return result;
  }

  /// Whether `x` of the left tree is what `y` is in the right one. The innermost binding of either decides.
  bool same(const void* x, const void* y) const {
    for (const auto& pair : reversed(bound_))
      if (pair.first == x || pair.second == y) return pair.first == x && pair.second == y;
    return x == y;
  }

  Vector<std::pair<const void*, const void*>> bound_;
  int renamed_ = 0;  // how many of them differ: at 0 a handle equals itself unseen
};

}  // namespace detail

/// Whether `a` and `b` are equal up to the names of the variables that they bind (loops, lets, reductions) and of the
/// local buffers that they allocate. Free variables and all other buffers are equal only to themselves.
inline bool equal(const Expr& a, const Expr& b) { return detail::Equality()(a, b); }
inline bool equal(const Stmt& a, const Stmt& b) { return detail::Equality()(a, b); }

}  // namespace cortex::ir
