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

/// The nodes that get to an operator: of `nodes` those where `guard` holds, a condition over `IndexChecks::node`, empty
/// if it holds at all; `at_roots`: of the roots alone.
struct Reach {
  unsigned nodes = all_nodes;
  ir::Expr guard{};
  bool at_roots = false;
};

/// Whether a condition is seen to follow from another: it is part of it, or a key that has one value has no other.
inline bool follows(const ir::Expr& condition, const ir::Expr& from) {
  if (const auto* n = condition.as<ir::Binary>(); n && n->op == ir::BinaryOp::logical_and)
    return follows(n->a, from) && follows(n->b, from);
  if (const auto* n = from.as<ir::Binary>(); n && n->op == ir::BinaryOp::logical_and)
    return follows(condition, n->a) || follows(condition, n->b);
  if (ir::equal(condition, from)) return true;
  const auto* n = condition.as<ir::Unary>();
  const auto *other = n && n->op == ir::UnaryOp::logical_not ? n->a.as<ir::Binary>() : nullptr,
             *is = from.as<ir::Binary>();
  if (!other || !is || other->op != ir::BinaryOp::eq || is->op != ir::BinaryOp::eq) return false;
  const auto a = ir::as_int(other->b), b = ir::as_int(is->b);
  return a && b && *a != *b && ir::equal(other->a, is->a);
}

/// Whether all nodes of `b` are seen to be among those of `a`.
inline bool covers(const Reach& a, const Reach& b) {
  return (a.nodes & b.nodes) == b.nodes && (!a.guard || (b.guard && follows(a.guard, b.guard))) &&
         (!a.at_roots || b.at_roots);
}

/// Adds to `all`, of which none covers another.
inline void add(Vector<Reach>& all, const Reach& more) {
  Vector<Reach> kept;
  for (const Reach& reach : all) {
    if (covers(reach, more)) return;
    if (!covers(more, reach)) kept.push_back(reach);
  }
  kept.push_back(more);
  all = std::move(kept);
}

/// Of which nodes `all` are.
inline unsigned nodes_of(const Vector<Reach>& all) {
  unsigned nodes = no_nodes;
  for (const Reach& reach : all) nodes |= reach.nodes;
  return nodes;
}

/// What an index goes into.
struct Indexed {
  std::string name;  // of an operator or a field
  Dim dim;
  int position = 0;  // which dimension of the operator that is, not counting the node; -1: a component of a field
  int weight = -1;   // slot, if it is the first dimension of a weight
  int field = -1;    // the accessor's number, if it is a component of a field: fields may share their names
};

/// An index into `of`, made of the node's structure; `ranges` are the reduction and output variables in it.
struct IndexCheck {
  Indexed of;
  ir::Expr node;
  ir::Expr index;
  Reach reach;
  Vector<std::pair<ir::Expr, ir::Expr>> ranges;  // variable, extent
  std::string where;                             // the operator's name
};

/// Whether two checks ask the same, though of other nodes.
inline bool same_question(const IndexCheck& a, const IndexCheck& b) {
  return a.of.name == b.of.name && a.of.position == b.of.position && a.of.field == b.of.field &&
         ir::equal(a.index, b.index);
}

/// A branch as it is reached.
struct BranchUse {
  int op;
  Reach reach;
};

struct IndexChecks {
  ir::Expr node;
  Vector<BranchUse> branches;
  Vector<Vector<Reach>> field_reads;  // per field of the graph: the nodes at which it is read, none covering another
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
  explicit IndexCheckCollector(const Graph& graph)
      : graph_(graph), last_case_(graph.ops.size()), reaches_(graph.ops.size()) {
    result_.field_reads.resize(graph.fields.size());
    for (const Op& first : graph.ops) {
      if (!first.key) continue;
      int last = graph.find(first.buffer);
      for (std::size_t i = 2; i < first.cases.size(); ++i) last = op(last).else_op;
      last_case_[std::size_t(last)] =
          ir::binary(ir::BinaryOp::eq, of_node(first, first.key), ir::imm(first.cases.back()));
    }
  }

