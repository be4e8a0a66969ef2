// Each reduction becomes a definition of its own, and what a reduction would compute again for every output becomes one
// too, so that lowering sees only plain reductions and elementwise bodies (paper section 4.1, L1).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/lower/index_sums.hpp"
#include "cortex/lower/order_sums.hpp"
#include "cortex/lower/unfold.hpp"

namespace cortex::lower {

namespace detail {

/// Splits one definition; the parts come before what reads them. `parts`: those of the definitions before it, and then
/// its own, too.
class ReductionSplitter {
 public:
  ReductionSplitter(const ra::Graph& graph, const Definition& whole, bool in_tiles, Vector<Definition>& out,
                    Vector<Definition>& parts)
      : graph_(graph), whole_(whole), in_tiles_(in_tiles), out_(out), parts_(parts), scope_(whole.indices) {}

  void run() {
    Definition rest = whole_;
    if (const auto* reduce = whole_.body.as<ir::Reduce>()) {
      rest.body = inside(*reduce, vars_of(whole_.indices));
      if (const ir::Expr sums = sums_of_products(rest.body)) rest.body = sums;
    } else {
      rest.body = extract(whole_.body);
    }
    out_.push_back(std::move(rest));
  }

 private:
  struct Child {  // the k-th of a container
    ir::Expr k;
    int container;
  };

  /// The reduction with everything extracted from its body that is to be computed before it. `outputs`: the variables
  /// for each value of which it is computed.
  ir::Expr inside(const ir::Reduce& written, const Vector<ir::Expr>& outputs) {
    const ir::Expr turned = SumOrderer(outputs, !children_.empty(), in_tiles_).run(written);
    const ir::Reduce& reduce = turned ? *turned.as<ir::Reduce>() : written;
    enter(reduce);
    ir::Expr body;
    const auto* nested = reduce.body.as<ir::Reduce>();
    if (nested && nested->op == reduce.op && !multiplies_each_child(reduce, *nested, outputs)) {
      Vector<ir::Expr> around = outputs;  // several axes: one nest
      if (reduce.axis.dim.kind() == DimKind::dense) around.push_back(reduce.axis.var);
      body = inside(*nested, around);
    } else {
      body = precompute(unwrapped(extract(reduce.body)), reduce, outputs);
    }
    leave(reduce);
    return ir::Reduce::make(reduce.op, reduce.axis, body);
  }

  /// Whether `sum`, of each child that `reduce` goes through, is a product with a matrix: then it is worth a definition
  /// of its own, whose rows are all children of a level.
  bool multiplies_each_child(const ir::Reduce& reduce, const ir::Reduce& sum, const Vector<ir::Expr>& outputs) const {
    if (reduce.axis.dim.kind() != DimKind::child || sum.axis.dim.kind() != DimKind::dense || children_.size() != 1)
      return false;
    bool found = false;
    ir::visit_with(sum.body, [&](const ir::Load& load) {
      const ir::Expr e = ir::handle_of(load);
      found |= is_matrix(e, outputs, {sum.axis.var}) && !ir::uses(e, reduce.axis.var);
    });
    return found;
  }

  /// `e` with its reductions replaced by reads of new definitions.
  ir::Expr extract(const ir::Expr& e) {
    return ir::mutate_with(e, [&](auto&, const ir::Reduce& reduce) {
      Vector<ir::Expr> outputs;
      for (const IndexVar& index : scope_)
        if (ir::uses(ir::handle_of(reduce), index.var)) outputs.push_back(index.var);
      const ir::Expr sum = inside(reduce, outputs), sums = sums_of_products(sum);
      return sums ? sums : define(sum, "sum");
    });
  }

  /// A contraction of several products as several contractions, sum(W * x + U * y) = sum(W * x) + sum(U * y): as
  /// whoever writes them apart has them, with a multiply-add for each product and nothing else. Nothing if it is of
  /// one, if a term is no product with a weight by outputs and what is summed over, or if two have the same weight,
  /// which is then read once.
  ir::Expr sums_of_products(const ir::Expr& sum) {
    if (!is_float(sum.dtype())) return {};
    Vector<ir::ReduceAxis> axes;
    Vector<ir::Expr> summed, products, weights;
    ir::Expr body = sum;
    while (const auto* reduce = body.as<ir::Reduce>()) {
      if (reduce->op != ir::ReduceOp::sum || reduce->axis.dim.kind() != DimKind::dense) return {};
      axes.push_back(reduce->axis);
      summed.push_back(reduce->axis.var);
      body = reduce->body;
    }
    terms_of(body, products);
    for (const ir::Expr& product : products)
      if (!add_weights(product, summed, weights)) return {};
    if (products[0].same_as(body)) return {};
    return apart(axes, body);
  }

