// What is known of the nodes of a version: whether they are leaves, and how they answer the questions of the branches.
#pragma once

#include <optional>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/partition.hpp"

namespace cortex::lower {

/// The nodes of a part, as bits.
inline unsigned nodes_of(Part part) {
  return part == Part::leaves ? ra::leaf_nodes : part == Part::internal ? ra::internal_nodes : ra::all_nodes;
}

/// Decides conditions over `node`, the variable that stands for the node in a version's definitions. The linearizer
/// gives the first answer to nodes that it does not ask, too: at these it says nothing of the key.
class Knowledge {
 public:
  Knowledge(const ra::Graph& graph, const ra::Questions& questions, const Version& version, const ir::Expr& node)
      : graph_(graph), part_(version.part), node_(node) {
    if (version.number < 0) return;
    for (std::size_t s = 0; s < questions.selectors.size(); ++s) {
      const ra::Selector& selector = questions.selectors[s];
      if (!selector.partitions) continue;
      const auto over_node = [&](const ir::Expr& e) {
        return e ? ir::substitute(e, {{questions.node.get(), node}}) : ir::Expr();
      };
      Fact fact{over_node(selector.key), {}, &selector.values, version.answers[s]};
      for (const ra::Reach& reach : selector.reach)
        if ((reach.nodes & nodes_of(part_)) == nodes_of(part_)) fact.guards.push_back(over_node(reach.guard));
      fact.certain = fact.answer != 0;
      facts_.push_back(std::move(fact));
    }
    // That all nodes of the version were asked may follow from what else is certain.
    for (bool more = true; more;) {
      more = false;
      for (Fact& fact : facts_) {
        const auto holds = [&](const ir::Expr& guard) { return !guard || truth(guard) == 1; };
        if (fact.certain || !any_of(fact.guards, holds)) continue;
        more = fact.certain = true;
      }
    }
  }

  Part part() const { return part_; }

  /// 1: holds at all nodes of the version; 0: at none; -1: neither is known.
  int truth(const ir::Expr& e) const { return truth(e, false); }
  /// The same of the condition of a branch that the linearizer has asked: at the nodes that reach it.
  int truth_where_asked(const ir::Expr& e) const { return truth(e, true); }

  /// Whether the node has no child, parent or member in `container`.
  bool is_empty(int container) const {
    return part_ == Part::leaves && graph_.containers[std::size_t(container)].relation == ra::Relation::children;
  }
  /// Whether `index` is a child of the node that is known to be absent.
  bool is_absent(const ir::Expr& index) const {
    const auto* step = index.as<ir::UfCall>();
    if (!step || part_ != Part::leaves) return false;
    if (step->uf.kind == ir::UfKind::child) return true;
    return step->uf.kind == ir::UfKind::kth_child && is_empty(step->uf.accessor);
  }

 private:
  struct Fact {
    ir::Expr key;
    Vector<ir::Expr> guards;  // it is asked at all nodes of the version at which one of them holds; empty: at all
    const Vector<std::int64_t>* values;
    int answer;
    bool certain = false;  // every node of the version has been asked
  };

  static bool holds(const Fact& fact, bool asked) { return asked || fact.certain; }

  int truth(const ir::Expr& e, bool asked) const {
    if (const auto known = ir::as_int(e)) return *known != 0;
    if (const auto* call = e.as<ir::UfCall>())
      if (call->uf.kind == ir::UfKind::is_leaf && call->args[0].same_as(node_))
        return part_ == Part::all ? -1 : part_ == Part::leaves;
    if (const auto* n = e.as<ir::Unary>(); n && n->op == ir::UnaryOp::logical_not) {
      const int inner = truth(n->a, asked);
      return inner < 0 ? inner : !inner;
    }
    for (const Fact& fact : facts_)
      if (holds(fact, asked) && ir::equal(fact.key, e)) return fact.answer == 0;
    const auto* n = e.as<ir::Binary>();
    if (!n) return -1;
    if (n->op == ir::BinaryOp::logical_and || n->op == ir::BinaryOp::logical_or) {
      const bool absorbing = n->op == ir::BinaryOp::logical_or;
      const int a = truth(n->a, asked), b = truth(n->b, asked);
      if (a == absorbing || b == absorbing) return absorbing;
      return a < 0 || b < 0 ? -1 : !absorbing;
    }
    return comparison(*n, asked);
  }

  int comparison(const ir::Binary& n, bool asked) const {
    if (!ir::is_comparison(n.op)) return -1;
    const auto constant = ir::as_int(n.b);
    if (!constant) return -1;
    if (const auto* call = n.a.as<ir::UfCall>())
      if (call->uf.kind == ir::UfKind::num_children && call->args[0].same_as(node_) && is_empty(call->uf.accessor))
        return ir::fold(n.op, 0, *constant) != 0;
    for (const Fact& fact : facts_) {
      if (!holds(fact, asked) || !ir::equal(fact.key, n.a)) continue;
      if (std::size_t(fact.answer) < fact.values->size())
        return ir::fold(n.op, (*fact.values)[std::size_t(fact.answer)], *constant) != 0;
      for (const std::int64_t value : *fact.values)  // any other value than these
        if (value == *constant && n.op == ir::BinaryOp::eq)
          return 0;
        else if (value == *constant && n.op == ir::BinaryOp::ne)
          return 1;
    }
    return -1;
  }

  const ra::Graph& graph_;
  Part part_;
  ir::Expr node_;
  Vector<Fact> facts_;
};

}  // namespace cortex::lower
