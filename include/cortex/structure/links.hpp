// Links: how a node names another. A link is a raw or smart pointer, an index into an arena, or the node itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>  // with it comes std::ranges::enable_borrowed_range
#include <type_traits>

namespace cortex {

/// The nodes that integral links index: `nodes[i]` for link i. A view; the nodes stay the caller's.
template <class Node>
struct Arena {
  const Node* nodes = nullptr;
  std::size_t size = 0;

  bool contains(const Node* node) const {
    return std::uintptr_t(node) - std::uintptr_t(nodes) < size * sizeof(Node);
  }
};

/// The arena over a contiguous container of nodes: std::vector, std::array, std::span, C array.
template <class Container>
constexpr auto arena(const Container& nodes) {
  using Node = std::remove_cvref_t<decltype(*std::data(nodes))>;
  return Arena<Node>{std::data(nodes), std::size(nodes)};
}

namespace structure {

template <class T>
concept HasGet = requires(const T& pointer) {
  pointer.get();
  requires std::is_pointer_v<decltype(pointer.get())>;
};

template <class T>
concept HasArrow = requires(const T& pointer) {
  pointer.operator->();
};

/// A raw pointer or a class that acts as one, by get() or operator->.
template <class T>
concept PointerLike = std::is_pointer_v<T> ||(std::is_class_v<T> && (HasGet<T> || HasArrow<T>));

/// The address that a pointer holds; null stays null. It asks a class for get() first, and only then for operator->,
/// which library pointers may refuse on null. Whatever the class throws passes through.
template <PointerLike P>
constexpr auto to_raw(const P& pointer) {
  if constexpr (std::is_pointer_v<P>) {
    return pointer;
  } else if constexpr (HasGet<P>) {
    return pointer.get();
  } else {
    using Raw = decltype(to_raw(pointer.operator->()));
    if constexpr (requires { static_cast<bool>(pointer); }) {
      if (!static_cast<bool>(pointer)) return Raw(nullptr);
    } else if constexpr (requires { static_cast<bool>(pointer == nullptr); }) {
      if (pointer == nullptr) return Raw(nullptr);
    }
    return to_raw(pointer.operator->());
  }
}

template <class T, class Node>
concept PointerTo = PointerLike<T> && requires(const T& pointer) {
  requires std::is_convertible_v<decltype(to_raw(pointer)), const Node*>;
};

/// An integer that can index an arena.
template <class T>
concept Index = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Whether an index means "no node": any negative one, or the greatest of an unsigned type.
template <Index T>
constexpr bool is_none(T index) {
  if constexpr (std::is_signed_v<T>)
    return index < 0;
  else
    return index == static_cast<T>(-1);
}

/// A node that lives where it is named: an element of std::vector<Node>, or a lambda's `const Node&`. A temporary is no
/// link, because it is gone before the call is over.
template <class Ref, class Node>
concept NodeItself = std::is_lvalue_reference_v<Ref> && std::is_convertible_v < std::remove_reference_t<Ref>
*, const Node* > ;

/// A pointer by value that alone owns its node, such as a std::unique_ptr that a lambda makes: the node goes with it,
/// before the call is over.
template <class Ref>
concept SoleOwner = !std::is_reference_v<Ref> && PointerLike<Ref> && !std::is_copy_constructible_v<Ref>;

/// A link to a Node. `Ref` is the type of the expression that yields it, so lvalues are references.
template <class Ref, class Node>
concept LinkTo = (PointerTo<std::remove_cvref_t<Ref>, Node> && !SoleOwner<Ref>) || Index<std::remove_cvref_t<Ref>> ||
                 NodeItself<Ref, Node>;

namespace range_access {
using std::begin;
using std::end;
template <class T>
constexpr auto begin_of(T& range) -> decltype(begin(range)) {
  return begin(range);
}
template <class T>
constexpr auto end_of(T& range) -> decltype(end(range)) {
  return end(range);
}
}  // namespace range_access
using range_access::begin_of;
using range_access::end_of;

/// Whether an iterator over `range` that has given these children comes back to where it was, so that there is no end
/// (Brent's algorithm). Where iterators cannot be kept and compared: whether the later half of the children is the same
/// few, over and over. Not asked of containers that know their size, nor before there are a million.
template <class Range>
bool goes_round(Range& range, const void* const* begin, const void* const* end) {
  using Iterator = decltype(begin_of(range));
  constexpr bool compares = requires(const Iterator& at) { static_cast<bool>(at != at); };
  constexpr bool can_be_kept = std::is_copy_constructible_v<Iterator> && std::is_copy_assignable_v<Iterator>;
  const std::ptrdiff_t count = end - begin;
  if constexpr (requires { range.size(); }) {
    return false;
  } else if (count < 1 << 20) {
    return false;
  } else if constexpr (compares && can_be_kept) {
    Iterator at = begin_of(range), before = at;
    std::ptrdiff_t since = 0, until = 1;
    const auto last = end_of(range);
    for (std::ptrdiff_t steps = 0; steps < 4 * count && at != last; ++steps) {
      ++at;
      if (at != last && !(at != before)) return true;
      if (++since == until) before = at, since = 0, until *= 2;
    }
    return false;
  } else {
    const std::ptrdiff_t half = count / 2;
    std::ptrdiff_t period = 1;
    while (period <= half / 2 && end[-1 - period] != end[-1]) ++period;
    return period <= half / 2 && std::equal(end - half, end - period, end - half + period);
  }
}

/// A range of links that can be passed over more than once. A range that is given by value is accepted if its elements
/// outlive it: pointers and indices do, and nodes that it merely shows, as std::span does.
template <class Ref, class Node>
concept LinkRangeTo = requires(std::remove_reference_t<Ref>& range) {
  begin_of(range) != end_of(range);
  requires LinkTo<decltype(*begin_of(range)), Node>;
  requires std::is_lvalue_reference_v<Ref> || !NodeItself<decltype(*begin_of(range)), Node> ||
      std::ranges::enable_borrowed_range<std::remove_cvref_t<Ref>>;
};

/// Whether links of this type are indices, so that a call needs an arena.
template <class Ref>
inline constexpr bool is_index_link = Index<std::remove_cvref_t<Ref>>;

}  // namespace structure
}  // namespace cortex