  IndexChecks run() {
    result_.node = node_;
    for (const State& state : graph_.states) reach(state.body, {all_nodes, {}, op(state.body).at_roots});
    // Operators are reached from later ones.
    for (std::size_t i = graph_.ops.size(); i-- > 0;) {
      for (const Fork& fork : reversed(forks_)) join(reaches_[i], fork);
      require_few_ways(op(int(i)), reaches_[i]);
      for (const Reach& reach : Vector<Reach>(reaches_[i])) visit(int(i), reach);
    }
    for (const Fork& fork : reversed(forks_)) join(fork);
    return std::move(result_);
  }

 private:
  const Op& op(int i) const { return graph_.ops[std::size_t(i)]; }
  ir::Expr of_node(const Op& o, const ir::Expr& e) const { return ir::substitute(e, {{o.node.get(), node_}}); }

  /// Ways to an operator that meet again are one. Where branches lead to others so that ways only part, there are more
  /// with each branch, and an operator's condition has them all.
  void require_few_ways(const Op& o, const Vector<Reach>& ways) const {
    constexpr std::size_t most = 1024;
    std::size_t conditions = 0;
    for (const Reach& way : ways)
      if (way.guard)
        ir::visit_with(way.guard, [&](const ir::Binary& n) { conditions += n.op == ir::BinaryOp::logical_and; });
    if (conditions + ways.size() <= most) return;
    throw Error(Code::invalid_model,
                "branches of model '" + graph_.name + "' lead to operator '" + o.name() + "' in " +
                    std::to_string(ways.size()) + " ways, whose conditions are " + std::to_string(conditions) +
                    " in all, and " + std::to_string(most) +
                    " is the most: let both sides of a branch lead to the same operators, so that ways meet again, or "
                    "choose between values of operators with select(condition, a, b)");
  }

  /// The nodes that get to the sides of a branch, and those that get to the branch, which they make up.
  struct Fork {
    Reach then, otherwise, whole;
  };

  void reach(int i, const Reach& nodes) { add(reaches_[std::size_t(i)], nodes); }

  /// Reads of operator `i` by the nodes of `reach`.
  void visit(int i, const Reach& reach) {
    if (op(i).kind == OpKind::compute)
      read(op(i), of_node(op(i), op(i).body), reach);
    else if (op(i).kind == OpKind::if_then_else)
      branch(i, reach);
  }

  void branch(int i, const Reach& whole) {
    const Op& o = op(i);
    const ir::Expr condition = of_node(o, o.condition);
    result_.branches.push_back({i, whole});
    read(o, condition, whole);
    Reach then = whole, otherwise = whole;
    if (const int leaf = leaf_test(condition); leaf >= 0) {
      then.nodes &= leaf ? leaf_nodes : internal_nodes;
      otherwise.nodes &= leaf ? internal_nodes : leaf_nodes;
    } else {
      const ir::Expr& last_case = last_case_[std::size_t(i)];  // all other values are refused
      then.guard = narrowed(whole.guard, condition);
      otherwise.guard = narrowed(whole.guard, last_case ? last_case : ir::negation(condition));
    }
    reach(o.then_op, then);
    reach(o.else_op, otherwise);
    forks_.push_back({then, otherwise, whole});
  }

  /// Nodes of both sides are those of the whole.
  static void join(Vector<Reach>& all, const Fork& fork) {
    const auto has = [&](const Reach& part) {
      return any_of(all, [&](const Reach& reach) { return covers(reach, part); });
    };
    if (has(fork.then) && has(fork.otherwise)) add(all, fork.whole);
  }

  /// What is read on both sides is read at the whole.
  void join(const Fork& fork) {
    for (Vector<Reach>& reads : result_.field_reads) join(reads, fork);
    const auto& [a, b, whole] = fork;
    Vector<IndexCheck>& checks = result_.indices;
    for (IndexCheck& check : checks) {
      const auto made_at = [&](const Reach& part) {
        return any_of(checks,
                      [&](const IndexCheck& made) { return same_question(made, check) && covers(made.reach, part); });
      };
      if (covers(whole, check.reach) && made_at(a) && made_at(b)) check.reach = whole;
    }
    for (IndexCheck& check : std::exchange(checks, {})) add_check(std::move(check));
  }

  void add_check(IndexCheck check) {
    const auto makes_it = [&](const IndexCheck& made) {
      return same_question(made, check) && covers(made.reach, check.reach);
    };
    if (!any_of(result_.indices, makes_it)) result_.indices.push_back(std::move(check));
  }

