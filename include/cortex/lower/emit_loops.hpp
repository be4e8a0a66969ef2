// Definitions become loops: over nodes in dependence order, or over batches (paper section 4.1, L2).
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/lower/hoist.hpp"
#include "cortex/lower/sort_by_matrix.hpp"

namespace cortex::lower {

namespace detail {

using ir::UfKind;

/// The reduction `reduce` as loops that accumulate into a local scalar, and the store of what they give.
inline ir::Stmt reduction_loops(const Definition& d, const ir::Reduce& reduce) {
  ir::BufferInfo info;
  info.name = d.buffer->name + "_acc";
  info.dtype = d.buffer->dtype;
  info.scope = ir::Scope::local;
  const ir::Buffer acc{std::move(info)};
  Vector<ir::ReduceAxis> axes{reduce.axis};
  ir::Expr body = reduce.body;
  while (const auto* nested = body.as<ir::Reduce>()) {
    axes.push_back(nested->axis);
    body = nested->body;
  }
  const ir::Expr value = ir::Load::make(acc, {});
  ir::Stmt loops = ir::Store::make(acc, {}, ir::combine(reduce.op, value, body));
  for (const auto& axis : reversed(axes))
    loops = ir::For::make(axis.var, axis.dim, axis.extent, ir::ForKind::serial, loops);
  const ir::Stmt start = ir::Store::make(acc, {}, ir::constant(ir::identity(reduce.op), {acc->dtype, 1}));
  return ir::Alloc::make(acc, ir::Block::make({start, loops, ir::Store::make(d.buffer, store_indices(d), value)}));
}

/// The loop nest of one definition at the current node.
inline ir::Stmt definition_loops(const Definition& d) {
  const auto* reduce = d.body.as<ir::Reduce>();
  ir::Stmt nest = reduce ? reduction_loops(d, *reduce) : ir::Store::make(d.buffer, store_indices(d), d.body);
  for (const auto& index : reversed(d.indices))
    nest = ir::For::make(index.var, index.dim, ir::imm(index.dim.extent()), ir::ForKind::serial, nest);
  if (d.child) {
    const ir::Expr extent = ir::call(UfKind::num_children, "num_children", {d.node}, d.container);
    nest = ir::For::make(d.child, dims::child, extent, ir::ForKind::serial, nest);
  }
  return nest;
}

/// The definitions of one version in order; runs under one condition share an `if`, and a run under the opposite
/// condition becomes its `else`.
inline ir::Stmt body_of(const Vector<Definition>& definitions) {
  struct Run {
    ir::Expr guard;
    Vector<ir::Stmt> stmts;
  };
  Vector<Run> runs;
  for (const Definition& d : definitions) {
    if (runs.empty() || !ir::equal(runs.back().guard, d.guard)) runs.push_back({d.guard, {}});
    runs.back().stmts.push_back(definition_loops(d));
  }
  Vector<ir::Stmt> result;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const ir::Stmt body = ir::Block::make(runs[r].stmts);
    if (!runs[r].guard) {
      result.push_back(body);
    } else if (r + 1 < runs.size() && ir::equal(ir::negation(runs[r].guard), runs[r + 1].guard)) {
      result.push_back(ir::If::make(runs[r].guard, body, ir::Block::make(runs[r + 1].stmts)));
      ++r;
    } else {
      result.push_back(ir::If::make(runs[r].guard, body));
    }
  }
  return ir::Block::make(result);
}

/// `for n_idx in [0, extent): node = of(n_idx): body`.
inline ir::Stmt node_loop(const Vector<Definition>& definitions, const Dim& dim, const ir::Expr& extent,
                          FunctionRef<ir::Expr(const ir::Expr&)> of) {
  const ir::Expr n = ir::Var::make("n_idx"), node = ir::Var::make("node");
  ir::Substitution to_node;
  for (const Definition& d : definitions)
    if (d.node) to_node.insert_or_assign(d.node.get(), node);
  const ir::Stmt body = ir::substitute(body_of(definitions), to_node);
  return ir::For::make(n, dim, extent, ir::ForKind::serial, ir::LetStmt::make(node, of(n), body));
}

/// How a pass goes through the nodes.
struct Way {
  ra::Direction direction;
  bool batched;
  const ra::Questions& questions;  // whose answers are the parts of each batch
  int unrolled = 0;

