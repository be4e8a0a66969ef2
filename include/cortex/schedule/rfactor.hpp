// Factors a reduction into partial ones (paper section 5, I7).
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/schedule/loop_primitives.hpp"

namespace cortex::schedule {

namespace detail {

/// `acc[..] = acc[..] op value`; without a store: no such thing.
struct ReductionStep {
  const ir::Store* store = nullptr;
  ir::ReduceOp op = ir::ReduceOp::sum;
  ir::Expr value;  // for a sum of products the product
};

inline bool loads_same(const ir::Expr& e, const ir::Store& store) {
  const auto* load = e.as<ir::Load>();
  if (!load || !(load->buffer == store.buffer)) return false;
  for (std::size_t i = 0; i < load->indices.size(); ++i)
    if (!ir::equal(load->indices[i], store.indices[i])) return false;
  return true;
}

inline ReductionStep reduction_step(const ir::Store& store) {
  if (const auto* fma = store.value.as<ir::Fma>(); fma && loads_same(fma->c, store))
    return {&store, ir::ReduceOp::sum, ir::Binary::make(ir::BinaryOp::mul, fma->a, fma->b)};
  const auto* op = store.value.as<ir::Binary>();
  if (!op || !is_float(op->type.dtype)) return {};
  const bool left = loads_same(op->a, store), right = loads_same(op->b, store);
  if (left == right) return {};
  const ir::Expr& value = left ? op->b : op->a;
  switch (op->op) {
    case ir::BinaryOp::add: return {&store, ir::ReduceOp::sum, value};
    case ir::BinaryOp::mul: return {&store, ir::ReduceOp::prod, value};
    case ir::BinaryOp::min: return {&store, ir::ReduceOp::min, value};
    case ir::BinaryOp::max: return {&store, ir::ReduceOp::max, value};
    default: return {};
  }
}

/// The steps of a loop that does nothing but reduce into local buffers, at places that do not move with it; of another
/// loop none, and `why` says what is in the way.
inline Vector<ReductionStep> reduction_steps(const ir::For& loop, std::string& why) {
  Vector<ReductionStep> steps;
  PointerSet accumulators;
  for (const ir::Stmt& stmt : stmts_of(loop.body)) {
    const auto* store = stmt.as<ir::Store>();
    const ReductionStep step = store ? reduction_step(*store) : ReductionStep();
    const bool fixed = step.store && store->buffer->scope == ir::Scope::local &&
                       !any_of(store->indices, [&](const ir::Expr& index) { return ir::uses(index, loop.var); });
    if (!fixed || !accumulators.insert(store->buffer.id()))
      return why = "loop '" + name_of(loop) + "' is no reduction into local accumulators", Vector<ReductionStep>();
    steps.push_back(step);
  }
  for (const ReductionStep& step : steps)
    ir::visit_with(step.value, [&](const ir::Load& load) {
      if (accumulators.contains(load.buffer.id()))
        why = "loop '" + name_of(loop) + "' reads an accumulator, '" + load.buffer->name + "', in between";
    });
  return why.empty() ? steps : Vector<ReductionStep>();
}

/// A reduction's loop in parts: the buffers of `factor` partial ones, and what stands before the loop, in its place,
/// and after it.
struct InParts {
  Vector<ir::Buffer> buffers;
  ir::Stmt clear;
  Vector<ir::Stmt> loops;
  Vector<ir::Stmt> combine;
};

/// `kind`: of the loops over the parts. Lanes of a vector are combined by halves, others one after the other.
inline InParts in_parts(const ir::For& loop, const Vector<ReductionStep>& steps, std::int64_t factor,
                        ir::ForKind kind = ir::ForKind::serial) {
  const std::string name = name_of(loop);
  const Dim lane(name + ".p", factor);
  const auto var = [&](const char* suffix) { return ir::Var::make(name + suffix, loop.var.type()); };
  const auto over = [&](const ir::Expr& v, std::int64_t parts, const Vector<ir::Stmt>& stmts) {
    return ir::For::make(v, lane, ir::imm(parts), kind, ir::Block::make(stmts));
  };
  const ir::Expr p = var(".p"), o = var(".o"), i = var(".i"), c = var(".c");
  InParts result;
  Vector<ir::Stmt> clear, each, combine;
  for (const ReductionStep& step : steps) {
    const ir::Store& store = *step.store;
    ir::BufferInfo info = *store.buffer;
    info.name += ".p";
    info.dims = {lane};
    const ir::Buffer& parts = result.buffers.emplace_back(std::move(info));
    const ir::Expr value =
        at(ir::Stmt(ir::Store::make(parts, {i}, step.value)), loop.var, o * factor + i).as<ir::Store>()->value;
    clear.push_back(ir::Store::make(parts, {p}, ir::constant(ir::identity(step.op), {parts->dtype, 1})));
    each.push_back(ir::Store::make(parts, {i}, ir::combine(step.op, ir::Load::make(parts, {i}), value)));
    const auto with = [&](const ir::Expr& part) {
      return ir::Store::make(
          store.buffer, store.indices,
          ir::combine(step.op, ir::Load::make(store.buffer, store.indices), ir::Load::make(parts, {part})));
    };
    if (kind == ir::ForKind::serial) {
      combine.push_back(with(c));
      continue;
    }
    for (std::int64_t half = factor / 2; half > 0; half /= 2) {
      const ir::Expr h = half > 1 ? var(".h") : ir::imm(0);
      const ir::Stmt halved = ir::Store::make(
          parts, {h}, ir::combine(step.op, ir::Load::make(parts, {h}), ir::Load::make(parts, {h + half})));
      result.combine.push_back(half > 1 ? over(h, half, {halved}) : halved);
    }
    result.combine.push_back(with(ir::imm(0)));
  }
  const ir::Expr whole = loop.extent / factor, left = loop.extent % factor;
  result.clear = over(p, factor, clear);
  result.loops.push_back(ir::For::make(o, loop.dim, whole, ir::ForKind::serial,
                                       ir::For::make(i, loop.dim, ir::imm(factor), kind, ir::Block::make(each))));
  if (ir::as_int(left) != 0) result.loops.push_back(part_of(loop, ".r", whole * factor, left, loop.body));
  if (kind == ir::ForKind::serial) result.combine.push_back(over(c, factor, combine));
  return result;
}

}  // namespace detail

/// A reduction as `factor` partial ones side by side, combined at the end: independent chains, or lanes of a vector.
///
///   for k = 0:n: a = a + f(k)
///     ->
///   for k.p = 0:4: p[k.p] = 0
///   for k.o = 0:n/4: for k.i = 0:4: p[k.i] = p[k.i] + f(k.o * 4 + k.i)
///   for k.r = 0:n%4: a = a + f(n / 4 * 4 + k.r)
///   for k.c = 0:4: a = a + p[k.c]
///
/// Changes the order of additions, and so how sums are rounded.
inline ir::Stmt rfactor_loop(const ir::Stmt& body, const std::string& name, std::int64_t factor) {
  const ir::For& loop = loop_named(body, name);
  detail::need_serial(loop);
  detail::need_factor(factor, 1, detail::most_copies);
  std::string why;
  const Vector<detail::ReductionStep> steps = detail::reduction_steps(loop, why);
  if (steps.empty()) refuse(why);
  const detail::InParts parts = detail::in_parts(loop, steps, factor);
  Vector<ir::Stmt> stmts{parts.clear};
  append(stmts, parts.loops);
  append(stmts, parts.combine);
  return with_loop(body, loop, ir::with_allocs(parts.buffers, ir::Block::make(stmts)));
}

}  // namespace cortex::schedule
