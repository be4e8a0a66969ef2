// What the specialized branches of a graph ask of the nodes (paper section 3.1, S2, and 4.1, L3): the batches of a call
// are sorted into parts by the answers, and each part has a version of the body of its own.
//
//   if_then_else(lambda n: num_children(n) == 1, ...)   ->   key num_children(node), values {1}: answers 1, other
//   switch on kind(n) with cases 0, 1, 2                ->   key kind(node), values {0, 1, 2}
//   if_then_else(lambda n: is_leaf(n), ...)             ->   nothing: leaves are a batch of their own
//
// So are they by the matrices that nodes choose, whose products are then common to all nodes of a part:
//
//   sum(j, U[tag(n),i,j] * s[n,j])                      ->   key tag(node), each number of a matrix an answer
//   sum(j, U[tag(child(n)),i,j] * h[child(n),j])        ->   the same: the child has the product (`multiply_below`)
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
#include "cortex/ra/branches.hpp"
#include "cortex/ra/index_checks.hpp"
#include "cortex/ra/products.hpp"
#include "cortex/ra/recursions.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::ra {

/// One question: which of `values` the key has. The answer is the position among them, or one more for any other.
struct Selector {
  ir::Expr key;                 // over `Questions::node`; a condition has the values 1 and 0
  Vector<Reach> reach;          // where it is asked; elsewhere the answer is 0
  Vector<std::int64_t> values;  // a condition: {1}
  bool exhaustive = false;      // any other value is refused
  bool partitions = true;       // false: only checked
  std::string name;             // of the branch, for messages
  Vector<int> branches;         // the operators that ask it
  int matrices = 0;             // of which the key is the number of one, and the answer; 0: it is no such key
  bool for_parents = false;     // nodes choose one for their parents, too: it is asked of all

  /// The value that an answer says; nothing for any other value.
  std::optional<std::int64_t> value_of(int answer) const {
    return std::size_t(answer) < values.size() ? std::optional(values[std::size_t(answer)]) : std::nullopt;
  }
  int answers() const { return !partitions ? 1 : matrices ? matrices : int(values.size()) + !exhaustive; }
};

/// The most ways through the branches that code is made for, and the most parts of a batch: those of several questions,
/// where each operator's code is there once for each answer to the others, and those of one.
inline constexpr int most_parts = 64, most_answers = 256;
/// The most operators that code is made for in several ways, counted in each, where there are more ways, or cases of
/// switches are decided at each node.
inline constexpr int most_copies = 1024;

struct Questions {
  ir::Expr node;
  Vector<Selector> selectors;  // of branches: by their answers bodies differ
  Selector choice;             // by which nodes choose a matrix; without matrices: there is none
  Vector<bool> specialized;    // [operators] the branches that the schedule specializes
  /// Of very many, a million. Those of one body, which differ in the matrix, stand in a row.
  int parts() const {
    std::int64_t product = alike();
    for (const Selector& s : selectors) product = std::min<std::int64_t>(product * s.answers(), 1 << 20);
    return int(product);
  }
  /// The answers to the selectors in the way of that number, the last one's first.
  Vector<int> answers(int way) const {
    Vector<int> result(selectors.size());
    for (std::size_t s = result.size(); s-- > 0; way /= selectors[s].answers())
      result[s] = way % selectors[s].answers();
    return result;
  }
  /// The most ways that code is made for.
  int most() const {
    int asked = 0;
    for (const Selector& s : selectors) asked += s.answers() > 1;
    return asked > 1 || choice.matrices ? most_parts : most_answers;
  }
  bool are_few() const { return parts() <= most(); }
  /// How many parts in a row have one body, but for the matrices that they choose.
  int alike() const { return std::max(choice.matrices, 1); }
  /// By which `of` chooses matrices, if nodes do.
  MatrixKey matrix_key(const ir::Expr& of) const {
    return choice.matrices ? MatrixKey{ir::substitute(choice.key, {{node.get(), of}}), choice.matrices} : MatrixKey{};
  }
};

