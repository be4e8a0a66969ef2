// What has been computed already, so that a shared handle of the IR is printed once where its result dominates.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/expr.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// Whether a call only reads the buffer, so that neither a store nor a barrier can change what a load gives.
inline bool is_invariant(const ir::Buffer& buffer) {
  return buffer->scope != ir::Scope::local &&
         (buffer->role == ir::Role::weight || buffer->role == ir::Role::field || buffer->role == ir::Role::index);
}

/// Whether a load gives integers that stand in the user's nodes, and not what the linearizer makes of them.
inline bool is_data(const ir::Load& load) {
  return is_int(load.type.dtype) && (load.buffer->role != ir::Role::index || load.buffer->slot >= ir::slots::field);
}

/// Whether what `n` gives may exceed its 32 bits: products of what the linearizer counts are the user's.
inline bool may_wrap(const ir::Binary& n) {
  if (n.op != ir::BinaryOp::mul || n.type.dtype != DType::i32) return false;
  bool counts = false;
  for (const ir::Expr& factor : {n.a, n.b}) ir::visit_with(factor, [&](const ir::Load&) { counts = true; });
  return counts;
}

/// An operand. It is `fixed` if no store or barrier can make a later evaluation give another value, and `data` if it is
/// made of integers in the user's nodes, or of products of counts: these may be any, so that arithmetic on integers
/// made of them wraps.
struct Operand {
  std::string text;
  bool fixed = true;
  bool data = false;
};

/// From nodes to operands. Scopes nest as the code's blocks do: leaving one forgets what does not dominate the code
/// after it. Operands that are not fixed last for one statement.
class Memo {
 public:
  struct Mark {
    std::size_t fixed, passing;
  };

  const Operand* find(const ir::ExprNode* node) const {
    const auto found = known_.find(node);
    return found == known_.end() ? nullptr : &found->second;
  }

  void add(const ir::ExprNode* node, Operand operand) {
    (operand.fixed ? fixed_ : passing_).push_back(node);
    if (!known_.emplace(node, std::move(operand)).second)
      throw Error(Code::internal, "printed text: a variable is bound inside its own scope");
  }

  Mark enter() const { return {fixed_.size(), passing_.size()}; }

  void leave(Mark mark) {
    forget(fixed_, mark.fixed);
    forget(passing_, mark.passing);
  }

  /// At the end of a statement: memory may change from here on.
  void forget_loads() { forget(passing_, 0); }

 private:
  void forget(Vector<const ir::ExprNode*>& nodes, std::size_t keep) {
    for (; nodes.size() > keep; nodes.pop_back()) known_.erase(nodes.back());
  }

  PointerMap<Operand> known_;
  Vector<const ir::ExprNode*> fixed_, passing_;
};

}  // namespace cortex::codegen
