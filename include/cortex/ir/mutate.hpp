// Rewriting and walking the IR with lambdas: one mutator and one visitor for all passes.
#pragma once

#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cortex/ir/build.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex::ir {

namespace detail {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

template <class F>
bool rewrite_all(const std::vector<Expr>& from, std::vector<Expr>& to, F& f) {
  bool changed = false;
  to.reserve(from.size());
  for (const Expr& e : from) {
    to.push_back(f(e));
    changed |= !to.back().same_as(e);
  }
  return changed;
}

/// `e` with `f` applied to each child; the same handle if no child changes.
template <class F>
Expr rebuild(const ExprNode& e, F&& f) {
  const auto self = [&] { return handle_of(e); };
  switch (e.kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::var: return self();
    case ExprKind::unary: {
      const auto& n = static_cast<const Unary&>(e);
      Expr a = f(n.a);
      return a.same_as(n.a) ? self() : Unary::make(n.op, a, n.exact);
    }
    case ExprKind::binary: {
      const auto& n = static_cast<const Binary&>(e);
      Expr a = f(n.a), b = f(n.b);
      return a.same_as(n.a) && b.same_as(n.b) ? self() : binary(n.op, a, b);
    }
    case ExprKind::fma: {
      const auto& n = static_cast<const Fma&>(e);
      Expr a = f(n.a), b = f(n.b), c = f(n.c);
      return a.same_as(n.a) && b.same_as(n.b) && c.same_as(n.c) ? self() : Fma::make(a, b, c);
    }
    case ExprKind::select: {
      const auto& n = static_cast<const Select&>(e);
      Expr c = f(n.condition), t = f(n.then_value), o = f(n.else_value);
      const bool same = c.same_as(n.condition) && t.same_as(n.then_value) && o.same_as(n.else_value);
      return same ? self() : Select::make(c, t, o);
    }
    case ExprKind::cast: {
      const auto& n = static_cast<const Cast&>(e);
      Expr a = f(n.a);
      return a.same_as(n.a) ? self() : Cast::make(n.type.dtype, a);
    }
    case ExprKind::load: {
      const auto& n = static_cast<const Load&>(e);
      std::vector<Expr> indices;
      return rewrite_all(n.indices, indices, f) ? Load::make(n.buffer, std::move(indices)) : self();
    }
    case ExprKind::uf_call: {
      const auto& n = static_cast<const UfCall&>(e);
      std::vector<Expr> args;
      return rewrite_all(n.args, args, f) ? UfCall::make(n.uf, std::move(args)) : self();
    }
    case ExprKind::reduce: {
      const auto& n = static_cast<const Reduce&>(e);
      Expr extent = f(n.axis.extent), body = f(n.body);
      const bool same = extent.same_as(n.axis.extent) && body.same_as(n.body);
      return same ? self() : Reduce::make(n.op, {n.axis.var, n.axis.dim, extent}, body);
    }
    case ExprKind::let: {
      const auto& n = static_cast<const Let&>(e);
      Expr value = f(n.value), body = f(n.body);
      return value.same_as(n.value) && body.same_as(n.body) ? self() : Let::make(n.var, value, body);
    }
    case ExprKind::ramp: {
      const auto& n = static_cast<const Ramp&>(e);
      Expr base = f(n.base);
      return base.same_as(n.base) ? self() : Ramp::make(base, n.type.lanes);
    }
    case ExprKind::broadcast: {
      const auto& n = static_cast<const Broadcast&>(e);
      Expr value = f(n.value);
      return value.same_as(n.value) ? self() : Broadcast::make(value, n.type.lanes);
    }
  }
  throw Error(Code::internal, "an expression of an unknown kind");
}

/// The same for a statement: `fe` is applied to expressions, `fs` to statements.
template <class FE, class FS>
Stmt rebuild(const StmtNode& s, FE&& fe, FS&& fs) {
  const auto self = [&] { return handle_of(s); };
  switch (s.kind) {
    case StmtKind::for_: {
      const auto& n = static_cast<const For&>(s);
      Expr extent = fe(n.extent);
      Stmt body = fs(n.body);
      return extent.same_as(n.extent) && body.same_as(n.body) ? self() : For::make(n.var, n.dim, extent, n.loop, body);
    }
    case StmtKind::let: {
      const auto& n = static_cast<const LetStmt&>(s);
      Expr value = fe(n.value);
      Stmt body = fs(n.body);
      return value.same_as(n.value) && body.same_as(n.body) ? self() : LetStmt::make(n.var, value, body);
    }
    case StmtKind::store: {
      const auto& n = static_cast<const Store&>(s);
      std::vector<Expr> indices;
      const bool changed = rewrite_all(n.indices, indices, fe);
      Expr value = fe(n.value);
      return !changed && value.same_as(n.value) ? self() : Store::make(n.buffer, std::move(indices), value);
    }
    case StmtKind::if_: {
      const auto& n = static_cast<const If&>(s);
      Expr condition = fe(n.condition);
      Stmt then_body = fs(n.then_body), else_body = n.else_body ? fs(n.else_body) : Stmt();
      const bool same =
          condition.same_as(n.condition) && then_body.same_as(n.then_body) && else_body.same_as(n.else_body);
      return same ? self() : If::make(condition, then_body, else_body);
    }
    case StmtKind::block: {
      const auto& n = static_cast<const Block&>(s);
      std::vector<Stmt> stmts;
      bool changed = false;
      for (const Stmt& stmt : n.stmts) {
        stmts.push_back(fs(stmt));
        changed |= !stmts.back().same_as(stmt);
      }
      return changed ? Block::make(stmts) : self();
    }
    case StmtKind::alloc: {
      const auto& n = static_cast<const Alloc&>(s);
      Stmt body = fs(n.body);
      return body.same_as(n.body) ? self() : Alloc::make(n.buffer, body);
    }
    case StmtKind::barrier: return self();
  }
  throw Error(Code::internal, "a statement of an unknown kind");
}

}  // namespace detail