/// Whether batches may be sorted by the matrices that nodes choose.
inline bool sorts_by_matrix(const Graph& graph, const Schedule& schedule) {
  const bool wanted =
      schedule.sorting == Sorting::on || (schedule.sorting == Sorting::where_it_pays && !schedule.by_hand);
  return wanted && schedule.batched && graph.structure != StructureKind::sequence;
}

namespace detail {

inline bool is_leaf_test(const ir::Expr& e) {
  const auto* call = e.as<ir::UfCall>();
  return call && call->uf.kind == ir::UfKind::is_leaf;
}

/// Whether it is a branch on whether a node is a leaf, or is none.
inline bool is_leaf_branch(const Op& op) {
  ir::Expr condition = op.condition;
  while (const auto* n = condition.as<ir::Unary>()) condition = n->a;
  return is_leaf_test(condition);
}

/// Whether nodes can be sorted by `e`: it is small, and made of fields and numbers of children of `node` itself.
inline bool can_be_asked(const ir::Expr& e, const ir::Expr& node) {
  constexpr int most = 24;
  int steps = 0;
  bool plain = true;
  ir::visit_with(
      e,
      [&](const ir::UfCall& call) {
        using enum ir::UfKind;
        const bool known = call.uf.kind == field || call.uf.kind == num_children || call.uf.kind == is_leaf;
        plain &= known && call.args[0].same_as(node) && (call.args.size() == 1 || call.args[1].as<ir::IntImm>());
        ++steps;
      },
      [&](const ir::Load&) { plain = false; }, [&](const ir::Select&) { plain = false; },
      [&](const ir::Binary&) { ++steps; }, [&](const ir::Unary&) { ++steps; });
  return plain && steps <= most;
}

class QuestionCollector {
 public:
  QuestionCollector(const Graph& graph, const Schedule& schedule, const IndexChecks& checks, Vector<bool> specialized)
      : graph_(graph), schedule_(schedule), checks_(checks) {
    result_.node = checks_.node;
    result_.specialized = std::move(specialized);
  }

  Questions run() {
    for (const BranchUse& use : checks_.branches) {
      const Op& op = graph_.ops[std::size_t(use.op)];
      if (result_.specialized[std::size_t(use.op)] && !use.reach.at_roots)  // roots are no part of a batch
        atoms(ir::substitute(op.condition, {{op.node.get(), result_.node}}), use);
    }
    for (const BranchUse& use : checks_.branches) check_cases(use);
    if (sorts_by_matrix(graph_, schedule_)) choose_matrices();
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
      result_.selectors.push_back({key, {}, {}, false, true, graph_.ops[std::size_t(use.op)].name(), {}});
      found = &result_.selectors.back();
    }
    ra::add(found->reach, use.reach);
    if (!contains(found->values, value)) found->values.push_back(value);
    found->branches.push_back(use.op);
  }

  /// A switch without otherwise refuses all other values, whether it is specialized or not.
  void check_cases(const BranchUse& use) {
    const Op& op = graph_.ops[std::size_t(use.op)];
    if (!op.key) return;
    const ir::Expr key = ir::substitute(op.key, {{op.node.get(), result_.node}});
    for (Selector& s : result_.selectors) {
      Vector<std::int64_t> values = op.cases;
      const bool own = s.partitions && ir::equal(s.key, key) && s.reach.size() == 1 && covers(s.reach[0], use.reach) &&
                       covers(use.reach, s.reach[0]);
      const bool subset = all_of(s.values, [&](std::int64_t v) { return contains(values, v); });
      if (own && subset && s.exhaustive && s.values.size() == values.size()) return;
      // Another switch refuses what is not among those values. The last case has no branch of its own: it is what is
      // left, if all others are asked for.
      if (!own || !subset || s.exhaustive || s.values.size() + 1 < values.size()) continue;
      s.values = std::move(values);
      s.exhaustive = true;
      return;
    }
    result_.selectors.push_back({key, {use.reach}, op.cases, true, false, op.name(), {}});
  }

