// The nodes that a lambda is given: the current one, its children, and what of their structure can be read (paper
// section 3, R4).
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "cortex/dsl/arithmetic.hpp"
#include "cortex/dsl/state.hpp"

namespace cortex::dsl {

template <class NodeT, int StepsFromNode, class AccessorSet, bool IsPresent>
class NodeRef;
template <class OwnerRef, class Accessor, class AccessorSet>
class ChildRange;
template <class NodeT, class AccessorSet>
class FieldVector;

template <class N, int S, class Set, bool P>
inline constexpr bool is_node<NodeRef<N, S, Set, P>> = true;
template <class O, class A, class Set>
inline constexpr bool is_children<ChildRange<O, A, Set>> = true;
template <class N, class Set>
inline constexpr bool is_components<FieldVector<N, Set>> = true;

namespace detail {

template <class N, int S, class Set, bool P>
struct AccessorsRead<NodeRef<N, S, Set, P>> {
  using type = Set;
};
template <class O, class A, class Set>
struct AccessorsRead<ChildRange<O, A, Set>> {
  using type = Set;
};

/// The sentences of what is no index; `P3` where the index belongs to a recursive call.
template <class T, bool P3>
constexpr bool valid_index() {
  static_assert(!(P3 && is_data<T>),
                "(P.3) recursive calls are independent: an argument of a recursive call is made of computed data");
  static_assert(P3 || !is_data<T>,
                "(P.1) control flow depends on the structure alone: an index is made of computed data");
  static_assert(
      !std::is_same_v<T, Dim>,
      "an index is an index variable or an integer, not a Dim: the lambda is given one variable per dimension");
  static_assert(!std::is_floating_point_v<T>, "an index is an integer");
  static_assert(!is_node<T>,
                "a node stands where an index is expected; only placeholders, operators and fields are read at a node, "
                "as their first argument");
  static_assert(!is_tensor<T>, "an operator is read at a node and one index per dimension before it is computed with");
  static_assert(!is_components<T>, "a field that is an array is read by component, as in ids(n)[0]");
  static_assert(is_data<T> || std::is_same_v<T, Dim> || std::is_floating_point_v<T> || is_node<T> || is_tensor<T> ||
                    is_components<T> || is_structure<T> || is_literal<T>,
                "an index is an index variable, an integer of the structure, or an integer");
  return true;
}

}  // namespace detail

/// An index as an expression: an integer of the structure, or a C++ integer.
template <bool P3, class T>
ir::Expr index(const T& x) {
  static_assert(detail::valid_index<T, P3>());
  if constexpr (is_structure<T>) {
    if (present(x.expr).dtype() == DType::boolean)
      fail("a condition stands where an index is expected; select(condition, 1, 0) makes an integer of it");
    return x.expr;
  } else if constexpr (is_literal<T> && std::is_integral_v<T>) {
    return literal(operand(x), DType::i32);
  } else {
    return {};
  }
}

/// A handle to a node inside a lambda: the current node (0 steps), one of its children (1 step), or one further away,
/// at which nothing can be read. `IsPresent`: there is a node for certain, as with the children that a reduction
/// visits.
template <class NodeT, int StepsFromNode, class AccessorSet, bool IsPresent>
class NodeRef {
 public:
  using Node = NodeT;
  using Set = AccessorSet;
  static constexpr int steps = StepsFromNode;
  static constexpr bool is_present = IsPresent;

  NodeRef(ir::Expr expr, SharedState state) : expr_(std::move(expr)), state_(std::move(state)) {}
  // Moving copies: what is left behind is the node still.
  NodeRef(const NodeRef&) = default;
  NodeRef& operator=(const NodeRef&) = default;

  const ir::Expr& expr() const { return expr_; }
  const SharedState& state() const { return state_; }

  /// What accessor `a` gives here; `left(n)` means `n.through(left)`. A child gives a `NodeRef`, a container of
  /// children a `ChildRange`, a field a value: integers are structure, floating-point scalars data. An array of
  /// integers gives a `FieldVector`, or with an index that component.
  template <class A, class... Index>
  auto through(const A&, const Index&... index) const;

 private:
  ir::Expr expr_;
  SharedState state_;
};

/// The children in one container of a node. `kids(n)[k]` is the k-th, counted from 0; where there are fewer it is
/// absent, and states read as 0 there. Reductions run over all: `sum(kids(n), [&](auto k) { return h(k, i); })`.
template <class OwnerRef, class Accessor, class AccessorSet>
class ChildRange {
 public:
  using Owner = OwnerRef;
  using Set = AccessorSet;
  /// The handle that reductions give to their lambda.
  using Child = NodeRef<typename Owner::Node, Owner::steps + 1, Set, true>;

