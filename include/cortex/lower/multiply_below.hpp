// Products of a child's state that depend on nothing else of the node are made at the child, as another state of it, in
// two cases. Where the child chooses the matrix by a number of its own, such as the label of the link to it, they are
// then a product that all nodes have in common that choose the same (`sort_by_matrix`). And where a child may have
// several parents, in a DAG, each of which would make it again; but for products that are added up, which are made of
// the children's sum (`split_reductions`).
//
//   h[n,i] = tanh(sum(k, sum(j, U[tag(child(n,k)),i,j] * h[child(n,k),j])))
//     ->
//   h[n,i] = tanh(sum(k, h_sent[child(n,k),i])); h_sent[n,i] = sum(j, U[tag(n),i,j] * h[n,j])
//
// By a number only if `ra::questions` has chosen it for parents: then it is known at all nodes, and any matrix will do
// where nobody has the node as a child. Before reductions are split. What is said of children here holds for parents in
// recursions downwards.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/partition.hpp"

namespace cortex::lower {

namespace detail {

/// Moves the products of one recursion. `shared`: a child may have several parents.
class ProductMover {
 public:
  ProductMover(Recursion& recursion, const ra::Questions& questions, bool shared)
      : recursion_(recursion), questions_(questions) {
    int ways = 0;
    for (const Version& version : recursion.versions) ways += version.part != Part::leaves;
    of_all_ = shared && ways == 1;  // otherwise some have parents that need none
  }

  void run() {
    for (Version& version : recursion_.versions)
      for (Definition& d : version.definitions)
        if (d.node && !d.guard) d.body = with_products_below(d);
    for (const Definition& sent : sent_) {
      recursion_.states.push_back(sent.buffer);
      for (Version& version : recursion_.versions)
        if (version.part != Part::leaves || recursion_.direction == ra::Direction::up)
          version.definitions.push_back(sent);
    }
  }

 private:
  ir::Expr with_products_below(const Definition& d) {
    Vector<IndexVar> scope = d.indices;
    ir::Expr summed;  // over children, as it is
    return ir::mutate_with(d.body, [&](auto& self, const ir::Reduce& reduce) -> ir::Expr {
      const ra::OfChild of = ra::of_child(ir::handle_of(reduce), d.node);
      if (of.child && is_product(of, scope, ir::handle_of(reduce).same_as(summed))) return sent_of(d, of, scope);
      const bool dense = reduce.axis.dim.kind() == DimKind::dense;
      if (dense) scope.push_back({reduce.axis.var, reduce.axis.dim});
      if (!dense && reduce.op == ir::ReduceOp::sum) summed = reduce.body;
      ir::Expr result = self.children(reduce);
      if (dense) scope.pop_back();
      return result;
    });
  }

  /// Whether it is a product of states of this recursion with matrices, and asks nothing else of the child than the
  /// number by which it chooses these: what it says of itself may mean nothing to other nodes.
  bool is_product(const ra::OfChild& of, const Vector<IndexVar>& scope, bool summed) const {
    const ir::Expr& of_node = questions_.choice.key;
    const bool chosen = questions_.choice.for_parents;
    const ir::Expr key = chosen ? ir::substitute(of_node, {{questions_.node.get(), of.node}}) : ir::Expr();
    const auto& sum = *of.value.as<ir::Reduce>();
    int matrices = 0, chosen_matrices = 0, choices = 0, asked = 0, asked_by_key = 0;
    bool states = false, others = false;
    if (chosen) ir::visit_with(key, [&](const ir::UfCall&) { ++asked_by_key; });
    ir::visit_with(
        of.value, [&](const ir::UfCall&) { ++asked; },
        [&](const ir::Reduce& r) { others |= r.axis.dim.kind() != DimKind::dense; },
        [&](const ir::Load& load) {
          if (load.buffer->role == ir::Role::weight) {
            bool output = false, of_summed = false;
            int by_key = 0;
            for (const IndexVar& index : scope) output |= ir::uses(ir::handle_of(load), index.var);
            for (const ir::Expr& index : load.indices) {
              of_summed |= index.same_as(sum.axis.var);
              by_key += chosen && ir::equal(index, key);
            }
            matrices += output && of_summed;
            chosen_matrices += output && of_summed && by_key > 0;
            choices += by_key;
            return;
          }
          bool own = false;
          for (const ir::Buffer& state : recursion_.states) own |= state == load.buffer;
          (own && load.indices[0].same_as(of.node) ? states : others) = true;
        });
    if (sum.axis.dim.kind() != DimKind::dense || matrices == 0 || !states || others) return false;
    return choices > 0 ? choices == chosen_matrices && asked == choices * asked_by_key
                       : of_all_ && asked == 0 && !summed;
  }

  /// What the child has for its parents, of which `d` reads an element.
  ir::Expr sent_of(const Definition& d, const ra::OfChild& of, const Vector<IndexVar>& scope) {
    Definition sent;
    sent.node = of.node;
    sent.op = d.op;
    ir::BufferInfo info;
    info.role = ir::Role::state;
    info.dtype = of.value.dtype();
    info.dims.push_back(dims::node);
    ir::Substitution own;
    Vector<ir::Expr> read{of.child};
    for (const IndexVar& index : scope) {
      if (!ir::uses(of.value, index.var)) continue;
      sent.indices.push_back({ir::Var::make(index.var.as<ir::Var>()->name), index.dim});
      own.emplace(index.var.get(), sent.indices.back().var);
      info.dims.push_back(index.dim);
      read.push_back(index.var);
    }
    sent.body = ir::substitute(of.value, own);
    for (const Definition& known : sent_)
      if (is_same(known, sent)) return ir::Load::make(known.buffer, std::move(read));
    info.name = d.buffer->name + "_sent" + (sent_.empty() ? "" : std::to_string(sent_.size() + 1));
    sent.buffer = ir::Buffer(std::move(info));
    sent_.push_back(std::move(sent));
    return ir::Load::make(sent_.back().buffer, std::move(read));
  }

  /// Whether two are the same value of a node.
  static bool is_same(const Definition& a, const Definition& b) {
    if (a.body.type() != b.body.type() || a.indices.size() != b.indices.size()) return false;
    ir::Substitution names{{a.node.get(), b.node}};
    for (std::size_t i = 0; i < a.indices.size(); ++i) {
      if (!(a.indices[i].dim == b.indices[i].dim)) return false;
      names.emplace(a.indices[i].var.get(), b.indices[i].var);
    }
    return ir::equal(ir::substitute(a.body, names), b.body);
  }

  Recursion& recursion_;
  const ra::Questions& questions_;
  bool of_all_;  // what no number chooses moves, too
  Vector<Definition> sent_;
};

}  // namespace detail

/// Moves the products that children can make to these.
inline void multiply_below(Vector<Recursion>& recursions, const ra::Graph& graph, const ra::Questions& questions) {
  const bool shared = graph.structure == ra::StructureKind::dag;
  if (!shared && !questions.choice.for_parents) return;
  for (Recursion& recursion : recursions) {
    const bool up = recursion.direction == ra::Direction::up, down = recursion.direction == ra::Direction::down;
    if ((up || (down && shared)) && !recursion.unrolled) detail::ProductMover(recursion, questions, shared).run();
  }
}

}  // namespace cortex::lower
