// Each reduction becomes a definition of its own, and what a reduction would compute again for every output becomes one
// too, so that lowering sees only plain reductions and elementwise bodies (paper section 4.1, L1).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/lower/index_sums.hpp"
#include "cortex/lower/unfold.hpp"

namespace cortex::lower {

namespace detail {

/// Splits one definition; the parts come before what reads them. `parts`: those of the definitions before it, and then
/// its own, too.
class ReductionSplitter {
 public:
  ReductionSplitter(const ra::Graph& graph, const Definition& whole, Vector<Definition>& out, Vector<Definition>& parts)
      : graph_(graph), whole_(whole), out_(out), parts_(parts), scope_(whole.indices) {}

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
    const ir::Expr turned = with_inner_sums(written, outputs);
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

  // ---- sums of products, the cheaper way round ----

  /// A sum over several axes with what does not depend on one of them outside of the sum over that one, where that is a
  /// product with a matrix: of the sum of the children and not of each, or of a vector and not of each of its elements.
  ///
  ///   sum(k, sum(j, U[i,j] * h[k,j]))               ->   sum(j, U[i,j] * sum(k, h[k,j]))
  ///   sum(k, sum(j, sum(f, x[k,f] * W[f,i,j]) * h[k,j]))
  ///                                                 ->   sum(j, sum(f, W[f,i,j] * sum(k, x[k,f] * h[k,j])))
  ///   sum(a, l[a] * W[i,a,b] * r[b] over b)         ->   sum(a, l[a] * sum(b, W[i,a,b] * r[b]))
  ///
  /// Nothing if `reduce` is no such sum.
  ir::Expr with_inner_sums(const ir::Reduce& reduce, const Vector<ir::Expr>& outputs) const {
    const bool of_children = reduce.axis.dim.kind() == DimKind::child;
    const bool sums = reduce.op == ir::ReduceOp::sum && is_float(reduce.type.dtype);
    if (!sums || (!of_children && reduce.axis.dim.kind() != DimKind::dense)) return {};
    SumOfProducts sum;
    sum.axes.push_back(reduce.axis);
    Vector<ir::Expr> places = outputs;
    if (!of_children) places.push_back(reduce.axis.var);
    open(reduce.body, reduce.axis.var, places, sum);
    if (sum.axes.size() < 2 || is_used_twice(sum)) return {};
    return of_children ? of_sum_of_children(sum, outputs) : of_vector(sum, outputs);
  }

  struct SumOfProducts {
    Vector<ir::ReduceAxis> axes;  // from the outermost on
    Vector<ir::Expr> factors;
  };
  /// Adds the factors of `e` to `sum`, and the axes of sums among them that are products with a matrix, by `places` and
  /// what they sum up over: but those of weights alone, which are one matrix, and of so many terms as `var` says.
  static void open(const ir::Expr& e, const ir::Expr& var, const Vector<ir::Expr>& places, SumOfProducts& sum) {
    const auto* product = e.as<ir::Binary>();
    const auto* nested = e.as<ir::Reduce>();
    if (product && product->op == ir::BinaryOp::mul) {
      open(product->a, var, places, sum);
      return open(product->b, var, places, sum);
    }
    const bool opens = nested && nested->op == ir::ReduceOp::sum && nested->axis.dim.kind() == DimKind::dense &&
                       has_matrix(nested->body, places, {nested->axis.var}) && is_of_nodes(e) &&
                       !ir::uses(nested->axis.extent, var);
    if (!opens) return sum.factors.push_back(e);
    sum.axes.push_back(nested->axis);
    open(nested->body, var, places, sum);
  }
  /// Whether a sum among the factors is one that was opened: x * sigmoid(x) has its value twice.
  static bool is_used_twice(const SumOfProducts& sum) {
    PointerSet vars;
    bool twice = false;
    for (const ir::ReduceAxis& axis : sum.axes) twice |= !vars.insert(axis.var.get());
    for (const ir::Expr& factor : sum.factors)
      ir::visit_with(factor, [&](const ir::Reduce& own) { twice |= vars.contains(own.axis.var.get()); });
    return twice;
  }

  ir::Expr of_sum_of_children(const SumOfProducts& sum, const Vector<ir::Expr>& outputs) const {
    Vector<ir::Expr> dense;
    for (std::size_t a = 1; a < sum.axes.size(); ++a) dense.push_back(sum.axes[a].var);
    const Sides sides = sides_of(sum, sum.axes[0].var);
    const bool matrix =
        any_of(sides.others, [&](const ir::Expr& e) { return is_matrix(e, outputs, dense) && uses_all(e, dense); });
    if (!matrix || !sides.summed || !children_.empty()) return {};
    if (!ir::uses_any(sides.summed, dense) || uses_all(sides.summed, outputs)) return {};
    ir::Expr result = product_of(sides.others) * ir::Reduce::make(ir::ReduceOp::sum, sum.axes[0], sides.summed);
    for (std::size_t a = sum.axes.size(); a-- > 1;) result = ir::Reduce::make(ir::ReduceOp::sum, sum.axes[a], result);
    return result;
  }

