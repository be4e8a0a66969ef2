// What statements read from memory, before them: so that it is on its way while something else is computed.
//
//   {a = join(..); c[node,i] = tanh(a) * c[child(node),i]}
//     ->
//   ahead = c[child(node),i]; {a = join(..); c[node,i] = tanh(a) * ahead}
//
// From a GPU's memory an element takes 300 cycles or more.
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::schedule {

/// The loads of statements that can be made before all of them: of memory that none of the statements before a load
/// stores to, at places that no local and no variable of theirs decides. What stands under a condition or in a loop
/// stays, since it may not be there, and so does what is on chip.
struct ReadAhead {
  Vector<std::pair<ir::Expr, ir::Expr>> loads;  // variables, and what they stand for
  Vector<ir::Stmt> rest;                        // the statements, with the variables

  explicit ReadAhead(const Vector<ir::Stmt>& stmts) {
    for (const ir::Stmt& s : stmts)
      ir::visit_with(
          s, [&](const ir::Let& let) { bound_.insert(let.var.get()); },
          [&](const ir::LetStmt& let) { bound_.insert(let.var.get()); });
    for (const ir::Stmt& s : stmts) rest.push_back(reading_ahead(s));
  }

 private:
  ir::Stmt reading_ahead(const ir::Stmt& s) {
    if (const auto* block = s.as<ir::Block>()) {
      Vector<ir::Stmt> stmts;
      for (const ir::Stmt& child : block->stmts) stmts.push_back(reading_ahead(child));
      return ir::Block::make(stmts);
    }
    if (const auto* let = s.as<ir::LetStmt>()) {
      const ir::Expr value = with_variables(let->value);
      return ir::LetStmt::make(let->var, value, reading_ahead(let->body));
    }
    const ir::Stmt result = s.as<ir::Store>() ? with_variables(s) : s;
    ir::add_stored(s, stored_);
    return result;
  }

  template <class Handle>
  Handle with_variables(const Handle& s) {
    return ir::mutate_with(
        s,
        [&](auto& self, const ir::Load& load) -> ir::Expr {
          const ir::Expr e = ir::handle_of(load);
          return !ir::is_on_chip(load.buffer->scope) && is_known(e) ? variable(e) : self.children(load);
        },
        [&](auto& self, const ir::Select& either) -> ir::Expr {
          const ir::Expr e = ir::handle_of(either);
          if (!ir::is_near_or_far(either) || !is_known(e)) return self.children(either);
          return variable(e);
        });
  }

  /// Whether a value is the same before all statements.
  bool is_known(const ir::Expr& e) const {
    bool known = true;
    ir::visit_with(
        e,
        [&](const ir::Load& load) {
          known &= load.buffer->scope != ir::Scope::local && !stored_.contains(load.buffer.id());
        },
        [&](const ir::Var& v) { known &= !bound_.contains(&v); });
    return known;
  }

  ir::Expr variable(const ir::Expr& e) {
    for (const auto& [variable, load] : loads)
      if (ir::equal(load, e)) return variable;
    return loads.emplace_back(ir::Var::make("ahead", e.type()), e).first;
  }

  PointerSet bound_, stored_;
};

}  // namespace cortex::schedule