  /// The terms of a sum or difference.
  static void terms_of(const ir::Expr& e, Vector<ir::Expr>& terms) {
    const auto* binary = e.as<ir::Binary>();
    const auto* unary = e.as<ir::Unary>();
    if (binary && (binary->op == ir::BinaryOp::add || binary->op == ir::BinaryOp::sub))
      terms_of(binary->a, terms), terms_of(binary->b, terms);
    else if (unary && unary->op == ir::UnaryOp::neg)
      terms_of(unary->a, terms);
    else
      terms.push_back(e);
  }

  /// Adds what `product` reads of weights by outputs and what is summed over. False if that is nothing, or known.
  bool add_weights(const ir::Expr& product, const Vector<ir::Expr>& summed, Vector<ir::Expr>& weights) const {
    const auto* binary = product.as<ir::Binary>();
    if (!binary || binary->op != ir::BinaryOp::mul) return false;
    const std::size_t before = weights.size();
    bool again = false;
    ir::visit_with(product, [&](const ir::Load& load) {
      const ir::Expr e = ir::handle_of(load);
      if (!is_matrix(e, vars_of(scope_), summed)) return;
      for (std::size_t w = 0; w < before; ++w) again |= ir::equal(weights[w], e);
      weights.push_back(e);
    });
    return weights.size() > before && !again;
  }

  /// `e`, which is added up over `axes`, with a contraction of its own in place of each term.
  ir::Expr apart(const Vector<ir::ReduceAxis>& axes, const ir::Expr& e) {
    const auto* binary = e.as<ir::Binary>();
    if (const auto* unary = e.as<ir::Unary>()) return ir::Unary::make(unary->op, apart(axes, unary->a));
    if (binary->op != ir::BinaryOp::mul) {
      const ir::Expr a = apart(axes, binary->a);  // in this order, which numbers them
      return ir::binary(binary->op, a, apart(axes, binary->b));
    }
    ir::Expr sum = e;
    for (const ir::ReduceAxis& axis : reversed(axes)) sum = ir::Reduce::make(ir::ReduceOp::sum, axis, sum);
    return define(sum, "sum");
  }

  /// In the body of a reduction, whatever depends on what is summed over and on none of the outputs would be computed
  /// once per output. It is computed before where it is dearer than to read it, which over children only functions and
  /// quotients are, these also where a row of outputs has one in common, as those of a head of attention have; but for
  /// what reads two children: there are values of nodes and of edges, and none of pairs. So is what depends on some of
  /// the outputs and has few values.
  ir::Expr precompute(const ir::Expr& e, const ir::Reduce& reduce, const Vector<ir::Expr>& outputs) {
    const bool leaf = is_read_as_it_is(e) || e.as<ir::FloatImm>() || e.as<ir::IntImm>() || e.as<ir::UfCall>();
    if (leaf || !is_float(e.dtype()) || outputs.empty()) return e;
    const bool dense = reduce.axis.dim.kind() == DimKind::dense, worth_it = dense || ir::has_functions(e);
    const auto of_pairs = [&] {
      int read = 0;
      for (const Child& child : children_) read += ir::uses(e, child.k);
      return read > 1;
    };
    const bool in_common = !ir::uses_any(e, outputs) || (!dense && outputs_of_one(e, outputs) >= least_row);
    if (worth_it && in_common && ir::uses(e, reduce.axis.var) && !of_pairs()) return define(e, "pre");
    if (const ir::Expr read = dense && !of_pairs() ? read_of_few(e) : ir::Expr()) return read;
    return ir::rebuild(*e.get(), [&](const ir::Expr& part) { return precompute(part, reduce, outputs); });
  }

  /// For how many of the outputs a value of `e` is the same.
  double outputs_of_one(const ir::Expr& e, const Vector<ir::Expr>& outputs) const {
    double count = 1;
    for (const IndexVar& index : scope_)
      if (ir::uses_any(index.var, outputs) && !ir::uses(e, index.var)) count *= double(index.dim.extent());
    return count;
  }

