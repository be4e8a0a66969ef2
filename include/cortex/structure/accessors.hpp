// Node accessors (R4): how a model names the children and the fields of the user's own node type.
//
//   struct Word { int id; const Word* left; const Word* right; };
//   constexpr auto left = cortex::child<&Word::left>;
//   constexpr auto word = cortex::field<&Word::id>;
//
// An accessor is an empty type, so the set of accessors that a model reads is a type too, and the linearizer is
// instantiated for exactly these, inlined.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cortex/base/dtype.hpp"
#include "cortex/structure/links.hpp"
#include "cortex/structure/paths.hpp"

namespace cortex::structure {

enum class AccessorKind : std::uint8_t {
  child,           // one child; absent only at leaves
  optional_child,  // one child, which any node may lack
  children,        // a container of children
  field,           // data of the node
  parents,         // the nodes that have this one as a child
  members,         // all nodes that a root reaches
};

// ---------------------------------------------------------------------------------------------------------- children

/// What `child` and `optional_child` share: one link at the end of a path.
template <auto... Path>
struct OneChild {
  static_assert(sizeof...(Path) > 0, "cortex::child needs a member pointer or a lambda: cortex::child<&Word::left>");

  /// The link itself, as the node holds it.
  template <class Node>
  requires structure::Path<Node, Path...>
  static constexpr decltype(auto) get(const Node& node) { return walk_path<Path...>(node); }

  /// False if a pointer on the way to the link is null: then there is no link, and so no child.
  template <class Node>
  static constexpr bool is_reachable(const Node& node) {
    return path_is_open<Path...>(node);
  }

  template <class Node>
  static constexpr bool fits() {
    if constexpr (structure::Path<Node, Path...>)
      return LinkTo<decltype(get(std::declval<const Node&>())), Node>;
    else
      return false;
  }

  template <class Node>
  static constexpr bool uses_arena() {
    return is_index_link<decltype(get(std::declval<const Node&>()))>;
  }

  /// The name of the path's last member; "child" for a lambda.
  static constexpr std::string_view name() {
    return path_name<Path...>().empty() ? std::string_view("child") : path_name<Path...>();
  }
};

/// One child, which every node has that has children at all. Use it through `cortex::child`.
template <auto... Path>
struct Child : OneChild<Path...> {
  static constexpr AccessorKind kind = AccessorKind::child;

  template <class Ref>
  constexpr auto operator()(const Ref& ref) const {
    return ref.through(*this);
  }
};

/// One child that may be absent at any node. Use it through `cortex::optional_child`.
template <auto... Path>
struct OptionalChild : OneChild<Path...> {
  static constexpr AccessorKind kind = AccessorKind::optional_child;

  template <class Ref>
  constexpr auto operator()(const Ref& ref) const {
    return ref.through(*this);
  }
};

/// All the children that one or more members hold, in the order of the members. Use it through `cortex::children`. Each
/// of `Members` is one step; a path to a container is written as a lambda.
template <auto... Members>
struct Children {
  static_assert(sizeof...(Members) > 0, "cortex::children needs a member pointer: cortex::children<&Node::kids>");
  static constexpr AccessorKind kind = AccessorKind::children;
  static constexpr std::size_t num_members = sizeof...(Members);

  /// Calls `visit` with what each member holds: a link or a range of links.
  template <class Node, class Visit>
  requires(Path<Node, Members>&&...) static constexpr void for_each_member(const Node& node, Visit&& visit) {
    (visit(walk_path<Members>(node)), ...);
  }

  /// What the member holds, when there is one member.
  template <class Node>
  requires(sizeof...(Members) == 1 && (Path<Node, Members> && ...)) static constexpr decltype(auto)
      get(const Node& node) {
    return walk_path<Members...>(node);
  }

  template <class Node, auto Member>
  static constexpr bool member_fits() {
    if constexpr (Path<Node, Member>) {
      using Ref = decltype(walk_path<Member>(std::declval<const Node&>()));
      return LinkTo<Ref, Node> || LinkRangeTo<Ref, Node>;
    } else {
      return false;
    }
  }

