// Whether a node may write its row of a recycled state where the row of a child stands that nobody else reads.
//
//   for b: for n: S[node,d,e] = f[node] * S[prev(node),d,e] + k[node,d] * v[node,e]    # the row of prev(node)
//
// Then a sequence has one row, which half the cache holds. Each element of a child has to be read for the last time
// before the node's own one stands there: in the same iteration, or in statements and nests before it.
#pragma once

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/pass/insert_barriers.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::pass {

namespace detail {

class ChildrenOverwritten {
 public:
  explicit ChildrenOverwritten(const ir::Stmt& body) {
    schedule::for_each_nest(body, [&](const schedule::Nest& nest) {
      if (nest.level) add(nest);  // leaves have no children, and after the levels roots alone are read
    });
  }

  bool may_be() const { return may_be_; }

 private:
  void add(const schedule::Nest& nest) {
    Vector<const ir::Store*> stores;
    ir::visit_with(nest.inner, [&](const ir::Store& store) {
      if (store.buffer->recycled) stores.push_back(&store);
    });
    ir::visit_with(nest.inner, [&](const ir::Load& load) {  // in nests behind the one that has written
      may_be_ &= !stored_.contains(load.buffer.id()) || load.indices[0].same_as(nest.let_var);
    });
    for (const ir::Store* store : stores) {
      may_be_ &= stored_.insert(store->buffer.id());  // by one nest, for all parts of a level
      element_ = store, written_ = false;
      ir::Stmt work = nest.inner;
      while (const auto* alloc = work.as<ir::Alloc>()) work = ir::Stmt(alloc->body);
      for (const ir::Stmt& stmt : schedule::stmts_of(work)) {
        if (ir::stores_to(stmt, store->buffer))
          walk(stmt);
        else
          check(stmt, [&](const ir::Load& load) { return !written_ && is_of_same_outputs(load, nest); });
      }
    }
  }

  /// A statement with the store: each of its iterations has an element of its own.
  void walk(const ir::Stmt& stmt) {
    const auto in_time = [&](const ir::Load& load) { return !written_ && is_same_element(load); };
    if (const auto* block = stmt.as<ir::Block>()) {
      for (const ir::Stmt& s : block->stmts) walk(s);
    } else if (const auto* let = stmt.as<ir::LetStmt>()) {
      check(let->value, in_time);
      walk(let->body);
    } else if (const auto* loop = stmt.as<ir::For>()) {
      may_be_ &= !ir::stores_to(stmt, element_->buffer) || contains_var(element_->indices, loop->var);
      walk(loop->body);
    } else if (const auto* alloc = stmt.as<ir::Alloc>()) {
      walk(alloc->body);
    } else {
      check(stmt, in_time);
      written_ |= ir::stores_to(stmt, element_->buffer);
    }
  }

  /// Notes whether `fits` holds for all that `root` reads of the state at other nodes.
  template <class Handle, class Fits>
  void check(const Handle& root, const Fits& fits) {
    ir::visit_with(root, [&](const ir::Load& load) {
      if (load.buffer == element_->buffer && !load.indices[0].same_as(element_->indices[0])) may_be_ &= fits(load);
    });
  }

  bool is_same_element(const ir::Load& load) const {
    bool same = true;
    for (std::size_t d = 1; d < load.indices.size(); ++d) same &= load.indices[d].same_as(element_->indices[d]);
    return same;
  }
  /// Whether no other iteration of the nest's loops writes what is read.
  bool is_of_same_outputs(const ir::Load& load, const schedule::Nest& nest) const {
    bool same = true;
    for (std::size_t d = 1; d < load.indices.size(); ++d)
      for (const schedule::LoopHeader& loop : nest.loops)
        same &= !element_->indices[d].same_as(loop.var) || load.indices[d].same_as(loop.var);
    return same;
  }
  static bool contains_var(const Vector<ir::Expr>& indices, const ir::Expr& var) {
    return any_of(indices, [&](const ir::Expr& index) { return index.same_as(var); });
  }

  PointerSet stored_;
  const ir::Store* element_ = nullptr;  // of the nest at hand
  bool written_ = false, may_be_ = true;
};

}  // namespace detail

/// `body`: of nests that are shared among workers. What one worker reads, another may not overwrite.
inline bool may_overwrite_children(const ir::Stmt& body, bool several_workers) {
  return (!several_workers || detail::rows_to_wait_for(body).empty()) && detail::ChildrenOverwritten(body).may_be();
}

}  // namespace cortex::pass
