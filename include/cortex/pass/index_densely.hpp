// Indexes a temporary by the iteration space rather than by node, where nothing outside one batch reads it (paper
// section 5.1, Fig. on dense indexing; I9). The temporary shrinks from a row per node to a row per node of the largest
// batch.
//
//   for b: for n_idx: node = batch(b,n_idx): s[node,i] = ...; ... s[node,j] ...
//     ->
//   for b: for n_idx: node = batch(b,n_idx): s[n_idx,i] = ...; ... s[n_idx,j] ...
//
// Runs after nests are fused, so that the loops that write and read a temporary are known, and before they are tiled. A
// row per edge becomes a row per edge of the batch; within a loop over single nodes it becomes one row.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

/// Finds the temporaries whose every access can be indexed by rows, and rewrites them.
class DenseIndexer {
 public:
  ir::Stmt run(const ir::Stmt& body) {
    rewriting_ = false;
    walk(body);
    for (const Use& use : uses_)
      if (use.read && !use.stored) refused_.insert(use.buffer.id());
    for (const Use& part : uses_)  // whose rows are not those of the whole batch
      for (const Use& whole : uses_)
        if (part.buffer == whole.buffer && part.region.rfind(whole.region + ", part", 0) == 0)
          refused_.insert(part.buffer.id());
    for (const Use& use : uses_)
      if (!refused_.contains(use.buffer.id())) shrink(use.buffer);
    if (dense_.empty()) return body;
    rewriting_ = true;
    return walk(body);
  }

 private:
  /// Where a walk stands: in which loop that carries a dependence, or after which; in which part; at which node, and in
  /// which row of its batch. Rows hold what they are given for as long as it stays in one region.
  struct Place {
    std::string region;
    bool sequential = false, shared = false;  // nodes one after the other; iterations that run side by side
    ir::Expr let, row, first;
  };
  /// Whether a buffer is stored, and read, in one of those loops.
  struct Use {
    ir::Buffer buffer;
    std::string region;
    bool stored = false, read = false;
    bool is_last = false;  // where the buffer was met last
  };

  void shrink(const ir::Buffer& buffer) {
    if (dense_.contains(buffer.id())) return;
    ir::BufferInfo info = *buffer;
    info.dims[0] = info.dims[0] == dims::node ? dims::batch : dims::batch_edge;
    dense_.emplace(buffer.id(), ir::Buffer(std::move(info)));
  }

  static bool eligible(const ir::Buffer& buffer) {
    if (buffer->role != ir::Role::temp || buffer->scope == ir::Scope::local || buffer->dims.empty()) return false;
    return buffer->dims[0] == dims::node || buffer->dims[0] == dims::edge;
  }

  /// The row that stands for the node or edge `index`, or nothing.
  ir::Expr row_of(const ir::Expr& index) const {
    if (place_.let && index.same_as(place_.let)) return place_.row;
    const auto* call = index.as<ir::UfCall>();
    if (!call || call->uf.kind != ir::UfKind::edge || !place_.let || !call->args[0].same_as(place_.let)) return {};
    if (place_.sequential) return call->args[1];
    // Edge (node, k) lies after the edges of the batch's earlier nodes.
    return index - ir::call(ir::UfKind::edge, "edge", {place_.first, ir::imm(0)}, call->uf.accessor);
  }

  Vector<ir::Expr> indices(const ir::Buffer& buffer, const Vector<ir::Expr>& from) {
    Vector<ir::Expr> to = from;
    if (eligible(buffer)) {
      const ir::Expr row = row_of(from[0]);
      if (!row)
        refused_.insert(buffer.id());
      else
        to[0] = row;
    }
    return to;
  }

  void note(const ir::Buffer& buffer, bool store) {
    if (!eligible(buffer)) return;
    Use *found = nullptr, *last = nullptr;
    for (Use& use : uses_)
      if (use.buffer == buffer) {
        if (use.region == place_.region) found = &use;
        if (use.is_last) last = &use;
      }
    // Another part of the batch, which has come between, has the same rows.
    if (found && found != last) refused_.insert(buffer.id());
    if (last) last->is_last = false;
    if (!found) found = &uses_.emplace_back(Use{buffer, place_.region});
    found->is_last = true;
    (store ? found->stored : found->read) = true;
  }