/// Rewrites bottom-up by lambdas `[](auto& self, const For& f) -> Stmt` and `[](auto& self, const Load& l) -> Expr`,
/// any number of them. A node kind without lambda is rebuilt from its rewritten children. Inside a lambda `self(x)`
/// rewrites a part and `self.children(node)` rebuilds the node from its rewritten children. Unchanged parts keep
/// their handles.
template <class F>
class Mutator {
 public:
  explicit Mutator(F rules) : rules_(std::move(rules)) {}

  Expr operator()(const Expr& e) {
    switch (e->kind) {
      case ExprKind::int_imm: return apply<IntImm>(e);
      case ExprKind::float_imm: return apply<FloatImm>(e);
      case ExprKind::var: return apply<Var>(e);
      case ExprKind::unary: return apply<Unary>(e);
      case ExprKind::binary: return apply<Binary>(e);
      case ExprKind::fma: return apply<Fma>(e);
      case ExprKind::select: return apply<Select>(e);
      case ExprKind::cast: return apply<Cast>(e);
      case ExprKind::load: return apply<Load>(e);
      case ExprKind::uf_call: return apply<UfCall>(e);
      case ExprKind::reduce: return apply<Reduce>(e);
      case ExprKind::let: return apply<Let>(e);
      case ExprKind::ramp: return apply<Ramp>(e);
      case ExprKind::broadcast: return apply<Broadcast>(e);
    }
    throw Error(Code::internal, "an expression of an unknown kind");
  }