  bool down() const { return direction == ra::Direction::down; }
  bool any_order() const { return direction == ra::Direction::none || direction == ra::Direction::roots; }
  /// The dimension of loops over nodes that do not depend on each other.
  const Dim& node_dim() const { return batched || any_order() ? dims::batch : dims::sequence; }
};

/// The loop over part `number` of batch `b`.
inline ir::Stmt part_loop(const Vector<Definition>& definitions, const Way& way, const ir::Expr& b, int number) {
  const ir::Expr part = b * way.questions.parts() + std::int64_t(number);
  return node_loop(definitions, way.node_dim(), ir::call(UfKind::part_length, "part_sizes", {part}),
                   [&](const ir::Expr& n) {
                     return ir::call(UfKind::part_node, "parts", {part, n});
                   });
}

/// The loops over parts `begin` to `end` of batch `b`, of which each has its matrix.
inline void part_loops(const Vector<Definition>& definitions, const Way& way, const ir::Expr& b, int begin, int end,
                       Vector<ir::Stmt>& out) {
  for (int part = begin; part < end; ++part)
    out.push_back(part_loop(with_matrix(definitions, way.questions, part % way.questions.alike()), way, b, part));
}
/// Those of the parts that a version is for.
inline void part_loops(const Version& version, const Way& way, const ir::Expr& b, Vector<ir::Stmt>& out) {
  part_loops(version.definitions, way, b, version.number, version.number + version.parts, out);
}

/// The loops of each stretch of a version: over the parts of batch `b`, or what `whole` gives.
inline void stretch_loops(const Version& version, const Way& way, const ir::Expr& b,
                          FunctionRef<ir::Stmt(const Vector<Definition>&)> whole, Vector<ir::Stmt>& out) {
  for (const Stretch& stretch : stretches_of(version.definitions)) {
    if (stretch.by_part)
      part_loops(stretch.definitions, way, b, 0, way.questions.parts(), out);
    else
      out.push_back(whole(stretch.definitions));
  }
}

/// `body(b)` for the batches in dependence order: all of them, or those of inner nodes, counted without batch 0.
inline ir::Stmt over_batches(bool all, const Way& way, FunctionRef<Vector<ir::Stmt>(const ir::Expr&)> body) {
  const ir::Expr step = ir::Var::make("b_idx");
  const ir::Expr batches = all ? ir::call(UfKind::num_batches, "num_batches")
                               : ir::call(UfKind::num_internal_batches, "num_internal_batches");
  return ir::For::make(step, dims::all_batches, batches, ir::ForKind::serial,
                       ir::Block::make(body(way.down() ? batches - 1 - step : step)));
}

/// Loops over the batches, all nodes of a batch alike but for the matrices that they choose.
inline ir::Stmt batch_loop(const Version& version, const Way& way) {
  const bool all = version.part == Part::all;
  return over_batches(all, way, [&](const ir::Expr& b) {
    const ir::Expr length = ir::call(all ? UfKind::batch_length : UfKind::internal_batch_length, "batch_sizes", {b});
    const auto whole = [&](const Vector<Definition>& definitions) {
      return node_loop(definitions, dims::batch, length, [&](const ir::Expr& n) {
        return all ? ir::call(UfKind::batch_node, "batches", {b, n})
                   : ir::call(UfKind::internal_batch_node, "internal_batches", {b, n});
      });
    };
    Vector<ir::Stmt> nodes;
    stretch_loops(version, way, b + std::int64_t(!all), whole, nodes);
    return nodes;
  });
}

/// Loops over the batches, each part of a batch by its version.
inline ir::Stmt parts_loop(const Vector<Version>& versions, const Way& way) {
  const bool all = versions.front().part == Part::all;
  return over_batches(all, way, [&](const ir::Expr& b) {
    Vector<ir::Stmt> parts;
    for (const Version& version : versions) part_loops(version, way, b + std::int64_t(!all), parts);
    return parts;
  });
}

/// The loop over the nodes of a part whose order does not matter.
inline ir::Stmt independent_loop(Part part, const Vector<Definition>& definitions) {
  const auto loop = [&](UfKind count, const char* count_name, UfKind of, const char* of_name) {
    return node_loop(definitions, dims::batch, ir::call(count, count_name),
                     [&](const ir::Expr& n) { return ir::call(of, of_name, {n}); });
  };
  switch (part) {
    case Part::all: return loop(UfKind::num_nodes, "num_nodes", UfKind::all_node, "all_nodes");
    case Part::leaves: return loop(UfKind::num_leaves, "leaf_batch_size", UfKind::leaf_node, "leaf_batch");
    case Part::internal: return loop(UfKind::num_internal, "num_internal", UfKind::internal_node, "internal_nodes");
  }
  throw Error(Code::internal, "a part of no known kind");
}

/// The loop over the nodes of a version's part of all batches.
inline ir::Stmt listed_loop(const Version& version) {
  const ir::Expr part = ir::imm(version.number), parts = ir::imm(version.parts);
  return node_loop(version.definitions, dims::batch, ir::call(UfKind::listed_length, "part_lengths", {part, parts}),
                   [&](const ir::Expr& n) {
                     return ir::call(UfKind::listed_node, "part_nodes", {part, n});
                   });
}

/// The loops over the leaves, batch 0.
inline void leaf_loops(const Version& version, const Way& way, Vector<ir::Stmt>& out) {
  stretch_loops(
      version, way, ir::imm(0),
      [&](const Vector<Definition>& definitions) { return independent_loop(version.part, definitions); }, out);
}

/// The body at `node`, after the bodies at its children in the same subtree, `levels` of them.
inline ir::Stmt subtree_body(const Version& version, const ir::Expr& node, int levels) {
  ir::Substitution to_node;
  for (const Definition& d : version.definitions)
    if (d.node) to_node.insert_or_assign(d.node.get(), node);
  Vector<ir::Stmt> stmts;
  if (levels > 1) {
    const ir::Expr k = ir::Var::make("k_inner"), child = ir::Var::make("inner");
    stmts.push_back(ir::For::make(k, dims::sequence, ir::call(UfKind::num_inner, "num_inner", {node}),
                                  ir::ForKind::serial,
                                  ir::LetStmt::make(child, ir::call(UfKind::inner_child, "inner_child", {node, k}),
                                                    subtree_body(version, child, levels - 1))));
  }
  stmts.push_back(ir::substitute(body_of(version.definitions), to_node));
  return ir::Block::make(stmts);
}

/// Loops over groups of subtrees in dependence order, the body unrolled over the levels of each.
inline ir::Stmt subtree_loop(const Version& version, const Way& way) {
  const ir::Expr g = ir::Var::make("g_idx"), t = ir::Var::make("t_idx"), top = ir::Var::make("top");
  const ir::Stmt subtrees = ir::For::make(
      t, dims::sequence, ir::call(UfKind::group_length, "group_sizes", {g}), ir::ForKind::serial,
      ir::LetStmt::make(top, ir::call(UfKind::group_node, "groups", {g, t}), subtree_body(version, top, way.unrolled)));
  return ir::For::make(g, dims::all_batches, ir::call(UfKind::num_groups, "num_groups"), ir::ForKind::serial, subtrees);
}

/// The loops over one part of the nodes.
inline ir::Stmt recursion_loop(const Version& version, const Way& way) {
  if (way.direction == ra::Direction::roots)
    return node_loop(version.definitions, dims::batch, ir::call(UfKind::num_roots, "num_roots"),
                     [](const ir::Expr& n) { return ir::call(UfKind::root_node, "roots", {n}); });
  if (way.any_order()) return independent_loop(version.part, version.definitions);
  if (way.unrolled) return subtree_loop(version, way);
  if (way.batched) return batch_loop(version, way);
  const bool all = version.part == Part::all;
  const ir::Expr count = all ? ir::num_nodes() : ir::call(UfKind::num_internal, "num_internal");
  return node_loop(version.definitions, dims::sequence, count, [&](const ir::Expr& n) {
    if (way.down()) return ir::call(UfKind::downward_node, "nodes_downward", {n});
    return all ? ir::call(UfKind::sequence_node, "nodes", {n})
               : ir::call(UfKind::internal_sequence_node, "internal_nodes", {n});
  });
}

/// The loops of one recursion: versions of whole batches alone, those of parts of the same batches together.
inline void pass_loops(const Placement::Pass& pass, const Way& way, Vector<ir::Stmt>& out) {
  for (const Version& version : pass.ahead)
    out.push_back(version.number < 0 ? independent_loop(version.part, version.definitions) : listed_loop(version));
  Vector<Version> parts;
  const auto flush = [&] {
    if (parts.empty()) return;
    if (parts.front().part == Part::leaves)  // batch 0
      for (const Version& version : parts) part_loops(version, way, ir::imm(0), out);
    else
      out.push_back(parts_loop(parts, way));
    parts.clear();
  };
  for (const Version& version : pass.recursion) {
    if (version.definitions.empty()) continue;
    if (!parts.empty() && (version.number < 0 || parts.front().part != version.part)) flush();
    if (version.number >= 0)
      parts.push_back(version);
    else if (version.part == Part::leaves)
      leaf_loops(version, way, out);
    else
      out.push_back(recursion_loop(version, way));
  }
  flush();
}

}  // namespace detail

/// The whole program's loops. `questions`: by whose answers each batch has parts.
inline ir::Stmt emit_loops(const Placement& placement, bool batched, const ra::Questions& questions) {
  Vector<ir::Stmt> stmts;
  for (const Definition& d : placement.once) stmts.push_back(detail::definition_loops(d));
  for (const Placement::Pass& pass : placement.passes)
    detail::pass_loops(pass, detail::Way{pass.direction, batched, questions, pass.unrolled}, stmts);
  return ir::Block::make(stmts);
}

}  // namespace cortex::lower