  ChildRange(ir::Expr node, SharedState state, int accessor)
      : node_(std::move(node)), state_(std::move(state)), accessor_(accessor) {}

  template <class K>
  auto operator[](const K& k) const {
    using Reached = Join<Set, SetOf<K>>;
    const ir::Expr position = index<true>(k);
    return NodeRef<typename Owner::Node, Owner::steps + 1, Reached, false>(child(position), state_);
  }

  /// Refused: how many children there are is not known when the model is built.
  template <class T = Set>
  const Child* begin() const {
    static_assert(sizeof(T) == 0,
                  "(P.1) control flow depends on the structure alone: C++'s loops cannot go over children; reduce over "
                  "them, as in sum(kids(n), [&](auto k) { return h(k, i); }), or read one, as in h(kids(n)[0], i)");
    return nullptr;
  }
  const Child* end() const { return nullptr; }

  /// The k-th child as an expression.
  ir::Expr child(const ir::Expr& k) const {
    return ir::call(ir::UfKind::kth_child, std::string(Accessor::name()), {node_, k}, accessor_);
  }
  /// How many there are.
  ir::Expr count() const {
    constexpr const char* name = Accessor::kind == structure::AccessorKind::parents   ? "num_parents"
                                 : Accessor::kind == structure::AccessorKind::members ? "num_nodes"
                                                                                      : "num_children";
    return ir::call(ir::UfKind::num_children, name, {node_}, accessor_);
  }
  const SharedState& state() const { return state_; }

 private:
  ir::Expr node_;
  SharedState state_;
  int accessor_;
};

/// The components of an integer field that is an array: `ids(n)[k]`.
template <class NodeT, class AccessorSet>
class FieldVector {
 public:
  FieldVector(ir::Expr node, std::string name, int accessor)
      : node_(std::move(node)), name_(std::move(name)), accessor_(accessor) {}

  /// Component `k`, an index variable, an integer of the structure or a C++ integer, inside the field as far as is
  /// known.
  template <class K>
  auto operator[](const K& k) const {
    return Structural<Join<AccessorSet, SetOf<K>>>{
        ir::call(ir::UfKind::field, name_, {node_, index<false>(k)}, accessor_)};
  }

