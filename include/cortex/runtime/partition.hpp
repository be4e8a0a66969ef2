// From the questions of a graph's branches to what the linearizer evaluates. Part of compiling.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ra/partition.hpp"
#include "cortex/structure/partition.hpp"

namespace cortex::runtime {

namespace detail {

/// Writes an expression over a node as steps of a stack machine.
class KeyWriter {
 public:
  explicit KeyWriter(const ra::Graph& graph) : graph_(graph) {}

  structure::Key write(const ir::Expr& e) {
    steps_.clear();
    refusal_.clear();
    add(e);
    return written();
  }

  /// That a node of `where` is in one of `reach`, or nothing where it follows.
  structure::Key write(const Vector<ra::Reach>& reach, unsigned where) {
    steps_.clear();
    refusal_.clear();
    for (const ra::Reach& r : reach) {
      const std::size_t begin = steps_.size();
      const auto also = [&](std::initializer_list<structure::KeyStep> more) {
        const bool first = steps_.size() == begin;
        for (const structure::KeyStep& step : more) push(step);
        if (!first) push({Op::logical_and});
      };
      if (r.guard) add(r.guard);
      if (r.at_roots) also({{Op::is_root}});
      if ((r.nodes & where) != where && (r.nodes & ra::leaf_nodes)) also({{Op::is_leaf}});
      if ((r.nodes & where) != where && !(r.nodes & ra::leaf_nodes)) also({{Op::is_leaf}, {Op::logical_not}});
      if (steps_.size() == begin) return refusal_.clear(), structure::Key();
      if (begin > 0) push({Op::logical_or});
    }
    return written();
  }

  /// Why what was written last is no key; empty: it is one.
  const std::string& refusal() const { return refusal_; }

 private:
  using Op = structure::KeyStep::Op;

  /// How many values the steps hold at once at most.
  static int depth_of(const structure::Key& steps) {
    int depth = 0, most = 0;
    for (const structure::KeyStep& step : steps) {
      if (step.op <= Op::is_root)
        ++depth;
      else if (step.op > Op::logical_not)
        depth -= step.op == Op::select ? 2 : 1;
      most = std::max(most, depth);
    }
    return most;
  }

  structure::Key written() {
    if (depth_of(steps_) > structure::most_key_depth)
      refusal_ = "a branch holds more than " + std::to_string(structure::most_key_depth) +
                 " values at once and cannot be specialized; put what is nested most on the left of its operators, or "
                 "leave it to be checked at run time";
    return std::move(steps_);
  }

  void refuse(const ir::Expr& e) {
    refusal_ = "a branch on " + ir::print(e) +
               " cannot be specialized: nodes are sorted by what they say of themselves, fields, numbers of children "
               "and of parents; leave it to be checked at run time";
  }

  void add(const ir::Expr& e) {
    switch (e->kind) {
      case ir::ExprKind::int_imm: return push({Op::constant, e.as<ir::IntImm>()->value});
      case ir::ExprKind::cast: return add(e.as<ir::Cast>()->a);
      case ir::ExprKind::unary: {
        const auto& n = *e.as<ir::Unary>();
        add(n.a);
        if (n.op == ir::UnaryOp::neg) return push({Op::negate});
        if (n.op == ir::UnaryOp::abs) return push({Op::absolute});
        if (n.op == ir::UnaryOp::logical_not) return push({Op::logical_not});
        return refuse(e);
      }
      case ir::ExprKind::binary: return binary(e);
      case ir::ExprKind::select:
        add(e.as<ir::Select>()->condition), add(e.as<ir::Select>()->then_value), add(e.as<ir::Select>()->else_value);
        return push({Op::select});
      case ir::ExprKind::uf_call: return call(e);
      default: refuse(e);
    }
  }