  /// Whether `e` is an element of a tensor, at indices that cost nothing to find.
  static bool is_read_as_it_is(const ir::Expr& e) {
    const auto* load = e.as<ir::Load>();
    return load && all_of(load->indices, is_plain_index);
  }
  static bool is_plain_index(const ir::Expr& index) {
    using enum ir::BinaryOp;
    const auto* n = index.as<ir::Binary>();
    if (!n) return !index.as<ir::Select>();
    return (n->op == add || n->op == sub || n->op == mul) && is_plain_index(n->a) && is_plain_index(n->b);
  }

  /// The read of a definition that has each value of `e` once, if it has a few for all places at which it is summed up,
  /// and is dear: an activation in a sum over two axes, or the elements that windows over a grid have in common. To
  /// write and read a value again takes as long as some arithmetic.
  ir::Expr read_of_few(const ir::Expr& e) {
    const Element element = element_of(e, scope_);
    double places = 1;
    bool summed = false;
    for (std::size_t i = 0; i < scope_.size(); ++i) {
      places *= double(scope_[i].dim.extent());
      summed |= i >= whole_.indices.size() && ir::uses(e, scope_[i].var);
    }
    if (!element.value || element.values == 0 || !summed || double(element.values) * 4 > places) return {};
    if (element.at.empty() && !ir::has_functions(e)) return {};
    // Outputs side by side read elements side by side.
    const auto is_last = [&](const IndexVar& index) {
      const auto sum = element.at.find(index.var.get());
      const ir::Expr place = sum == element.at.end() ? index.var : sum->second;
      return !whole_.indices.empty() && ir::uses(place, whole_.indices.back().var);
    };
    Vector<IndexVar> own;
    for (const bool last : {false, true})
      for (const IndexVar& index : element.indices)
        if (is_last(index) == last) own.push_back(index);
    std::swap(scope_, own);
    const ir::Expr read = define(element.value, "pre");
    std::swap(scope_, own);
    return ir::substitute(read, element.at);
  }

  /// `e` with rows of twice the length in place of those that are read around their end, so that neighbouring outputs
  /// read neighbours:
  ///
  ///   a[j] * x[(i + j) % 8]   ->   twice[r] = x[r % 8] for r = 0:16; a[j] * twice[i + j]
  ir::Expr unwrapped(const ir::Expr& e) {
    return ir::mutate_with(e, [&](auto& self, const ir::Load& load) -> ir::Expr {
      for (std::size_t d = 0; d < load.indices.size(); ++d) {
        const auto* wrapped = load.indices[d].as<ir::Binary>();
        const std::int64_t length = load.buffer->dims[d].extent();
        if (length <= 0 || !wrapped || wrapped->op != ir::BinaryOp::mod || ir::as_int(wrapped->b) != length) continue;
        const Range range = range_of(wrapped->a);
        if (range.variables < 2 || range.lo < 0 || range.hi >= 2 * length) continue;
        const IndexVar r{ir::Var::make("r"), Dim(load.buffer->dims[d].name() + "_twice", 2 * length)};
        Vector<ir::Expr> indices = load.indices;
        indices[d] = r.var % length;
        scope_.push_back(r);
        const ir::Expr twice = define(ir::Load::make(load.buffer, std::move(indices)), "twice");
        scope_.pop_back();
        return ir::substitute(twice, {{r.var.get(), wrapped->a}});
      }
      return self.children(load);
    });
  }

  /// The values of a sum or difference of constants and of so many variables of the scope; -1 for all else.
  struct Range {
    std::int64_t lo = 0, hi = 0;
    int variables = -1;
  };
  Range range_of(const ir::Expr& e) const {
    if (const auto constant = ir::as_int(e)) return {*constant, *constant, 0};
    for (const IndexVar& index : scope_)
      if (index.var.same_as(e)) return {0, index.dim.extent() - 1, 1};
    const auto* n = e.as<ir::Binary>();
    if (!n || (n->op != ir::BinaryOp::add && n->op != ir::BinaryOp::sub)) return {};
    const Range a = range_of(n->a), b = range_of(n->b);
    if (a.variables < 0 || b.variables < 0) return {};
    const int variables = a.variables + b.variables;
    return n->op == ir::BinaryOp::add ? Range{a.lo + b.lo, a.hi + b.hi, variables}
                                      : Range{a.lo - b.hi, a.hi - b.lo, variables};
  }

