// What has been computed already, so that a shared handle of the IR is printed once where its result dominates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/expr.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// Whether a call only reads the buffer, so that neither a store nor a barrier can change what a load gives.
inline bool is_invariant(const ir::Buffer& buffer) {
  return buffer->scope != ir::Scope::local &&
         (buffer->role == ir::Role::weight || buffer->role == ir::Role::field || buffer->role == ir::Role::index);
}

/// What an integer is made of; the last counts.
enum class MadeOf : std::uint8_t {
  indices,   // variables of loops, constants, and numbers of nodes: nothing overflows
  counts,    // how many children there are: sums fit; what a user multiplies, or adds a large number to, may not
  anything,  // integers in the user's nodes: arithmetic on them wraps
};

/// What a load gives. Of the linearizer's arrays, users reach those alone by which children are counted.
inline MadeOf made_of(const ir::Load& load) {
  if (!is_int(load.type.dtype)) return MadeOf::indices;
  if (load.buffer->role != ir::Role::index || load.buffer->slot >= ir::slot_of::field) return MadeOf::anything;
  return load.buffer->slot >= ir::slot_of::edge_begin && load.buffer->slot < ir::slot_of::edge_child ? MadeOf::counts
                                                                                                     : MadeOf::indices;
}

/// An operand. It is `fixed` if no store or barrier can make a later evaluation give another value.
struct Operand {
  std::string text;
  bool fixed = true;
  MadeOf of = MadeOf::indices;
};

/// What `n` gives.
inline MadeOf made_of(const ir::Binary& n, const Operand& a, const Operand& b) {
  const MadeOf of = std::max(a.of, b.of);
  const auto large = [](const ir::Expr& e) {
    const auto* constant = e.as<ir::IntImm>();
    return constant && std::abs(constant->value) >= 1 << 30;
  };
  const bool grows = n.type.dtype == DType::i32 && (n.op == ir::BinaryOp::mul || large(n.a) || large(n.b));
  return grows && of == MadeOf::counts ? MadeOf::anything : of;
}

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
