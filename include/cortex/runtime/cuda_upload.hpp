// What a call for a device is made of: its roots by group, and the linearizer's arrays of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/counts.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/plan.hpp"
#include "cortex/structure/arrays.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::runtime {

/// The roots of a call, and room for those of each group.
struct CudaRoots {
  structure::Block<const void*> all;
  Vector<structure::Block<const void*>> own;  // [groups] or more

  std::span<const void* const> of_group(std::size_t group, std::size_t groups, std::size_t roots) {
    const std::size_t count = num_roots_of(group, groups, roots);
    const void** const part = own[group].reserve(count);
    for (std::size_t r = 0; r < count; ++r) part[r] = all.data()[root_at({group, r}, groups)];
    return {part, count};
  }
};

/// An array of the linearizer.
struct LinkedArray {
  const void* data;
  std::size_t bytes;
};

/// The array that `link` stands for; `dtype` is the buffer's. `computes`: [tabulations] 0 where there are tables. It
/// and `counts` have to outlive what is returned.
inline LinkedArray linked_array(const Link& link, DType dtype, const structure::Arrays& in, const Counts& counts,
                                const Vector<std::int32_t>& computes) {
  const auto ints = [](const std::int32_t* data, std::int64_t count) -> LinkedArray {
    return {data, data ? std::size_t(count) * sizeof(std::int32_t) : 0};
  };
  const structure::Subtrees& trees = in.subtrees;
  switch (link.source) {
    case Source::counts: return {counts.data(), sizeof counts};
    case Source::batch_begin: return ints(in.batch_begin, in.num_batches);
    case Source::batch_length: return ints(in.batch_length, in.num_batches);
    case Source::part_begin: return ints(in.part_begin, std::int64_t(in.num_batches) * in.num_parts);
    case Source::part_length: return ints(in.part_length, std::int64_t(in.num_batches) * in.num_parts);
    case Source::part_offset: return ints(in.part_offset, in.num_parts + std::int64_t(1));
    case Source::state_row: return ints(in.state_row, in.state_row ? std::int64_t(in.num_nodes) + 1 : 0);
    case Source::part_list: return ints(in.part_list, in.part_offset ? in.part_offset[in.num_parts] : 0);
    case Source::root: return ints(in.root, in.num_roots);
    case Source::group_begin: return ints(trees.group_begin, trees.num_groups + 1);
    case Source::group_node: return ints(trees.group_node, trees.group_node ? trees.group_begin[trees.num_groups] : 0);
    case Source::inner_begin: return ints(trees.inner_begin, in.num_internal + 1);
    case Source::inner_child:
      return ints(trees.inner_child, trees.inner_child ? trees.inner_begin[in.num_internal] : 0);
    case Source::child: return ints(in.child[link.position], in.num_nodes);
    case Source::edge_begin: return ints(in.children[link.position].begin, std::int64_t(in.num_nodes) + 1);
    case Source::edge_child: return ints(in.children[link.position].child, in.children[link.position].num_edges);
    case Source::computes: return ints(computes.data(), std::int64_t(computes.size()));
    case Source::field: break;
  }
  const structure::FieldArray& field = in.field[link.position];
  if (field.stride != link.stride)
    throw Error(Code::internal, "a field's rows are of " + std::to_string(field.stride) +
                                    " elements, but the code takes them to be of " + std::to_string(link.stride));
  return {field.data, std::size_t(in.num_nodes) * std::size_t(field.stride) * size_of(dtype)};
}

}  // namespace cortex::runtime
