// Versions of the recursion's body: one for all nodes, or one for leaves and one for inner nodes (paper section 4.1,
// L3).
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cortex/ir/equal.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::lower {

namespace detail {

/// True, false or neither, for a condition whose truth `part` decides.
inline int truth(const ir::Expr& condition, Part part) {
  if (part == Part::all) return -1;
  if (const auto* call = condition.as<ir::UfCall>(); call && call->uf.kind == ir::UfKind::is_leaf)
    return part == Part::leaves;
  if (const auto* negation = condition.as<ir::Unary>(); negation && negation->op == ir::UnaryOp::logical_not) {
    const int inner = truth(negation->a, part);
    return inner < 0 ? inner : !inner;
  }
  return -1;
}

inline ir::Expr negate(const ir::Expr& condition) {
  if (const auto* negation = condition.as<ir::Unary>(); negation && negation->op == ir::UnaryOp::logical_not)
    return negation->a;
  return ir::Unary::make(ir::UnaryOp::logical_not, condition);
}

inline ir::Expr both(const ir::Expr& a, const ir::Expr& b) {
  if (!a) return b;
  if (!b) return a;
  return ir::Binary::make(ir::BinaryOp::logical_and, a, b);
}

/// Selects the operators that a part needs, in graph order, each under the condition common to its uses, and lets state
/// buffers take the place of the operators that define them.
class VersionBuilder {
 public:
  VersionBuilder(const ra::Graph& graph, const std::vector<bool>& specialized, Part part)
      : graph_(graph), specialized_(specialized), part_(part), uses_(graph.ops.size()), seen_(graph.ops.size()) {}

  Version build() {
    for (const ra::State& state : graph_.states)
      define(state.body, graph_.ops[std::size_t(state.placeholder)].buffer, {});
    Version version{part_, {}};
    for (std::size_t op = 0; op < graph_.ops.size(); ++op) emit(int(op), version.definitions);
    return version;
  }

 private:
  struct Use {
    bool needed = false;
    ir::Expr guard;                                        // over `node_`
    std::vector<std::pair<ir::Buffer, ir::Expr>> targets;  // buffers that take this operator's value, and when
  };

  const ra::Op& op(int i) const { return graph_.ops[std::size_t(i)]; }

  ir::Expr condition_of(const ra::Op& branch) const {
    return ir::substitute(branch.condition, {{branch.node.get(), node_}});
  }

  /// The side of `branch` that this part takes, or -1 if that is known only at run time.
  int side(int branch) const {
    if (!specialized_[std::size_t(branch)]) return -1;
    const int value = truth(op(branch).condition, part_);
    return value < 0 ? -1 : value ? op(branch).then_op : op(branch).else_op;
  }

  /// `target` takes the value of operator `i` where `guard` holds.
  void define(int i, const ir::Buffer& target, const ir::Expr& guard) {
    if (op(i).kind == ra::OpKind::if_then_else) {
      if (const int taken = side(i); taken >= 0) return define(taken, target, guard);
      const ir::Expr condition = condition_of(op(i));
      define(op(i).then_op, target, both(guard, condition));
      define(op(i).else_op, target, both(guard, negate(condition)));
      return;
    }
    uses_[std::size_t(i)].targets.emplace_back(target, guard);
    need(i, guard);
  }

  void need(int i, const ir::Expr& guard) {
    Use& use = uses_[std::size_t(i)];
    if (use.needed && !same(use.guard, guard))
      use.guard = {};  // needed under several conditions: computed always
    else if (!use.needed)
      use.guard = guard;
    else
      return;
    use.needed = true;
    if (op(i).kind != ra::OpKind::compute) return;
    for_each_read(op(i).body, [&](const ir::Load& load) { read(load.buffer, use.guard); });
  }

  void read(const ir::Buffer& buffer, const ir::Expr& guard) {
    const int i = graph_.find(buffer);
    if (i < 0 || op(i).kind == ra::OpKind::placeholder || op(i).kind == ra::OpKind::field) return;
    if (op(i).kind == ra::OpKind::compute) return need(i, guard);
    // A branch that is read as a tensor: its own buffer takes the value of the side that is taken.
    if (const int taken = side(i); taken >= 0) {
      alias_.emplace(buffer.id(), taken);
      return read(op(taken).buffer, guard);
    }
    if (!seen_[std::size_t(i)]) {
      seen_[std::size_t(i)] = true;
      define(i, buffer, {});
    }
  }

  static bool same(const ir::Expr& a, const ir::Expr& b) { return (!a && !b) || (a && b && ir::equal(a, b)); }

  /// The buffer that holds what `buffer` stands for in this version.
  ir::Buffer resolve(const ir::Buffer& buffer) const {
    if (const auto taken = alias_.find(buffer.id()); taken != alias_.end()) return resolve(op(taken->second).buffer);
    const auto home = home_.find(buffer.id());
    return home == home_.end() ? buffer : home->second;
  }

  ir::Expr rewrite(const ir::Expr& e, const ir::Expr& node_var) const {
    const ir::Expr renamed = ir::substitute(e, {{node_var.get(), node_}});
    return ir::mutate_with(renamed, [&](auto& self, const ir::Load& load) -> ir::Expr {
      std::vector<ir::Expr> indices;
      for (const ir::Expr& index : load.indices) indices.push_back(self(index));
      return ir::Load::make(resolve(load.buffer), std::move(indices));
    });
  }

  /// The operator's definition goes to the first buffer that takes its value under the same condition as the operator
  /// is needed, else to its own; the other takers get copies.
  void emit(int i, std::vector<Definition>& out) {
    const Use& use = uses_[std::size_t(i)];
    if (!use.needed || op(i).kind == ra::OpKind::input) return;
    ir::Buffer home = op(i).buffer;
    std::size_t taken = use.targets.size();
    if (op(i).kind == ra::OpKind::compute) {
      for (std::size_t t = 0; t < use.targets.size() && taken == use.targets.size(); ++t)
        if (same(use.targets[t].second, use.guard)) taken = t;
      if (taken < use.targets.size()) home = use.targets[taken].first;
      Definition definition{home, node_, {}, -1, {}, rewrite(op(i).body, op(i).node), use.guard};
      for (std::size_t d = 0; d < op(i).dims.size(); ++d)
        definition.indices.push_back({op(i).index_vars[d], op(i).dims[d]});
      home_.insert_or_assign(op(i).buffer.id(), home);
      out.push_back(std::move(definition));
    }
    for (std::size_t t = 0; t < use.targets.size(); ++t)
      if (t != taken) out.push_back(copy(op(i), home, use.targets[t].first, use.targets[t].second));
  }

  Definition copy(const ra::Op& from, const ir::Buffer& home, const ir::Buffer& target, const ir::Expr& guard) const {
    Definition definition{target, node_, {}, -1, {}, {}, guard};
    std::vector<ir::Expr> indices{node_};
    for (const Dim& dim : from.dims) {
      definition.indices.push_back({ir::Var::make("i"), dim});
      indices.push_back(definition.indices.back().var);
    }
    definition.body = ir::Load::make(home, std::move(indices));
    return definition;
  }

  const ra::Graph& graph_;
  const std::vector<bool>& specialized_;
  Part part_;
  ir::Expr node_ = ir::Var::make("node");
  std::vector<Use> uses_;
  std::vector<bool> seen_;  // branches whose own buffer is defined
  std::unordered_map<const void*, int> alias_;
  std::unordered_map<const void*, ir::Buffer> home_;
};

}  // namespace detail

/// Which branches the schedule specializes. Throws `invalid_schedule` if it names an operator that is no branch, or a
/// branch on something else than `is_leaf`.
inline std::vector<bool> specialized_branches(const ra::Graph& graph, const Schedule& schedule) {
  std::vector<bool> result(graph.ops.size(), false);
  const auto decidable = [](const ra::Op& op) { return detail::truth(op.condition, Part::leaves) >= 0; };
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    result[i] = schedule.specialize_all && graph.ops[i].kind == ra::OpKind::if_then_else && decidable(graph.ops[i]);
  for (const std::string& name : schedule.specialized) {
    const int i = graph.find(name);
    if (i < 0)
      throw Error(Code::invalid_schedule,
                  "specialize_if_else: the model '" + graph.name + "' has no operator '" + name + "'");
    const ra::Op& op = graph.ops[std::size_t(i)];
    if (op.kind != ra::OpKind::if_then_else)
      throw Error(Code::invalid_schedule,
                  "specialize_if_else: '" + name + "' is no if_then_else, so it has no branch to specialize");
    if (!decidable(op))
      throw Error(Code::invalid_schedule,
                  "specialize_if_else: '" + name + "' branches on " + ir::print(op.condition) +
                      ", and only branches on is_leaf can be specialized; leave it to be checked at run time");
    result[std::size_t(i)] = true;
  }
  return result;
}

/// The versions of the body: leaves and inner nodes apart if a branch is specialized or the schedule asks for it.
inline std::vector<Version> make_versions(const ra::Graph& graph, const Schedule& schedule) {
  const std::vector<bool> specialized = specialized_branches(graph, schedule);
  const bool apart =
      schedule.leaves_apart || std::find(specialized.begin(), specialized.end(), true) != specialized.end();
  std::vector<Version> versions;
  for (const Part part : apart ? std::vector{Part::leaves, Part::internal} : std::vector{Part::all})
    versions.push_back(detail::VersionBuilder(graph, specialized, part).build());
  return versions;
}

}  // namespace cortex::lower