  void enter(const ir::Reduce& reduce) {
    if (reduce.axis.dim.kind() == DimKind::child)
      children_.push_back({reduce.axis.var, container_of(reduce.axis.extent)});
    else
      scope_.push_back({reduce.axis.var, reduce.axis.dim});
  }
  void leave(const ir::Reduce& reduce) {
    if (reduce.axis.dim.kind() == DimKind::child)
      children_.pop_back();
    else
      scope_.pop_back();
  }

  static int container_of(const ir::Expr& extent) {
    const auto* call = extent.as<ir::UfCall>();
    if (!call || call->uf.kind != ir::UfKind::num_children)
      throw Error(Code::internal, "a reduction over children of unknown extent");
    return call->uf.accessor;
  }

  /// A definition of `body` over the free variables that it has, and the read of it that replaces it: a new one, or one
  /// of the version that is the same but for the names of variables, such as a sum that an activation reads twice, or
  /// the score of a child in two sums over children.
  ir::Expr define(const ir::Expr& body, const char* suffix) {
    Definition part;
    part.guard = whole_.guard;
    part.op = whole_.op;
    part.body = body;
    ir::Substitution fresh;
    Vector<ir::Expr> read;
    Vector<Dim> dims;
    if (const Child* child = child_in(body)) {
      part.node = whole_.node, part.child = child->k, part.container = child->container;
      read.push_back(ir::call(ir::UfKind::edge, "edge", {whole_.node, child->k}, child->container));
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
    part.body = with_own_axes(ir::substitute(body, fresh));
    for (const Definition& known : parts_)
      if (same_values(known, part)) return ir::Load::make(known.buffer, std::move(read));
    ir::BufferInfo info;
    info.name = whole_.buffer->name + "_" + suffix + (count_ ? std::to_string(count_ + 1) : "");
    info.dtype = body.dtype();
    info.dims = std::move(dims);
    info.slot = part.container;
    ++count_;
    part.buffer = ir::Buffer(std::move(info));
    out_.push_back(part);
    parts_.push_back(part);
    return ir::Load::make(part.buffer, std::move(read));
  }

  /// The child, of those that the reductions around the place go through, of which `body` is a value; none: of the
  /// node.
  const Child* child_in(const ir::Expr& body) const {
    const Child* found = nullptr;
    for (const Child& child : children_) {
      if (!ir::uses(body, child.k)) continue;
      if (found)
        throw Error(Code::invalid_model,
                    "operator '" + graph_.ops[std::size_t(whole_.op)].name() + "' of model '" + graph_.name +
                        "': a reduction inside two folds over children or members reads both nodes; that is supported "
                        "where all three are one nest of sums, sum(k, sum(j, sum(r, ...))), or where nodes have at "
                        "most " +
                        std::to_string(most_in_pairs) + " children, with_max_children(" +
                        std::to_string(most_in_pairs) + "), of which the inner fold reads states alone");
      found = &child;
    }
    return found;
  }

  /// `e` with variables of its own for what it reduces over: a value may stand in several definitions.
  static ir::Expr with_own_axes(const ir::Expr& e) {
    return ir::mutate_with(e, [](auto& self, const ir::Reduce& reduce) -> ir::Expr {
      const ir::Expr var = ir::Var::make(reduce.axis.var.as<ir::Var>()->name);
      return ir::Reduce::make(reduce.op, {var, reduce.axis.dim, self(reduce.axis.extent)},
                              ir::substitute(self(reduce.body), {{reduce.axis.var.get(), var}}));
    });
  }

  static constexpr double least_row = 8;  // outputs, a vector of many CPUs: less is not worth a loop of its own

  const ra::Graph& graph_;
  const Definition& whole_;
  const bool in_tiles_;
  Vector<Definition>& out_;
  Vector<Definition>& parts_;
  Vector<IndexVar> scope_;
  Vector<Child> children_;
  int count_ = 0;
};

}  // namespace detail

/// Splits every definition; afterwards a body is either one reduction (of one or several axes) of an elementwise body,
/// or elementwise. `in_tiles`: every sum is to be a product with a weight.
inline void split_reductions(Vector<Recursion>& recursions, const ra::Graph& graph, bool in_tiles = false) {
  for (Recursion& recursion : recursions)
    for (Version& version : recursion.versions) {
      Vector<Definition> result, parts;
      for (const Definition& d : version.definitions)
        detail::ReductionSplitter(graph, d, in_tiles, result, parts).run();
      version.definitions = std::move(result);
    }
}

}  // namespace cortex::lower
