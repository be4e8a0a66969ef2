// Decides which indices made of the nodes' data are checked, and when: while the linearizer reads a field, before the
// kernel runs, or not at all, because they are in bounds whatever the data.
//
//   Emb(word(n), i)              ->   the linearizer holds word against the rows of Emb
//   T(word(n) % 3, i), 3 rows    ->   nothing, where word is not negative because of the check before
//   Emb(word(n) * 2 + 1, i)      ->   evaluated at every node before the kernel runs
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/knowledge.hpp"
#include "cortex/pass/prove.hpp"
#include "cortex/ra/index_checks.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/partition.hpp"

namespace cortex::runtime {

namespace detail {

/// Makes the linearizer hold a field, which is `spec`, against `check` wherever it reads that one, unless it is held
/// against another extent; whether it does now.
inline bool check_while_reading(const ra::IndexCheck& check, FieldSpec& spec) {
  const Dim& dim = check.of.dim;
  if (dim.kind() == DimKind::open) {
    if (!spec.table.empty()) return spec.weight == check.of.weight;
    spec.weight = check.of.weight;
  } else {
    if (spec.weight >= 0) return false;
    if (!spec.table.empty() && spec.limit <= dim.extent()) return true;
    spec.limit = dim.extent();
  }
  spec.table = check.of.name;
  return true;
}

/// Whether `e`, and all that it is made of, is linear in `var`.
inline bool is_linear_in(const ir::Expr& e, const ir::Expr& var) {
  if (e.same_as(var) || !ir::uses(e, var)) return true;
  const auto* n = e.as<ir::Binary>();
  if (!n) return false;
  const bool sum = n->op == ir::BinaryOp::add || n->op == ir::BinaryOp::sub;
  const bool product = n->op == ir::BinaryOp::mul && !(ir::uses(n->a, var) && ir::uses(n->b, var));
  return (sum || product) && is_linear_in(n->a, var) && is_linear_in(n->b, var);
}

/// Whether `field`, the index of `check`, is that index wherever it is read.
inline bool is_always_checked(const ra::IndexCheck& check, int field, const ra::IndexChecks& checks) {
  return all_of(checks.field_reads[std::size_t(field)], [&](const ra::Reach& read) {
    return any_of(checks.indices, [&](const ra::IndexCheck& other) {
      return ra::same_question(other, check) && ra::covers(other.reach, read);
    });
  });
}

/// Sorts index checks into those that the linearizer does while it reads a field, and the others.
inline void sort_checks(Executable& executable) {
  const ra::Graph& graph = executable.graph;
  ra::IndexChecks checks = ra::index_checks(graph);
  for (Vector<ra::Reach>& reads : checks.field_reads) {
    auto [where, guard] = where_read(graph, reads);
    executable.fields.push_back({where, -1, -1, {}, std::move(guard)});
  }
  for (const ra::IndexCheck& check : checks.indices) {
    const int field = ra::plain_field(check.index, check.node);
    if (field >= 0 && is_always_checked(check, field, checks) &&
        check_while_reading(check, executable.fields[std::size_t(field)]))
      continue;
    GuardedCheck guarded{check.node, {}, check.reach.guard, check.index, check.of, check.where, check.reach.at_roots};
    for (const auto& [var, extent] : check.ranges)
      guarded.ranges.push_back({var, extent, is_linear_in(check.index, var)});
    for (GuardedCheck::Range& range : guarded.ranges)
      for (const GuardedCheck::Range& other : guarded.ranges) range.ends_decide &= !ir::uses(other.extent, range.var);
    if (check.reach.nodes != ra::all_nodes) {
      ir::Expr part = ir::call(ir::UfKind::is_leaf, "is_leaf", {check.node});
      if (check.reach.nodes == ra::internal_nodes) part = ir::Unary::make(ir::UnaryOp::logical_not, part);
      guarded.guard = ir::both(part, guarded.guard);
    }
    executable.guarded.push_back(std::move(guarded));
  }
}

/// The checks of indices at nodes of parts of batches of which there are tables, [tabulations]. A table's rows stand
/// for all values of its fields, also for such as nodes of the part never have: what decides that a node is of the part
/// says nothing of them.
inline void collect_table_checks(Executable& executable) {
  const ra::Graph& graph = executable.graph;
  executable.table_checks.resize(executable.program.tabulations.size());
  const ra::Questions questions = ra::questions(graph, executable.schedule);
  const auto may_apply = [&](const GuardedCheck& check, lower::Part nodes, int part) {
    lower::Version version{nodes, {}, part, 1, questions.answers(part / questions.alike())};
    return !check.guard || lower::Knowledge(graph, questions, version, check.node).truth(check.guard) != 0;
  };
  for (std::size_t t = 0; t < executable.table_checks.size(); ++t) {
    const ir::Tabulation& tabulation = executable.program.tabulations[t];
    const lower::Part nodes = tabulation.rows == ir::Tabulation::Rows::leaves     ? lower::Part::leaves
                              : tabulation.rows == ir::Tabulation::Rows::internal ? lower::Part::internal
                                                                                  : lower::Part::all;
    for (const GuardedCheck& check : executable.guarded) {
      bool applies = false;
      for (int p = 0; p < tabulation.parts.count; ++p) applies |= may_apply(check, nodes, tabulation.parts.first + p);
      if (!applies) continue;
      executable.table_checks[t].push_back(check);
      executable.table_checks[t].back().guard = {};
    }
  }
}

/// What the linearizer checks of the nodes before any check of `executable` is made.
inline pass::KnownNodes checked_nodes(const Executable& executable) {
  const ra::Graph& graph = executable.graph;
  pass::KnownNodes known(executable.program);
  for (const FieldSpec& spec : executable.fields) {
    known.field_limit.push_back(spec.limit);
    known.field_weight.push_back(spec.weight);
  }
  for (const ra::Accessor& container : graph.containers)
    known.most_children.push_back(container.relation == ra::Relation::children ? graph.max_children : 0);
  return known;
}

/// By what the index is in bounds at every node; `prover` stands outside of the check.
inline pass::Proof in_bounds(const GuardedCheck& check, pass::Prover& prover) {
  pass::Proof proof = pass::Proof::no;
  pass::Scope& scope = prover.scope();
  scope.within([&] {
    scope.enter_loop(check.node, ir::num_nodes());
    for (const GuardedCheck::Range& range : check.ranges) scope.enter_loop(range.var, range.extent);
    if (check.guard) scope.assume(check.guard, true);
    // What is said of the linearizer's arrays holds at nodes that are there.
    const pass::Linear nodes = scope.atoms().form(pass::Symbol::num_nodes);
    bool of_nodes = true;
    ir::visit_with(check.index, [&](const ir::UfCall& call) {
      of_nodes &= call.args.empty() || scope.never_negative(nodes - 1 - scope.unchecked(call.args[0]), true);
    });
    if (!of_nodes) return;
    const Dim& dim = check.of.dim;
    const pass::Linear index = scope.unchecked(check.index),
                       extent = dim.kind() == DimKind::open
                                    ? scope.atoms().form(pass::Symbol::num_rows, check.of.weight)
                                    : pass::Linear(dim.extent());
    const pass::Proof low = prover.never_negative(index);
    if (low != pass::Proof::no) proof = pass::both(low, prover.never_negative(extent - 1 - index));
  });
  return proof;
}

/// Takes the checks away that cannot fail.
inline void drop_proved(Executable& executable) {
  pass::Prover prover(checked_nodes(executable));
  pass::ProofCounts counts;
  Vector<GuardedCheck> kept;
  for (GuardedCheck& check : executable.guarded) {
    const pass::Proof proof = in_bounds(check, prover);
    counts.add(proof);
    if (proof == pass::Proof::no) kept.push_back(std::move(check));
  }
  executable.guarded = std::move(kept);
  executable.checks.before_kernel = counts.unproved;
  executable.checks.by_rules = counts.rules;
  executable.checks.by_intervals = counts.intervals;
  executable.checks.by_z3 = counts.z3;
}

}  // namespace detail

/// Fills in `fields`, `guarded`, `table_checks` and `checks` of an executable that has its graph and program.
inline void plan_checks(Executable& executable) {
  detail::sort_checks(executable);
  for (const FieldSpec& spec : executable.fields) executable.checks.while_reading += !spec.table.empty();
  detail::collect_table_checks(executable);
  if (!executable.guarded.empty()) detail::drop_proved(executable);
}

}  // namespace cortex::runtime
