// Whether iterations of a loop may change their order: whether two different ones ever meet at an element that one of
// them writes. Conservative: "independent" is proved from the indices, one dimension at a time.
//
//   for i: h[node,i] = ... h[first(node),j] ...     independent: different i, different elements; a child is no node of
//                                                   its parent's batch
//   for k: acc = acc + w[k]                         dependent, through acc
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/schedule/access.hpp"
#include "cortex/schedule/named.hpp"

namespace cortex::schedule {

namespace detail {

/// The node that a numbering gives to a position: different positions, different nodes.
inline bool numbers_nodes(ir::UfKind kind) {
  using enum ir::UfKind;
  switch (kind) {
    case all_node:
    case leaf_node:
    case internal_node:
    case sequence_node:
    case internal_sequence_node:
    case downward_node:
    case batch_node:
    case internal_batch_node:
    case part_node:
    case listed_node:
    case range_node:
    case group_node: return true;
    default: return false;  // roots may be repeated, children shared
  }
}

/// Those of one batch, which is the first argument: none is a child of another.
inline bool numbers_of_batch(ir::UfKind kind) {
  using enum ir::UfKind;
  return kind == batch_node || kind == internal_batch_node || kind == part_node;
}

/// An index as `coefficient * var + inner + rest`: `inner`, of the loops inside, lies in [low, high], and `rest` is the
/// same in all iterations, the sum of its parts, each so many times.
struct LinearIndex {
  std::int64_t coefficient = 0, low = 0, high = 0, constant = 0;
  Vector<ir::Expr> rest;
  Vector<std::int64_t> times;
};

}  // namespace detail

/// What is known inside of the statements that are asked about: the ranges of inner loops' variables and what lets
/// stand for.
class Surroundings {
 public:
  /// `var`: of the loop whose iterations are compared.
  Surroundings(const ir::Expr& var, const Vector<ir::Stmt>& stmts) : var_(var) {
    for (const ir::Stmt& stmt : stmts)
      ir::visit_with(
          stmt, [&](const ir::For& loop) { vary(loop); },
          [&](const ir::LetStmt& let) { lets_.insert_or_assign(let.var.get(), let.value); });
  }
  /// A loop around, whose variable differs too between what is compared.
  void vary(const ir::For& loop) {
    ranges_.insert_or_assign(loop.var.get(), ir::as_int(loop.extent).value_or(unbounded));
    recursive_ |= carries_recursion(loop);
  }
  /// Whether children of the nodes that are at work may be written meanwhile, where states of `node` are.
  bool writes_children(const ir::Expr& node) const {
    if (recursive_) return true;
    if (fixed(node)) return false;
    const auto* call = resolved(node).as<ir::UfCall>();
    return !call || !(call->uf.kind == ir::UfKind::leaf_node ||
                      (detail::numbers_of_batch(call->uf.kind) && fixed(call->args[0])));
  }

  /// Whether `x` in one iteration and `y` in another are always different.
  bool differ(const ir::Expr& x, const ir::Expr& y) const {
    const ir::Expr a = resolved(x), b = resolved(y);
    const auto *f = a.as<ir::UfCall>(), *g = b.as<ir::UfCall>();
    // An edge is that of one node and one of its children, and of no other pair.
    if (f && g && f->uf == g->uf && f->uf.kind == ir::UfKind::edge)
      return differ(f->args[0], g->args[0]) || differ(f->args[1], g->args[1]);
    if (same_numbering(f, g)) return differ(f->args.back(), g->args.back());
    if (f && g && f->uf == g->uf && detail::numbers_nodes(f->uf.kind)) return false;
    detail::LinearIndex p, q;
    if (!add(a, 1, p) || !add(b, 1, q)) return false;
    if (p.coefficient != q.coefficient || p.coefficient == 0 || !same_rest(p, q)) return false;
    const std::int64_t step = p.coefficient < 0 ? -p.coefficient : p.coefficient, shift = p.constant - q.constant;
    return p.high - q.low + shift < step && q.high - p.low - shift < step;
  }

  /// Whether the elements at `x` in one iteration and at `y` in another are always different: at one index, or as the
  /// quotient and the remainder of what differs are at two, which two loops as one have.
  bool differ(const Vector<ir::Expr>& x, const Vector<ir::Expr>& y) const {
    for (std::size_t d = 0; d < x.size(); ++d)
      if (differ(x[d], y[d])) return true;
    for (std::size_t d = 0; d < x.size(); ++d)
      for (std::size_t e = 0; e < x.size(); ++e) {
        const auto [p, q] = parts(x[d], y[d], ir::BinaryOp::div);
        const auto [r, s] = parts(x[e], y[e], ir::BinaryOp::mod);
        const bool whole = p && r && ir::equal(p->b, r->b) && ir::equal(p->a, r->a) && ir::equal(q->a, s->a);
        if (whole && differ(p->a, q->a)) return true;
      }
    return false;
  }

 private:
  /// Whether both are nodes of one numbering, whose positions are left to compare.
  bool same_numbering(const ir::UfCall* f, const ir::UfCall* g) const {
    if (!f || !g || !(f->uf == g->uf) || !detail::numbers_nodes(f->uf.kind)) return false;
    for (std::size_t i = 0; i + 1 < f->args.size(); ++i)
      if (!fixed(f->args[i]) || !ir::equal(f->args[i], g->args[i])) return false;
    return true;
  }

