// What kind of loop a loop is, which decides how it is copied out in CUDA.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/codegen/cuda_neighbours.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::codegen::detail {

/// Whether the loop's variable indexes a local array, which is in registers only where the loop is copied out.
inline bool indexes_registers(const ir::For& n) {
  bool found = false;
  const auto look = [&](const ir::Buffer& buffer, const Vector<ir::Expr>& indices) {
    for (const ir::Expr& index : indices) found |= buffer->scope == ir::Scope::local && ir::uses(index, n.var);
  };
  ir::visit_with(
      n.body, [&](const ir::Load& load) { look(load.buffer, load.indices); },
      [&](const ir::Store& store) { look(store.buffer, store.indices); });
  return found;
}

/// Whether several iterations at once hide the latency of the loads: an innermost loop that multiplies and adds.
inline bool is_contraction(const ir::For& n) {
  bool innermost = true, fma = false;
  ir::visit_with(
      n.body, [&](const ir::For&) { innermost = false; }, [&](const ir::Fma&) { fma = true; },
      [&](const ir::Mma&) { fma = true; });
  return innermost && fma && n.extent.as<ir::IntImm>();
}

/// Whether the loop does nothing but copy to shared memory.
inline bool fills_chip(const ir::For& n) {
  ir::Stmt body = n.body;
  while (const auto* let = body.as<ir::LetStmt>()) body = let->body;
  const auto* copy = body.as<ir::Store>();
  return copy && ir::keeps_weights(copy->buffer->scope) && copy->value.as<ir::Load>();
}

/// What an iteration of the loop loads from far away, once each: products of several gates have their operand in
/// common.
struct FarLoads {
  int elements = 0;
  Vector<ir::Expr> rows;  // to which a thread has a pointer each: what lies at constant distances has one

  explicit FarLoads(const ir::For& n) {
    Vector<ir::Expr> known;
    ir::visit_with(n.body, [&](const ir::Load& load) {
      const ir::Scope scope = load.buffer->scope;
      const bool far = scope == ir::Scope::spread || (scope != ir::Scope::local && !ir::is_on_chip(scope));
      const ir::Expr e = ir::handle_of(load);
      if (!far || !ir::uses(load.indices.front(), n.var) || holds(known, e)) return;
      known.push_back(e);
      elements += load.buffer->fragments ? 4 : 1;
      const ir::Expr row = ir::Load::make(load.buffer, {index_parts(load.indices.front()).moving});
      if (!holds(rows, row)) rows.push_back(row);
    });
  }

 private:
  static bool holds(const Vector<ir::Expr>& list, const ir::Expr& e) {
    return any_of(list, [&](const ir::Expr& other) { return ir::equal(other, e); });
  }
};

}  // namespace cortex::codegen::detail
