// Versions of a recursion's body: one for all nodes, or one for leaves and one for inner nodes, and of each one for
// each way through the specialized branches (paper section 4.1, L3).
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/lower/absent_children.hpp"
#include "cortex/lower/unroll.hpp"

namespace cortex::lower {

namespace detail {

/// The same condition, or none, without what its other parts say already: where `key` is 2 it is not 1.
///
///   not key == 0 and not key == 1 and key == 2   ->   key == 2
inline ir::Expr without_what_follows(const ir::Expr& condition) {
  if (!condition) return {};
  const auto* n = condition.as<ir::Binary>();
  if (n && n->op == ir::BinaryOp::logical_or)
    return ir::Binary::make(n->op, without_what_follows(n->a), without_what_follows(n->b));
  const auto value_of = [](const ir::Expr& part) -> const ir::Binary* {
    const auto* is = part.as<ir::Binary>();
    return is && is->op == ir::BinaryOp::eq && ir::as_int(is->b) ? is : nullptr;
  };
  Vector<ir::Expr> parts;  // the last one first
  ir::Expr rest = condition;
  for (; n && n->op == ir::BinaryOp::logical_and; n = rest.as<ir::Binary>()) parts.push_back(n->b), rest = n->a;
  parts.push_back(rest);
  const auto follows = [&](const ir::Expr& part) {
    const auto* negation = part.as<ir::Unary>();
    const bool negates = negation && negation->op == ir::UnaryOp::logical_not;
    const ir::Binary* other = negates ? value_of(negation->a) : nullptr;
    return other && any_of(parts, [&](const ir::Expr& known) {
             const ir::Binary* is = value_of(known);
             return is && *ir::as_int(is->b) != *ir::as_int(other->b) && ir::equal(is->a, other->a);
           });
  };
  ir::Expr result;
  for (const ir::Expr& part : reversed(parts))
    if (!follows(part)) result = ir::both(result, part);
  return result;
}

/// The conditions of the ways to an operator, of which any one makes it needed. Ways that part at a branch are one
/// where both of its sides need the operator.
class Ways {
 public:
  /// Takes one more way; empty: always.
  void add(ir::Expr way) {
    if (always_ || any_of(ways_, [&](const ir::Expr& w) { return leads_through(way, w); })) return;
    while (way) {  // what is left of two may part from another one
      const auto other = std::find_if(ways_.begin(), ways_.end(), [&](const ir::Expr& w) { return parts(way, w); });
      if (other == ways_.end()) break;
      way = stem_of_both(way, *other);
      ways_.erase(other);
    }
    if (way)
      ways_.push_back(std::move(way));
    else
      always_ = true;
  }

  bool any() const { return always_ || !ways_.empty(); }
  /// Each way; one that is empty: always.
  Vector<ir::Expr> all() const { return always_ ? Vector<ir::Expr>(1) : ways_; }
  /// Of any way; empty: always.
  ir::Expr condition() const {
    ir::Expr any;
    if (always_) return any;
    for (const ir::Expr& way : ways_) any = any ? ir::Binary::make(ir::BinaryOp::logical_or, any, way) : way;
    return any;
  }

 private:
  static const ir::Binary* fork(const ir::Expr& way) {
    const auto* n = way.as<ir::Binary>();
    return n && n->op == ir::BinaryOp::logical_and ? n : nullptr;
  }
  static ir::Expr stem(const ir::Expr& way) { return fork(way) ? fork(way)->a : ir::Expr(); }
  /// Whether `way` is `to`, or goes on from there.
  static bool leads_through(const ir::Expr& way, const ir::Expr& to) {
    return way && (ir::equal(way, to) || leads_through(stem(way), to));
  }
  static bool part_last(const ir::Expr& a, const ir::Expr& b) {
    const auto *f = fork(a), *g = fork(b);
    return f && g && ir::equal(f->a, g->a) && ir::equal(ir::negation(f->b), g->b);
  }
  /// Whether two ways take the two sides of one branch.
  static bool parts(const ir::Expr& a, const ir::Expr& b) { return part_last(a, b) || ir::equal(ir::negation(a), b); }
  static ir::Expr stem_of_both(const ir::Expr& a, const ir::Expr& b) { return part_last(a, b) ? stem(a) : ir::Expr(); }

