// Gives each uninterpreted function its meaning: a read of an array of the linearizer, or arithmetic on its numbering.
//
//   node = leaf_batch(n_idx)            ->   node = counts[1] + n_idx
//   node = internal_batches(b,n_idx)    ->   node = batch_begin[b + 1] + n_idx
//   rnn[left(node),i]                   ->   rnn[left[node],i]
//   is_leaf(node)                       ->   node >= counts[1]
//
// Where the nodes are sequences, a recursion over them has a second version for those of equal lengths, in which a
// child needs no array at all: child(node) = node + the number of sequences.
//
// Paper appendix B: nodes of a batch are numbered consecutively, leaves above all inner nodes, so most functions need
// no array.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::pass {

namespace detail {

class StructureResolver {
 public:
  explicit StructureResolver(const Vector<int>& field_components) : field_components_(field_components) {}

  /// `chains`: the nodes are sequences with one accessor.
  ir::Stmt run(const ir::Stmt& body, bool chains) {
    if (!chains) return resolve(body);
    const ir::Stmt two_versions = ir::mutate_with(body, [&](auto&, const ir::For& loop) -> ir::Stmt {
      const ir::Stmt any = handle_of(loop), stepping = with_steps(any);
      if (!over_inner_nodes(loop) || stepping.same_as(any) || ir::has_barrier(any)) return any;
      return ir::If::make(ir::binary(ir::BinaryOp::ne, count(ir::Count::child_step), ir::imm(0)), stepping, any);
    });
    return resolve(two_versions);
  }

 private:
  using K = ir::UfKind;

  static bool over_inner_nodes(const ir::For& loop) {
    const auto* extent = loop.extent.as<ir::UfCall>();
    return extent && (extent->uf.kind == K::num_internal_batches || extent->uf.kind == K::num_groups ||
                      (extent->uf.kind == K::num_internal && loop.dim == dims::sequence));
  }
  ir::Stmt with_steps(const ir::Stmt& body) {
    return ir::mutate_with(body, [&](auto& self, const ir::UfCall& call) -> ir::Expr {
      return call.uf.kind == K::child ? self(call.args[0]) + count(ir::Count::child_step) : self.children(call);
    });
  }

  ir::Stmt resolve(const ir::Stmt& body) {
    return ir::with_places(
        body, [&](const ir::Buffer& buffer, const Vector<ir::Expr>& indices) { return row_of(buffer, indices); },
        [&](auto& self, const ir::For& loop) -> ir::Stmt {
          if (const auto* count = loop.extent.as<ir::UfCall>(); count && count->uf.kind == K::num_children)
            kids_.insert_or_assign(loop.var.get(), Kids{count->uf.accessor, self(count->args[0])});
          return self.children(loop);
        },
        [&](auto& self, const ir::UfCall& call) -> ir::Expr {
          Vector<ir::Expr> args;
          for (const ir::Expr& arg : call.args) args.push_back(self(arg));
          return meaning(call, args);
        });
  }

  /// A node's state where its rows serve several nodes.
  ir::Place row_of(const ir::Buffer& buffer, Vector<ir::Expr> indices) {
    if (!buffer->recycled) return {};
    indices[0] = read(ir::slot_of::state_row, "state_row", {indices[0]});
    return ir::Place{buffer, std::move(indices)};
  }

  /// What a loop over children runs over.
  struct Kids {
    int container;
    ir::Expr node;
  };

  ir::Expr meaning(const ir::UfCall& call, const Vector<ir::Expr>& a) {
    const int acc = call.uf.accessor;
    switch (call.uf.kind) {
      case K::child: return read(ir::slot_of::child + acc, call.uf.name, {a[0]});
      case K::kth_child: return kth_child(acc, a[0], a[1]);
      case K::num_children: return edge_begin(acc, a[0] + 1) - edge_begin(acc, a[0]);
      case K::field:
        return read(ir::slot_of::field + acc, call.uf.name, a,
                    a.size() == 2 ? field_components_.at(std::size_t(acc)) : 1);
      case K::is_leaf: return ir::binary(ir::BinaryOp::ge, a[0], count(ir::Count::internal));
      case K::num_nodes: return computed(acc, count(ir::Count::nodes));
      case K::num_leaves: return computed(acc, count(ir::Count::leaves));
      case K::num_internal: return computed(acc, count(ir::Count::internal));
      case K::num_batches: return count(ir::Count::batches);
      // Batch 0 holds the leaves; an empty input has no batch at all.
      case K::num_internal_batches: return ir::binary(ir::BinaryOp::max, count(ir::Count::batches) - 1, ir::imm(0));
      case K::all_node:
      case K::internal_node: return a[0];
      case K::leaf_node: return count(ir::Count::internal) + a[0];
      case K::sequence_node: return count(ir::Count::nodes) - 1 - a[0];
      case K::internal_sequence_node: return count(ir::Count::internal) - 1 - a[0];
      case K::batch_node: return read(ir::slot_of::batch_begin, "batch_begin", {a[0]}) + a[1];
      case K::batch_length: return read(ir::slot_of::batch_length, "batch_length", {a[0]});
      case K::internal_batch_node: return read(ir::slot_of::batch_begin, "batch_begin", {a[0] + 1}) + a[1];
      case K::internal_batch_length: return read(ir::slot_of::batch_length, "batch_length", {a[0] + 1});
      case K::edge: return edge_begin(acc, a[0]) + a[1];
      case K::edge_child: return read(ir::slot_of::edge_child + acc, "edge_child", {a[0]});
      case K::span_edges: return edge_begin(acc, a[0] + a[1]) - edge_begin(acc, a[0]);
      case K::downward_node: return a[0];
      case K::num_roots: return count(ir::Count::roots);
      case K::root_node: return read(ir::slot_of::root, "root", {a[0]});
      case K::part_node: return read(ir::slot_of::part_begin, "part_begin", {a[0]}) + a[1];
      case K::num_ranges: return count(ir::Count::ranges);
      case K::range_node: return of_range(ir::Count::range_begin, a[0]) + a[1];
      case K::range_length: return computed(acc, of_range(ir::Count::range_length, a[0]));
      case K::num_groups: return count(ir::Count::groups);
      case K::group_length: return group_begin(a[0] + 1) - group_begin(a[0]);
      case K::group_node: return read(ir::slot_of::group_node, "group_node", {group_begin(a[0]) + a[1]});
      case K::num_inner: return inner_begin(a[0] + 1) - inner_begin(a[0]);
      case K::inner_child: return read(ir::slot_of::inner_child, "inner_child", {inner_begin(a[0]) + a[1]});
      case K::part_length: return computed(acc, read(ir::slot_of::part_length, "part_length", {a[0]}));
      case K::listed_length: return computed(acc, part_offset(a[0] + a[1]) - part_offset(a[0]));
      case K::listed_node: return read(ir::slot_of::part_list, "part_list", {part_offset(a[0]) + a[1]});
      case K::worker:
      case K::num_workers:
      case K::thread: return ir::handle_of(call);
    }
    throw Error(Code::internal, "an uninterpreted function without meaning");
  }

