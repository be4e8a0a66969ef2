// Where the elements of a buffer lie for which nothing else has been decided.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cortex/base/multiples.hpp"
#include "cortex/ir/buffer.hpp"
#include "cortex/schedule/pack_weights.hpp"
#include "cortex/structure/arrays.hpp"

namespace cortex::schedule {

/// Row-major with the innermost dimension padded to whole lines of the cache; where that would be half of the memory or
/// more, only all behind the first dimension. What the linearizer stores lies as the nodes have it, one element after
/// the other, in rows of a multiple of `structure::row_multiple`.
inline ir::Layout padded_layout(const ir::BufferInfo& buffer) {
  const auto& dims = buffer.dims;
  const bool by_linearizer = buffer.role == ir::Role::field || buffer.role == ir::Role::index;
  ir::Layout layout;
  if (dims.empty()) layout.fixed_size = 1;
  const bool many = dims.size() > 2 && 2 * dims.back().extent() * std::int64_t(size_of(buffer.dtype)) <= cache_line;
  std::int64_t stride = 1;
  for (int d = int(dims.size()) - 1; d >= 0; --d) {
    const std::int64_t extent = std::max<std::int64_t>(dims[std::size_t(d)].extent(), 1);
    const bool innermost = d == int(dims.size()) - 1;
    if (d == 0 && by_linearizer && !innermost) stride = round_up(stride, structure::row_multiple);
    layout.axes.push_back({d, 1, 0, stride});
    if (d == 0) {
      if (dims[0].kind() == DimKind::dense)
        layout.fixed_size = stride * extent;
      else
        layout.row_size = stride;
    } else {
      const bool ends_padded = !by_linearizer && (many ? d == 1 : innermost);
      stride = ends_padded ? round_to_lines(stride * extent, buffer.dtype) : stride * extent;
    }
  }
  return layout;
}

}  // namespace cortex::schedule