  template <class Node>
  static constexpr bool fits() {
    return (member_fits<Node, Members>() && ...);
  }

  template <class Node>
  static constexpr bool uses_arena() {
    return (holds_indices<decltype(walk_path<Members>(std::declval<const Node&>())), Node>() || ...);
  }

  /// The members' names joined by '_': "kids", "left_right"; "children" for a lambda.
  static constexpr std::string_view name() { return {joined.text.data(), joined.size}; }

  template <class Ref>
  constexpr auto operator()(const Ref& ref) const {
    return ref.through(*this);
  }

 private:
  template <class Ref, class Node>
  static constexpr bool holds_indices() {
    if constexpr (LinkTo<Ref, Node>)
      return is_index_link<Ref>;
    else
      return is_index_link<decltype(*begin_of(std::declval<std::remove_reference_t<Ref>&>()))>;
  }

  struct Joined {
    std::array<char, ((step_name<Members>().size() + 9) + ...)> text{};
    std::size_t size = 0;
    constexpr void append(std::string_view part) {
      for (char c : part) text[size++] = c;
    }
  };
  static constexpr Joined joined = [] {
    Joined all;
    auto append = [&](std::string_view name) {
      if (all.size > 0) all.append("_");
      all.append(name.empty() ? std::string_view("children") : name);
    };
    (append(step_name<Members>()), ...);
    return all;
  }();
};

// --------------------------------------------------------------------------------------- what follows from the links

/// The distinct nodes of which a node is a child, through any accessor that the model reads; `Links` are these, which a
/// complete model holds them against. Use it through `cortex::parents`.
template <auto... Links>
struct Parents {
  static_assert(sizeof...(Links) > 0,
                "cortex::parents needs the accessors that lead to children: cortex::parents<kids>");
  static_assert(
      (requires { std::remove_cv_t<decltype(Links)>::kind; } && ...),
      "cortex::parents takes accessors, not members: constexpr auto kids = cortex::children<&Node::kids>; then "
      "cortex::parents<kids>");
  static constexpr AccessorKind kind = AccessorKind::parents;

  template <class Node>
  static constexpr bool fits() {
    return (std::remove_cv_t<decltype(Links)>::template fits<Node>() && ...);
  }
  template <class Node>
  static constexpr bool uses_arena() {
    return false;  // its links say so themselves
  }
  static constexpr std::string_view name() { return "parents"; }

  template <class Ref>
  constexpr auto operator()(const Ref& ref) const {
    return ref.through(*this);
  }
};

/// All nodes that a root reaches, itself first, breadth first. Use it through `cortex::nodes`.
struct Members {
  static constexpr AccessorKind kind = AccessorKind::members;
  template <class Node>
  static constexpr bool fits() {
    return true;
  }
  template <class Node>
  static constexpr bool uses_arena() {
    return false;
  }
  static constexpr std::string_view name() { return "nodes"; }

  template <class Ref>
  constexpr auto operator()(const Ref& ref) const {
    return ref.through(*this);
  }
};

// ------------------------------------------------------------------------------------------------------------ fields

template <class T>
concept FieldScalar =
    std::is_integral_v<T> || std::is_enum_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Floating-point numbers in a row, as many as the object says: a std::vector, a std::span, a vector of Eigen's.
template <class T>
concept FieldRow = requires(const T& row) {
  std::size_t(row.size());
  row[0];
  requires std::is_same_v<std::remove_cvref_t<decltype(*row.data())>, float> ||
      std::is_same_v<std::remove_cvref_t<decltype(*row.data())>, double>;
  requires !requires { std::tuple_size<T>::value; };
};

/// The element type and the number of elements of a field's C++ type; undefined for types that are no field.
template <class T>
struct FieldShape {};
template <FieldScalar T>
struct FieldShape<T> {
  using Element = T;
  static constexpr int components = 1;
  static constexpr bool is_vector = false;
};
template <FieldScalar T, std::size_t K>
struct FieldShape<T[K]> {
  using Element = T;
  static constexpr int components = int(K);
  static constexpr bool is_vector = true;
};
template <FieldScalar T, std::size_t K>
requires(K > 0) struct FieldShape<std::array<T, K>> {
  using Element = T;
  static constexpr int components = int(K);
  static constexpr bool is_vector = true;
};

template <FieldRow T>
struct FieldShape<T> {
  using Element = std::remove_cvref_t<decltype(*std::declval<const T&>().data())>;
  static constexpr int components = 0;  // as many as the model declares: `FieldCheck::components`
  static constexpr bool is_vector = true;
};

/// Data of the node: a scalar or a vector. Integers, bool and enumerations become i32. Use it through
/// `cortex::field`.
template <auto... Path>
struct Field {
  static_assert(sizeof...(Path) > 0, "cortex::field needs a member pointer or a lambda: cortex::field<&Word::id>");
  static constexpr AccessorKind kind = AccessorKind::field;

