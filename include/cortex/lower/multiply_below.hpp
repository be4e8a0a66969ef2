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
// Only what all nodes that have children need: else some would have it made and not read. By a number only if
// `ra::questions` has chosen it for parents: then it is known at all nodes, and any matrix will do where nobody has the
// node as a child. Before reductions are split. What is said of children here holds for parents in recursions
// downwards.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/function_ref.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/partition.hpp"

namespace cortex::lower {

namespace detail {

/// Moves the products of one recursion. `shared`: a child may have several parents.
class ProductMover {
 public:
  ProductMover(Recursion& recursion, const ra::Questions& questions, bool shared)
      : recursion_(recursion), key_(questions.matrix_key(child_)), shared_(shared) {
    if (!questions.choice.for_parents) key_ = {};
  }

  void run() {
    const Vector<Definition> sent = sent_by_all();
    for (Version& version : recursion_.versions) {
      for (Definition& d : version.definitions)
        d.body = replace_products(d, [&](const Definition& product, const Vector<ir::Expr>& read) -> ir::Expr {
          const Definition* made = find(sent, product);
          return made ? ir::Load::make(made->buffer, read) : ir::Expr();
        });
      if (version.part != Part::leaves || recursion_.direction == ra::Direction::up) append(version.definitions, sent);
    }
    for (const Definition& d : sent) recursion_.states.push_back(d.buffer);
  }

 private:
  /// What children are to have for their parents: the products of every version for nodes that have children.
  Vector<Definition> sent_by_all() const {
    Vector<Definition> sent;
    bool first = true;
    for (const Version& version : recursion_.versions) {
      if (version.part == Part::leaves) continue;
      Vector<Definition> here;
      for (const Definition& d : version.definitions)
        replace_products(d, [&](const Definition& product, const Vector<ir::Expr>&) -> ir::Expr {
          if ((first || find(sent, product)) && !find(here, product)) here.push_back(product);
          return {};
        });
      sent = std::move(here);
      first = false;
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      ir::BufferInfo info;
      info.name = recursion_.states[0]->name + "_sent" + (i ? std::to_string(i + 1) : "");
      info.role = ir::Role::state;
      info.dtype = sent[i].body.dtype();
      info.dims.push_back(dims::node);
      for (const IndexVar& index : sent[i].indices) info.dims.push_back(index.dim);
      sent[i].buffer = ir::Buffer(std::move(info));
    }
    return sent;
  }

  static const Definition* find(const Vector<Definition>& all, const Definition& d) {
    for (const Definition& other : all)
      if (same_values(other, d)) return &other;
    return nullptr;
  }

  /// The body of `d` with what `f` says in place of each product that may move, given as a definition at the child that
  /// has no buffer yet, and the indices with which `d` reads it; as it is where `f` says nothing.
  ir::Expr replace_products(const Definition& d,
                            FunctionRef<ir::Expr(const Definition&, const Vector<ir::Expr>&)> f) const {
    if (!d.node || d.guard) return d.body;
    const auto is_own = [&](const ir::Buffer& buffer) {
      return any_of(recursion_.states, [&](const ir::Buffer& state) { return state == buffer; });
    };
    return ra::replace_child_products(
        d.body, d.node, child_, d.indices, is_own,
        [&](const ra::ChildProduct& product, const Vector<IndexVar>& outputs) -> ir::Expr {
          if (!may_move(product)) return {};
          Definition at_child;
          at_child.node = child_;
          at_child.op = d.op;
          ir::Substitution own;
          Vector<ir::Expr> read{product.step};
          for (const IndexVar& index : outputs) {
            if (!ir::uses(product.sum, index.var)) continue;
            at_child.indices.push_back({ir::Var::make(index.var.as<ir::Var>()->name), index.dim});
            own.emplace(index.var.get(), at_child.indices.back().var);
            read.push_back(index.var);
          }
          at_child.body = ir::substitute(product.sum, own);
          return f(at_child, read);
        });
  }

  bool may_move(const ra::ChildProduct& product) const {
    if (!product.key.number) return shared_ && !product.added_up;
    return key_.number && ir::equal(product.key.number, key_.number) && product.key.matrices == key_.matrices;
  }

  Recursion& recursion_;
  const ir::Expr child_ = ir::Var::make("node");
  ra::MatrixKey key_;  // of `child_`
  const bool shared_;
};

}  // namespace detail

/// Moves the products that children can make to these; but for those that no number chooses, from loops over single
/// nodes, or of the user's.
inline void multiply_below(Vector<Recursion>& recursions, const ra::Graph& graph, const Schedule& schedule,
                           const ra::Questions& questions) {
  const bool shared = graph.structure == ra::StructureKind::dag && schedule.batched && !schedule.by_hand;
  if (!shared && !questions.choice.for_parents) return;
  for (Recursion& recursion : recursions) {
    const bool up = recursion.direction == ra::Direction::up, down = recursion.direction == ra::Direction::down;
    if ((up || (down && shared)) && !recursion.unrolled) detail::ProductMover(recursion, questions, shared).run();
  }
}

}  // namespace cortex::lower
