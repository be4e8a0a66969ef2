// Sets of accessors, as types: what a model reads, and in which order its arrays come.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "cortex/structure/accessors.hpp"

namespace cortex::structure {

/// A flat set of accessor types without duplicates, ordered. `Accessors<>` is the empty set.
template <class... As>
struct Accessors {
  static constexpr std::size_t size = sizeof...(As);
};

/// Which accessors are numbered together: the arrays of `Arrays` are one list per group.
enum class Group : unsigned char { child, children, field, derived };

constexpr Group group_of(AccessorKind kind) {
  switch (kind) {
    case AccessorKind::child:
    case AccessorKind::optional_child: return Group::child;
    case AccessorKind::children: return Group::children;
    case AccessorKind::field: return Group::field;
    case AccessorKind::parents:
    case AccessorKind::members: return Group::derived;
  }
  return Group::field;
}

template <class A, class Set>
inline constexpr bool contains = false;
template <class A, class... As>
inline constexpr bool contains<A, Accessors<As...>> = (std::is_same_v<A, As> || ...);

/// Whether `Set` has all of `Part`, in whatever order.
template <class Set, class Part>
inline constexpr bool includes = false;
template <class Set, class... As>
inline constexpr bool includes<Set, Accessors<As...>> = (contains<As, Set> && ...);

namespace sets {

template <class Set, class... More>
struct Append {
  using type = Set;
};
template <class... As, class A, class... More>
struct Append<Accessors<As...>, A, More...>
    : Append<std::conditional_t<contains<A, Accessors<As...>>, Accessors<As...>, Accessors<As..., A>>, More...> {};

template <class SetA, class SetB>
struct Join;
template <class... As, class... Bs>
struct Join<Accessors<As...>, Accessors<Bs...>> : Append<Accessors<>, As..., Bs...> {};

template <Group group, class Result, class... As>
struct Select {
  using type = Result;
};
template <Group group, class... Rs, class A, class... As>
struct Select<group, Accessors<Rs...>, A, As...>
    : Select<group, std::conditional_t<group_of(A::kind) == group, Accessors<Rs..., A>, Accessors<Rs...>>, As...> {};

template <Group group, class Set>
struct Members;
template <Group group, class... As>
struct Members<group, Accessors<As...>> : Select<group, Accessors<>, As...> {};

template <class A, class Set>
struct Position;
template <class A, class... As>
struct Position<A, Accessors<As...>> {
  static constexpr int value = [] {
    int at = 0;
    bool found = false;
    ((found = found || std::is_same_v<A, As>, at += found ? 0 : 1), ...);
    return found ? at : -1;
  }();
};

}  // namespace sets

/// The accessors of both sets, in order of first appearance, each once. `Union<Accessors<>, S>` makes S a set.
template <class SetA, class SetB>
using Union = typename sets::Join<SetA, SetB>::type;

/// The members of a set that belong to one group, in the set's order.
template <class Set>
using ChildAccessors = typename sets::Members<Group::child, Set>::type;
template <class Set>
using ChildrenAccessors = typename sets::Members<Group::children, Set>::type;
template <class Set>
using FieldAccessors = typename sets::Members<Group::field, Set>::type;
/// Containers that follow from the children: their arrays come after those of the children accessors.
template <class Set>
using DerivedAccessors = typename sets::Members<Group::derived, Set>::type;

/// Both, in the order of their arrays.
template <class Set>
using ContainerAccessors = Union<ChildrenAccessors<Set>, DerivedAccessors<Set>>;

/// The position of accessor A among the accessors of its own group in Set: the index of its array in `Arrays`. -1 if
/// the set lacks it.
template <class A, class Set>
inline constexpr int index_of = sets::Position<A, typename sets::Members<group_of(A::kind), Set>::type>::value;

/// What reading an accessor makes a model depend on: it alone, and for parents the links that they follow from.
template <class A>
struct Needs {
  using type = Accessors<A>;
};
template <auto... Links>
struct Needs<Parents<Links...>> {
  using type = Accessors<std::remove_cv_t<decltype(Links)>..., Parents<Links...>>;
};

namespace sets {

/// Whether link accessor A leads nowhere that Link does not.
template <class A, class Link>
inline constexpr bool within = std::is_same_v<A, Link>;
template <auto... Path>
inline constexpr bool within<Child<Path...>, OptionalChild<Path...>> = true;
template <auto... Path>
inline constexpr bool within<OptionalChild<Path...>, Child<Path...>> = true;
template <auto First, auto... Path, auto... Members>
inline constexpr bool within<Child<First, Path...>, Children<Members...>> =
    (std::is_same_v<Child<First>, Child<Members>> || ...);
template <auto First, auto... Path, auto... Members>
inline constexpr bool within<OptionalChild<First, Path...>, Children<Members...>> =
    within<Child<First, Path...>, Children<Members...>>;

/// Whether accessor A, if it is of links, leads nowhere that none of Links does.
template <class A, class... Links>
inline constexpr bool within_any = (within<A, Links> || ...);
template <class A, class... Links>
inline constexpr bool covered = group_of(A::kind) == Group::field || group_of(A::kind) == Group::derived ||
                                within_any<A, Links...>;
template <auto... Members, class... Links>
inline constexpr bool covered<Children<Members...>, Links...> = within_any<Children<Members...>, Links...> ||
                                                                (within_any<Child<Members>, Links...> && ...);

template <class A, class Set>
inline constexpr bool names_links = true;
template <auto... Links, class... As>
inline constexpr bool names_links<Parents<Links...>, Accessors<As...>> =
    (covered<As, std::remove_cv_t<decltype(Links)>...> && ...);

}  // namespace sets

/// Whether the parents that the set holds, which are those by any of its links, name all of these.
template <class Set>
inline constexpr bool parents_name_links = false;
template <class... As>
inline constexpr bool parents_name_links<Accessors<As...>> = (sets::names_links<As, Accessors<As...>> && ...);

/// Whether the nodes below a root, if the set holds them, are reached by some link.
template <class Set>
inline constexpr bool nodes_have_links = index_of<Members, Set> == -1 || ChildAccessors<Set>::size > 0 ||
                                         ChildrenAccessors<Set>::size > 0;

/// Whether every accessor of the set can be read from a Node.
template <class Set, class Node>
inline constexpr bool fits_node = false;
template <class... As, class Node>
inline constexpr bool fits_node<Accessors<As...>, Node> = (AccessorOf<As, Node> && ...);

/// Whether some link of the set is an index, so that a call needs an arena.
template <class Set, class Node>
inline constexpr bool uses_arena = false;
template <class... As, class Node>
inline constexpr bool uses_arena<Accessors<As...>, Node> = ([] {
  if constexpr (group_of(As::kind) == Group::field)
    return false;
  else
    return As::template uses_arena<Node>();
}() || ...);

/// The names of a set's accessors, in order.
template <class Set>
inline constexpr std::array<std::string_view, 0> names_of{};
template <class... As>
inline constexpr std::array<std::string_view, sizeof...(As)> names_of<Accessors<As...>>{As::name()...};

}  // namespace cortex::structure