  Stmt operator()(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::for_: return apply<For>(s);
      case StmtKind::let: return apply<LetStmt>(s);
      case StmtKind::store: return apply<Store>(s);
      case StmtKind::if_: return apply<If>(s);
      case StmtKind::block: return apply<Block>(s);
      case StmtKind::alloc: return apply<Alloc>(s);
      case StmtKind::barrier: return apply<Barrier>(s);
    }
    throw Error(Code::internal, "a statement of an unknown kind");
  }

  Expr children(const ExprNode& e) {
    return detail::rebuild(e, [this](const Expr& child) { return (*this)(child); });
  }
  Stmt children(const StmtNode& s) {
    return detail::rebuild(
        s, [this](const Expr& child) { return (*this)(child); }, [this](const Stmt& child) { return (*this)(child); });
  }

 private:
  template <class T, class Handle>
  Handle apply(const Handle& h) {
    const T& node = static_cast<const T&>(*h.get());
    if constexpr (std::is_invocable_v<F&, Mutator&, const T&>)
      return rules_(*this, node);
    else
      return children(node);
  }
  F rules_;
};

template <class Handle, class... Fs>
Handle mutate_with(const Handle& root, Fs... rules) {
  Mutator mutator(detail::Overloaded<Fs...>{std::move(rules)...});
  return mutator(root);
}

/// Walks top-down, calling the lambdas `[](const For& f)` that fit; a lambda that returns false keeps its node's
/// children unvisited.
template <class Handle, class... Fs>
void visit_with(const Handle& root, Fs... rules) {
  detail::Overloaded<Fs...> all{std::move(rules)...};
  const auto enter = [&](auto& self, const auto& node) {
    using T = std::remove_cvref_t<decltype(node)>;
    if constexpr (std::is_invocable_v<decltype(all)&, const T&>) {
      if constexpr (std::is_same_v<std::invoke_result_t<decltype(all)&, const T&>, bool>) {
        if (!all(node)) return handle_of(node);
      } else {
        all(node);
      }
    }
    self.children(node);
    return handle_of(node);
  };
  mutate_with(
      root, [&](auto& self, const IntImm& n) { return enter(self, n); },
      [&](auto& self, const FloatImm& n) { return enter(self, n); },
      [&](auto& self, const Var& n) { return enter(self, n); },
      [&](auto& self, const Unary& n) { return enter(self, n); },
      [&](auto& self, const Binary& n) { return enter(self, n); },
      [&](auto& self, const Fma& n) { return enter(self, n); },
      [&](auto& self, const Select& n) { return enter(self, n); },
      [&](auto& self, const Cast& n) { return enter(self, n); },
      [&](auto& self, const Load& n) { return enter(self, n); },
      [&](auto& self, const UfCall& n) { return enter(self, n); },
      [&](auto& self, const Reduce& n) { return enter(self, n); },
      [&](auto& self, const Let& n) { return enter(self, n); },
      [&](auto& self, const Ramp& n) { return enter(self, n); },
      [&](auto& self, const Broadcast& n) { return enter(self, n); },
      [&](auto& self, const For& n) { return enter(self, n); },
      [&](auto& self, const LetStmt& n) { return enter(self, n); },
      [&](auto& self, const Store& n) { return enter(self, n); },
      [&](auto& self, const If& n) { return enter(self, n); },
      [&](auto& self, const Block& n) { return enter(self, n); },
      [&](auto& self, const Alloc& n) { return enter(self, n); },
      [&](auto& self, const Barrier& n) { return enter(self, n); });
}

/// From a variable to what replaces it.
using Substitution = std::unordered_map<const ExprNode*, Expr>;

/// `root` with variables replaced.
template <class Handle>
Handle substitute(const Handle& root, const Substitution& map) {
  if (map.empty()) return root;
  return mutate_with(root, [&](auto&, const Var& v) -> Expr {
    const auto found = map.find(&v);
    return found == map.end() ? handle_of(v) : found->second;
  });
}

/// Whether `var` occurs in `root`.
template <class Handle>
bool uses(const Handle& root, const Expr& var) {
  bool found = false;
  visit_with(root, [&](const Var& v) { found |= &v == var.get(); });
  return found;
}

}  // namespace cortex::ir
