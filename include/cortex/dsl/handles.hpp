// Handles to the operators of a model: what lambdas read, `op(n, i)`, and what schedules and results name.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/dsl/node.hpp"

namespace cortex::dsl {

template <std::size_t Rank>
class Input;
template <class NodeT, class T, std::size_t Rank>
class Placeholder;
template <class NodeT, std::size_t Rank, class AccessorSet>
class Op;
template <class NodeT, std::size_t Rank, class AccessorSet>
class NodeData;
template <class NodeT, class T, std::size_t Rank, class AccessorSet>
class Computed;

template <std::size_t R>
inline constexpr bool is_tensor<Input<R>> = true;
template <class N, class T, std::size_t R>
inline constexpr bool is_tensor<Placeholder<N, T, R>> = true;
template <class N, std::size_t R, class Set>
inline constexpr bool is_tensor<Op<N, R, Set>> = true;
template <class N, std::size_t R, class Set>
inline constexpr bool is_tensor<NodeData<N, R, Set>> = true;
template <class N, class T, std::size_t R, class Set>
inline constexpr bool is_tensor<Computed<N, T, R, Set>> = true;

template <class T>
inline constexpr bool is_placeholder = false;
template <class N, class T, std::size_t R>
inline constexpr bool is_placeholder<Placeholder<N, T, R>> = true;
template <class T>
inline constexpr bool is_computed = false;
template <class N, class T, std::size_t R, class Set>
inline constexpr bool is_computed<Computed<N, T, R, Set>> = true;
template <class T>
inline constexpr bool is_op = false;
template <class N, std::size_t R, class Set>
inline constexpr bool is_op<Op<N, R, Set>> = true;
template <class N, std::size_t R, class Set>
inline constexpr bool is_op<NodeData<N, R, Set>> = true;

/// What all handles have in common. A handle keeps what it needs of its model alive.
class Handle {
 public:
  Handle(SharedState state, ir::Buffer buffer) : state_(std::move(state)), buffer_(std::move(buffer)) {}
  // Moving copies: what is left behind can be read still.
  Handle(const Handle&) = default;
  Handle& operator=(const Handle&) = default;

  const std::string& name() const { return buffer_->name; }
  const ir::Buffer& buffer() const { return buffer_; }

 protected:
  /// The read `this[node, indices...]` in a lambda of the model of `reader`.
  ir::Expr read_at(const SharedState& reader, Vector<ir::Expr> indices) const {
    if (reader != state_)
      fail("'" + name() + "' belongs to model '" + state_->graph.name + "', but is read in model '" +
           reader->graph.name + "'");
    return ir::Load::make(buffer_, std::move(indices));
  }
  /// A placeholder's part is over when its recursion is complete: its type knows nothing of what that reads.
  void refuse_if_complete() const {
    if (ra::state_of(state_->graph, state_->graph.find(buffer_)) >= 0)
      fail("placeholder '" + name() + "' is read after its recursion is complete; read the result that recursion gave");
  }
  SharedState state_;
  ir::Buffer buffer_;
};

namespace detail {

/// The sentences of what is no first argument of an operator or a placeholder.
template <class First, class NodeT>
constexpr bool valid_node() {
  static_assert(
      !is_children<First>,
      "a container holds several nodes: reduce over them, as in sum(kids(n), [&](auto k) { return h(k, i); }), "
      "or read one of them, as in h(kids(n)[0], i)");
  static_assert(is_node<First> || is_children<First>,
                "an operator or placeholder is read at a node first, as in op(n, i) or h(left(n), i)");
  if constexpr (is_node<First>)
    static_assert(std::is_same_v<typename First::Node, NodeT>,
                  "the node is of another type than the model's: it belongs to another model");
  return true;
}

/// The sentence of a variable that is given an operator of accessors that its type does not name.
template <class Set, class Given>
constexpr bool valid_replacement() {
  static_assert(structure::includes<Set, Given>,
                "a C++ variable keeps the type of the operator that it began with, which names the fields and "
                "children that this reads, and the one given to it now reads others: name it by an auto of its own; "
                "a loop over layers begins with one that reads all that they read, such as the first layer");
  return true;
}

template <std::size_t Rank, std::size_t Given>
constexpr bool valid_rank() {
  static_assert(Rank == Given,
                "the number of indices is not the number of dimensions: give one index per dimension, after the node "
                "if there is one");
  return true;
}

}  // namespace detail

/// R1: weights or an embedding table, bound by name before calls: `W(i, j)`, `Emb(word(n), i)`.
template <std::size_t Rank>
class Input : public Handle {
 public:
  using Handle::Handle;
  static constexpr std::size_t rank = Rank;

  /// The element at those indices: index variables, integers of the structure, or C++ integers. A bare index variable
  /// must be of the tensor's own dimension; anything else must lie inside it as far as is known, or the call that
  /// builds the operator throws `Error{invalid_model}`.
  template <class... I>
  auto operator()(const I&... index) const {
    static_assert(!(is_node<I> || ...),
                  "an input is the same for all nodes: it is read at indices alone, as in W(i, j) or Emb(word(n), i)");
    static_assert(detail::valid_rank<Rank, sizeof...(I)>());
    return Data<typename detail::JoinedSet<I...>::type>{ir::Load::make(buffer_, {dsl::index<false>(index)...})};
  }
};

/// R2: the result of the recursive calls for one state, read at children: `h(left(n), i)`. Where a child is absent it
/// reads as 0.
template <class NodeT, class T, std::size_t Rank>
class Placeholder : public Handle {
 public:
  using Handle::Handle;
  using Node = NodeT;
  using Element = T;
  static constexpr std::size_t rank = Rank;

