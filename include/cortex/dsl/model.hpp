// The recursive API (paper section 3): a model over the user's node type, whose lambdas become an operator graph.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/dsl/functions.hpp"
#include "cortex/dsl/handles.hpp"
#include "cortex/dsl/reduce.hpp"
#include "cortex/dsl/switch.hpp"
#include "cortex/structure/kind.hpp"

namespace cortex {

/// A complete model: its graph, and as types what the linearizer is made for and what its first state holds. Copies
/// share the graph.
template <class NodeT, class AccessorSet, class FirstElement = float>
class Program {
 public:
  using Node = NodeT;
  using Set = AccessorSet;  // the accessors that the states depend on
  using First = FirstElement;

  explicit Program(std::shared_ptr<const ra::Graph> graph) : graph_(std::move(graph)) {}
  // Moving copies: what is left behind is complete still.
  Program(const Program&) = default;
  Program& operator=(const Program&) = default;

  const std::string& name() const { return graph_->name; }
  const ra::Graph& graph() const { return *graph_; }

  /// The position of the state that `placeholder` stands for, or of a result, from 0; throws `Error{invalid_argument}`
  /// for a placeholder of another model.
  int position(const dsl::Handle& placeholder) const {
    for (std::size_t s = 0; s < graph_->states.size(); ++s)
      if (graph_->ops[std::size_t(graph_->states[s].placeholder)].buffer == placeholder.buffer()) return int(s);
    throw Error(Code::invalid_argument, "'" + placeholder.name() + "' is no state of model '" + name() + "'");
  }

 private:
  std::shared_ptr<const ra::Graph> graph_;
};

namespace dsl {

static_assert(int(ra::StructureKind::sequence) == int(structure::Kind::sequence) &&
              int(ra::StructureKind::tree) == int(structure::Kind::tree) &&
              int(ra::StructureKind::dag) == int(structure::Kind::dag));

template <class... T>
constexpr bool valid_dims() {
  static_assert((std::is_same_v<std::remove_cvref_t<T>, Dim> && ...),
                "the dimensions of a tensor are Dims, such as Dim H{\"hidden\", 256}");
  return true;
}
template <class T>
constexpr bool valid_element() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "the elements of a tensor are float or double");
  return true;
}

/// Runs a user's lambda; an error in it names the operator that it is for.
template <class F>
auto inside(const std::string& name, F&& run) {
  try {
    return run();
  } catch (Error& error) {
    error.message = "operator '" + name + "': " + error.message;
    throw;
  }
}

}  // namespace dsl