  /// Adds the first key by which nodes choose matrices, for themselves or for their parents, that are worth it.
  void choose_matrices() {
    for (const IndexCheck& check : checks_.indices) {
      const std::int64_t matrices = check.of.dim.extent();
      const ir::Expr key = key_of(check.index);
      if (!key || matrices < 2 || matrices > most_matrices || result_.parts() * matrices > most_parts) continue;
      Selector choice{key, {}, {}, false, true, check.of.name, {}, int(matrices)};
      for (const IndexCheck& other : checks_.indices)
        if (ir::equal(other.index, key)) ra::add(choice.reach, other.reach);
      std::int64_t elements = 0;
      for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
        if (graph_.ops[i].kind != OpKind::compute) continue;
        const std::int64_t own = elements_chosen(int(i), choice), below = elements_chosen_by_children(int(i), choice);
        if (own || below) choice.branches.push_back(int(i));
        choice.for_parents |= below > 0;
        elements += own + below;
      }
      if (choice.for_parents) ra::add(choice.reach, Reach{});
      const bool fits = all_of(choice.reach, [&](const Reach& reach) {
        return !reach.at_roots && (!reach.guard || can_be_asked(reach.guard, result_.node));
      });
      const bool shared = choice.for_parents && graph_.structure == StructureKind::dag;
      const bool pays = schedule_.sorting == Sorting::on || elements >= (shared ? least_shared : least_elements);
      if (!fits || !elements || !pays) continue;
      result_.choice = std::move(choice);
      return;
    }
  }

  /// What `index` says as a key: a node by a number of its own, or a child by one of the child's; empty: nothing.
  ir::Expr key_of(const ir::Expr& index) const {
    ir::Expr step, key = index;
    if (const ir::Expr of_child = over_child(index, result_.node, child_, step))
      key = ir::substitute(of_child, {{child_.get(), result_.node}});
    return is_of_node(key) ? key : ir::Expr();
  }

  /// Whether it is made of what a node says of itself before it has a number.
  bool is_of_node(const ir::Expr& e) const {
    if (e.as<ir::IntImm>()) return true;
    if (const auto* cast = e.as<ir::Cast>()) return is_int(cast->a.dtype()) && is_of_node(cast->a);
    if (const auto* n = e.as<ir::Binary>()) {
      using enum ir::BinaryOp;
      const bool known = n->op == add || n->op == sub || n->op == mul || n->op == div || n->op == mod;
      return known && is_of_node(n->a) && is_of_node(n->b);
    }
    const auto* call = e.as<ir::UfCall>();
    if (!call || call->args.empty() || !call->args[0].same_as(result_.node)) return false;
    if (call->uf.kind == ir::UfKind::num_children)
      return graph_.containers[std::size_t(call->uf.accessor)].relation == Relation::children;
    return call->uf.kind == ir::UfKind::field && (call->args.size() == 1 || call->args[1].as<ir::IntImm>());
  }

  ir::Expr body_of(int op) const {
    return ir::substitute(graph_.ops[std::size_t(op)].body, {{graph_.ops[std::size_t(op)].node.get(), result_.node}});
  }

  /// How many elements of weights a node multiplies with in `op` that it chooses by the key.
  std::int64_t elements_chosen(int op, const Selector& choice) const {
    std::int64_t elements = 0;
    ir::visit_with(body_of(op), [&](const ir::Reduce& sum) {
      elements += ra::elements_chosen(sum, {choice.key, choice.matrices});
    });
    return elements;
  }

  /// And how many each child chooses for it by the child's, in products that the child can make: all nodes have to be
  /// asked then, and nothing may stand between a child and its parent.
  std::int64_t elements_chosen_by_children(int op, const Selector& choice) const {
    if (!schedule_.unrolled.empty() || !schedule_.refactored.empty()) return 0;
    const auto is_asked = [&](const IndexCheck& check) {
      return !check.reach.guard && !check.reach.at_roots && !ir::equal(check.index, choice.key) &&
             ir::equal(key_of(check.index), choice.key);
    };
    if (!any_of(checks_.indices, is_asked)) return 0;
    const Op& o = graph_.ops[std::size_t(op)];
    Vector<IndexVar> outputs;
    for (std::size_t d = 0; d < o.dims.size(); ++d) outputs.push_back({o.index_vars[d], o.dims[d]});
    const auto is_own = [&](const ir::Buffer& buffer) { return is_state_below(op, buffer); };
    const ir::Expr key = ir::substitute(choice.key, {{result_.node.get(), child_}});
    std::int64_t elements = 0;
    replace_child_products(body_of(op), result_.node, child_, std::move(outputs), is_own,
                           [&](const ChildProduct& product, const Vector<IndexVar>&) -> ir::Expr {
                             const bool chosen =
                                 ir::equal(product.key.number, key) && product.key.matrices == choice.matrices &&
                                 relation_of(graph_, *product.step.as<ir::UfCall>()) == Relation::children;
                             elements += chosen ? product.elements : 0;
                             return {};
                           });
    return elements;
  }

  /// Whether `buffer` holds a state of a recursion that `op` is part of.
  bool is_state_below(int op, const ir::Buffer& buffer) const {
    const int read = graph_.find(buffer), state = read < 0 ? -1 : state_of(graph_, read);
    return state >= 0 && operators_of(graph_, graph_.states[std::size_t(state)].recursion)[std::size_t(op)];
  }

  /// Each has a version of the code of products, and its nodes loops of their own.
  static constexpr int most_matrices = 8;
  /// Of fewer a level of few nodes takes longer in parts (`docs/measurements.md`).
  static constexpr std::int64_t least_elements = 96 * 96;
  /// Of what children make once for several parents.
  static constexpr std::int64_t least_shared = 64 * 64;

  const Graph& graph_;
  const Schedule& schedule_;
  const IndexChecks& checks_;
  const ir::Expr child_ = ir::Var::make("child");
  Questions result_;
};

