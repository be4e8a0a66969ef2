// What has to be checked of the user's nodes before a call's arithmetic: at which nodes each field is read, and that
// what it indexes exists.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ra/graph.hpp"

namespace cortex::ra {

/// Sets of nodes, as bits.
enum Nodes : unsigned { no_nodes = 0, leaf_nodes = 1, internal_nodes = 2, all_nodes = 3 };

/// What an index goes into.
struct Indexed {
  std::string name;  // of an operator or a field
  Dim dim;
  int position = 0;  // which dimension of the operator that is, not counting the node; -1: a component of a field
  int weight = -1;   // slot, if it is the first dimension of a weight
  int field = -1;    // the accessor's number, if it is a component of a field: fields may share their names
};

/// An index into `of`, made of the node's structure. `guard` is the condition on the node under which it is read, empty
/// if always; `ranges` are the reduction and output variables in it.
struct IndexCheck {
  Indexed of;
  ir::Expr node;
  ir::Expr index;
  ir::Expr guard;
  Vector<std::pair<ir::Expr, ir::Expr>> ranges;  // variable, extent
  unsigned nodes;
  std::string where;  // the operator's name
};

/// A branch as it is reached: at `nodes` where `guard` holds, over `IndexChecks::node`.
struct BranchUse {
  int op;
  unsigned nodes;
  ir::Expr guard;
};

struct IndexChecks {
  ir::Expr node;
  Vector<BranchUse> branches;
  Vector<unsigned> field_nodes;  // per field of the graph: the nodes at which it is read
  Vector<IndexCheck> indices;
};

/// The field, if `index` is a plain scalar field of `node` itself; else -1.
inline int plain_field(const ir::Expr& index, const ir::Expr& node) {
  const auto* call = index.as<ir::UfCall>();
  const bool plain =
      call && call->uf.kind == ir::UfKind::field && call->args.size() == 1 && call->args[0].same_as(node);
  return plain ? call->uf.accessor : -1;
}

namespace detail {

class IndexCheckCollector {
 public:
  explicit IndexCheckCollector(const Graph& graph) : graph_(graph) {
    result_.field_nodes.assign(graph.fields.size(), no_nodes);
  }

  IndexChecks run() {
    result_.node = node_;
    for (const State& state : graph_.states) visit(state.body, all_nodes, {});
    return std::move(result_);
  }

 private:
  const Op& op(int i) const { return graph_.ops[std::size_t(i)]; }

  /// Reads of operator `i` at `nodes` where `guard` (over `node_`) holds. An operator is visited once per way to it;
  /// graphs are small, and ways differ only by branches.
  void visit(int i, unsigned nodes, const ir::Expr& guard) {
    for (const Visit& v : visits_)
      if (v.op == i && (v.nodes & nodes) == nodes && (!v.guard || v.guard.same_as(guard))) return;
    visits_.push_back({i, nodes, guard});
    if (op(i).kind == OpKind::compute) {
      read(op(i), ir::substitute(op(i).body, {{op(i).node.get(), node_}}), nodes, guard);
    } else if (op(i).kind == OpKind::if_then_else) {
      branch(op(i), nodes, guard);
    }
  }

  void branch(const Op& o, unsigned nodes, const ir::Expr& guard) {
    const ir::Expr condition = ir::substitute(o.condition, {{o.node.get(), node_}});
    result_.branches.push_back({graph_.find(o.buffer), nodes, guard});
    read(o, condition, nodes, guard);
    const int leaf = leaf_test(condition);
    if (leaf >= 0) {
      visit(o.then_op, nodes & (leaf ? leaf_nodes : internal_nodes), guard);
      visit(o.else_op, nodes & (leaf ? internal_nodes : leaf_nodes), guard);
      return;
    }
    visit(o.then_op, nodes, ir::both(guard, condition));
    visit(o.else_op, nodes, ir::both(guard, ir::Unary::make(ir::UnaryOp::logical_not, condition)));
  }

  /// 1: true at leaves alone; 0: true at inner nodes alone; -1: neither.
  static int leaf_test(const ir::Expr& condition) {
    if (const auto* call = condition.as<ir::UfCall>(); call && call->uf.kind == ir::UfKind::is_leaf) return 1;
    if (const auto* n = condition.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not && leaf_test(n->a) >= 0)
      return 1 - leaf_test(n->a);
    return -1;
  }