 private:
  ir::Expr node_;
  std::string name_;
  int accessor_;
};

/// What identifies an accessor's C++ type in a graph: `ra::Accessor::key`.
template <class A>
inline constexpr char accessor_tag = 0;
template <class A>
const void* accessor_key() {
  return &accessor_tag<A>;
}

/// The keys of a set's accessors.
template <class... As>
Vector<const void*> keys_of(structure::Accessors<As...>) {
  return {accessor_key<As>()...};
}

namespace detail {

/// Whether the accessor reads one child, which may be absent.
template <class A>
inline constexpr bool is_one_child =
    A::kind == structure::AccessorKind::child || A::kind == structure::AccessorKind::optional_child;

/// The group of the graph that accessor `A` is numbered in.
template <class A, class Graph>
auto& group_of(Graph& graph) {
  if constexpr (is_one_child<A>)
    return graph.children_named;
  else if constexpr (A::kind == structure::AccessorKind::field)
    return graph.fields;
  else
    return graph.containers;
}

}  // namespace detail

/// The number of accessor `A` in its group of the graph; -1 if the graph does not read it.
template <class A>
int accessor_number(const ra::Graph& graph) {
  const auto& group = detail::group_of<A>(graph);
  for (std::size_t i = 0; i < group.size(); ++i)
    if (group[i].key == accessor_key<A>()) return int(i);
  return -1;
}

namespace detail {

/// The sentences of a read at a place where there may be no node.
template <class Ref>
constexpr bool valid_present() {
  static_assert(Ref::steps <= 1,
                "(P.2) recursive calls come first: structure and data are read at the node itself and at its children, "
                "not further away");
  static_assert(Ref::is_present || Ref::steps > 1,
                "this child may be absent, and then has neither structure nor data: read them at the node itself, or "
                "at the children that a reduction visits");
  return true;
}

/// What a graph keeps of an accessor on nodes of type `Node`.
template <class A, class Node>
ra::Accessor described_accessor() {
  ra::Accessor result{std::string(A::name()), accessor_key<A>()};
  result.optional = A::kind == structure::AccessorKind::optional_child;
  if constexpr (A::kind == structure::AccessorKind::parents) result.relation = ra::Relation::parents;
  if constexpr (A::kind == structure::AccessorKind::members) result.relation = ra::Relation::members;
  if constexpr (A::kind == structure::AccessorKind::field) {
    result.dtype = A::template dtype<Node>();
    result.components = A::template components<Node>();
    result.array = A::template is_vector<Node>();
    result.own_length = result.components == 0;
  }
  return result;
}

template <class Set, class A>
using With = Join<Set, typename structure::Needs<A>::type>;

/// The number of accessor `A` in its group of the model.
template <class A, class Node>
int number_of(ModelState& state) {
  return state.number_of(group_of<A>(state.graph), described_accessor<A, Node>());
}

/// Numbers the accessors of a lambda's result before the lambda runs, so that numbers follow the order in which the
/// lambda is written and not the order in which a compiler evaluates the sides of an operator.
template <class Node, class... As>
void number_all(ModelState& state, structure::Accessors<As...>) {
  (number_of<As, Node>(state), ...);
}

/// A field of `ref`: integers are structure, a floating-point scalar is data.
template <class Ref, class A, class... Index>
auto field_of(const Ref& ref, const A&, const Index&... index) {
  using Node = typename Ref::Node;
  using Set = With<typename Ref::Set, A>;
  constexpr bool is_vector = A::template is_vector<Node>();
  const ra::Accessor accessor = described_accessor<A, Node>();
  if constexpr (is_float(A::template dtype<Node>())) {
    static_assert(!is_vector,
                  "an array of floating-point numbers needs a dimension: declare it, auto x = model.field(\"x\", "
                  "accessor, E), and read x(n, i)");
    static_assert(is_vector || sizeof...(Index) == 0, "a field that is no array is read without an index");
    static_assert(valid_present<Ref>());
    return Data<Set>{ir::Load::make(scalar_field(*ref.state(), accessor), {ref.expr()})};
  } else {
    static_assert(valid_present<Ref>());
    static_assert(is_vector || sizeof...(Index) == 0, "a field that is no array is read without an index");
    static_assert(sizeof...(Index) <= 1, "an array is read with one index");
    const int number = number_of<A, Node>(*ref.state());
    const FieldVector<Node, Set> components(ref.expr(), accessor.name, number);
    if constexpr (!is_vector)
      return Structural<Set>{ir::call(ir::UfKind::field, accessor.name, {ref.expr()}, number)};
    else if constexpr (sizeof...(Index) == 0)
      return components;
    else
      return (components[index], ...);
  }
}

}  // namespace detail

template <class NodeT, int StepsFromNode, class AccessorSet, bool IsPresent>
template <class A, class... Index>
auto NodeRef<NodeT, StepsFromNode, AccessorSet, IsPresent>::through(const A& a, const Index&... index) const {
  constexpr bool fits = structure::valid_accessor<A, Node>();
  if constexpr (!fits) {
    return Structural<Set>{};
  } else if constexpr (A::kind == structure::AccessorKind::field) {
    return detail::field_of(*this, a, index...);
  } else {
    static_assert(sizeof...(Index) == 0,
                  "a child is read without an index; the k-th child of a container is kids(n)[k]");
    using Reached = detail::With<Set, A>;
    const int number = detail::number_of<A, Node>(*state_);
    if constexpr (!detail::is_one_child<A>)
      return ChildRange<NodeRef, A, Reached>(expr_, state_, number);
    else
      return NodeRef<Node, steps + 1, Reached, false>(
          ir::call(ir::UfKind::child, std::string(A::name()), {expr_}, number), state_);
  }
}

/// Whether the node has no children, through any accessor that the model reads. Structure.
template <class T>
requires is_symbol<T>
auto is_leaf(const T& node) {
  static_assert(is_node<T>, "is_leaf takes a node, as in is_leaf(n)");
  if constexpr (is_node<T>) {
    static_assert(detail::valid_present<T>());
    return Structural<SetOf<T>>{ir::call(ir::UfKind::is_leaf, "is_leaf", {node.expr()})};
  }
}

/// Whether the node has no parent in the call: `is_root(above(n))` for `above = cortex::parents<...>`. Structure. A
/// root that stands inside another root's structure has one.
template <class T>
requires is_symbol<T>
auto is_root(const T& parents) {
  static_assert(is_children<T>,
                "is_root takes the parents of a node, as in is_root(above(n)) for cortex::parents<kids>");
  if constexpr (is_children<T>) return Structural<SetOf<T>>{ir::binary(ir::BinaryOp::eq, parents.count(), ir::imm(0))};
}

/// How many children a container holds, `num_children(kids(n))`: an integer of the structure.
template <class T>
requires is_symbol<T>
auto num_children(const T& children) {
  static_assert(!is_node<T>, "num_children takes a container of children, as in num_children(kids(n)), not a node");
  static_assert(is_node<T> || is_children<T>,
                "num_children takes a container of children, as in num_children(kids(n))");
  if constexpr (is_children<T>) {
    static_assert(detail::valid_present<typename T::Owner>());
    return Structural<SetOf<T>>{children.count()};
  }
}

}  // namespace cortex::dsl

namespace cortex {
using dsl::is_leaf, dsl::is_root, dsl::num_children;
}  // namespace cortex