/// A recursive model over nodes of type `Node`. Inputs, placeholders and operators are added one by one, each reading
/// only those before it; `recursion_op` completes the model. Every call throws `Error{invalid_model}`, naming operator,
/// tensor and dimension, when it cannot be right, and then adds nothing. Lambdas are called once, in the call that they
/// are given to. What breaks P.1 to P.3 does not compile. A model can be moved; handles outlive it.
template <class Node>
class Model {
 public:
  /// A model over structures of the declared kind: `Model<Word> m("tree_rnn", cortex::tree)`, or with a bound,
  /// `cortex::tree.with_max_children(4)`.
  Model(std::string name, Structure structure) : state_(std::make_shared<dsl::ModelState>()) {
    if (name.empty()) throw Error(Code::invalid_model, "a model needs a name");
    state_->graph.name = std::move(name);
    state_->graph.structure = ra::StructureKind(structure.kind);
    state_->graph.max_children = structure.kind == structure::Kind::sequence ? 1 : structure.max_children;
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  const std::string& name() const { return state().graph.name; }
  /// The operators added so far.
  const ra::Graph& graph() const { return state().graph; }

  /// R1: weights of that name, `[dims...]` of `T` (float unless it is said), bound by name before calls. The first
  /// dimension may be open, such as a vocabulary. An input that no result depends on need not be bound.
  template <class T = float, class... Dims>
  auto input(std::string name, const Dims&... dims) {
    static_assert(dsl::valid_element<T>());
    static_assert(dsl::valid_dims<Dims...>());
    static_assert(sizeof...(Dims) > 0, "an input has at least one dimension; a scalar is a Dim of extent 1");
    return dsl::Input<sizeof...(Dims)>(
        state_, dsl::add_input(state(), std::move(name), dtype_of<T>, Vector<Dim>{Dim(dims)...}));
  }

  /// R2: the results of the recursive calls for one state, `[node, dims...]` of `T`, read at children.
  template <class T = float, class... Dims>
  auto placeholder(std::string name, const Dims&... dims) {
    static_assert(dsl::valid_element<T>());
    static_assert(dsl::valid_dims<Dims...>());
    return dsl::Placeholder<Node, T, sizeof...(Dims)>(
        state_, dsl::add_placeholder(state(), std::move(name), dtype_of<T>, Vector<Dim>{Dim(dims)...}));
  }

  /// R1, data of the node: floating-point numbers in each node as a tensor `[node, dims...]`, read as `x(n, i)`:
  /// `auto x = m.field("x", features, E)`. The extents' product is the array's size; several dimensions are row-major.
  /// Where the size is each node's own, as that of a std::vector or std::span, a call with a node that is read and has
  /// another number of them throws `Error{invalid_structure}`.
  template <class Accessor, class... Dims>
  auto field(std::string name, const Accessor&, const Dims&... dims) {
    static_assert(dsl::valid_dims<Dims...>());
    static_assert(structure::valid_accessor<Accessor, Node>());
    static_assert(Accessor::kind == structure::AccessorKind::field,
                  "field takes an accessor of data, cortex::field<&Node::x>, not one of children");
    if constexpr (Accessor::kind == structure::AccessorKind::field) {
      static_assert(is_float(Accessor::template dtype<Node>()),
                    "an integer field is structure: it is read directly, as in word(n)");
      static_assert(Accessor::template is_vector<Node>() == (sizeof...(Dims) > 0),
                    "an array takes at least one dimension, a single number none");
    }
    return dsl::NodeData<Node, sizeof...(Dims), structure::Accessors<Accessor>>(
        state_, dsl::add_field(state(), std::move(name), dsl::detail::described_accessor<Accessor, Node>(),
                               Vector<Dim>{Dim(dims)...}));
  }

  /// R3: an operator `[node, dims...]`, each element given by the lambda:
  ///
  ///     m.compute("s", H, [&](auto n, auto i) { ... })
  ///
  /// The lambda takes the node and one index variable per dimension and gives data, whose type is the operator's.
  template <class... DimsThenLambda>
  auto compute(std::string name, DimsThenLambda&&... arguments) {
    static_assert(sizeof...(DimsThenLambda) > 0, "compute takes a name, dimensions and a lambda");
    return compute_from(std::move(name), std::forward_as_tuple(arguments...),
                        std::make_index_sequence<sizeof...(DimsThenLambda) - 1>());
  }

  /// R5: the operator `then_op` at nodes where the condition holds, `else_op` at the others; of the same dimensions and
  /// type. The condition takes a node and depends on the structure alone (P.1): `[](auto n) { return is_leaf(n); }`; an
  /// integer field holds where it is not 0. Branches may be branches themselves, or data of the node (`field`).
  template <class Condition, class Then, class Else>
  auto if_then_else(std::string name, Condition&& condition, const Then& then_op, const Else& else_op) {
    static_assert(dsl::is_op<Then> && dsl::is_op<Else>,
                  "the branches of if_then_else are operators, as compute and if_then_else give them");
    static_assert(
        std::is_invocable_v<Condition&, Current>,
        "the condition of if_then_else is a lambda that takes a node, as in [](auto n) { return is_leaf(n); }");
    using Result = std::remove_cvref_t<std::invoke_result_t<Condition&, Current>>;
    static_assert(!dsl::is_data<Result>,
                  "(P.1) control flow depends on the structure alone: the condition of if_then_else is made of "
                  "computed data; to choose between values use "
                  "select(condition, a, b) inside one operator; what a node's own float says an accessor compares: "
                  "field<[](const Node& n) { return n.x > 0.5f; }>");
    static_assert(
        dsl::is_data<Result> || dsl::is_structure<Result>,
        "the condition of if_then_else gives a condition on the structure: is_leaf(n), a field, a comparison");
    static_assert(Then::rank == Else::rank, "the branches of if_then_else have different numbers of dimensions");
    dsl::Transaction transaction(state());
    dsl::detail::number_all<Node>(state(), dsl::SetOf<Result>());
    const Current node(ir::Var::make("n"), state_);
    const std::string shown = name.empty() ? "if_then_else" : name;
    const ir::Expr holds = dsl::inside(shown, [&] { return dsl::condition(condition(node).expr); });
    const ir::Buffer buffer =
        dsl::add_branch(state(), std::move(name), node.expr(), holds, then_op.buffer(), else_op.buffer());
    transaction.commit();
    using Set = dsl::Join<typename dsl::SetOf<Result>, dsl::Join<typename Then::Set, typename Else::Set>>;
    return dsl::Op<Node, Then::rank, Set>(state_, buffer);
  }

  /// The same, named after its branches: "leaf_or_rec".
  template <class Condition, class Then, class Else>
  auto if_then_else(Condition&& condition, const Then& then_op, const Else& else_op) {
    static_assert(!std::is_convertible_v<Condition, std::string>,
                  "if_then_else takes a condition and two operators, with a name before them or without");
    return if_then_else(std::string(), std::forward<Condition>(condition), then_op, else_op);
  }

  /// A branch of many cases on a kind of the node, an integer or an enumeration among its fields:
  /// `m.switch_("cell", [](auto n) { return kind(n); }, when(Kind::scan, scan), when(Kind::join, join))`. Cases are
  /// operators of the same dimensions and type, each with weights and equations of its own. A node of any other kind
  /// takes the operator in `otherwise(op)`, which comes last; without it, a call with such a node is refused with
  /// `Error{out_of_range}`.
  template <class Key, class... Cases>
  auto switch_(std::string name, Key&& key, const Cases&... cases) {
    static_assert(sizeof...(Cases) > 0,
                  "switch_ takes a name, a key and cases: when(kind, operator), ..., otherwise(operator)");
    static_assert(((dsl::is_case<Cases> || dsl::is_otherwise<Cases>)&&...),
                  "the cases of switch_ are when(kind, operator) and, at the end, otherwise(operator)");
    static_assert(dsl::otherwise_is_last<Cases...>, "otherwise(operator) is the last case of switch_");
    static_assert(std::is_invocable_v<Key&, Current>, "the key of switch_ is a lambda that takes a node");
    using Result = std::remove_cvref_t<std::invoke_result_t<Key&, Current>>;
    static_assert(
        dsl::is_structure<Result>,
        "(P.1) control flow depends on the structure alone: the key of switch_ is an integer of the structure, "
        "such as a field of the node");
    static_assert(dsl::of_one_kind<Cases...>, "the cases of switch_ are all integers, or enumerators of one type");
    dsl::Transaction transaction(state());
    dsl::detail::number_all<Node>(state(), dsl::SetOf<Result>());
    Vector<dsl::AnyCase> list{{cases.value, dsl::is_otherwise<Cases>, cases.op.buffer()}...};
    const ir::Buffer buffer = dsl::add_switch(state(), name, list, [&](const ir::Expr& node) {
      return dsl::inside(name, [&] { return dsl::present(key(Current(node, state_)).expr); });
    });
    transaction.commit();
    using Sets = typename dsl::detail::JoinedSet<Result, dsl::Data<typename Cases::Operator::Set>...>::type;
    using First = typename std::tuple_element_t<0, std::tuple<Cases...>>::Operator;
    static_assert(((First::rank == Cases::Operator::rank) && ...),
                  "the cases of switch_ have different numbers of dimensions");
    return dsl::Op<Node, First::rank, Sets>(state_, buffer);
  }

  /// R6: joins each placeholder to the operator that computes it: `auto [h, c] = m.recursion(h_in, h_body, c_in,
  /// c_body)`, or one handle for one pair. What is added after may read these results at the node itself and at its
  /// children, so that recursions stack: `h(n, i)`. A recursion goes up, reading its placeholders at children, or down,
  /// reading them at parents. Throws if dimensions or types differ.
  template <class... PlaceholderThenBody>
  auto recursion(const PlaceholderThenBody&... pairs) {
    static_assert(sizeof...(pairs) > 0 && sizeof...(pairs) % 2 == 0,
                  "recursion takes placeholders and their bodies in turn: recursion(h, h_body, c, c_body)");
    return joined(std::tie(pairs...), std::make_index_sequence<sizeof...(pairs) / 2>());
  }

  /// A result at every node, `[node, dims...]` of `T`, that nothing recurses on, such as a classifier's:
  /// `m.output<float>("logits", C, [&](auto n, auto c) { ... })`. Its lambda reads the results of recursions, and other
  /// outputs, at the node itself and at its children.
  template <class T = float, class... DimsThenLambda>
  auto output(std::string name, DimsThenLambda&&... arguments) {
    return result_of<T>(std::move(name), false, std::forward_as_tuple(arguments...),
                        std::make_index_sequence<sizeof...(DimsThenLambda) - 1>());
  }

  /// A result at each root, `[root, dims...]` of `T`: its lambda reads the results of recursions at all nodes that the
  /// root reaches, and other readouts at the root:
  ///
  ///     m.readout<float>("mean", H, [&](auto r, auto i) {
  ///       return sum(cortex::nodes(r), [&](auto n) { return h(n, i); }) / num_children(cortex::nodes(r));
  ///     })
  template <class T = float, class... DimsThenLambda>
  auto readout(std::string name, DimsThenLambda&&... arguments) {
    return result_of<T>(std::move(name), true, std::forward_as_tuple(arguments...),
                        std::make_index_sequence<sizeof...(DimsThenLambda) - 1>());
  }

  /// Completes the model: `results` are what `recursion`, `output` and `readout` gave, in the order that they have in
  /// the results of calls. Throws if a recursion is left out that no result depends on.
  template <class... Results>
  auto program(const Results&... results) {
    static_assert(sizeof...(Results) > 0, "program takes the results that calls are to give");
    static_assert((dsl::is_computed<Results> && ...),
                  "the results of a program are what recursion, output and readout give");
    using Set = typename dsl::detail::JoinedSet<dsl::Data<typename Results::Set>...>::type;
    static_assert(
        structure::parents_name_links<Set>,
        "cortex::parents has to name every link that the model reads, since a node's parents are those by any "
        "of them: cortex::parents<kids, others>");
    static_assert(
        structure::nodes_have_links<Set>,
        "cortex::nodes are those that a root reaches by the links that the model reads, and this one reads none: "
        "read the children in some operator, as in cast<float>(num_children(kids(n)))");
    using First = typename std::tuple_element_t<0, std::tuple<Results...>>::Element;
    return Program<Node, Set, First>(dsl::complete(state(), {results.buffer()...}, dsl::keys_of(Set())));
  }

  /// `recursion`, and with it the program: its states are the results, in the order of the pairs. Throws also if a
  /// placeholder of the model is left out.
  template <class... PlaceholderThenBody>
  auto recursion_op(const PlaceholderThenBody&... pairs) {
    static_assert(sizeof...(pairs) > 0 && sizeof...(pairs) % 2 == 0,
                  "recursion_op takes placeholders and their bodies in turn: recursion_op(h, h_body, c, c_body)");
    dsl::Transaction transaction(state());
    const auto results = joined(std::tie(pairs...), std::make_index_sequence<sizeof...(pairs) / 2>());
    auto made = [&] {
      if constexpr (sizeof...(pairs) == 2)
        return program(results);
      else
        return std::apply([&](const auto&... each) { return program(each...); }, results);
    }();
    transaction.commit();
    return made;
  }

 private:
  using Current = dsl::NodeRef<Node, 0, dsl::NoAccessors, true>;

  dsl::ModelState& state() const {
    if (!state_) throw Error(Code::invalid_argument, "a model that was moved from is used");
    return *state_;
  }

  /// What a lambda was at a node: the node, the indices, and its value in terms of both.
  struct Traced {
    ir::Expr node;
    Vector<ir::Expr> vars;
    ir::Expr value;
  };
  template <class Result, class Body, std::size_t... D>
  Traced traced(const std::string& name, Body& body, std::index_sequence<D...>) {
    dsl::detail::number_all<Node>(state(), typename Result::Set());
    const Current node(ir::Var::make("n"), state_);
    const Vector<ir::Expr> vars{ir::Var::make(dsl::index_name(D))...};
    return {node.expr(), vars, dsl::inside(name, [&] { return dsl::number(body(node, Index<D>{vars[D]}...).expr); })};
  }

  template <class Tuple, std::size_t... D>
  auto compute_from(std::string name, Tuple arguments, std::index_sequence<D...> dims) {
    static_assert(dsl::valid_dims<std::tuple_element_t<D, Tuple>...>());
    auto& body = std::get<sizeof...(D)>(arguments);
    using Body = decltype(body);
    constexpr bool fits = std::is_invocable_v<Body, Current, Index<D>...>;
    static_assert(fits,
                  "the last argument of compute is a lambda that takes the node and one index variable per dimension, "
                  "and whose body compiles with them (functions of data are tanh(x) and the like, not std::tanh(x))");
    if constexpr (fits) {
      using Result = std::remove_cvref_t<std::invoke_result_t<Body, Current, Index<D>...>>;
      static_assert(dsl::detail::valid_body<Result>());
      if constexpr (dsl::is_data<Result>) {
        dsl::Transaction transaction(state());
        const Traced at = traced<Result>(name, body, dims);
        const ir::Buffer buffer = dsl::add_compute(
            state(), std::move(name), Vector<Dim>{Dim(std::get<D>(arguments))...}, at.node, at.vars, at.value);
        transaction.commit();
        return dsl::Op<Node, sizeof...(D), typename Result::Set>(state_, buffer);
      }
    }
  }

  template <class Tuple, std::size_t... S>
  auto joined(const Tuple& pairs, std::index_sequence<S...>) {
    static_assert((dsl::is_placeholder<Argument<Tuple, 2 * S>> && ...),
                  "recursion_op takes placeholders and their bodies in turn: here no placeholder stands first");
    static_assert((dsl::is_op<Argument<Tuple, 2 * S + 1>> && ...),
                  "the body of a placeholder is an operator, as compute and if_then_else give them");
    static_assert(((Argument<Tuple, 2 * S>::rank == Argument<Tuple, 2 * S + 1>::rank) && ...),
                  "a placeholder and its body have different numbers of dimensions");
    using Set = typename dsl::detail::JoinedSet<dsl::Data<typename Argument<Tuple, 2 * S + 1>::Set>...>::type;
    dsl::add_recursion(state(), {{std::get<2 * S>(pairs).buffer(), std::get<2 * S + 1>(pairs).buffer()}...});
    const auto result = [&](const auto& placeholder) {
      using P = std::remove_cvref_t<decltype(placeholder)>;
      return dsl::Computed<Node, typename P::Element, P::rank, Set>(state_, placeholder.buffer());
    };
    if constexpr (sizeof...(S) == 1)
      return result(std::get<0>(pairs));
    else
      return std::make_tuple(result(std::get<2 * S>(pairs))...);
  }

  template <class T, class Tuple, std::size_t... D>
  auto result_of(std::string name, bool at_roots, Tuple arguments, std::index_sequence<D...> dims) {
    static_assert(dsl::valid_element<T>());
    static_assert(dsl::valid_dims<std::tuple_element_t<D, Tuple>...>());
    auto& body = std::get<sizeof...(D)>(arguments);
    static_assert(std::is_invocable_v<decltype(body), Current, Index<D>...>,
                  "the last argument of output and readout is a lambda that takes the node and one index variable per "
                  "dimension");
    using Result = std::remove_cvref_t<std::invoke_result_t<decltype(body), Current, Index<D>...>>;
    static_assert(dsl::detail::valid_body<Result>());
    dsl::Transaction transaction(state());
    const Traced at = traced<Result>(name, body, dims);
    const ir::Buffer buffer = dsl::add_output(state(), name, dtype_of<T>, Vector<Dim>{Dim(std::get<D>(arguments))...},
                                              at_roots, at.node, at.vars, at.value);
    transaction.commit();
    return dsl::Computed<Node, T, sizeof...(D), typename Result::Set>(state_, buffer);
  }

  template <std::size_t>
  using Index = dsl::Structural<>;
  template <class Tuple, std::size_t I>
  using Argument = std::remove_cvref_t<std::tuple_element_t<I, Tuple>>;

  dsl::SharedState state_;
};

}  // namespace cortex