  void binary(const ir::Expr& e) {
    const auto& n = *e.as<ir::Binary>();
    const bool swapped = n.op == ir::BinaryOp::gt || n.op == ir::BinaryOp::ge;
    add(swapped ? n.b : n.a);
    add(swapped ? n.a : n.b);
    switch (n.op) {
      case ir::BinaryOp::add: return push({Op::add});
      case ir::BinaryOp::sub: return push({Op::subtract});
      case ir::BinaryOp::mul: return push({Op::multiply});
      case ir::BinaryOp::div: return push({Op::divide});
      case ir::BinaryOp::mod: return push({Op::remainder});
      case ir::BinaryOp::min: return push({Op::minimum});
      case ir::BinaryOp::max: return push({Op::maximum});
      case ir::BinaryOp::eq: return push({Op::equal});
      case ir::BinaryOp::ne: return push({Op::not_equal});
      case ir::BinaryOp::lt:
      case ir::BinaryOp::gt: return push({Op::less});
      case ir::BinaryOp::le:
      case ir::BinaryOp::ge: return push({Op::less_equal});
      case ir::BinaryOp::logical_and: return push({Op::logical_and});
      case ir::BinaryOp::logical_or: return push({Op::logical_or});
      case ir::BinaryOp::ldexp:
      case ir::BinaryOp::ratio:
      case ir::BinaryOp::pow: break;
    }
    refuse(e);
  }

  void call(const ir::Expr& e) {
    const auto& n = *e.as<ir::UfCall>();
    if (n.args.empty() || !n.args[0].as<ir::Var>()) return refuse(e);  // of another node
    const std::size_t accessor = n.uf.accessor < 0 ? 0 : std::size_t(n.uf.accessor);
    if (n.uf.kind == ir::UfKind::is_leaf) return push({Op::is_leaf});
    if (n.uf.kind == ir::UfKind::num_children) {
      switch (graph_.containers[accessor].relation) {
        case ra::Relation::children: return push({Op::num_children, 0, int(accessor)});
        case ra::Relation::parents: return push({Op::num_parents});
        case ra::Relation::members: break;
      }
    }
    if (n.uf.kind == ir::UfKind::field) {
      const auto component = n.args.size() > 1 ? ir::as_int(n.args[1]) : std::optional<std::int64_t>(0);
      if (component) return push({Op::field, 0, int(accessor), int(*component)});
    }
    refuse(e);
  }

  void push(structure::KeyStep step) { steps_.push_back(step); }

  const ra::Graph& graph_;
  structure::Key steps_;
  std::string refusal_;
};

}  // namespace detail

/// The partition that `questions` ask for, with the lists that `program` goes through; accessors go by their numbers in
/// the graph. Throws `Error{invalid_schedule}` for a question that nodes cannot answer before they are numbered.
inline structure::Partition partition_of(const ra::Graph& graph, const ra::Questions& questions,
                                         const ir::Program& program) {
  detail::KeyWriter writer(graph);
  structure::Partition result;
  result.parts = questions.parts();
  if (program.listed != ir::Listed::nothing)
    result.listed = program.listed == ir::Listed::inner_nodes ? structure::Where::internal : structure::Where::all;
  const auto checked = [&](structure::Key key) {
    if (!writer.refusal().empty()) throw Error(Code::invalid_schedule, "specialize_if_else: " + writer.refusal());
    return key;
  };
  const auto add = [&](const ra::Selector& s) {
    const unsigned nodes = ra::nodes_of(s.reach);
    result.selectors.push_back({checked(writer.write(s.key)), checked(writer.write(s.reach, nodes)),
                                structure::Where(nodes), s.values, s.exhaustive, s.partitions, s.name, s.matrices});
  };
  for (const ra::Selector& s : questions.selectors) add(s);
  if (questions.choice.matrices) add(questions.choice);
  return result;
}

/// Where a field is read, of which `reads` are all reads, by accessors' numbers in the graph. What no key asks is taken
/// for true, and `reads` becomes what is read then.
inline std::pair<structure::Where, structure::Key> where_read(const ra::Graph& graph, Vector<ra::Reach>& reads) {
  detail::KeyWriter writer(graph);
  const unsigned nodes = ra::nodes_of(reads);
  structure::Key guard = writer.write(reads, nodes);
  if (!writer.refusal().empty()) reads = {{nodes}}, guard = {};
  return {structure::Where(nodes), std::move(guard)};
}

}  // namespace cortex::runtime