  /// The value itself, as the node holds it; only where `is_reachable`.
  template <class Node>
  requires structure::Path<Node, Path...>
  static constexpr decltype(auto) get(const Node& node) { return walk_path<Path...>(node); }

  /// False if a pointer on the way to the value is null.
  template <class Node>
  static constexpr bool is_reachable(const Node& node) {
    return path_is_open<Path...>(node);
  }

  template <class Node>
  using Shape = FieldShape<std::remove_cvref_t<decltype(get(std::declval<const Node&>()))>>;

  template <class Node>
  static constexpr bool fits() {
    if constexpr (structure::Path<Node, Path...>) return requires {
        Shape<Node>::components;
      };
    else
      return false;
  }

  /// The DType of one element: i32, f32 or f64.
  template <class Node>
  static constexpr DType dtype() {
    using Element = typename Shape<Node>::Element;
    return std::is_same_v<Element, float> ? DType::f32 : std::is_same_v<Element, double> ? DType::f64 : DType::i32;
  }

  /// How many elements the field has: 1 for a scalar, 0 where each node says so itself.
  template <class Node>
  static constexpr int components() {
    return Shape<Node>::components;
  }

  /// Whether the field is an array, even of one element.
  template <class Node>
  static constexpr bool is_vector() {
    return Shape<Node>::is_vector;
  }

  /// The name of the path's last member; "field" for a lambda.
  static constexpr std::string_view name() {
    return path_name<Path...>().empty() ? std::string_view("field") : path_name<Path...>();
  }

