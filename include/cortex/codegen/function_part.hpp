// A part of a kernel that becomes a function of its own, and what that needs of what stands around it.
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// `body` reads `parameters`, whose values outside are `arguments`.
struct FunctionPart {
  ir::Stmt body;
  Vector<ir::Expr> parameters, arguments;
};

/// Whether an array has an element for each batch, or for each part of one: then there is an element wherever the batch
/// is bound.
inline bool is_of_batches(const ir::Buffer& buffer) {
  return buffer->role == ir::Role::index && buffer->slot >= ir::slot_of::batch_begin &&
         buffer->slot <= ir::slot_of::part_length;
}

/// The variables that are bound outside `s` become parameters; and so does where the nodes of a batch begin, which is
/// then the same part for one case of a switch as for another.
inline FunctionPart function_part(const ir::Stmt& s) {
  PointerSet bound;
  ir::visit_with(
      s, [&](const ir::For& n) { bound.insert(n.var.get()); }, [&](const ir::LetStmt& n) { bound.insert(n.var.get()); },
      [&](const ir::Let& n) { bound.insert(n.var.get()); });
  FunctionPart part;
  Vector<std::pair<ir::Expr, ir::Expr>> elements;  // of arrays of batches, and what stands for each
  part.body = ir::mutate_with(s, [&](auto& self, const ir::Load& load) -> ir::Expr {
    bool outside = is_of_batches(load.buffer) && load.indices.size() == 1 && load.type.lanes == 1;
    if (outside)
      ir::visit_with(
          load.indices[0], [&](const ir::Var& v) { outside &= !bound.contains(&v); },
          [&](const ir::Load&) { outside = false; });
    if (!outside) return self.children(load);
    const ir::Expr element = ir::handle_of(load);
    for (const auto& [known, parameter] : elements)
      if (ir::equal(known, element)) return parameter;
    return elements.emplace_back(element, ir::Var::make("given", load.type)).second;
  });
  ir::visit_with(part.body, [&](const ir::Var& v) {
    if (!bound.insert(&v)) return;
    part.parameters.push_back(ir::handle_of(v));
    part.arguments.push_back(part.parameters.back());
    for (const auto& [element, parameter] : elements)
      if (parameter.same_as(part.parameters.back())) part.arguments.back() = element;
  });
  return part;
}

}  // namespace cortex::codegen
