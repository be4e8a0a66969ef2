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
  const auto of_node = [&](std::int32_t child) { f(walk.first_place(child)); };
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

/// Gives each inner node the highest batch of its piece that its parents leave it and that has fewer than `full` nodes,
/// or the one it stands in. The nodes are numbered by batches, so those that have to stand in one come before those
/// that may. What parents leave a node of a forest is one batch below its only one; `stands_in[0]` is above all roots.
/// Of a forest `queue` then has each node's position in its batch.
template <bool forest>
void move_up(WalkState& walk, std::int32_t full, const Arrays& arrays) {
  const std::int32_t batches = arrays.num_batches;
  const std::int32_t* const order = walk.order.data();
  const std::int32_t* const parent = walk.parent.data();
  std::int32_t* const stands_in = batch_of_place(walk, arrays);
  std::int32_t* const length = walk.batch_length.data();
  std::int32_t* const room = walk.room.reserve(std::size_t(batches) + 1);
  std::int32_t* const queue = walk.queue.reserve(std::size_t(walk.tail) + 1);
  std::int32_t* const bound = queue;  // [place] the highest batch, by parents
  if (!forest) std::fill(bound, bound + walk.tail, batches - 1);
  for (std::int32_t b = 0; b < batches; ++b) room[b] = b;
  std::int32_t n = 0;
  for (std::int32_t p = arrays.num_pieces; p-- > 0;) {
    const std::int32_t leaves = arrays.piece_batch[p], end = arrays.piece_batch[p + 1];
    stands_in[0] = end;
    for (std::int32_t own = end - 1; own > leaves; --own) {
      const std::int32_t past = n + length[own];
      for (length[own] = 0; n < past; ++n) {
        const std::int32_t place = order[n];
        std::int32_t batch = forest ? stands_in[parent[place]] - 1 : std::min(bound[place], end - 1);
        // Where children stand in other pieces, all nodes of a batch might leave it; one stays.
        const bool stays = batch <= own || (n + 1 == past && length[own] == 0);
        batch = stands_in[place] = stays ? own : std::max(own, highest_with_room(room, batch));
        if constexpr (forest) queue[n] = length[batch];
        if (++length[batch] == full) room[batch] = batch - 1;
        if constexpr (!forest)
          for_each_child_place(walk, place,
                               [&](std::int32_t child) { bound[child] = std::min(bound[child], batch - 1); });
      }
    }
  }
}

/// Numbers the inner nodes of a forest anew, by their positions in batches; leaves keep their numbers.
inline void number_moved(WalkState& walk, const Arrays& arrays) {
  std::int32_t* const order = walk.order.data();
  std::int32_t* const number = walk.number.data();
  std::int32_t* const queue = walk.queue.data();
  const std::int32_t* const stands_in = batch_of_place(walk, arrays);
  const std::int32_t* const begin = arrays.batch_begin;
  for (std::int32_t n = 0; n < arrays.num_internal; ++n) {
    const std::int32_t place = order[n];
    number[place] = begin[stands_in[place]] + queue[n];
    queue[n] = place;
  }
  for (std::int32_t n = 0; n < arrays.num_internal; ++n) order[number[queue[n]]] = queue[n];
}

}  // namespace detail

/// Fills batches above the leaves up to `most` nodes, or to as many as the inner batches have on average if that is
/// less. After `lay_out_batches`, which it does anew. Whether nodes have their numbers then.
inline bool fill_levels(WalkState& walk, std::int32_t most, Arrays& arrays) {
  const std::int32_t inner = arrays.num_batches - arrays.num_pieces;
  if (inner < 2) return false;
  const std::int32_t full = std::min(most, (arrays.num_internal + inner - 1) / inner);
  bool fills = false;
  for (std::int32_t p = 0; p < arrays.num_pieces; ++p)
    for (std::int32_t b = arrays.piece_batch[p] + 2; b < arrays.piece_batch[p + 1]; ++b)
      fills |= arrays.batch_length[b] < full;
  if (!fills) return false;
  assign_numbers(walk, arrays);
  walk.aliased ? detail::move_up<false>(walk, full, arrays) : detail::move_up<true>(walk, full, arrays);
  lay_out_batches(walk, arrays);
  if (walk.aliased) return false;
  detail::number_moved(walk, arrays);
  return true;
}

}  // namespace cortex::structure::numbering
