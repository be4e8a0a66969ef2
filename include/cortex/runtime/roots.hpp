// The roots of a call in all forms that users have them in, as one range of links.
#pragma once

#include <iterator>
#include <memory>
#include <type_traits>

#include "cortex/structure/links.hpp"

namespace cortex::runtime {

/// A root in a braced list, as in `model({&a, &b})` and `model({a, b})`: a node, a pointer to one, raw or smart, or
/// what becomes a pointer. An iterator is none: two of them would be taken for the ends of a range.
template <class Node>
class ListedRoot {
  template <class T>
  static constexpr bool is_node = std::is_convertible_v<const T*, const Node*>;
  template <class T>
  static constexpr bool is_pointer = !is_node<T> && std::is_class_v<T> && structure::PointerTo<T, Node> &&
                                     (structure::HasGet<T> || !std::input_or_output_iterator<T>);
  template <class T>
  static constexpr bool becomes_pointer =
      !is_node<T> && std::is_class_v<T> && !structure::PointerLike<T> && std::is_convertible_v<const T&, const Node*>;

 public:
  ListedRoot(const Node* node) : node_(node) {}
  template <class T>
  requires is_node<T> ListedRoot(const T& node) : node_(std::addressof(node)) {}
  template <class T>
  requires is_pointer<T> ListedRoot(const T& pointer) : node_(structure::to_raw(pointer)) {}
  template <class T>
  requires becomes_pointer<T> ListedRoot(const T& pointer) : node_(pointer) {}

  const Node* get() const { return node_; }

 private:
  const Node* node_;
};

/// Calls `take` with the roots as a range: `roots` is a node, a pointer to one (raw or smart), an index, or a range of
/// any of these.
template <class Node, class Roots, class Take>
decltype(auto) with_roots(Roots& roots, Take take) {
  using Plain = std::remove_cv_t<Roots>;
  if constexpr (std::is_convertible_v<Plain*, const Node*>) {
    const Node* const one[] = {std::addressof(roots)};
    return take(one);
  } else if constexpr (structure::PointerTo<Plain, Node>) {
    const Node* const one[] = {structure::to_raw(roots)};
    return take(one);
  } else if constexpr (structure::Index<Plain>) {
    const Plain one[] = {roots};
    return take(one);
  } else {
    static_assert(structure::LinkRangeTo<Roots&, Node>,
                  "a model is called with a node of its own type, a pointer to one, or a range of either; or with an "
                  "arena and indices");
    return take(roots);
  }
}

}  // namespace cortex::runtime