  /// Child k of a node, or the row of zeros behind the last node where there is none of that number. Loops over the
  /// children need no check, and variables are not negative; what of a number of the node's has become a constant may
  /// be.
  ir::Expr kth_child(int container, const ir::Expr& node, const ir::Expr& k) {
    const ir::Expr begin = edge_begin(container, node);
    const auto child_at = [&](const ir::Expr& edge) {
      return read(ir::slot_of::edge_child + container, "edge_child", {edge});
    };
    const auto loop = kids_.find(k.get());
    if (loop != kids_.end() && loop->second.container == container && ir::equal(loop->second.node, node))
      return child_at(begin + k);
    ir::Expr present = ir::binary(ir::BinaryOp::lt, k, edge_begin(container, node + 1) - begin);
    if (!k.as<ir::Var>() && ir::as_int(k).value_or(-1) < 0)
      present = ir::binary(ir::BinaryOp::logical_and, ir::binary(ir::BinaryOp::ge, k, ir::imm(0)), present);
    const ir::Expr safe = ir::Select::make(present, begin + k, ir::imm(0));
    return ir::Select::make(present, child_at(safe), count(ir::Count::nodes));
  }

  ir::Expr edge_begin(int container, ir::Expr node) {
    return read(ir::slot_of::edge_begin + container, "edge_begin", {std::move(node)});
  }
  ir::Expr part_offset(ir::Expr p) { return read(ir::slot_of::part_offset, "part_offset", {std::move(p)}); }
  ir::Expr group_begin(ir::Expr g) { return read(ir::slot_of::group_begin, "group_begin", {std::move(g)}); }
  ir::Expr inner_begin(ir::Expr node) { return read(ir::slot_of::inner_begin, "inner_begin", {std::move(node)}); }
  /// How many rows there are, or none where a table has what would be computed for them.
  ir::Expr computed(int tabulation, ir::Expr rows) {
    if (tabulation < 0) return rows;
    return std::move(rows) * read(ir::slot_of::computes, "computes", {ir::imm(tabulation)});
  }
  ir::Expr count(ir::Count which) { return read(ir::slot_of::counts, "counts", {ir::imm(std::int64_t(which))}); }

  ir::Expr of_range(ir::Count first, const ir::Expr& range) {
    if (const auto number = ir::as_int(range)) return count(ir::Count(std::int64_t(first) + *number));
    return read(ir::slot_of::counts, "counts", {range + std::int64_t(first)});
  }

  ir::Expr read(int slot, const std::string& name, Vector<ir::Expr> indices, int components = 1) {
    ir::Buffer buffer;
    for (const ir::Buffer& made : arrays_)
      if (made->slot == slot) buffer = made;
    if (!buffer) {
      ir::BufferInfo info;
      info.name = name;
      info.dtype = DType::i32;
      info.role = ir::Role::index;
      info.slot = slot;
      info.dims.assign(1, dims::node);
      if (indices.size() == 2) info.dims.push_back(Dim("component", components));
      buffer = ir::Buffer(std::move(info));
      arrays_.push_back(buffer);
    }
    return ir::Load::make(buffer, std::move(indices));
  }

  const Vector<int>& field_components_;
  Vector<ir::Buffer> arrays_;
  PointerMap<Kids> kids_;
};

}  // namespace detail

/// `field_components`: how many elements each field of a node has.
inline ir::Stmt resolve_structure(const ir::Stmt& body, const Vector<int>& field_components, bool chains = false) {
  return detail::StructureResolver(field_components).run(body, chains);
}

}  // namespace cortex::pass