  void read(const Op& o, const ir::Expr& e, unsigned nodes, const ir::Expr& guard) {
    if (nodes == no_nodes) return;
    Vector<std::pair<ir::Expr, ir::Expr>> ranges;
    for (std::size_t d = 0; d < o.index_vars.size(); ++d)
      ranges.emplace_back(o.index_vars[d], ir::imm(o.dims[d].extent()));
    ir::visit_with(e, [&](const ir::Reduce& r) {  // which may stand in the body several times
      const auto same = [&](const auto& range) { return range.first.same_as(r.axis.var); };
      if (!any_of(ranges, same)) ranges.emplace_back(r.axis.var, r.axis.extent);
    });
    ir::visit_with(
        e,
        [&](const ir::UfCall& call) {
          if (call.uf.kind != ir::UfKind::field) return;
          use_field(call.uf.accessor, call.args[0], nodes);
          const Accessor& field = graph_.fields[std::size_t(call.uf.accessor)];
          if (call.args.size() > 1)
            check_index({field.name, Dim("component", field.components), -1, -1, call.uf.accessor}, o, call.args[1],
                        ranges, nodes, guard);
        },
        [&](const ir::Load& load) {
          if (load.buffer->role == ir::Role::field) use_field(load.buffer->slot, load.indices[0], nodes);
          const int source = graph_.find(load.buffer);
          if (source < 0) return;
          const OpKind kind = op(source).kind;
          const bool weight = kind == OpKind::input;  // others have a row for each node
          for (std::size_t d = 0; d < op(source).dims.size(); ++d)
            check_index({op(source).name(), op(source).dims[d], int(d), weight && d == 0 ? load.buffer->slot : -1}, o,
                        load.indices[d + !weight], ranges, nodes, guard);
          if (kind != OpKind::input && kind != OpKind::placeholder && kind != OpKind::field)
            visit(source, nodes, guard);
        });
  }

  /// A field of another node than the current one may be of any node.
  void use_field(int field, const ir::Expr& of, unsigned nodes) {
    result_.field_nodes[std::size_t(field)] |= of.same_as(node_) ? nodes : unsigned(all_nodes);
  }

  /// What depends on no node is computed once and for all, whatever nodes there are.
  void check_index(const Indexed& of, const Op& o, const ir::Expr& index,
                   const Vector<std::pair<ir::Expr, ir::Expr>>& ranges, unsigned nodes, ir::Expr guard) {
    if (!is_of_node(index, ranges)) nodes = all_nodes, guard = {};
    // How long an open dimension is, only the weights bound say; how far arithmetic on a child's position goes, only
    // the nodes. A position alone that has no bound is no index of an operator's, but may be one of a field's.
    bool structural = of.dim.kind() == DimKind::open;
    ir::visit_with(index, [&](const ir::UfCall&) { structural = true; });
    if (!index.as<ir::Var>() || of.field >= 0)
      for (const auto& range : ranges) structural |= !ir::as_int(range.second) && ir::uses(index, range.first);
    if (!structural) return;
    const auto same = [&](const IndexCheck& made) {
      return made.of.name == of.name && made.of.position == of.position && made.of.field == of.field &&
             made.nodes == nodes && made.guard.same_as(guard) && ir::equal(made.index, index);
    };
    if (any_of(result_.indices, same)) return;
    IndexCheck check{of, node_, index, guard, {}, nodes, o.name()};
    for (const auto& range : ranges)
      if (ir::uses(index, range.first)) check.ranges.push_back(range);
    result_.indices.push_back(std::move(check));
  }

  /// Whether an index is made of the node: of its structure, or of a child's position, of which a node has as many as
  /// children.
  bool is_of_node(const ir::Expr& index, const Vector<std::pair<ir::Expr, ir::Expr>>& ranges) const {
    return ir::uses(index, node_) || any_of(ranges, [&](const auto& range) {
             return ir::uses(index, range.first) && ir::uses(range.second, node_);
           });
  }

  struct Visit {
    int op;
    unsigned nodes;
    ir::Expr guard;
  };

  const Graph& graph_;
  ir::Expr node_ = ir::Var::make("node");
  Vector<Visit> visits_;
  IndexChecks result_;
};

}  // namespace detail

/// All index checks of a graph: one per read of an operator, or of a component of a field, at an index made of
/// structure.
inline IndexChecks index_checks(const Graph& graph) { return detail::IndexCheckCollector(graph).run(); }

}  // namespace cortex::ra
