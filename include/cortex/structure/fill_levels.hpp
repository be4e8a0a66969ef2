// Moves nodes into higher batches that have few, where nobody above waits for them.
//
// before: batches of one height each: every node stands as low as it can
// after:  the leaves as they were, and every other node anywhere above its children and below its parents
//
//   a parse tree's inner nodes, from the lowest batch:  7 4 2 1 1 1 1 1 1    filled up to 2:  3 2 2 2 2 2 2 2 2
//
// A batch of one node reads all weights of its products, as one of several does, and has as many barriers: towards the
// roots of most trees batches are small, and nodes that are moved there cost next to nothing. It is list scheduling, as
// late as possible, with what a batch is filled up to in place of a number of machines.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cortex/structure/numbering.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure::numbering {

namespace detail {

/// Calls `f` with the place of each child of the node at `place`, or 0.
template <class F>
void for_each_child_place(const WalkState& walk, std::int32_t place, F f) {
  const std::size_t named = std::size_t(walk.num_named);
  const auto of_node = [&](std::int32_t child) { f(walk.aliased ? walk.alias.data()[child] : child); };
  for (std::size_t k = 0; k < named; ++k) of_node(walk.row[k].data()[place]);
  for (std::size_t c = 0; c < std::size_t(walk.num_containers); ++c) {
    const std::int32_t first = walk.row[named + 2 * c].data()[place];
    const std::int32_t end = first + walk.row[named + 2 * c + 1].data()[place];
    for (std::int32_t child = first; child < end; ++child) of_node(child);
  }
}

/// The highest batch up to `batch` that is not full. `room[b]` is b, or some batch below it that is no lower than that.
inline std::int32_t highest_with_room(std::int32_t* room, std::int32_t batch) {
  while (room[batch] != batch) batch = room[batch] = room[room[batch]];
  return batch;
}

/// Gives each inner node the highest batch that its parents leave it and that has fewer than `full` nodes, or its
/// height. The nodes are numbered by heights, so those that have to stand in a batch come before those that may. What
/// parents leave a node of a forest is one batch below its only one; `height[0]` stands above all roots. Of a forest
/// `queue` then has each node's position in its batch.
template <bool forest>
void move_up(WalkState& walk, std::int32_t heights, std::int32_t full, const Arrays& arrays) {
  const std::int32_t* const order = walk.order.data();
  const std::int32_t* const parent = walk.parent.data();
  std::int32_t* const height = walk.height.data();
  std::int32_t* const length = walk.batch_length.data();
  std::int32_t* const room = walk.room.reserve(std::size_t(heights) + 1);
  std::int32_t* const queue = walk.queue.reserve(std::size_t(walk.tail) + 1);
  std::int32_t* const bound = queue;  // [place] the highest batch, by parents
  if (!forest) std::fill(bound, bound + walk.tail, heights - 1);
  for (std::int32_t b = 0; b < heights; ++b) room[b] = b;
  std::fill(length + 1, length + heights, 0);
  for (std::int32_t n = 0; n < arrays.num_internal; ++n) {
    const std::int32_t place = order[n];
    std::int32_t batch = forest ? height[parent[place]] - 1 : bound[place];
    if (batch > height[place]) batch = height[place] = std::max(height[place], highest_with_room(room, batch));
    if constexpr (forest) queue[n] = length[batch];
    if (++length[batch] == full) room[batch] = batch - 1;
    if constexpr (!forest)
      for_each_child_place(walk, place, [&](std::int32_t child) { bound[child] = std::min(bound[child], batch - 1); });
  }
}

/// Numbers the inner nodes of a forest anew, by their positions in batches; leaves keep their numbers.
inline void number_moved(WalkState& walk, const Arrays& arrays) {
  std::int32_t* const order = walk.order.data();
  std::int32_t* const number = walk.number.data();
  std::int32_t* const queue = walk.queue.data();
  const std::int32_t* const height = walk.height.data();
  const std::int32_t* const begin = arrays.batch_begin;
  for (std::int32_t n = 0; n < arrays.num_internal; ++n) {
    const std::int32_t place = order[n];
    number[place] = begin[height[place]] + queue[n];
    queue[n] = place;
  }
  for (std::int32_t n = 0; n < arrays.num_internal; ++n) order[number[queue[n]]] = queue[n];
}

}  // namespace detail

/// Fills batches above the leaves up to `most` nodes, or to as many as the inner batches have on average if that is
/// less. After `lay_out_batches`, which it does anew. Whether nodes have their numbers then.
inline bool fill_levels(WalkState& walk, std::int32_t heights, std::int32_t most, Arrays& arrays) {
  if (heights < 3) return false;
  const std::int32_t full = std::min(most, (arrays.num_internal + heights - 2) / (heights - 1));
  const std::int32_t* const length = arrays.batch_length;
  if (std::all_of(length + 2, length + heights, [&](std::int32_t nodes) { return nodes >= full; })) return false;
  assign_numbers(walk, arrays);
  walk.aliased ? detail::move_up<false>(walk, heights, full, arrays)
               : detail::move_up<true>(walk, heights, full, arrays);
  lay_out_batches(walk, heights, arrays);
  if (walk.aliased) return false;
  detail::number_moved(walk, arrays);
  return true;
}

}  // namespace cortex::structure::numbering
