// Each reduction becomes a definition of its own, and what a reduction would compute again for every output becomes one
// too, so that lowering sees only plain reductions and elementwise bodies (paper section 4.1, L1).
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower {

namespace detail {

/// Whether `e` is a product, or a sum of them, so that it goes into an accumulator by multiply-adds.
inline bool is_product(const ir::Expr& e) {
  const auto* product = e.as<ir::Binary>();
  const auto* sum = e.as<ir::Reduce>();
  return is_float(e.dtype()) &&
         ((product && product->op == ir::BinaryOp::mul) || (sum && sum->op == ir::ReduceOp::sum));
}

/// Whether both read the same elements of a weight for an output, such as W(i, j).
inline bool share_weight(const ir::Expr& a, const ir::Expr& b, const Vector<IndexVar>& outputs) {
  bool found = false;
  ir::visit_with(a, [&](const ir::Load& x) {
    const ir::Expr load = ir::handle_of(x);
    const bool of_output =
        std::any_of(outputs.begin(), outputs.end(), [&](const IndexVar& v) { return ir::uses(load, v.var); });
    if (of_output) ir::visit_with(b, [&](const ir::Load& y) { found |= ir::equal(load, ir::handle_of(y)); });
  });
  return found;
}

/// `e` with each contraction of several products as several contractions, sum(a * x + b * y) = sum(a * x) + sum(b * y):
/// as whoever writes them apart has them, with a multiply-add for each product and nothing else. Products with one
/// weight stay together, so that it is read once.
inline ir::Expr sums_of_products(const ir::Expr& e, const Vector<IndexVar>& outputs) {
  return ir::mutate_with(e, [&](auto& self, const ir::Reduce& reduce) -> ir::Expr {
    const ir::Expr inner = self.children(reduce);
    const auto* whole = inner.as<ir::Reduce>();
    if (whole->op != ir::ReduceOp::sum || whole->axis.dim.kind() != DimKind::dense) return inner;
    const auto apart = [&](auto& parts_of, const ir::Expr& body) -> ir::Expr {
      const auto* parts = body.as<ir::Binary>();
      if (parts && (parts->op == ir::BinaryOp::add || parts->op == ir::BinaryOp::sub) &&
          !share_weight(parts->a, parts->b, outputs)) {
        const ir::Expr a = parts_of(parts_of, parts->a), b = parts_of(parts_of, parts->b);
        return a && b ? ir::binary(parts->op, a, b) : ir::Expr();
      }
      if (const auto* less = body.as<ir::Unary>(); less && less->op == ir::UnaryOp::neg) {
        const ir::Expr a = parts_of(parts_of, less->a);
        return a ? ir::Unary::make(ir::UnaryOp::neg, a) : ir::Expr();
      }
      if (!is_product(body)) return {};
      const ir::Expr var = ir::Var::make(whole->axis.var.template as<ir::Var>()->name);
      return ir::Reduce::make(whole->op, {var, whole->axis.dim, whole->axis.extent},
                              ir::substitute(body, {{whole->axis.var.get(), var}}));
    };
    const ir::Expr sums = is_product(whole->body) ? ir::Expr() : apart(apart, whole->body);
    return sums ? sums : inner;
  });
}

/// Splits one definition; the parts come before what reads them.
class ReductionSplitter {
 public:
  ReductionSplitter(const Definition& whole, Vector<Definition>& out) : whole_(whole), out_(out) {
    whole_.body = sums_of_products(whole.body, whole.indices);
    scope_ = whole.indices;
  }

  void run() {
    Definition rest = whole_;
    if (const auto* reduce = whole_.body.as<ir::Reduce>())
      rest.body = inside(*reduce);
    else
      rest.body = extract(whole_.body);
    out_.push_back(std::move(rest));
  }

 private:
  /// The reduction with everything extracted from its body that is to be computed before it.
  ir::Expr inside(const ir::Reduce& reduce) {
    enter(reduce);
    ir::Expr body;
    const auto* nested = reduce.body.as<ir::Reduce>();
    if (nested && nested->op == reduce.op)
      body = inside(*nested);  // several axes: one nest
    else
      body = reduce.axis.dim.kind() == DimKind::dense ? precompute(extract(reduce.body), reduce) : extract(reduce.body);
    leave(reduce);
    return ir::Reduce::make(reduce.op, reduce.axis, body);
  }

  /// `e` with its reductions replaced by reads of new definitions.
  ir::Expr extract(const ir::Expr& e) {
    return ir::mutate_with(e, [&](auto&, const ir::Reduce& reduce) { return define(inside(reduce), "sum"); });
  }

  /// In the body of a contraction, whatever does not depend on the outputs' indices but on the reduction's would be
  /// computed once per output; anything dearer than a load is computed before.
  ir::Expr precompute(const ir::Expr& e, const ir::Reduce& reduce) {
    const bool leaf =
        e.as<ir::Load>() || e.as<ir::FloatImm>() || e.as<ir::IntImm>() || e.as<ir::Var>() || e.as<ir::UfCall>();
    if (leaf || !is_float(e.dtype())) return e;
    const bool per_output = std::any_of(whole_.indices.begin(), whole_.indices.end(),
                                        [&](const IndexVar& v) { return ir::uses(e, v.var); });
    if (!per_output && !whole_.indices.empty() && ir::uses(e, reduce.axis.var)) return define(e, "pre");
    return ir::detail::rebuild(*e.get(), [&](const ir::Expr& part) { return precompute(part, reduce); });
  }

  void enter(const ir::Reduce& reduce) {
    if (reduce.axis.dim.kind() == DimKind::child)
      child_ = reduce.axis.var, container_ = container_of(reduce.axis.extent);
    else
      scope_.push_back({reduce.axis.var, reduce.axis.dim});
  }
  void leave(const ir::Reduce& reduce) {
    if (reduce.axis.dim.kind() == DimKind::child)
      child_ = {}, container_ = -1;
    else
      scope_.pop_back();
  }

  static int container_of(const ir::Expr& extent) {
    const auto* call = extent.as<ir::UfCall>();
    if (!call || call->uf.kind != ir::UfKind::num_children)
      throw Error(Code::internal, "a reduction over children of unknown extent");
    return call->uf.accessor;
  }

  /// A definition of `body` over the free variables that it has, and the read of it that replaces it: a new one, or
  /// that of an equal body, such as a sum that an activation reads twice.
  ir::Expr define(const ir::Expr& body, const char* suffix) {
    for (const Defined& known : defined_)
      if (ir::equal(known.body, body)) return known.read;
    Definition part;
    part.guard = whole_.guard;
    part.op = whole_.op;
    part.body = body;
    ir::Substitution fresh;
    Vector<ir::Expr> read;
    Vector<Dim> dims;
    if (child_ && ir::uses(body, child_)) {
      part.node = whole_.node, part.child = child_, part.container = container_;
      read.push_back(ir::call(ir::UfKind::edge, "edge", {whole_.node, child_}, container_));
      dims.push_back(dims::edge);
    } else if (whole_.node && ir::uses(body, whole_.node)) {
      part.node = whole_.node;
      read.push_back(whole_.node);
      dims.push_back(dims::node);
    } else {
      part.guard = {};
    }
    for (const IndexVar& index : scope_) {
      if (!ir::uses(body, index.var)) continue;
      const ir::Expr var = ir::Var::make(index.var.as<ir::Var>()->name);
      fresh.emplace(index.var.get(), var);
      part.indices.push_back({var, index.dim});
      read.push_back(index.var);
      dims.push_back(index.dim);
    }
    part.body = ir::substitute(body, fresh);
    ir::BufferInfo info;
    info.name = whole_.buffer->name + "_" + suffix + (count_ ? std::to_string(count_ + 1) : "");
    info.dtype = body.dtype();
    info.dims = std::move(dims);
    info.slot = part.container;
    ++count_;
    part.buffer = ir::Buffer(std::move(info));
    const ir::Buffer buffer = part.buffer;
    out_.push_back(std::move(part));
    defined_.push_back({body, ir::Load::make(buffer, std::move(read))});
    return defined_.back().read;
  }

  struct Defined {
    ir::Expr body, read;
  };

  Definition whole_;
  Vector<Definition>& out_;
  Vector<IndexVar> scope_;
  Vector<Defined> defined_;
  ir::Expr child_;
  int container_ = -1;
  int count_ = 0;
};

}  // namespace detail

/// Splits every definition; afterwards a body is either one reduction (of one or several axes) of an elementwise body,
/// or elementwise.
inline void split_reductions(Vector<Recursion>& recursions) {
  for (Recursion& recursion : recursions)
    for (Version& version : recursion.versions) {
      Vector<Definition> result;
      for (const Definition& d : version.definitions) detail::ReductionSplitter(d, result).run();
      version.definitions = std::move(result);
    }
}

}  // namespace cortex::lower