/// The branches of a switch from its case `head` on, one for each case but the last, which is what is left.
inline Vector<int> cases_from(const Graph& graph, int head) {
  Vector<int> result;
  int number = graph.ops[std::size_t(head)].case_number;
  for (int i = head; number >= 0 && graph.ops[std::size_t(i)].case_number == number; ++number) {
    result.push_back(i);
    i = graph.ops[std::size_t(i)].else_op;
  }
  return result;
}

/// `branches`, and the first `count` of a switch.
inline Vector<bool> with_cases(Vector<bool> branches, const Vector<int>& cases, std::size_t count) {
  for (std::size_t i = 0; i < std::min(count, cases.size()); ++i) branches[std::size_t(cases[i])] = true;
  return branches;
}

/// The key of a branch, and the value at which it is taken, as each of a switch has them; 1 for a whole condition.
inline ir::Expr branch_key(const Op& branch) {
  const auto* is = branch.condition.as<ir::Binary>();
  return is && is->op == ir::BinaryOp::eq && ir::as_int(is->b) ? is->a : branch.condition;
}
inline std::int64_t branch_value(const Op& branch) {
  return branch_key(branch).same_as(branch.condition) ? 1 : *ir::as_int(branch.condition.as<ir::Binary>()->b);
}

/// The branches on one key: those of each switch, and others one by one.
struct BranchesOn {
  ir::Expr key;  // over the node of the checks
  Vector<Vector<int>> branches;
};

