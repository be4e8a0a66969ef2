// The work that a nest does on one output element, in two halves: sums of products, and what follows from them.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::schedule::detail {

/// The largest type that a nest stores: its vectors have that many lanes.
inline DType widest_stored(const ir::Stmt& inner) {
  DType widest = DType::f32;
  ir::visit_with(inner, [&](const ir::Store& store) {
    if (size_of(store.buffer->dtype) > size_of(widest)) widest = store.buffer->dtype;
  });
  return widest;
}

/// The work on one output element in two: the contractions, which a tile does for all its elements side by side, and
/// what follows from the sums, which is done element by element.
struct Halves {
  Vector<ir::Buffer> sums, locals;  // accumulators of the contractions; locals of the rest
  Vector<ir::Stmt> lead, rest;
  bool plain = true;  // no statement has locals of its own

  /// `with_folds`: contractions of each child, one child after the other, are among the contractions.
  explicit Halves(ir::Stmt inner, bool with_folds = false) {
    Vector<ir::Buffer> all;
    while (const auto* alloc = inner.as<ir::Alloc>()) {
      all.push_back(alloc->buffer);
      inner = alloc->body;
    }
    ir::visit_with(inner, [&](const ir::Alloc&) { plain = false; });
    for (const ir::Stmt& s : stmts_of(inner)) (rest.empty() && contracts(s, with_folds) ? lead : rest).push_back(s);
    // A store at the end starts an accumulator of the rest: a fold over children.
    while (!lead.empty() && lead.back().as<ir::Store>()) {
      rest.insert(rest.begin(), lead.back());
      lead.pop_back();
    }
    for (const ir::Buffer& buffer : all)
      (ir::stores_to(ir::Block::make(lead), buffer) ? sums : locals).push_back(buffer);
  }

  /// Other contractions follow, of what depends on the sums, and no functions, whose code would be there for each
  /// element if these contractions are side by side as well.
  bool only_contracts_more() const {
    const ir::Stmt all = ir::Block::make(rest);
    bool found = false;
    ir::visit_with(all, [&](const ir::For& loop) { found |= contracts(ir::handle_of(loop), false); });
    return found && !ir::has_functions(all);
  }

  /// Nothing follows but storing the sums, or multiples of them by weights' scales.
  bool only_stores() const {
    for (const ir::Stmt& s : rest)
      if (const auto* store = s.as<ir::Store>(); !store || !is_sum(store->value)) return false;
    return true;
  }

 private:
  static bool is_sum(const ir::Expr& e) {
    const auto* product = e.as<ir::Binary>();
    const auto* scale = product && product->op == ir::BinaryOp::mul ? product->b.as<ir::Load>() : nullptr;
    return e.as<ir::Load>() || (scale && scale->buffer->is_scales && is_sum(product->a));
  }
  static bool contracts(const ir::Stmt& s, bool with_folds) {
    if (const auto* loop = s.as<ir::For>())
      return loop->dim.kind() == DimKind::dense || (with_folds && contracts_each_child(*loop));
    const auto* store = s.as<ir::Store>();
    return store && store->buffer->scope == ir::Scope::local;
  }
};

}  // namespace cortex::schedule::detail