  bool always_ = false;
  Vector<ir::Expr> ways_;
};

/// Selects the operators that a part needs, in graph order, each under the condition of its uses, and lets state
/// buffers take the place of the operators that define them.
class VersionBuilder {
 public:
  VersionBuilder(const ra::Graph& graph, const Vector<bool>& specialized, int recursion, const Knowledge& known,
                 ir::Expr node)
      : graph_(graph),
        specialized_(specialized),
        recursion_(recursion),
        known_(known),
        node_(std::move(node)),
        uses_(graph.ops.size()) {}

  Vector<Definition> build() {
    for (const ra::State& state : graph_.states)
      if (state.recursion == recursion_) define(state.body, graph_.ops[std::size_t(state.placeholder)].buffer, {});
    // Operators are used by later ones, so that all ways to one are known, and are one where they can, before it is
    // asked what it uses itself.
    for (std::size_t op = graph_.ops.size(); op-- > 0;) follow(int(op));
    Vector<Definition> definitions;
    for (const bool given : {true, false})  // copies of what is there before, whenever its placeholder was added
      for (std::size_t i = 0; i < graph_.ops.size(); ++i)
        if ((op(int(i)).kind == ra::OpKind::placeholder) == given) add_definition(int(i), definitions);
    return definitions;
  }

 private:
  struct Target {
    ir::Buffer buffer;  // takes the operator's value
    Ways ways;
  };
  struct Use {
    Ways ways;  // over `node_`, as all
    Vector<Target> targets;
  };

  const ra::Op& op(int i) const { return graph_.ops[std::size_t(i)]; }

  ir::Expr condition_of(const ra::Op& branch) const {
    return ir::substitute(branch.condition, {{branch.node.get(), node_}});
  }

  /// The side of `branch` that this part takes, or -1 if that is known only at run time.
  int side(int branch) const {
    if (!specialized_[std::size_t(branch)]) return -1;
    const int value = known_.truth_where_asked(condition_of(op(branch)));
    return value < 0 ? -1 : value ? op(branch).then_op : op(branch).else_op;
  }

  /// `target` takes the value of operator `written` where `guard` holds.
  void define(int written, const ir::Buffer& target, const ir::Expr& guard) {
    const int i = ra::read_as(graph_, written, recursion_);
    Use& use = uses_[std::size_t(i)];
    use.ways.add(guard);
    for (Target& known : use.targets)
      if (known.buffer == target) return known.ways.add(guard);
    use.targets.push_back({target, {}});
    use.targets.back().ways.add(guard);
  }

  void read(const ir::Buffer& buffer, const ir::Expr& guard) {
    const int written = graph_.find(buffer);
    if (written < 0) return;
    const int i = ra::read_as(graph_, written, recursion_);
    if (i != written) home_.insert_or_assign(buffer.id(), op(i).buffer);  // an earlier recursion has computed it
    if (op(i).kind == ra::OpKind::placeholder || op(i).kind == ra::OpKind::field) return;
    if (op(i).kind == ra::OpKind::compute) return uses_[std::size_t(i)].ways.add(guard);
    // A branch that is read as a tensor: its own buffer takes the value of the side that is taken.
    if (const int taken = side(i); taken >= 0) {
      alias_.emplace(buffer.id(), taken);
      return read(op(taken).buffer, guard);
    }
    define(i, buffer, guard);
  }

  /// What operator `i` uses, on each way to it.
  void follow(int i) {
    const Use& use = uses_[std::size_t(i)];
    if (op(i).kind == ra::OpKind::compute)
      for (const ir::Expr& way : use.ways.all())
        for_each_read(op(i).body, [&](const ir::Load& load) { read(load.buffer, way); });
    if (op(i).kind != ra::OpKind::if_then_else) return;
    const int taken = side(i);
    const ir::Expr condition = condition_of(op(i));
    for (const auto& [buffer, ways] : use.targets)
      for (const ir::Expr& way : ways.all()) {
        define(taken >= 0 ? taken : op(i).then_op, buffer, taken >= 0 ? way : ir::both(way, condition));
        if (taken < 0) define(op(i).else_op, buffer, ir::both(way, ir::negation(condition)));
      }
  }

