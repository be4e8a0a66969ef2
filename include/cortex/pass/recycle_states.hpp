// States that no call gives out, of which a node's row is read by itself and its parents alone, share rows: the
// linearizer gives those of nodes whose parents are all computed to others (`structure/state_rows.hpp`).
//
//   S[node,i] = .. S[prev(node),i] ..     ->     S[state_row(node),i] = .. S[state_row(prev(node)),i] ..
//
// Here they are found; `resolve_structure` reads the rows' numbers. A state has to be written in one loop over batches,
// upwards, and in loops over leaves before it; after it, roots alone may be read. Tables have no rows of it
// (`tabulate`).
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

class RecyclableStates {
 public:
  explicit RecyclableStates(const ir::Program& program) {
    for (const ir::Buffer& buffer : program.buffers)
      if (ir::may_share_rows(program, buffer)) loop_of_.emplace(buffer.id(), nullptr);
    if (!loop_of_.empty()) walk(program.body, nullptr);
  }

  bool contain(const ir::Buffer& buffer) const {
    return loop_of_.contains(buffer.id()) && !refused_.contains(buffer.id());
  }

 private:
  using K = ir::UfKind;

  /// `level`: the loop over batches around it, or none.
  void walk(const ir::Stmt& body, const ir::For* level) {
    ir::visit_with(
        body,
        [&](const ir::For& loop) {
          if (level || !schedule::carries_recursion(loop)) return true;
          walk(loop.body, &loop);
          return false;
        },
        [&](const ir::LetStmt& let) { values_.insert_or_assign(let.var.get(), let.value); },
        [&](const ir::Let& let) { values_.insert_or_assign(let.var.get(), let.value); },
        [&](const ir::Load& load) { note(load.buffer, load.indices, false, level); },
        [&](const ir::Store& store) { note(store.buffer, store.indices, true, level); });
  }

  void note(const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool write, const ir::For* level) {
    const auto found = loop_of_.find(buffer.id());
    if (found == loop_of_.end()) return;
    const ir::For*& loop = found->second;
    const bool before = !level && !loop;
    if (level && !loop) loop = level;
    const ir::UfCall* const node = call_of(indices[0]);
    const bool fits = node && (level    ? level == loop && (is_of_level(*node) || (!write && is_child(*node)))
                               : before ? is_of_leaves(node->uf.kind)
                                        : !write && node->uf.kind == K::root_node);
    if (!fits) refused_.insert(buffer.id());
  }

  /// The call that gives a node's number, or null.
  const ir::UfCall* call_of(const ir::Expr& node) const {
    const auto value = values_.find(node.get());
    return value == values_.end() ? node.as<ir::UfCall>() : call_of(value->second);
  }
  /// Whether it is a node of a level of a recursion upwards, of which levels are not counted from the last.
  static bool is_of_level(const ir::UfCall& call) {
    switch (call.uf.kind) {
      case K::batch_node:
      case K::internal_batch_node:
      case K::part_node: return !ir::asks_structure(call.args[0]);
      case K::sequence_node:
      case K::internal_sequence_node: return true;
      default: return false;
    }
  }
  static bool is_of_leaves(K kind) { return kind == K::leaf_node || kind == K::part_node; }
  /// Whether it is a child of a node of the level.
  bool is_child(const ir::UfCall& call) const {
    if (call.uf.kind == K::edge_child) return true;
    if (call.uf.kind != K::child && call.uf.kind != K::kth_child) return false;
    const ir::UfCall* const parent = call_of(call.args[0]);
    return parent && is_of_level(*parent);
  }

  PointerMap<const ir::For*> loop_of_;  // of each state, once it is met
  PointerMap<ir::Expr> values_;
  PointerSet refused_;
};

}  // namespace detail

/// Marks the states whose rows serve several nodes.
inline void recycle_states(ir::Program& program) {
  const detail::RecyclableStates states(program);
  PointerMap<ir::Buffer> recycled;
  for (ir::Buffer& buffer : program.buffers) {
    if (!states.contain(buffer)) continue;
    ir::BufferInfo info = *buffer;
    info.recycled = true;
    buffer = recycled.emplace(buffer.id(), ir::Buffer(std::move(info))).first->second;
  }
  if (!recycled.empty()) program.body = ir::with_buffers(program.body, recycled);
}

}  // namespace cortex::pass