  ir::Expr rewrite(const ir::Expr& e) {
    return ir::mutate_with(e, [&](auto& self, const ir::Load& load) -> ir::Expr {
      note(load.buffer, false);
      const auto rows = indices(load.buffer, load.indices);
      const auto dense = dense_.find(load.buffer.id());
      return rewriting_ && dense != dense_.end() ? ir::Load::make(dense->second, rows) : self.children(load);
    });
  }

  ir::Stmt walk(const ir::Stmt& body) {
    return ir::mutate_with(
        body, [&](auto& self, const ir::For& loop) { return loop_of(self, loop); },
        [&](auto&, const ir::Store& store) -> ir::Stmt {
          note(store.buffer, true);
          const auto rows = indices(store.buffer, store.indices);
          const auto dense = dense_.find(store.buffer.id());
          const bool changes = rewriting_ && dense != dense_.end();
          const ir::Expr value = rewrite(store.value);
          if (!changes && value.same_as(store.value)) return handle_of(store);
          return changes ? ir::Store::make(dense->second, rows, value)
                         : ir::Store::make(store.buffer, store.indices, value);
        },
        [&](auto&, const ir::Load& load) { return rewrite(handle_of(load)); });
  }

  template <class Self>
  ir::Stmt loop_of(Self& self, const ir::For& loop) {
    const Place outside = place_;
    const bool carries = loop.dim == dims::all_batches || loop.dim == dims::sequence;
    const ir::LetStmt* let = schedule::node_let(loop);
    if (carries) place_.region = "loop " + std::to_string(++loops_);
    const bool rows = let && (schedule::is_row_dim(loop.dim) || loop.dim == dims::sequence);
    const bool alone = rows && !carries && place_.region.empty();  // outside of any loop that carries a dependence
    if (alone) place_.region = "after loop " + std::to_string(loops_);
    if (rows) place_.region += part_of(*let);
    place_.shared |= loop.loop != ir::ForKind::serial;
    if (loop.dim == dims::sequence && place_.shared) {
      place_.let = {};  // one row is not enough where workers have a node each
    } else if (rows && !(alone && !over_leaves(*let))) {
      place_.sequential = loop.dim == dims::sequence;
      place_.let = let->var;
      place_.row = place_.sequential ? ir::imm(0) : loop.var;
      place_.first = place_.sequential ? ir::Expr() : ir::substitute(let->value, {{loop.var.get(), ir::imm(0)}});
    }
    const ir::Stmt result = self.children(loop);
    place_ = outside;
    return result;
  }

  /// Which part of a batch, or of the leaves, has these rows; nothing for all of it.
  static std::string part_of(const ir::LetStmt& let) {
    std::string part;
    ir::visit_with(let.value, [&](const ir::UfCall& call) {
      if (call.uf.kind == ir::UfKind::part_node) part = ", part " + ir::print(call.args[0]);
    });
    return part;
  }

  /// Leaves are a batch, so a row per leaf fits where a row per node of the largest batch does; a row per inner node,
  /// or per any node, need not.
  static bool over_leaves(const ir::LetStmt& let) {
    bool leaves = false;
    ir::visit_with(let.value, [&](const ir::UfCall& call) {
      leaves |= call.uf.kind == ir::UfKind::leaf_node || call.uf.kind == ir::UfKind::part_node;
    });
    return leaves;
  }

  bool rewriting_ = false;
  int loops_ = 0;
  Place place_;
  PointerMap<ir::Buffer> dense_;
  PointerSet refused_;
  Vector<Use> uses_;
};

}  // namespace detail

inline ir::Stmt index_densely(const ir::Stmt& body) { return detail::DenseIndexer().run(body); }

}  // namespace cortex::pass