  template <class First, class... I>
  auto operator()(const First& node, const I&... index) const {
    static_assert(detail::valid_node<First, NodeT>());
    if constexpr (is_node<First>) {
      static_assert(First::steps != 0,
                    "(P.2) recursive calls come first: a placeholder is read at a child, as in h(left(n), i), never at "
                    "the node itself; for this node's own "
                    "value read the operator that computes it");
      static_assert(First::steps <= 1,
                    "(P.2) recursive calls come first: a placeholder is read at a child, never further away; let the "
                    "child hold what its parent needs in a "
                    "state of its own");
      static_assert(detail::valid_rank<Rank, sizeof...(I)>());
      this->refuse_if_complete();
      return Data<typename detail::JoinedSet<First, I...>::type>{
          this->read_at(node.state(), {node.expr(), dsl::index<true>(index)...})};
    } else {
      return Data<>{};
    }
  }

  /// The position of the state in the program and its results, from 0; throws `Error{invalid_argument}` before
  /// `recursion_op` has defined it.
  int position() const {
    const ra::Graph& graph = this->state_->graph;
    for (std::size_t s = 0; s < graph.states.size(); ++s)
      if (graph.ops[std::size_t(graph.states[s].placeholder)].buffer == this->buffer_) return int(s);
    throw Error(Code::invalid_argument,
                "placeholder '" + this->name() + "' is not defined yet: recursion_op gives it its position");
  }
};

/// R3, R5: a tensor with one row per node, read at the node itself: `op(n, i)`. `Set` holds the accessors that it
/// depends on, through other operators too.
template <class NodeT, std::size_t Rank, class AccessorSet>
class Op : public Handle {
 public:
  using Handle::Handle;
  using Node = NodeT;
  using Set = AccessorSet;
  static constexpr std::size_t rank = Rank;

  /// A handle to an operator that reads these accessors and no others: what a C++ variable of this type may be given.
  template <class Fewer>
  Op(const Op<NodeT, Rank, Fewer>& other) : Handle(other) {
    static_assert(detail::valid_replacement<Set, Fewer>());
  }

  template <class First, class... I>
  auto operator()(const First& node, const I&... index) const {
    static_assert(detail::valid_node<First, NodeT>());
    if constexpr (is_node<First>) {
      static_assert(First::steps == 0,
                    "(P.2) recursive calls come first: an operator is read at the node itself; at a child read a "
                    "placeholder, as in h(left(n), i), and make "
                    "what is needed of the child a state");
      static_assert(detail::valid_rank<Rank, sizeof...(I)>());
      using Reads = typename detail::JoinedSet<First, I...>::type;
      return Data<Join<Set, Reads>>{this->read_at(node.state(), {node.expr(), dsl::index<false>(index)...})};
    } else {
      return Data<>{};
    }
  }
};

/// R1, data of the node: floating-point numbers that nodes have, read at the node itself, `x(n, i)`, or at the
/// children, parents or members that a reduction visits: `sum(kids(n), [&](auto k) { return x(k, i) * h(k, i); })`.
template <class NodeT, std::size_t Rank, class AccessorSet>
class NodeData : public Handle {
 public:
  using Handle::Handle;
  using Node = NodeT;
  using Set = AccessorSet;
  static constexpr std::size_t rank = Rank;

  template <class First, class... I>
  auto operator()(const First& node, const I&... index) const {
    static_assert(detail::valid_node<First, NodeT>());
    if constexpr (is_node<First>) {
      static_assert(detail::valid_present<First>());
      static_assert(detail::valid_rank<Rank, sizeof...(I)>());
      using Reads = typename detail::JoinedSet<First, I...>::type;
      return Data<Join<Set, Reads>>{this->read_at(node.state(), {node.expr(), dsl::index<false>(index)...})};
    } else {
      return Data<>{};
    }
  }
};

/// What a recursion, an output or a readout that is complete has computed: a tensor `[node, dims...]` of `T`, read at
/// the node itself, `h(n, i)`, or at a child, a parent or a member: `h(left(n), i)`. Also names the state in results.
template <class NodeT, class T, std::size_t Rank, class AccessorSet>
class Computed : public Handle {
 public:
  using Handle::Handle;
  using Node = NodeT;
  using Element = T;
  using Set = AccessorSet;
  static constexpr std::size_t rank = Rank;

  /// A handle to an operator that reads these accessors and no others: what a C++ variable of this type may be given.
  template <class Fewer>
  Computed(const Computed<NodeT, T, Rank, Fewer>& other) : Handle(other) {
    static_assert(detail::valid_replacement<Set, Fewer>());
  }

  template <class First, class... I>
  auto operator()(const First& node, const I&... index) const {
    static_assert(detail::valid_node<First, NodeT>());
    if constexpr (is_node<First>) {
      static_assert(
          First::steps <= 1,
          "a result is read at the node itself, at a child or at a parent, never further away: let the node in "
          "between have what it reads there as an output of its own");
      static_assert(detail::valid_rank<Rank, sizeof...(I)>());
      using Reads = typename detail::JoinedSet<First, I...>::type;
      return Data<Join<Set, Reads>>{this->read_at(node.state(), {node.expr(), dsl::index<true>(index)...})};
    } else {
      return Data<>{};
    }
  }
};

}  // namespace cortex::dsl

namespace cortex {
using dsl::Computed, dsl::Input, dsl::NodeData, dsl::Op, dsl::Placeholder;
}  // namespace cortex
