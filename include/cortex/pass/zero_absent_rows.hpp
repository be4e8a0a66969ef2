// Zeroes, at the start of a call, the row behind the last node of every tensor over the nodes in which children are
// read: what absent children have. On CPUs the workspace does it; a GPU's memory is out of the caller's reach.
//
//   for n: h[n,i] = ..     ->     {for absent: h[num_nodes,absent] = 0; for n: h[n,i] = ..}
//
// Runs before work is shared: then the barriers see these stores as they see others. Its loops have a name of their
// own: schedules by hand name the others as they are.
#pragma once

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::pass {

inline ir::Stmt zero_absent_rows(const ir::Stmt& body) {
  PointerSet nodes;  // variables that are a node of the loops around, and no child
  const auto bind = [&](const ir::Expr& var, const ir::Expr& value) {
    const auto* call = value.as<ir::UfCall>();
    // Loops over subtrees bind children, too. A root is there, but is not asked about: of what is read at roots alone a
    // row is zeroed that nothing reads.
    const bool other = call && (ir::is_child(call->uf.kind) || call->uf.kind == ir::UfKind::inner_child ||
                                call->uf.kind == ir::UfKind::root_node);
    if (!other) nodes.insert(var.get());
  };
  ir::visit_with(
      body, [&](const ir::LetStmt& let) { bind(let.var, let.value); },
      [&](const ir::Let& let) { bind(let.var, let.value); },
      [&](const ir::For& loop) { nodes.insert(loop.var.get()); });
  Vector<ir::Buffer> read;
  ir::visit_with(body, [&](const ir::Load& load) {
    const ir::BufferInfo& buffer = *load.buffer;
    if (!ir::changes_in_calls(buffer) || ir::kind_of_rows(buffer) != DimKind::node) return;
    if (nodes.contains(load.indices[0].get())) return;
    for (const ir::Buffer& known : read)
      if (known == load.buffer) return;
    read.push_back(load.buffer);
  });
  Vector<ir::Stmt> stmts;
  for (const ir::Buffer& buffer : read) {
    Vector<ir::Expr> indices{ir::num_nodes()};
    for (std::size_t d = 1; d < buffer->dims.size(); ++d) indices.push_back(ir::Var::make("absent"));
    ir::Stmt stmt = ir::Store::make(buffer, indices, ir::constant(0, {buffer->dtype, 1}));
    for (std::size_t d = buffer->dims.size(); d-- > 1;)
      stmt = ir::For::make(indices[d], buffer->dims[d], ir::imm(buffer->dims[d].extent()), ir::ForKind::serial, stmt);
    stmts.push_back(stmt);
  }
  if (stmts.empty()) return body;
  stmts.push_back(body);
  return ir::Block::make(stmts);
}

}  // namespace cortex::pass