  /// Of the two ways round, the one that keeps fewer sums: those that are the same for all outputs, else the shorter
  /// row of them for each; as it is written where that is alike.
  static ir::Expr of_vector(const SumOfProducts& sum, const Vector<ir::Expr>& outputs) {
    if (sum.axes.size() != 2) return {};
    Sides sides[2];
    bool possible[2], keeps[2];
    for (std::size_t inner = 0; inner < 2; ++inner) {
      sides[inner] = sides_of(sum, sum.axes[inner].var);
      const auto multiplies = [&](const ir::Expr& factor) {
        return is_matrix(factor, {sum.axes[1 - inner].var}, {sum.axes[inner].var});
      };
      possible[inner] = any_of(sum.factors, multiplies) && !sides[inner].others.empty();
      keeps[inner] = sides[inner].summed && ir::uses_any(sides[inner].summed, outputs);
    }
    const bool shorter = keeps[0] && sum.axes[0].dim.extent() > sum.axes[1].dim.extent();
    const std::size_t inner = possible[0] && (!possible[1] || (keeps[1] && (!keeps[0] || shorter))) ? 0 : 1;
    if (!possible[inner]) return {};
    const ir::Expr product = ir::Reduce::make(ir::ReduceOp::sum, sum.axes[inner], sides[inner].summed);
    return ir::Reduce::make(ir::ReduceOp::sum, sum.axes[1 - inner], product_of(sides[inner].others) * product);
  }

  /// The product of the factors that depend on `var`, which is empty where there are none, and the others.
  struct Sides {
    ir::Expr summed;
    Vector<ir::Expr> others;
  };
  static Sides sides_of(const SumOfProducts& sum, const ir::Expr& var) {
    Vector<ir::Expr> summed, others;
    for (const ir::Expr& factor : sum.factors) (ir::uses(factor, var) ? summed : others).push_back(factor);
    return {product_of(summed), std::move(others)};
  }
  static bool uses_all(const ir::Expr& e, const Vector<ir::Expr>& vars) {
    return all_of(vars, [&](const ir::Expr& var) { return ir::uses(e, var); });
  }
  static ir::Expr product_of(const Vector<ir::Expr>& factors) {
    ir::Expr product;
    for (const ir::Expr& factor : factors) product = product ? product * factor : factor;
    return product;
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
  /// quotients are; but for what reads two children: there are values of nodes and of edges, and none of pairs.
  /// So is what depends on some of the outputs and has few values.
  ir::Expr precompute(const ir::Expr& e, const ir::Reduce& reduce, const Vector<ir::Expr>& outputs) {
    const bool leaf = is_read_as_it_is(e) || e.as<ir::FloatImm>() || e.as<ir::IntImm>() || e.as<ir::UfCall>();
    if (leaf || !is_float(e.dtype()) || outputs.empty()) return e;
    const bool dense = reduce.axis.dim.kind() == DimKind::dense, worth_it = dense || ir::has_functions(e);
    const auto of_pairs = [&] {
      int read = 0;
      for (const Child& child : children_) read += ir::uses(e, child.k);
      return read > 1;
    };
    if (worth_it && !ir::uses_any(e, outputs) && ir::uses(e, reduce.axis.var) && !of_pairs()) return define(e, "pre");
    if (const ir::Expr read = dense && !of_pairs() ? read_of_few(e) : ir::Expr()) return read;
    return ir::rebuild(*e.get(), [&](const ir::Expr& part) { return precompute(part, reduce, outputs); });
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

  const ra::Graph& graph_;
  const Definition& whole_;
  Vector<Definition>& out_;
  Vector<Definition>& parts_;
  Vector<IndexVar> scope_;
  Vector<Child> children_;
  int count_ = 0;
};

}  // namespace detail

/// Splits every definition; afterwards a body is either one reduction (of one or several axes) of an elementwise body,
/// or elementwise.
inline void split_reductions(Vector<Recursion>& recursions, const ra::Graph& graph) {
  for (Recursion& recursion : recursions)
    for (Version& version : recursion.versions) {
      Vector<Definition> result, parts;
      for (const Definition& d : version.definitions) detail::ReductionSplitter(graph, d, result, parts).run();
      version.definitions = std::move(result);
    }
}

}  // namespace cortex::lower