  /// The quotients or remainders by the same constant that `x` and `y` are, or that give a node its position; else
  /// nothing.
  std::pair<const ir::Binary*, const ir::Binary*> parts(const ir::Expr& x, const ir::Expr& y, ir::BinaryOp op) const {
    const ir::Expr a = resolved(x), b = resolved(y);
    const auto *f = a.as<ir::UfCall>(), *g = b.as<ir::UfCall>();
    if (same_numbering(f, g)) return parts(f->args.back(), g->args.back(), op);
    const auto *p = a.as<ir::Binary>(), *q = b.as<ir::Binary>();
    if (!p || !q || p->op != op || q->op != op || !ir::as_int(p->b) || !ir::equal(p->b, q->b)) return {};
    return {p, q};
  }

  static constexpr std::int64_t unbounded = std::int64_t(1) << 40;

  const ir::Expr& resolved(const ir::Expr& e) const {
    const auto let = e.as<ir::Var>() ? lets_.find(e.get()) : lets_.end();
    return let == lets_.end() ? e : resolved(let->second);
  }

  /// Whether `e` is the same in all iterations.
  bool fixed(const ir::Expr& e) const {
    bool result = true;
    ir::visit_with(e, [&](const ir::Var& v) {
      const auto let = lets_.find(&v);
      result &= &v != var_.get() && !ranges_.contains(&v) && (let == lets_.end() || fixed(let->second));
    });
    ir::visit_with(e, [&](const ir::Load& load) { result &= load.buffer->role == ir::Role::index; });
    return result;
  }

  /// Adds so many times an index to `sum`; false if it is not linear.
  bool add(const ir::Expr& unresolved, std::int64_t times, detail::LinearIndex& sum) const {
    const ir::Expr& e = resolved(unresolved);
    if (const auto value = ir::as_int(e)) return sum.constant += times * *value, true;
    if (e.same_as(var_)) return sum.coefficient += times, true;
    if (const auto range = e.as<ir::Var>() ? ranges_.find(e.get()) : ranges_.end()) {
      if (range->second == unbounded) return false;
      const std::int64_t end = times * (range->second - 1);
      return (end < 0 ? sum.low : sum.high) += end, true;
    }
    const auto* op = e.as<ir::Binary>();
    if (op && (op->op == ir::BinaryOp::add || op->op == ir::BinaryOp::sub))
      return add(op->a, times, sum) && add(op->b, op->op == ir::BinaryOp::add ? times : -times, sum);
    if (op && op->op == ir::BinaryOp::mul) {
      if (const auto factor = ir::as_int(op->b)) return add(op->a, times * *factor, sum);
      if (const auto factor = ir::as_int(op->a)) return add(op->b, times * *factor, sum);
    }
    if (!fixed(e)) return false;
    for (std::size_t part = 0; part < sum.rest.size(); ++part)
      if (ir::equal(sum.rest[part], e)) return sum.times[part] += times, true;
    return sum.rest.push_back(e), sum.times.push_back(times), true;
  }

  static bool same_rest(const detail::LinearIndex& p, const detail::LinearIndex& q) {
    if (p.rest.size() != q.rest.size()) return false;
    for (std::size_t part = 0; part < p.rest.size(); ++part) {
      bool found = false;
      for (std::size_t other = 0; other < q.rest.size(); ++other)
        found |= q.times[other] == p.times[part] && ir::equal(p.rest[part], q.rest[other]);
      if (!found) return false;
    }
    return true;
  }

  ir::Expr var_;
  PointerMap<std::int64_t> ranges_;  // of inner loops' variables: the extent
  PointerMap<ir::Expr> lets_;
  bool recursive_ = false;
};

/// The accesses of statements to what lives longer than one run of them and can change.
inline Vector<Access> lasting_accesses(const Vector<ir::Stmt>& stmts) {
  PointerSet own;
  Vector<Access> result;
  const auto add = [&](const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool write) {
    if (ir::changes_in_calls(*buffer) && !own.contains(buffer.id())) result.push_back({buffer, indices, write});
  };
  for (const ir::Stmt& stmt : stmts)
    ir::visit_with(stmt, [&](const ir::Alloc& alloc) { own.insert(alloc.buffer.id()); });
  for (const ir::Stmt& stmt : stmts)
    ir::visit_with(
        stmt, [&](const ir::Load& load) { add(load.buffer, load.indices, false); },
        [&](const ir::Store& store) { add(store.buffer, store.indices, true); });
  return result;
}

/// The buffer through which one iteration's `a` and another one's `b` may meet; none if they never do.
inline ir::Buffer meeting(const Vector<Access>& a, const Vector<Access>& b, const Surroundings& around) {
  for (const Access& x : a)
    for (const Access& y : b) {
      if (!(x.buffer == y.buffer) || (!x.write && !y.write)) continue;
      const bool of_child = reads_child_state(x) || reads_child_state(y);
      if (of_child && !around.writes_children((x.write ? x : y).indices[0])) continue;
      if (!around.differ(x.indices, y.indices)) return x.buffer;
    }
  return {};
}

/// Through which buffer iterations of `loop` depend on each other, while the loops of `varying`, around it, are
/// anywhere; none if they never do.
inline ir::Buffer carried_by(const ir::For& loop, const Vector<const ir::For*>& varying = {}) {
  Surroundings around(loop.var, {loop.body});
  for (const ir::For* other : varying) around.vary(*other);
  if (carries_recursion(loop)) around.vary(loop);
  const Vector<Access> accesses = lasting_accesses({loop.body});
  return meeting(accesses, accesses, around);
}

}  // namespace cortex::schedule