  /// The buffer that holds what `buffer` stands for in this version.
  ir::Buffer resolve(const ir::Buffer& buffer) const {
    if (const auto taken = alias_.find(buffer.id()); taken != alias_.end()) return resolve(op(taken->second).buffer);
    const auto home = home_.find(buffer.id());
    return home == home_.end() ? buffer : home->second;
  }

  ir::Expr rewrite(const ir::Expr& e, const ir::Expr& node_var) const {
    const ir::Expr renamed = ir::substitute(e, {{node_var.get(), node_}});
    return ir::mutate_with(renamed, [&](auto& self, const ir::Load& load) -> ir::Expr {
      Vector<ir::Expr> indices;
      for (const ir::Expr& index : load.indices) indices.push_back(self(index));
      return ir::Load::make(resolve(load.buffer), std::move(indices));
    });
  }

  /// The operator's definition goes to the first buffer that takes its value under the same condition as the operator
  /// is needed, else to its own; the other takers get copies.
  void add_definition(int i, Vector<Definition>& out) {
    const Use& use = uses_[std::size_t(i)];
    if (!use.ways.any() || op(i).kind == ra::OpKind::input || op(i).kind == ra::OpKind::if_then_else) return;
    const ir::Expr guard = use.ways.condition();
    Vector<std::pair<ir::Buffer, ir::Expr>> targets;
    for (const auto& [buffer, ways] : use.targets)
      for (const ir::Expr& way : ways.all()) targets.emplace_back(buffer, way);
    ir::Buffer home = op(i).buffer;
    std::size_t taken = targets.size();
    if (op(i).kind == ra::OpKind::compute) {
      for (std::size_t t = 0; t < targets.size() && taken == targets.size(); ++t)
        if (ir::equal(targets[t].second, guard)) taken = t;
      if (taken < targets.size()) home = targets[taken].first;
      Definition definition{home, node_, {}, -1, {}, rewrite(op(i).body, op(i).node), without_what_follows(guard), i};
      for (std::size_t d = 0; d < op(i).dims.size(); ++d)
        definition.indices.push_back({op(i).index_vars[d], op(i).dims[d]});
      home_.insert_or_assign(op(i).buffer.id(), home);
      out.push_back(std::move(definition));
    }
    for (std::size_t t = 0; t < targets.size(); ++t)
      if (t != taken) out.push_back(copy(op(i), home, targets[t].first, targets[t].second));
  }

  Definition copy(const ra::Op& from, const ir::Buffer& home, const ir::Buffer& target, const ir::Expr& guard) const {
    Definition definition{target, node_, {}, -1, {}, {}, without_what_follows(guard)};
    Vector<ir::Expr> indices{node_};
    for (const Dim& dim : from.dims) {
      definition.indices.push_back({ir::Var::make("i"), dim});
      indices.push_back(definition.indices.back().var);
    }
    definition.body = ir::Load::make(home, std::move(indices));
    return definition;
  }