  /// `guard` and `condition`, without what follows from that one.
  static ir::Expr narrowed(const ir::Expr& guard, const ir::Expr& condition) {
    return ir::both(without(guard, condition), condition);
  }
  static ir::Expr without(const ir::Expr& guard, const ir::Expr& condition) {
    if (!guard) return guard;
    if (const auto* n = guard.as<ir::Binary>(); n && n->op == ir::BinaryOp::logical_and)
      return ir::both(without(n->a, condition), without(n->b, condition));
    return follows(guard, condition) ? ir::Expr() : guard;
  }

  /// 1: true at leaves alone; 0: true at inner nodes alone; -1: neither.
  static int leaf_test(const ir::Expr& condition) {
    if (const auto* call = condition.as<ir::UfCall>(); call && call->uf.kind == ir::UfKind::is_leaf) return 1;
    if (const auto* n = condition.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not && leaf_test(n->a) >= 0)
      return 1 - leaf_test(n->a);
    return -1;
  }

  void read(const Op& o, const ir::Expr& e, const Reach& nodes) {
    if (nodes.nodes == no_nodes) return;
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
                        ranges, nodes);
        },
        [&](const ir::Load& load) {
          if (load.buffer->role == ir::Role::field) use_field(load.buffer->slot, load.indices[0], nodes);
          const int source = graph_.find(load.buffer);
          if (source < 0) return;
          const OpKind kind = op(source).kind;
          const bool weight = kind == OpKind::input;  // others have a row for each node
          for (std::size_t d = 0; d < op(source).dims.size(); ++d)
            check_index({op(source).name(), op(source).dims[d], int(d), weight && d == 0 ? load.buffer->slot : -1}, o,
                        load.indices[d + !weight], ranges, nodes);
          if (kind != OpKind::input && kind != OpKind::placeholder && kind != OpKind::field) reach(source, nodes);
        });
  }

  /// A field of another node than the current one may be of any node.
  void use_field(int field, const ir::Expr& of, const Reach& reach) {
    add(result_.field_reads[std::size_t(field)], of.same_as(node_) ? reach : Reach{});
  }

  /// What depends on no node is computed once and for all, whatever nodes there are.
  void check_index(const Indexed& of, const Op& o, const ir::Expr& index,
                   const Vector<std::pair<ir::Expr, ir::Expr>>& ranges, Reach reach) {
    if (!is_of_node(index, ranges)) reach = {};
    // How long an open dimension is, only the weights bound say; how far arithmetic on a child's position goes, only
    // the nodes. A position alone that has no bound is no index of an operator's, but may be one of a field's.
    bool structural = of.dim.kind() == DimKind::open || ir::asks_structure(index);
    if (!index.as<ir::Var>() || of.field >= 0)
      for (const auto& range : ranges) structural |= !ir::as_int(range.second) && ir::uses(index, range.first);
    if (!structural) return;
    IndexCheck check{of, node_, index, reach, {}, o.name()};
    for (const auto& range : ranges)
      if (ir::uses(index, range.first)) check.ranges.push_back(range);
    add_check(std::move(check));
  }

  /// Whether an index is made of the node: of its structure, or of a child's position, of which a node has as many as
  /// children.
  bool is_of_node(const ir::Expr& index, const Vector<std::pair<ir::Expr, ir::Expr>>& ranges) const {
    return ir::uses(index, node_) || any_of(ranges, [&](const auto& range) {
             return ir::uses(index, range.first) && ir::uses(range.second, node_);
           });
  }

  const Graph& graph_;
  ir::Expr node_ = ir::Var::make("node");
  Vector<ir::Expr> last_case_;     // of the last branch of a switch without otherwise: that the key is the last case's
  Vector<Vector<Reach>> reaches_;  // [operators], none covering another
  Vector<Fork> forks_;             // the outer ones first
  IndexChecks result_;
};

}  // namespace detail

/// All index checks of a graph: one per read of an operator, or of a component of a field, at an index made of
/// structure.
inline IndexChecks index_checks(const Graph& graph) { return detail::IndexCheckCollector(graph).run(); }

}  // namespace cortex::ra
