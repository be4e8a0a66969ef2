// What the specialized branches of a graph ask of the nodes (paper section 3.1, S2, and 4.1, L3): the batches of a call
// are sorted into parts by the answers, and each part has a version of the body of its own.
//
//   if_then_else(lambda n: num_children(n) == 1, ...)   ->   key num_children(node), values {1}: answers 1, other
//   switch on kind(n) with cases 0, 1, 2                ->   key kind(node), values {0, 1, 2}
//   if_then_else(lambda n: is_leaf(n), ...)             ->   nothing: leaves are a batch of their own
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/names.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ra/index_checks.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::ra {

/// One question: which of `values` the key has. The answer is the position among them, or one more for any other.
struct Selector {
  ir::Expr key;                 // over `Questions::node`; a condition has the values 1 and 0
  ir::Expr guard;               // asked only where this holds; empty: always
  unsigned nodes = no_nodes;    // where it is asked; elsewhere the answer is 0
  Vector<std::int64_t> values;  // a condition: {1}
  bool exhaustive = false;      // any other value is refused
  bool partitions = true;       // false: only checked
  std::string name;             // of the branch, for messages
  Vector<int> branches;         // the operators that ask it

  int answers() const { return !partitions ? 1 : int(values.size()) + !exhaustive; }
};

struct Questions {
  ir::Expr node;
  Vector<Selector> selectors;
  int parts() const {
    int product = 1;
    for (const Selector& s : selectors) product *= s.answers();
    return product;
  }
};

namespace detail {

inline bool is_leaf_test(const ir::Expr& e) {
  const auto* call = e.as<ir::UfCall>();
  return call && call->uf.kind == ir::UfKind::is_leaf;
}

class QuestionCollector {
 public:
  QuestionCollector(const Graph& graph, const Vector<bool>& specialized)
      : graph_(graph), specialized_(specialized), checks_(index_checks(graph)) {
    result_.node = checks_.node;
  }

  Questions run() {
    for (const BranchUse& use : checks_.branches) {
      const Op& op = graph_.ops[std::size_t(use.op)];
      if (specialized_[std::size_t(use.op)]) atoms(ir::substitute(op.condition, {{op.node.get(), result_.node}}), use);
    }
    for (const BranchUse& use : checks_.branches) check_cases(use);
    return std::move(result_);
  }

 private:
  /// The questions that a condition is made of.
  void atoms(const ir::Expr& e, const BranchUse& use) {
    if (is_leaf_test(e)) return;
    if (const auto* n = e.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not) return atoms(n->a, use);
    const auto* n = e.as<ir::Binary>();
    if (n && (n->op == ir::BinaryOp::logical_and || n->op == ir::BinaryOp::logical_or))
      return atoms(n->a, use), atoms(n->b, use);
    const bool same = n && (n->op == ir::BinaryOp::eq || n->op == ir::BinaryOp::ne) && is_int(n->a.dtype());
    if (const auto value = same ? ir::as_int(n->b) : std::nullopt) return ask(n->a, *value, use);
    ask(e, 1, use);
  }

  void ask(const ir::Expr& key, std::int64_t value, const BranchUse& use) {
    Selector* found = nullptr;
    for (Selector& s : result_.selectors)
      if (ir::equal(s.key, key)) found = &s;
    if (!found) {
      result_.selectors.push_back(
          {key, use.guard, no_nodes, {}, false, true, graph_.ops[std::size_t(use.op)].name(), {}});
      found = &result_.selectors.back();
    }
    found->nodes |= use.nodes;
    if (!same(found->guard, use.guard)) found->guard = {};
    if (!contains(found->values, value)) found->values.push_back(value);
    found->branches.push_back(use.op);
  }

  /// A switch without otherwise refuses all other values, whether it is specialized or not.
  void check_cases(const BranchUse& use) {
    const Op& op = graph_.ops[std::size_t(use.op)];
    if (!op.key) return;
    const ir::Expr key = ir::substitute(op.key, {{op.node.get(), result_.node}});
    for (Selector& s : result_.selectors) {
      // The last case has no branch of its own: it is what is left.
      Vector<std::int64_t> values = op.cases;
      const bool own = s.partitions && ir::equal(s.key, key) && s.nodes == use.nodes && same(s.guard, use.guard);
      const bool subset = all_of(s.values, [&](std::int64_t v) { return contains(values, v); });
      if (own && subset && s.exhaustive && s.values.size() == values.size()) return;
      if (!own || !subset || s.exhaustive) continue;  // another switch refuses what is not among those values
      s.values = std::move(values);
      s.exhaustive = true;
      return;
    }
    result_.selectors.push_back({key, use.guard, use.nodes, op.cases, true, false, op.name(), {}});
  }

  static bool same(const ir::Expr& a, const ir::Expr& b) { return (!a && !b) || (a && b && ir::equal(a, b)); }

  const Graph& graph_;
  const Vector<bool>& specialized_;
  const IndexChecks checks_;
  Questions result_;
};

}  // namespace detail

/// Which branches the schedule specializes, by number of the operator. Throws `invalid_schedule` if it names an
/// operator that is no branch.
inline Vector<bool> specialized_branches(const Graph& graph, const Schedule& schedule) {
  Vector<bool> result(graph.ops.size(), false);
  const auto is_leaf_branch = [](const Op& op) {
    ir::Expr condition = op.condition;
    while (const auto* n = condition.as<ir::Unary>()) condition = n->a;
    return detail::is_leaf_test(condition);
  };
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.kind == OpKind::if_then_else)
      result[i] = schedule.specialize_every || (schedule.specialize_all && (op.of_switch || is_leaf_branch(op)));
  }
  for (const std::string& name : schedule.specialized) {
    int i = graph.find(name);
    if (i < 0)
      throw Error(Code::invalid_schedule, "specialize_if_else: the model " + in_quotes(graph.name) + " has no branch " +
                                              in_quotes(name) + "; " +
                                              near_names(name, names_of(graph, OpKind::if_then_else)));
    if (graph.ops[std::size_t(i)].kind != OpKind::if_then_else)
      throw Error(Code::invalid_schedule,
                  "specialize_if_else: '" + name + "' is no if_then_else, so it has no branch to specialize");
    result[std::size_t(i)] = true;
    for (; graph.ops[std::size_t(i)].of_switch; i = graph.ops[std::size_t(i)].else_op) {  // all cases of a switch
      result[std::size_t(i)] = true;
      if (!graph.ops[std::size_t(graph.ops[std::size_t(i)].else_op)].of_switch) break;
    }
  }
  return result;
}

/// The questions of a graph under a schedule. Throws `invalid_schedule` for more ways through the branches than code
/// should be made for.
inline Questions questions(const Graph& graph, const Schedule& schedule) {
  constexpr int most_parts = 64;
  Questions result = detail::QuestionCollector(graph, specialized_branches(graph, schedule)).run();
  std::int64_t parts = 1;
  for (const Selector& s : result.selectors) parts = std::min<std::int64_t>(parts * s.answers(), 1 << 20);
  if (parts > most_parts)
    throw Error(Code::invalid_schedule, "specialize_if_else: the branches of model '" + graph.name +
                                            "' that are specialized leave " + std::to_string(parts) +
                                            " ways through the body, and code is made for at most " +
                                            std::to_string(most_parts) + "; specialize fewer of them");
  return result;
}

}  // namespace cortex::ra
