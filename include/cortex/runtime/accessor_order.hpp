// Where the linearizer puts what the graph's accessors name.
#pragma once

#include <cstddef>

#include "cortex/base/vector.hpp"
#include "cortex/ra/graph.hpp"

namespace cortex::runtime {

/// Where the arrays of an accessor stand among those of the linearizer, by the accessor's number in the graph's group.
/// The graph numbers accessors as it meets them, the linearizer in the order of its set. -1: the linearizer does not
/// read it.
struct AccessorOrder {
  Vector<int> child, children, field;

  /// The same order on both sides.
  static AccessorOrder identity(const ra::Graph& graph) {
    const auto count = [](std::size_t size) {
      Vector<int> result(size);
      for (std::size_t i = 0; i < size; ++i) result[i] = int(i);
      return result;
    };
    return {count(graph.children_named.size()), count(graph.containers.size()), count(graph.fields.size())};
  }
};

}  // namespace cortex::runtime
