// A recursion of several states becomes several recursions in sequence, where products with weights leave the later
// ones by that: what they multiply is then known of all nodes before, and is multiplied for all of them at once.
//
//   recursion(x, e(n), h, tanh(sum(j, U[i,j] * h[prev(n),j] + W[i,j] * x[prev(n),j])))
//     ->
//   recursion(x, e(n)); recursion(h, ...)
//
// So are the layers of a stack that a model computes in one recursion. States of which each needs the other's, at
// children, stay together.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/lower/cut_sums.hpp"
#include "cortex/ra/recursions.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::lower {

namespace detail {

/// Finds which states of one recursion come before which.
class RecursionSplitter {
 public:
  /// A bit for each of the recursion's states, in the graph's order.
  using States = std::int64_t;
  static constexpr std::size_t most_states = 63;

  RecursionSplitter(const ra::Graph& graph, int recursion) : graph_(graph), recursion_(recursion) {
    for (std::size_t s = 0; s < graph.states.size(); ++s)
      if (graph.states[s].recursion == recursion) own_.push_back(int(s));
    if (own_.size() < 2 || own_.size() > most_states) return;
    look_at_operators();
    for (const int s : own_) waits_for_.push_back(made_of_[body_of(s)]);
    wait_for_what_these_wait_for();
    for (std::size_t s = 0; s < own_.size(); ++s)  // so that they stay together: no later recursion may read such rows
      for (std::size_t reader = 0; reader < own_.size(); ++reader)
        if (ra::may_share_rows(graph, std::size_t(own_[s])) && (waits_for_[reader] & bit(s)))
          waits_for_[s] |= bit(reader);
    wait_for_what_these_wait_for();
  }

  /// Numbers the recursions that the recursion's states are in now, from `first` on; the last of them.
  int number(ra::Graph& graph, int first) const {
    Vector<int> numbers(own_.size());
    for (std::size_t round = 0; round < waits_for_.size(); ++round)  // no way from state to state is longer
      for (std::size_t a = 0; a < own_.size(); ++a)
        for (std::size_t b = 0; b < own_.size(); ++b)
          if (waits_for_[b] & bit(a)) numbers[b] = std::max(numbers[b], numbers[a] + int(multiplies_apart(a, b)));
    int last = 0;
    for (std::size_t s = 0; s < own_.size(); ++s) {
      graph.states[std::size_t(own_[s])].recursion = first + numbers[s];
      last = std::max(last, numbers[s]);
    }
    return first + last;
  }

 private:
  static States bit(std::size_t state) { return States(1) << state; }
  std::size_t body_of(int state) const { return std::size_t(graph_.states[std::size_t(state)].body); }

  /// The operators that `op` reads in the recursion, which may come more than once.
  Vector<int> operands_of(const ra::Op& op) const {
    Vector<int> operands;
    const auto read = [&](int i) { operands.push_back(ra::read_as(graph_, i, recursion_)); };
    if (op.kind == ra::OpKind::if_then_else) read(op.then_op), read(op.else_op);
    if (op.body)
      ir::visit_with(op.body, [&](const ir::Load& load) {
        if (const int i = graph_.find(load.buffer); i >= 0) read(i);
      });
    return operands;
  }
  /// Of which states what the recursion reads as `buffer` is made.
  States made_of(const ir::Buffer& buffer) const {
    const int i = graph_.find(buffer);
    return i < 0 ? 0 : made_of_[std::size_t(ra::read_as(graph_, i, recursion_))];
  }

  void wait_for_what_these_wait_for() {
    for (std::size_t over = 0; over < own_.size(); ++over)
      for (States& waits : waits_for_)
        if (waits & bit(over)) waits |= waits_for_[over];
  }

  void look_at_operators() {
    const std::size_t count = graph_.ops.size();
    made_of_.resize(count), needed_by_.resize(count);
    for (std::size_t s = 0; s < own_.size(); ++s) {
      made_of_[std::size_t(graph_.states[std::size_t(own_[s])].placeholder)] |= bit(s);
      needed_by_[body_of(own_[s])] |= bit(s);
    }
    for (std::size_t i = 0; i < count; ++i)  // an operator reads only those before it
      for (const int operand : operands_of(graph_.ops[i])) made_of_[i] |= made_of_[std::size_t(operand)];
    for (std::size_t i = count; i-- > 0;)
      for (const int operand : operands_of(graph_.ops[i])) needed_by_[std::size_t(operand)] |= needed_by_[i];
  }

  /// Whether state `b` needs a product with a weight of what state `a` decides and no state does that waits for `b`,
  /// and which `a` does not need itself. Not if a branch decides for what nodes either is computed, and both need
  /// another product: it would be made for both.
  bool multiplies_apart(std::size_t a, std::size_t b) const {
    bool found = false, branches = false, shares = false;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const ra::Op& op = graph_.ops[i];
      const bool of_a = needed_by_[i] & bit(a), of_b = needed_by_[i] & bit(b);
      branches |= op.kind == ra::OpKind::if_then_else && (of_a || of_b);
      if (op.kind != ra::OpKind::compute || !of_b) continue;
      shares |= of_a && made_of_[i] && i != body_of(own_[a]) && has_contraction(op.body);
      if (!of_a)
        ir::visit_with(op.body, [&](const ir::Reduce& sum) {
          if (sum.axis.dim.kind() == DimKind::dense) found |= has_product_apart(sum.body, sum.axis.var, a, b);
        });
    }
    return found && !(branches && shares);
  }
  bool has_product_apart(const ir::Expr& e, const ir::Expr& summed, std::size_t a, std::size_t b) const {
    const auto* binary = e.as<ir::Binary>();
    if (binary && (binary->op == ir::BinaryOp::add || binary->op == ir::BinaryOp::sub))
      return has_product_apart(binary->a, summed, a, b) || has_product_apart(binary->b, summed, a, b);
    States states = 0, summed_up = 0;
    bool of_weight = false;
    ir::visit_with(e, [&](const ir::Load& load) {
      const bool is_summed = ir::uses(ir::handle_of(load), summed);
      of_weight |= is_summed && load.buffer->role == ir::Role::weight;
      const States of_load = made_of(load.buffer);
      states |= of_load, summed_up |= is_summed ? of_load : 0;
    });
    if (!of_weight || !(summed_up & bit(a)) || (states & bit(b))) return false;
    for (std::size_t s = 0; s < own_.size(); ++s)
      if ((states & bit(s)) && (waits_for_[s] & bit(b))) return false;
    return true;
  }

  const ra::Graph& graph_;
  const int recursion_;
  Vector<int> own_;           // the recursion's states, by number in the graph
  Vector<States> made_of_;    // by operator: of which states at children
  Vector<States> needed_by_;  // by operator: for which states
  Vector<States> waits_for_;  // by state: those that it is made of at children, and what these are made of
};

}  // namespace detail

/// The graph with recursions split where `schedule` leaves it to the compiler how a recursion runs.
inline ra::Graph split_recursions(const ra::Graph& graph, const Schedule& schedule) {
  ra::Graph result = graph;
  if (!schedule.batched || schedule.by_hand || !schedule.unrolled.empty() || !schedule.refactored.empty())
    return result;
  const ra::Graph apart = cut_sums(graph);
  int number = 0;
  for (int r = 0; r < ra::num_recursions(graph); ++r)
    number = detail::RecursionSplitter(apart, r).number(result, number) + 1;
  return result;
}

}  // namespace cortex::lower