/// The switches of a graph and the other branches that are worth it, by their keys, in the order of the model.
/// `others`: not the switches alone.
inline Vector<BranchesOn> branches_worth_it(const Graph& graph, const IndexChecks& checks, bool others) {
  Vector<BranchesOn> result;
  const ir::Expr& node = checks.node;
  Vector<bool> multiply = others ? branches_that_multiply(graph) : Vector<bool>(graph.ops.size());
  for (const BranchUse& use : checks.branches) {
    const Op& op = graph.ops[std::size_t(use.op)];
    const ir::Expr condition = ir::substitute(op.condition, {{op.node.get(), node}});
    if (!can_be_asked(condition, node) || (use.reach.guard && !can_be_asked(use.reach.guard, node)))
      multiply[std::size_t(use.op)] = false;
  }
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const bool other = multiply[i] && !is_leaf_branch(op);
    if (op.case_number != 0 && !other) continue;
    const ir::Expr key = ir::substitute(branch_key(op), {{op.node.get(), node}});
    BranchesOn* found = nullptr;
    for (BranchesOn& on : result)
      if (ir::equal(on.key, key)) found = &on;
    if (!found) result.push_back({key, {}}), found = &result.back();
    found->branches.push_back(other ? Vector<int>{int(i)} : cases_from(graph, int(i)));
  }
  return result;
}

/// How many operators code is made for in several ways through the body, counted in each.
class Copies {
 public:
  Copies(const Graph& graph, const Vector<BranchesOn>& branches)
      : graph_(graph), branches_(branches), reads_(graph.ops.size()), on_(graph.ops.size(), -1), value_(on_.size()) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i)
      if (graph.ops[i].kind == OpKind::compute)
        ir::visit_with(graph.ops[i].body, [&](const ir::Load& load) { reads_[i].push_back(graph.find(load.buffer)); });
    for (std::size_t k = 0; k < branches.size(); ++k)
      for (const Vector<int>& cases : branches[k].branches)
        for (const int branch : cases)
          on_[std::size_t(branch)] = int(k), value_[std::size_t(branch)] = branch_value(graph.ops[std::size_t(branch)]);
  }

  int operator()(const Questions& questions) const {
    Vector<int> asked(branches_.size(), -1);
    for (std::size_t k = 0; k < branches_.size(); ++k)
      for (std::size_t s = 0; s < questions.selectors.size(); ++s)
        if (questions.selectors[s].partitions && ir::equal(questions.selectors[s].key, branches_[k].key))
          asked[k] = int(s);
    Vector<int> ways(graph_.ops.size(), 0);
    for (int way = 0; way < questions.parts() / questions.alike(); ++way)
      count(questions, asked, questions.answers(way), ways);
    int copies = 0;
    for (const int of_one : ways) copies += of_one > 1 ? of_one : 0;
    return copies;
  }

 private:
  /// Adds one to `ways` of each operator that this way may need.
  void count(const Questions& questions, const Vector<int>& asked, const Vector<int>& answers,
             Vector<int>& ways) const {
    Vector<bool> met(graph_.ops.size(), false);
    Vector<int> left;
    for (const State& state : graph_.states) left.push_back(state.body);
    while (!left.empty()) {
      const int i = left.back();
      left.pop_back();
      if (i < 0 || met[std::size_t(i)]) continue;
      met[std::size_t(i)] = true;
      const Op& op = graph_.ops[std::size_t(i)];
      for (const int read : reads_[std::size_t(i)]) left.push_back(read);
      if (op.kind == OpKind::compute) ++ways[std::size_t(i)];
      if (op.kind != OpKind::if_then_else) continue;
      const int s = on_[std::size_t(i)] < 0 ? -1 : asked[std::size_t(on_[std::size_t(i)])];
      const bool decided = questions.specialized[std::size_t(i)] && s >= 0;
      const bool is_it =
          decided && value_[std::size_t(i)] == questions.selectors[std::size_t(s)].value_of(answers[std::size_t(s)]);
      if (!decided || is_it) left.push_back(op.then_op);
      if (!is_it) left.push_back(op.else_op);
    }
  }

  const Graph& graph_;
  const Vector<BranchesOn>& branches_;
  Vector<Vector<int>> reads_;   // [operators] the operators that it reads; -1: what is none
  Vector<int> on_;              // [operators] on which of the keys; -1: on none
  Vector<std::int64_t> value_;  // [operators] at which value
};