  /// The field of the node, or element `index` of a fixed vector: `word(n)`, `ids(n, k)`.
  template <class Ref, class... Index>
  constexpr auto operator()(const Ref& ref, const Index&... index) const {
    return ref.through(*this, index...);
  }
};

// ---------------------------------------------------------------------------------------------------------- concepts

template <class A>
concept Accessor = requires {
  { A::kind } -> std::convertible_to<AccessorKind>;
  { A::name() } -> std::convertible_to<std::string_view>;
};

/// An accessor that can be read from a Node: its members exist, links lead to a Node, fields are numbers.
template <class A, class Node>
concept AccessorOf = Accessor<A> && A::template fits<Node>();

/// Refuses, in words, what is no accessor of a Node.
template <class A, class Node>
constexpr bool valid_accessor() {
  constexpr bool is_member = AccessorOf<A, Node> || requires(const Node& node) { A::get(node); };
  static_assert(is_member,
                "the node type of the model has no such member: it is another type's, or a getter that is not const; "
                "where several members are named, one of them holds no children of that type");
  if constexpr (is_member && !AccessorOf<A, Node>) {
    using Ref = decltype(A::get(std::declval<const Node&>()));
    constexpr bool is_field = A::kind == AccessorKind::field, is_link = PointerLike<std::remove_cvref_t<Ref>>;
    constexpr bool is_range = requires(std::remove_reference_t<Ref> & range) { begin_of(range) != end_of(range); };
    constexpr bool is_optional = requires(const std::remove_cvref_t<Ref>& held) { held.has_value(); };
    constexpr bool holds_nodes = requires(std::remove_reference_t<Ref> & range) {
      requires NodeItself<decltype(*begin_of(range)), Node>;
    };
    constexpr bool is_temporary = !is_field && A::kind == AccessorKind::children && holds_nodes;
    static_assert(!is_field || !is_optional,
                  "this member may have no value, and a field has one at each node: name a getter or a lambda that gives "
                  "a number in any case");
    static_assert(!is_field || is_optional || !is_link || !PointerTo<std::remove_cvref_t<Ref>, Node>,
                  "this member is a link: cortex::child or optional_child names it, not field");
    static_assert(!is_field || is_optional || !is_link || PointerTo<std::remove_cvref_t<Ref>, Node>,
                  "a field's data lies in the node: of what this pointer leads to, cortex::field<&Node::pointer, "
                  "&Data::member> names a member, and a getter or a lambda gives anything else");
    static_assert(
        !is_field || is_optional || is_link,
        "a field is a number, a bool, an enumeration, or an array of fixed size of these, std::array or of C, or "
        "floats "
        "or doubles in a row, with data() and size(); other data is found by an index, as in Emb(word(n), i)");
    constexpr bool is_owner = !is_field && SoleOwner<Ref>;
    static_assert(!is_owner,
                  "this getter gives a pointer that alone owns its node, which is gone before it is read: give a "
                  "reference to the pointer, or the node's address");
    static_assert(is_field || !is_optional,
                  "this link may have no value: name a getter or a lambda that gives a null pointer, or an index that "
                  "means no node (negative, or the greatest of an unsigned type), in that case");
    static_assert(is_field || !is_link || is_owner || is_optional,
                  "this link leads to another type than the model's nodes: make it a model over the type that links "
                  "lead to, such as a base class");
    static_assert(
        is_field || is_link || !is_range || A::kind == AccessorKind::children,
        "this member holds several children: cortex::children names them all, child<&Node::kids, 0> the first "
        "of an array");
    static_assert(!is_temporary,
                  "this getter gives copies of nodes, which are gone before they are read: give a reference to the "
                  "container, or a std::span of its nodes");
    static_assert(
        is_field || is_link || is_temporary || (is_range && A::kind != AccessorKind::children),
        "this member is no link to a node, nor a range of links: a pointer, an index or a node itself; of "
        "anything else a captureless lambda makes one, child<[](const Node& n) { return n.left_or_null(); }>");
  }
  return AccessorOf<A, Node>;
}

}  // namespace cortex::structure

namespace cortex {

/// One child, at the end of a path of member pointers, getters, captureless lambdas or positions in arrays of fixed
/// size: `child<&Word::left>`, `child<&Parse::links, &Links::left>`, `child<[](const Word& w) { return w.left; }>`,
/// `child<&Node::kids, 0>`. A node with any other child must have this one.
template <auto... Path>
inline constexpr structure::Child<Path...> child{};

/// The same, where null means "absent" and is legal at every node: `optional_child<&Node::kids, 2>` is the third place
/// of an array some of whose places may be empty.
template <auto... Path>
inline constexpr structure::OptionalChild<Path...> optional_child{};

/// A variable number of children: `children<&Node::kids>` for a range of links, `children<&Word::left, &Word::right>`
/// for several members, in which null means "absent". Inside a range null is an error.
template <auto... Members>
inline constexpr structure::Children<Members...> children{};

/// The parents of a node within the call, each once: a tree's node has at most one, a root of its own none. Those of a
/// DAG's node are summed in the order of their numbers, which other roots of the call may change. `Links` are the
/// accessors of children by which nodes are found, all that the model reads: `constexpr auto above =
/// cortex::parents<left, right>;`, then `sum(above(n), [&](auto p) { return h(p, i); })`.
template <auto... Links>
inline constexpr structure::Parents<Links...> parents{};

/// In a readout, all nodes of the input below a root, itself among them, each once, by the links that the model reads:
/// `sum(cortex::nodes(r), [&](auto n) { return h(n, i); })`.
inline constexpr structure::Members nodes{};

/// Data of the node: `field<&Word::id>`; a path as for `child`.
template <auto... Path>
inline constexpr structure::Field<Path...> field{};

}  // namespace cortex