  const ra::Graph& graph_;
  const Vector<bool>& specialized_;
  const int recursion_;
  const Knowledge& known_;
  const ir::Expr node_;
  Vector<Use> uses_;
  PointerMap<int> alias_;
  PointerMap<ir::Buffer> home_;
};

/// Whether nodes of the version may be asked what is asked where `asked` says.
inline bool may_be_asked(const Vector<ra::Reach>& asked, const ra::Questions& questions, Part part,
                         const Knowledge& known, const ir::Expr& node) {
  return any_of(asked, [&](const ra::Reach& reach) {
    return (reach.nodes & nodes_of(part)) &&
           !(reach.guard && known.truth(ir::substitute(reach.guard, {{questions.node.get(), node}})) == 0);
  });
}

/// Whether the version's nodes can exist: answers that its part and its other answers rule out are left out.
inline bool possible(const ra::Questions& questions, const Version& version, const Knowledge& known,
                     const ir::Expr& node) {
  for (std::size_t s = 0; s < questions.selectors.size(); ++s) {
    const ra::Selector& selector = questions.selectors[s];
    const int answer = version.answers[s];
    if (!selector.partitions || answer == 0) continue;
    if (!may_be_asked(selector.reach, questions, version.part, known, node)) return false;
  }
  return true;
}

/// Whether the leaves are a version of their own: where a branch of the recursion asks, or the schedule does and some
/// product may be of children.
inline bool leaves_apart(const ra::Graph& graph, const Schedule& schedule, const Vector<bool>& specialized,
                         int recursion, ra::Direction direction) {
  if (direction == ra::Direction::roots) return false;
  if (schedule.leaves_apart && direction == ra::Direction::up) return true;
  const Vector<bool> needed = ra::operators_of(graph, recursion);
  bool asks = false, reads_children = false, multiplies = false;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const ra::Op& op = graph.ops[i];
    if (needed[i] && specialized[i])
      ir::visit_with(op.condition, [&](const ir::UfCall& call) { asks |= call.uf.kind == ir::UfKind::is_leaf; });
    if (!needed[i] || op.kind != ra::OpKind::compute) continue;
    multiplies |= has_contraction(op.body);
    ir::visit_with(op.body, [&](const ir::UfCall& call) {
      reads_children |= ir::is_child(call.uf.kind) && ra::relation_of(graph, call) == ra::Relation::children;
    });
  }
  const bool loops_are_ours = schedule.leaves_apart && !schedule.by_hand;
  return asks || (loops_are_ours && direction == ra::Direction::none && reads_children && multiplies);
}

/// Whether a branch of the recursion asks one of the questions, at those nodes.
inline bool is_asked(const ra::Graph& graph, const ra::Questions& questions, int recursion, Part part) {
  const Vector<bool> needed = ra::operators_of(graph, recursion);
  bool asked = false;
  for (const ra::Selector& s : questions.selectors)
    for (const int branch : s.branches)
      asked |= needed[std::size_t(branch)] && s.partitions &&
               !(part == Part::leaves && !(ra::nodes_of(s.reach) & unsigned(ra::leaf_nodes)));
  return asked;
}

}  // namespace detail

/// The recursions of a graph in order, each with the versions of its body.
inline Vector<Recursion> make_versions(const ra::Graph& graph, const Schedule& schedule,
                                       const ra::Questions& questions) {
  const Vector<bool>& specialized = questions.specialized;
  const Vector<int> depth = unrolling(graph, schedule);
  Vector<Recursion> result;
  for (int r = 0; r < ra::num_recursions(graph); ++r) {
    Recursion recursion{ra::direction_of(graph, r), {}, {}, depth[std::size_t(r)]};
    for (const ra::State& state : graph.states)
      if (state.recursion == r) recursion.states.push_back(graph.ops[std::size_t(state.placeholder)].buffer);
    const bool apart = recursion.unrolled || detail::leaves_apart(graph, schedule, specialized, r, recursion.direction);
    const bool downward = recursion.direction == ra::Direction::down;
    Vector<Part> parts = apart ? Vector{Part::leaves, Part::internal} : Vector{Part::all};
    if (downward) std::reverse(parts.begin(), parts.end());
    for (const Part part : parts) {
      const bool by_default = !schedule.specialize_every && schedule.specialized.empty();
      if (recursion.unrolled && !by_default && detail::is_asked(graph, questions, r, part))
        throw Error(Code::invalid_schedule,
                    "unroll: model '" + graph.name +
                        "': a recursion that is unrolled cannot be specialized by more than leaves: "
                        "subtrees hold nodes of all kinds; leave the branch to be checked at run time, or unroll out");
      const bool asked = !recursion.unrolled && recursion.direction != ra::Direction::roots &&
                         detail::is_asked(graph, questions, r, part);
      for (int number = asked ? 0 : -1; number < (asked ? questions.parts() : 0); number += questions.alike()) {
        Version version{part, {}, number, 1, {}};
        if (number >= 0) version.answers = questions.answers(number / questions.alike());
        const ir::Expr node = ir::Var::make("node");
        const Knowledge known(graph, questions, version, node);
        if (number >= 0 && !detail::possible(questions, version, known, node)) continue;
        if (detail::may_be_asked(questions.choice.reach, questions, part, known, node))
          version.parts = questions.alike();
        version.definitions = detail::VersionBuilder(graph, specialized, r, known, node).build();
        // What the part says about children is put in while it is known.
        propagate_absent_children(version, known);
        recursion.versions.push_back(std::move(version));
      }
    }
    result.push_back(std::move(recursion));
  }
  return result;
}

}  // namespace cortex::lower
