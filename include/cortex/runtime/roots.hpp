// The roots of a call in all forms that users have them in, as one range of links.
#pragma once

#include <memory>
#include <type_traits>

#include "cortex/structure/links.hpp"

namespace cortex::runtime {

/// A root in a braced list, as in `model({&a, &b})` and `model({a, b})`: a node, or a pointer to one, raw or smart.
template <class Node>
class ListedRoot {
 public:
  ListedRoot(const Node* node) : node_(node) {}
  template <class T>
  requires(std::is_class_v<T>&& structure::PointerTo<T, Node>) ListedRoot(const T& pointer)
      : node_(structure::to_raw(pointer)) {}
  template <class T>
  requires std::is_convertible_v<const T*, const Node*> ListedRoot(const T& node) : node_(std::addressof(node)) {}

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
