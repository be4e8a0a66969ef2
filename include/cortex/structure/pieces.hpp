// Divides a call's roots into pieces that are computed one after the other, so that what a piece has written is still
// in the cache when it is read.
//
// before: heights, and how many nodes have each
// after:  batches, one for each height of each piece, and how many nodes stand in each
//
//   trees of heights 4, 3 and 3 in two pieces:   batches of the one   0 1 2 3   and of the other   4 5 6
//
// A piece is of neighbouring roots and has the nodes that these reach and no root before them does. So what its nodes
// wait for stands in its own lower batches or in a piece before it, and whoever runs the pieces in order runs the call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "cortex/structure/workspace.hpp"

namespace cortex::structure::numbering {

namespace detail {

/// Gives each root a piece, in piece[place]; a new one begins where the last has `full` nodes and those to come have
/// as many. Returns how many pieces there are.
inline std::int32_t deal_roots(WalkState& walk, std::int64_t nodes, std::int64_t full, std::int32_t* piece) {
  std::int32_t* const own = walk.order.reserve(std::size_t(walk.tail) + 8);  // [root]
  walk.count_by_root(walk.number.reserve(std::size_t(walk.tail) + 8), own);
  std::int32_t last = 0;
  std::int64_t held = 0, left = nodes;
  for (std::int32_t place = 1; place <= walk.num_roots; ++place) {
    if (held >= full && left >= full) ++last, held = 0;
    piece[place] = last;
    held += own[place - 1], left -= own[place - 1];
  }
  return last + 1;
}

/// Gives every place the first piece that reaches its node, where nodes are reached again: what is below such a node
/// has places of one visit alone.
inline void reach_shared(WalkState& walk, std::int32_t* piece) {
  const auto lower = [&](std::int32_t place, std::int32_t to) { piece[place] = std::min(piece[place], to); };
  std::int32_t* const node = walk.open_edges.data();  // [place] where the node was visited first
  for (std::int32_t place = 1; place < walk.tail; ++place) node[place] = place;
  for (std::int32_t i = 0; i < walk.num_repeats; ++i)
    node[walk.repeat.data()[i].place] = walk.repeat.data()[i].original;
  std::fill(piece + walk.num_roots + 1, piece + walk.tail, INT32_MAX);
  for (std::int32_t place = 1; place <= walk.num_roots; ++place) lower(node[place], piece[place]);
  const std::int32_t* const queue = walk.queue.data();  // parents before children
  for (std::int32_t at = 0; at < walk.tail - 1 - walk.num_repeats; ++at) {
    const std::int32_t first = walk.first_edge.data()[queue[at]], count = walk.num_edges.data()[queue[at]];
    for (std::int32_t edge = first; edge < first + count; ++edge) lower(node[edge], piece[queue[at]]);
  }
}

/// Gives every place the first piece that reaches its node, or one of the same value.
inline void reach(WalkState& walk, std::int32_t* piece) {
  const std::int32_t* const parent = walk.parent.data();
  if (walk.num_repeats > 0)
    reach_shared(walk, piece);
  else
    for (std::int32_t place = walk.num_roots + 1; place < walk.tail; ++place) piece[place] = piece[parent[place]];
  if (!walk.aliased) return;
  const std::int32_t* const alias = walk.alias.data();
  for (std::int32_t place = 1; place < walk.tail; ++place)
    piece[alias[place]] = std::min(piece[alias[place]], piece[place]);
}

/// The whole call as one piece.
inline void leave_whole(WalkState& walk, std::int32_t heights, Arrays& arrays) {
  std::int32_t* const begin = walk.piece_batch.reserve(2);
  std::int32_t* const root = walk.piece_root.reserve(2);
  begin[0] = root[0] = 0;
  begin[1] = heights, root[1] = walk.num_roots;
  arrays.num_pieces = 1, arrays.piece_batch = begin, arrays.piece_root = root;
}

/// Makes each height of each piece a batch, but for those of inner nodes that have none, and gives each place its own
/// in place of its piece. Number p of the `pieces` has the heights begin[p] .. begin[p + 1] - 1, and then the batches.
inline void make_batches(WalkState& walk, std::int32_t pieces, std::int32_t* begin) {
  const std::int32_t all = begin[pieces];
  const std::int32_t* const height = walk.height.data();
  std::int32_t* const own = walk.batch.data();
  std::int32_t* const length = walk.batch_length.reserve(std::size_t(all) + 1);
  std::fill(length, length + all, 0);
  for (std::int32_t place = 1; place < walk.tail; ++place)
    if (walk.is_first(place)) ++length[own[place] = begin[own[place]] + height[place]];
  std::int32_t* const batch = walk.cursor.reserve(std::size_t(all) + 1);  // [height of a piece]
  std::int32_t batches = 0;
  for (std::int32_t p = 0; p < pieces; ++p) {
    const std::int32_t low = begin[p];
    begin[p] = batches;
    for (std::int32_t h = low; h < begin[p + 1]; ++h)
      if (h == low || length[h] > 0) batch[h] = batches, length[batches++] = length[h];
  }
  begin[pieces] = batches;
  for (std::int32_t place = 1; batches < all && place < walk.tail; ++place)
    if (walk.is_first(place)) own[place] = batch[own[place]];
}

}  // namespace detail

/// Divides a call into pieces of about `full` nodes and more, where it has twice as many nodes and several roots; 0
/// leaves it whole, as do batches of fewer than `width` nodes on average. After heights and equal nodes are known and
/// before batches are laid out.
inline void divide(WalkState& walk, std::int32_t heights, std::int32_t full, std::int32_t width, Arrays& arrays) {
  if (full <= 0 || walk.tail - 1 < 2 * std::int64_t(full) || walk.num_roots < 2)
    return detail::leave_whole(walk, heights, arrays);
  std::int32_t* const piece = walk.batch.reserve(std::size_t(walk.tail) + 1);  // [place]
  const std::int32_t* const length = walk.batch_length.data();
  const std::int64_t nodes = std::accumulate(length, length + heights, std::int64_t(0));
  const std::int32_t pieces = detail::deal_roots(walk, nodes, full, piece);
  std::int32_t* const begin = walk.piece_batch.reserve(std::size_t(pieces) + 1);
  std::int32_t* const root = walk.piece_root.reserve(std::size_t(pieces) + 1);
  std::fill(begin, begin + pieces + 1, 0);
  root[0] = 0;
  for (std::int32_t place = 1; place <= walk.num_roots; ++place) {
    std::int32_t& heights_of = begin[piece[place] + 1];
    heights_of = std::max(heights_of, walk.height.data()[walk.first_place(place)] + 1);
    root[piece[place] + 1] = place;
  }
  // Where many roots stand far above nodes that they share, a piece has more heights than nodes.
  const std::int64_t all = std::accumulate(begin, begin + pieces + 1, std::int64_t(0));
  if (pieces == 1 || all > std::min<std::int64_t>(4 * nodes, INT32_MAX) || all * width > nodes)
    return detail::leave_whole(walk, heights, arrays);
  detail::reach(walk, piece);
  for (std::int32_t p = 1; p <= pieces; ++p) begin[p] += begin[p - 1];
  detail::make_batches(walk, pieces, begin);
  arrays.num_pieces = pieces, arrays.piece_batch = begin, arrays.piece_root = root;
}

}  // namespace cortex::structure::numbering
