// How a batch is sorted into parts, one for each way through the branches that a schedule specializes (paper section
// 4.1, L3): what the branches ask of a node, by keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/structure/arrays.hpp"
#include "cortex/structure/key.hpp"

namespace cortex::structure {

/// What one branch, or several on the same key, asks: which of `values` the key has. Or which matrix a node chooses.
struct Selector {
  Key key;
  Key guard;  // evaluated only where this is not 0; empty: everywhere in `where`
  Where where = Where::all;
  Vector<std::int64_t> values;
  bool exhaustive = false;  // any other value is refused
  bool partitions = true;   // false: only checked
  std::string name;         // of the branch, for messages
  int matrices = 0;         // > 0: the key is the answer, below this; what is not is refused as the index that it is

  /// How many answers there are; the last stands for any other value.
  int answers() const { return !partitions ? 1 : matrices ? matrices : int(values.size()) + !exhaustive; }

  /// The answer that a value of the key is.
  std::size_t answer_to(std::int64_t value) const {
    if (matrices) return value >= 0 && value < matrices ? std::size_t(value) : 0;
    std::size_t answer = 0;
    while (answer < values.size() && values[answer] != value) ++answer;
    return answer;
  }
};

/// All that a program asks. A node's part is its answers as one number, the first selector's changing slowest.
struct Partition {
  Vector<Selector> selectors;
  int parts = 1;
  Where listed = Where::nowhere;  // of which nodes, all or the inner ones, the linearizer lists those of each part
  bool empty() const { return selectors.empty(); }
};

}  // namespace cortex::structure
