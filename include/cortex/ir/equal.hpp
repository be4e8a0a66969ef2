// Structural equality of expressions and statements.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "cortex/ir/mutate.hpp"

namespace cortex::ir {

namespace detail {

/// Compares two trees, pairing the variables and local buffers that they bind in the same places.
class Equality {
 public:
  bool operator()(const Expr& a, const Expr& b) {
    if (a.same_as(b)) return renamed_.empty() || !a || unaffected(a);
    if (!a || !b || a->kind != b->kind || !(a.type() == b.type())) return false;
    switch (a->kind) {
      case ExprKind::int_imm: return a.as<IntImm>()->value == b.as<IntImm>()->value;
      case ExprKind::float_imm: return same_number(a.as<FloatImm>()->value, b.as<FloatImm>()->value);
      case ExprKind::var: return paired(a.get(), b.get());
      case ExprKind::unary: return a.as<Unary>()->op == b.as<Unary>()->op && a.as<Unary>()->exact == b.as<Unary>()->exact && (*this)(a.as<Unary>()->a, b.as<Unary>()->a);
      case ExprKind::binary: return a.as<Binary>()->op == b.as<Binary>()->op && (*this)(a.as<Binary>()->a, b.as<Binary>()->a) && (*this)(a.as<Binary>()->b, b.as<Binary>()->b);
      case ExprKind::fma: return all({a.as<Fma>()->a, a.as<Fma>()->b, a.as<Fma>()->c}, {b.as<Fma>()->a, b.as<Fma>()->b, b.as<Fma>()->c});
      case ExprKind::select: {
        const auto &x = *a.as<Select>(), &y = *b.as<Select>();
        return all({x.condition, x.then_value, x.else_value}, {y.condition, y.then_value, y.else_value});
      }
      case ExprKind::cast: return (*this)(a.as<Cast>()->a, b.as<Cast>()->a);
      case ExprKind::load: return same_buffer(a.as<Load>()->buffer, b.as<Load>()->buffer) && all(a.as<Load>()->indices, b.as<Load>()->indices);
      case ExprKind::uf_call: return a.as<UfCall>()->uf == b.as<UfCall>()->uf && all(a.as<UfCall>()->args, b.as<UfCall>()->args);
      case ExprKind::reduce: {
        const auto &x = *a.as<Reduce>(), &y = *b.as<Reduce>();
        return x.op == y.op && x.axis.dim == y.axis.dim && (*this)(x.axis.extent, y.axis.extent) && binding(x.axis.var, y.axis.var, [&] { return (*this)(x.body, y.body); });
      }
      case ExprKind::let: {
        const auto &x = *a.as<Let>(), &y = *b.as<Let>();
        return (*this)(x.value, y.value) && binding(x.var, y.var, [&] { return (*this)(x.body, y.body); });
      }
      case ExprKind::ramp: return (*this)(a.as<Ramp>()->base, b.as<Ramp>()->base);
      case ExprKind::broadcast: return (*this)(a.as<Broadcast>()->value, b.as<Broadcast>()->value);
    }
    return false;
  }

  bool operator()(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    if (a.same_as(b) && renamed_.empty() && buffers_.empty()) return true;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
      case StmtKind::for_: {
        const auto &x = *a.as<For>(), &y = *b.as<For>();
        if (x.loop != y.loop || !(x.dim == y.dim) || !(*this)(x.extent, y.extent)) return false;
        return binding(x.var, y.var, [&] { return (*this)(x.body, y.body); });
      }
      case StmtKind::let: {
        const auto &x = *a.as<LetStmt>(), &y = *b.as<LetStmt>();
        return (*this)(x.value, y.value) && binding(x.var, y.var, [&] { return (*this)(x.body, y.body); });
      }
      case StmtKind::store: {
        const auto &x = *a.as<Store>(), &y = *b.as<Store>();
        return same_buffer(x.buffer, y.buffer) && all(x.indices, y.indices) && (*this)(x.value, y.value);
      }
      case StmtKind::if_: {
        const auto &x = *a.as<If>(), &y = *b.as<If>();
        return (*this)(x.condition, y.condition) && (*this)(x.then_body, y.then_body) && (*this)(x.else_body, y.else_body);
      }
      case StmtKind::block: {
        const auto &x = a.as<Block>()->stmts, &y = b.as<Block>()->stmts;
        return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [&](const Stmt& s, const Stmt& t) { return (*this)(s, t); });
      }
      case StmtKind::alloc: {
        const auto &x = *a.as<Alloc>(), &y = *b.as<Alloc>();
        if (x.buffer->dtype != y.buffer->dtype || x.buffer->lanes != y.buffer->lanes || x.buffer->dims.size() != y.buffer->dims.size()) return false;
        buffers_[x.buffer.id()] = y.buffer.id();
        const bool result = (*this)(x.body, y.body);
        buffers_.erase(x.buffer.id());
        return result;
      }
      case StmtKind::barrier: return true;
    }
    return false;
  }

 private:
  static bool same_number(double a, double b) { return a == b || (a != a && b != b); }

  bool all(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](const Expr& x, const Expr& y) { return (*this)(x, y); });
  }

  bool paired(const ExprNode* a, const ExprNode* b) const {
    const auto it = renamed_.find(a);
    return it == renamed_.end() ? a == b : it->second == b;
  }

  bool same_buffer(const Buffer& a, const Buffer& b) const {
    const auto it = buffers_.find(a.id());
    return it == buffers_.end() ? a == b : it->second == b.id();
  }

  /// One handle on both sides means the same only if none of its variables is bound to another on the right.
  bool unaffected(const Expr& e) const {
    for (const auto& [from, to] : renamed_)
      if (from != to && mentions(e, from)) return false;
    return true;
  }
  static bool mentions(const Expr& e, const ExprNode* var) {
    bool found = false;
    visit_with(e, [&](const Var& v) { found |= &v == var; });
    return found;
  }

  template <class F>
  bool binding(const Expr& a, const Expr& b, F compare) {
    if (!(a.type() == b.type())) return false;
    renamed_[a.get()] = b.get();
    const bool result = compare();
    renamed_.erase(a.get());
    return result;
  }

  std::unordered_map<const ExprNode*, const ExprNode*> renamed_;
  std::unordered_map<const void*, const void*> buffers_;
};

}  // namespace detail

/// Whether two expressions are the same up to the names of the variables that they bind.
inline bool equal(const Expr& a, const Expr& b) { return detail::Equality()(a, b); }

/// The same for statements, and up to the identity of the local buffers that they allocate.
inline bool equal(const Stmt& a, const Stmt& b) { return detail::Equality()(a, b); }

}  // namespace cortex::ir
