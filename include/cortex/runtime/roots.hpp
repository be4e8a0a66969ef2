// The roots of a call in all forms that users have them in, as one range of links.
#pragma once

#include <memory>
#include <type_traits>

#include "cortex/structure/links.hpp"

namespace cortex::runtime {

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