/// By number of the operator: the branches that the schedule specializes whatever comes of it. Throws
/// `invalid_schedule` if it names an operator that is no branch.
inline Vector<bool> branches_named(const Graph& graph, const Schedule& schedule) {
  Vector<bool> result(graph.ops.size(), false);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.kind == OpKind::if_then_else)
      result[i] = schedule.specialize_every || (schedule.specializes_where_it_pays && is_leaf_branch(op));
  }
  for (const std::string& name : schedule.specialized) {
    const int i = graph.find(name);
    if (i < 0)
      throw Error(Code::invalid_schedule, "specialize_if_else: the model " + in_quotes(graph.name) + " has no branch " +
                                              in_quotes(name) + "; " +
                                              near_names(name, names_of(graph, OpKind::if_then_else)));
    if (graph.ops[std::size_t(i)].kind != OpKind::if_then_else)
      throw Error(Code::invalid_schedule,
                  "specialize_if_else: '" + name + "' is no if_then_else, so it has no branch to specialize");
    result[std::size_t(i)] = true;
    const Vector<int> cases = cases_from(graph, i);
    result = with_cases(std::move(result), cases, cases.size());
  }
  return result;
}

}  // namespace detail

/// The questions of a graph under a schedule. Switches and other branches that it does not name are specialized as far
/// as code is made for so many ways through the body: the last ones, or the last cases of a switch, are decided at each
/// node, when it runs. Throws `invalid_schedule` if what it does name leaves more ways than that.
inline Questions questions(const Graph& graph, const Schedule& schedule) {
  const IndexChecks checks = index_checks(graph);
  const auto ask = [&](Vector<bool> specialized) {
    return detail::QuestionCollector(graph, schedule, checks, std::move(specialized)).run();
  };
  const Vector<bool> named = detail::branches_named(graph, schedule);
  Vector<detail::BranchesOn> worth_it;
  if (schedule.specializes_where_it_pays) worth_it = detail::branches_worth_it(graph, checks, !schedule.by_hand);
  const detail::Copies copies(graph, worth_it);
  const auto fit = [&](const Questions& q) { return q.are_few() && copies(q) <= most_copies; };
  Vector<bool> all = named;
  for (const detail::BranchesOn& on : worth_it)
    for (const Vector<int>& cases : on.branches) all = detail::with_cases(std::move(all), cases, cases.size());
  Questions result = ask(std::move(all));
  if (result.parts() <= most_parts || fit(result)) return result;

  result = ask(named);
  if (!result.are_few())
    throw Error(Code::invalid_schedule, "specialize_if_else: the branches of model '" + graph.name +
                                            "' that are specialized leave " + std::to_string(result.parts()) +
                                            " ways through the body, and code is made for at most " +
                                            std::to_string(result.most()) + "; specialize fewer of them");
  for (const detail::BranchesOn& on : worth_it) {
    std::size_t count = 0;
    for (const Vector<int>& cases : on.branches) count = std::max(count, cases.size());
    for (; count > 0; --count) {
      Vector<bool> specialized = result.specialized;
      for (const Vector<int>& cases : on.branches)
        specialized = detail::with_cases(std::move(specialized), cases, count);
      Questions more = ask(std::move(specialized));
      if (!fit(more)) continue;
      result = std::move(more);
      break;
    }
  }
  return result;
}

/// The names of the branches that are worth it, and of switches, of which the schedule does not specialize all sides,
/// because they are too many.
inline Vector<std::string> branches_cut_short(const Graph& graph, const Schedule& schedule) {
  Vector<std::string> names;
  if (!schedule.specializes_where_it_pays) return names;
  const Questions asked = questions(graph, schedule);
  for (const detail::BranchesOn& on : detail::branches_worth_it(graph, index_checks(graph), !schedule.by_hand))
    for (const Vector<int>& cases : on.branches)
      if (!all_of(cases, [&](int branch) { return asked.specialized[std::size_t(branch)]; }))
        names.push_back(graph.ops[std::size_t(cases[0])].name());
  return names;
}

}  // namespace cortex::ra
