// Goes through a program with what is known at each place: the one walk of the analyses that ask a `Scope`.
//
//   for i = 0:n: if i < m: y[i] = x[i]      # at the accesses: i in [0, n), i < m; x[i] is read, then y[i] written
//
// What never runs is left out: loops without iterations, sides of branches that are never taken.
#pragma once

#include <string>

#include "cortex/base/function_ref.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/pass/scope.hpp"

namespace cortex::pass {

class ScopeWalk {
 public:
  /// `keep_atoms`: what is found is told in atoms of places inside.
  ScopeWalk(Scope& scope, bool keep_atoms) : scope_(scope), keep_atoms_(keep_atoms) {}

  void walk(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: {
        const auto& n = *s.as<ir::For>();
        walk(n.extent);
        if (never_runs(n.extent)) return;
        return inside(s, true, [&] {
          scope_.enter_loop(n.var, n.extent);
          walk(n.body);
        });
      }
      case ir::StmtKind::let: {
        const auto& n = *s.as<ir::LetStmt>();
        walk(n.value);
        return inside(s, true, [&] {
          scope_.enter_let(n.var, n.value);
          walk(n.body);
        });
      }
      case ir::StmtKind::if_: {
        const auto& n = *s.as<ir::If>();
        walk(n.condition);
        for (const bool taken : {true, false}) {
          const ir::Stmt& side = taken ? n.then_body : n.else_body;
          if (!side || scope_.entails(n.condition, !taken, true)) continue;
          inside(s, taken, [&] {
            scope_.assume(n.condition, taken);
            walk(side);
          });
        }
        return;
      }
      case ir::StmtKind::block:
        for (const ir::Stmt& part : s.as<ir::Block>()->stmts) walk(part);
        return;
      case ir::StmtKind::alloc: return walk(s.as<ir::Alloc>()->body);
      case ir::StmtKind::store: {
        const auto& n = *s.as<ir::Store>();
        for (const ir::Expr& index : n.indices) walk(index);
        walk(n.value);
        return access(n.buffer, n.indices, true);
      }
      case ir::StmtKind::mma:  // made after such passes
      case ir::StmtKind::tile_rows:
      case ir::StmtKind::tile_product:
      case ir::StmtKind::join:
      case ir::StmtKind::barrier:
      case ir::StmtKind::prefetch: return;
    }
  }

 protected:
  ~ScopeWalk() = default;

  /// A load, or a store, after what it needs.
  virtual void access(const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool store) = 0;
  virtual void function(const ir::UfCall&) {}

  Scope& scope() { return scope_; }
  Atoms& atoms() { return scope_.atoms(); }

  /// The loops, lets and conditions around here: `; inside for i = 0:n; if i < m`.
  std::string place() const {
    std::string text;
    for (const Around& around : around_) {
      text += text.empty() ? "; inside " : "; ";
      if (const auto* loop = around.stmt.as<ir::For>())
        text += "for " + ir::print(loop->var) + " = 0:" + ir::print(loop->extent);
      else if (const auto* let = around.stmt.as<ir::LetStmt>())
        text += ir::print(let->var) + " = " + ir::print(let->value);
      else
        text += (around.taken ? "if " : "if not ") + ir::print(around.stmt.as<ir::If>()->condition);
    }
    return text;
  }

  /// Whether a loop around here, of those of the walk, is of `var`.
  bool is_loop_around(const ir::Expr& var) const {
    for (const Around& around : around_)
      if (const auto* loop = around.stmt.as<ir::For>(); loop && loop->var.same_as(var)) return true;
    return false;
  }

 private:
  struct Around {
    ir::Stmt stmt;
    bool taken;  // which side of a branch
  };

  bool never_runs(const ir::Expr& extent) { return scope_.never_negative(Linear() - scope_.linear(extent), true); }

  void inside(const ir::Stmt& around, bool taken, FunctionRef<void()> body) {
    around_.push_back({around, taken});
    scope_.within([&] { body(); }, keep_atoms_);
    around_.pop_back();
  }

  /// All of `e`, both arms of selects included: generated code evaluates them both.
  void walk(const ir::Expr& e) {
    ir::visit_with(
        e,
        [&](const ir::Let& n) {
          walk(n.value);
          scope_.within(
              [&] {
                scope_.enter_let(n.var, n.value);
                walk(n.body);
              },
              keep_atoms_);
          return false;
        },
        [&](const ir::Load& load) { access(load.buffer, load.indices, false); },
        [&](const ir::UfCall& call) { function(call); });
  }

  Scope& scope_;
  const bool keep_atoms_;
  Vector<Around> around_;
};

}  // namespace cortex::pass
