// Rewriting and walking the IR with lambdas: one mutator and one visitor for all passes.
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex::ir {

using RewriteExpr = FunctionRef<Expr(const Expr&)>;
using RewriteStmt = FunctionRef<Stmt(const Stmt&)>;
using VisitExpr = FunctionRef<void(const Expr&)>;
using VisitStmt = FunctionRef<void(const Stmt&)>;

namespace detail {

/// The node type of a rule `(Mutator&, const T&)` and of a visitor `(const T&)`.
template <class Member>
struct RuleNodeOf;
template <class R, class F, class Self, class T>
struct RuleNodeOf<R (F::*)(Self&, const T&) const> {
  using type = T;
};
template <class R, class F, class Self, class T>
struct RuleNodeOf<R (F::*)(Self&, const T&)> {
  using type = T;
};
template <class R, class F, class T>
struct RuleNodeOf<R (F::*)(const T&) const> {
  using type = T;
};
template <class R, class F, class T>
struct RuleNodeOf<R (F::*)(const T&)> {
  using type = T;
};
template <class Member>
using RuleNode = typename RuleNodeOf<Member>::type;
template <class Member>
using VisitNode = typename RuleNodeOf<Member>::type;

inline bool rewrite_all(const Vector<Expr>& from, Vector<Expr>& to, RewriteExpr f) {
  bool changed = false;
  to.reserve(from.size());
  for (const Expr& e : from) {
    to.push_back(f(e));
    changed |= !to.back().same_as(e);
  }
  return changed;
}

inline void visit_all(const Vector<Expr>& children, VisitExpr f) {
  for (const Expr& child : children) f(child);
}

}  // namespace detail

/// `e` with `f` applied to each child; the same handle if no child changes.
inline Expr rebuild(const ExprNode& e, RewriteExpr f) {
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
      Vector<Expr> indices;
      return detail::rewrite_all(n.indices, indices, f) ? Load::make(n.buffer, std::move(indices)) : self();
    }
    case ExprKind::uf_call: {
      const auto& n = static_cast<const UfCall&>(e);
      Vector<Expr> args;
      return detail::rewrite_all(n.args, args, f) ? UfCall::make(n.uf, std::move(args)) : self();
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
inline Stmt rebuild(const StmtNode& s, RewriteExpr fe, RewriteStmt fs) {
  const auto self = [&] { return handle_of(s); };
  switch (s.kind) {
    case StmtKind::for_: {
      const auto& n = static_cast<const For&>(s);
      Expr extent = fe(n.extent);
      Stmt body = fs(n.body);
      if (extent.same_as(n.extent) && body.same_as(n.body)) return self();
      return For::make(n.var, n.dim, extent, n.loop, body, n.piece);
    }
    case StmtKind::let: {
      const auto& n = static_cast<const LetStmt&>(s);
      Expr value = fe(n.value);
      Stmt body = fs(n.body);
      return value.same_as(n.value) && body.same_as(n.body) ? self() : LetStmt::make(n.var, value, body);
    }
    case StmtKind::store: {
      const auto& n = static_cast<const Store&>(s);
      Vector<Expr> indices;
      const bool changed = detail::rewrite_all(n.indices, indices, fe);
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
      Vector<Stmt> stmts;
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
    case StmtKind::mma: {
      const auto& n = static_cast<const Mma&>(s);
      Vector<Expr> x;
      const Expr weights = fe(n.weights);
      return !detail::rewrite_all(n.x, x, fe) && weights.same_as(n.weights) ? self()
                                                                            : Mma::make(n.sum, weights, std::move(x));
    }
    case StmtKind::tile_rows: {
      const Expr rows = fe(static_cast<const TileRows&>(s).rows);
      return rows.same_as(static_cast<const TileRows&>(s).rows) ? self() : TileRows::make(rows);
    }
    case StmtKind::tile_product: {
      const auto& n = static_cast<const TileProduct&>(s);
      Vector<Expr> weights;
      const Expr x = fe(n.x), rows = fe(n.rows);
      const bool same = !detail::rewrite_all(n.weights, weights, fe) && x.same_as(n.x) && rows.same_as(n.rows);
      return same ? self() : TileProduct::make(n.sums, std::move(weights), x, rows, n.shape);
    }
    case StmtKind::join:
    case StmtKind::barrier: return self();
    case StmtKind::prefetch: {
      const auto& n = static_cast<const Prefetch&>(s);
      const Expr place = fe(n.place);
      return place.same_as(n.place) ? self() : Prefetch::make(place);
    }
  }
  throw Error(Code::internal, "a statement of an unknown kind");
}

/// Calls `f` with each child of `e`, in the order in which `rebuild` rewrites them: most walks change nothing, and
/// count no handles.
inline void each_child(const ExprNode& e, VisitExpr f) {
  switch (e.kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::var: return;
    case ExprKind::unary: return f(static_cast<const Unary&>(e).a);
    case ExprKind::binary: {
      const auto& n = static_cast<const Binary&>(e);
      return f(n.a), f(n.b);
    }
    case ExprKind::fma: {
      const auto& n = static_cast<const Fma&>(e);
      return f(n.a), f(n.b), f(n.c);
    }
    case ExprKind::select: {
      const auto& n = static_cast<const Select&>(e);
      return f(n.condition), f(n.then_value), f(n.else_value);
    }
    case ExprKind::cast: return f(static_cast<const Cast&>(e).a);
    case ExprKind::load: return detail::visit_all(static_cast<const Load&>(e).indices, f);
    case ExprKind::uf_call: return detail::visit_all(static_cast<const UfCall&>(e).args, f);
    case ExprKind::reduce: {
      const auto& n = static_cast<const Reduce&>(e);
      return f(n.axis.extent), f(n.body);
    }
    case ExprKind::let: {
      const auto& n = static_cast<const Let&>(e);
      return f(n.value), f(n.body);
    }
    case ExprKind::ramp: return f(static_cast<const Ramp&>(e).base);
    case ExprKind::broadcast: return f(static_cast<const Broadcast&>(e).value);
  }
  throw Error(Code::internal, "an expression of an unknown kind");
}

/// The same for a statement.
inline void each_child(const StmtNode& s, VisitExpr fe, VisitStmt fs) {
  switch (s.kind) {
    case StmtKind::for_: {
      const auto& n = static_cast<const For&>(s);
      return fe(n.extent), fs(n.body);
    }
    case StmtKind::let: {
      const auto& n = static_cast<const LetStmt&>(s);
      return fe(n.value), fs(n.body);
    }
    case StmtKind::store: {
      const auto& n = static_cast<const Store&>(s);
      return detail::visit_all(n.indices, fe), fe(n.value);
    }
    case StmtKind::if_: {
      const auto& n = static_cast<const If&>(s);
      fe(n.condition), fs(n.then_body);
      if (n.else_body) fs(n.else_body);
      return;
    }
    case StmtKind::block: {
      for (const Stmt& stmt : static_cast<const Block&>(s).stmts) fs(stmt);
      return;
    }
    case StmtKind::alloc: return fs(static_cast<const Alloc&>(s).body);
    case StmtKind::mma: {
      const auto& n = static_cast<const Mma&>(s);
      return fe(n.weights), detail::visit_all(n.x, fe);
    }
    case StmtKind::tile_rows: return fe(static_cast<const TileRows&>(s).rows);
    case StmtKind::tile_product: {
      const auto& n = static_cast<const TileProduct&>(s);
      return fe(n.x), fe(n.rows), detail::visit_all(n.weights, fe);
    }
    case StmtKind::join:
    case StmtKind::barrier: return;
    case StmtKind::prefetch: return fe(static_cast<const Prefetch&>(s).place);
  }
  throw Error(Code::internal, "a statement of an unknown kind");
}

/// Rewrites by rules for kinds of nodes; a kind without a rule is rebuilt from its rewritten children. In a rule,
/// `self(x)` rewrites a part and `self.children(node)` rebuilds the node from its rewritten children. Unchanged parts
/// keep their handles. One class for all passes, with its rules behind pointers: a class per set of rules makes every
/// translation unit pay for each pass.
class Mutator {
 public:
  Expr operator()(const Expr& e) {
    const Rule<Expr, ExprNode>& rule = exprs_[std::size_t(e->kind)];
    return rule.call ? rule.call(rule.lambda, *this, *e.get()) : children(*e.get());
  }
  Stmt operator()(const Stmt& s) {
    const Rule<Stmt, StmtNode>& rule = stmts_[std::size_t(s->kind)];
    return rule.call ? rule.call(rule.lambda, *this, *s.get()) : children(*s.get());
  }

  Expr children(const ExprNode& e) {
    return rebuild(e, [this](const Expr& child) { return (*this)(child); });
  }
  Stmt children(const StmtNode& s) {
    return rebuild(
        s, [this](const Expr& child) { return (*this)(child); }, [this](const Stmt& child) { return (*this)(child); });
  }

  /// Adds the rule `lambda`, which has to outlive this.
  template <class F>
  void add(F& lambda) {
    using T = detail::RuleNode<decltype(&F::template operator()<Mutator>)>;
    if constexpr (std::is_base_of_v<ExprNode, T>)
      add<Expr, ExprNode, T>(exprs_, lambda);
    else
      add<Stmt, StmtNode, T>(stmts_, lambda);
  }

 private:
  template <class Handle, class Node>
  struct Rule {
    void* lambda = nullptr;
    Handle (*call)(void*, Mutator&, const Node&) = nullptr;
  };

  template <class Handle, class Node, class T, class Rules, class F>
  static void add(Rules& rules, F& lambda) {
    rules[std::size_t(T::tag)] = {&lambda, [](void* f, Mutator& self, const Node& node) -> Handle {
                                    return (*static_cast<F*>(f))(self, static_cast<const T&>(node));
                                  }};
  }

  std::array<Rule<Expr, ExprNode>, std::size_t(ExprKind::broadcast) + 1> exprs_{};
  std::array<Rule<Stmt, StmtNode>, std::size_t(StmtKind::prefetch) + 1> stmts_{};
};

/// Rewrites `root` by lambdas `[](auto& self, const For& f) -> Stmt` and `[](auto& self, const Load& l) -> Expr`, any
/// number of them, each for one kind of node.
template <class Handle, class... Fs>
Handle mutate_with(const Handle& root, Fs... rules) {
  Mutator mutator;
  (mutator.add(rules), ...);
  return mutator(root);
}

/// Walks top-down by rules for kinds of nodes, behind pointers as those of a mutator.
class Visitor {
 public:
  void operator()(const Expr& e) const {
    const Rule<ExprNode>& rule = exprs_[std::size_t(e->kind)];
    if (!rule.call || rule.call(rule.lambda, *e.get())) children(*e.get());
  }
  void operator()(const Stmt& s) const {
    const Rule<StmtNode>& rule = stmts_[std::size_t(s->kind)];
    if (!rule.call || rule.call(rule.lambda, *s.get())) children(*s.get());
  }

  void children(const ExprNode& e) const {
    each_child(e, [this](const Expr& child) { (*this)(child); });
  }
  void children(const StmtNode& s) const {
    each_child(
        s, [this](const Expr& child) { (*this)(child); }, [this](const Stmt& child) { (*this)(child); });
  }

  /// Adds the rule `lambda`, which has to outlive this.
  template <class F>
  void add(F& lambda) {
    using T = detail::VisitNode<decltype(&F::operator())>;
    if constexpr (std::is_base_of_v<ExprNode, T>)
      exprs_[std::size_t(T::tag)] = {&lambda, call<F, T, ExprNode>};
    else
      stmts_[std::size_t(T::tag)] = {&lambda, call<F, T, StmtNode>};
  }

 private:
  template <class Node>
  struct Rule {
    void* lambda = nullptr;
    bool (*call)(void*, const Node&) = nullptr;  // whether to go on with the node's children
  };

  template <class F, class T, class Node>
  static bool call(void* lambda, const Node& node) {
    F& f = *static_cast<F*>(lambda);
    const T& visited = static_cast<const T&>(node);
    if constexpr (std::is_same_v<decltype(f(visited)), bool>)
      return f(visited);
    else
      f(visited);
    return true;
  }

  std::array<Rule<ExprNode>, std::size_t(ExprKind::broadcast) + 1> exprs_{};
  std::array<Rule<StmtNode>, std::size_t(StmtKind::prefetch) + 1> stmts_{};
};

/// Walks top-down, calling the lambdas `[](const For& f)` that fit; a lambda that returns false keeps its node's
/// children unvisited.
template <class Handle, class... Fs>
void visit_with(const Handle& root, Fs... rules) {
  Visitor visitor;
  (visitor.add(rules), ...);
  visitor(root);
}

/// From a variable to what replaces it.
using Substitution = PointerMap<Expr>;

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

/// Whether `root` reads tensors.
template <class Handle>
bool has_loads(const Handle& root) {
  bool found = false;
  visit_with(root, [&](const Load&) { found = true; });
  return found;
}

/// Adds the tensors that `root` reads to `buffers`.
template <class Handle>
void add_loaded(const Handle& root, PointerSet& buffers) {
  visit_with(root, [&](const Load& load) { buffers.insert(load.buffer.id()); });
}
/// Adds the tensors that `stmt` writes to `buffers`.
inline void add_stored(const Stmt& stmt, PointerSet& buffers) {
  visit_with(stmt, [&](const Store& store) { buffers.insert(store.buffer.id()); });
}

/// Whether `e` asks something of the structure, such as a node's field or its children.
inline bool asks_structure(const Expr& e) {
  bool found = false;
  visit_with(e, [&](const UfCall&) { found = true; });
  return found;
}

inline bool has_barrier(const Stmt& stmt) {
  bool found = false;
  visit_with(stmt, [&](const Barrier&) { found = true; });
  return found;
}

inline bool stores_to(const Stmt& stmt, const Buffer& buffer) {
  bool found = false;
  visit_with(stmt, [&](const Store& store) { found |= store.buffer == buffer; });
  return found;
}

/// Whether `root` computes functions, such as exp or a square root, or quotients: what is dearer than to read it.
template <class Handle>
bool has_functions(const Handle& root) {
  bool found = false;
  visit_with(
      root, [&](const Unary& n) { found |= is_transcendental(n.op) || n.op == UnaryOp::sqrt; },
      [&](const Binary& n) { found |= is_transcendental(n.op) || (n.op == BinaryOp::div && is_float(n.type.dtype)); });
  return found;
}

/// Whether any of these variables occurs in `e`.
inline bool uses_any(const Expr& e, const Vector<Expr>& vars) {
  return any_of(vars, [&](const Expr& var) { return uses(e, var); });
}
inline bool uses_any(const Expr& e, const PointerSet& vars) {
  bool found = false;
  visit_with(e, [&](const Var& v) { found |= vars.contains(&v); });
  return found;
}

}  // namespace cortex::ir
