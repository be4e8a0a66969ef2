// From places to numbers: heights, batches, and the numbering of the paper's appendix B (D2, D3).
//
// before: places in breadth-first order, each with the place of its parent
// after:  each place with its number, each number with its place, and the batches
//
// In a forest a parent's place lies before its children's, so one pass from the last place to the first finds all
// heights. Where a node is reached more than once that order is lost: `resolve_sharing` finds another and, on the way,
// cycles and children that the declared kind does not allow to be shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "cortex/structure/failures.hpp"
#include "cortex/structure/kind.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure::numbering {

/// Which accessor the link to `place` was read through: named children first, then containers.
inline int accessor_of(const WalkState& walk, std::int32_t place) {
  const std::int32_t parent = walk.parent.data()[place];
  for (int k = 0; k < walk.num_named; ++k)
    if (walk.row[std::size_t(k)].data()[parent] == place) return k;
  for (int c = 0; c < walk.num_containers; ++c) {
    const std::int32_t first = walk.row[std::size_t(walk.num_named + 2 * c)].data()[parent];
    const std::int32_t count = walk.row[std::size_t(walk.num_named + 2 * c + 1)].data()[parent];
    if (place >= first && place < first + count) return walk.num_named + c;
  }
  return -1;
}

/// The number of children of a node as `Structure::with_max_children` defines it, or any greater number than `bound`.
inline std::int64_t count_children(const WalkState& walk, std::int32_t place, std::int32_t first, std::int32_t tail,
                                   std::int64_t bound) {
  std::int64_t count = 0;
  for (int k = 0; k < walk.num_named; ++k) count += walk.row[std::size_t(k)].data()[place] != 0;
  for (int c = 0; c < walk.num_containers; ++c)
    count = std::max<std::int64_t>(count, walk.row[std::size_t(walk.num_named + 2 * c + 1)].data()[place]);
  std::int64_t distinct = 0;
  const void* const* node = walk.node.data();
  for (std::int32_t at = first; at < tail && distinct <= bound; ++at)
    distinct += std::find(node + first, node + at, node[at]) == node + at;
  return std::max(count, distinct);
}

/// Whether a container with these children and one more is refused in any case: it has one twice where nodes have one
/// parent, or too many. Asked each time that there is no room for more, since a list that goes round has no end.
[[gnu::noinline]] inline bool is_refused(const Structure& structure, const void* const* begin, const void* const* end,
                                         const void* child) {
  const bool twice = structure.kind != Kind::dag && std::find(begin, end, child) != end;
  return twice || end - begin >= structure.child_bound();
}

/// Heights of a forest, in height[place], and how many nodes have each, in batch_length. Returns the number of heights.
inline std::int32_t measure_forest(WalkState& walk) {
  const std::int32_t tail = walk.tail;
  std::int32_t* const height = walk.height.reserve(std::size_t(tail) + 1);
  std::int32_t* const length = walk.batch_length.reserve(std::size_t(tail) + 1);
  const std::int32_t* const parent = walk.parent.data();
  std::memset(height, 0, std::size_t(tail) * sizeof(std::int32_t));
  std::memset(length, 0, std::size_t(tail) * sizeof(std::int32_t));
  for (std::int32_t place = tail - 1; place > 0; --place) {
    const std::int32_t own = height[place];
    ++length[own];
    std::int32_t& above = height[parent[place]];  // of place 0, which nobody reads, for roots
    above = std::max(above, own + 1);
  }
  return tail > 1 ? height[0] : 0;
}

/// For every place the place of the node's first visit, the range of places that its links lead to, and how many links
/// lead to it.
inline void index_edges(WalkState& walk) {
  const std::size_t count = std::size_t(walk.tail) + 1;
  std::int32_t* const alias = walk.alias.reserve(count);
  std::int32_t* const first = walk.first_edge.reserve(count);
  std::int32_t* const edges = walk.num_edges.reserve(count);
  std::int32_t* const open = walk.open_edges.reserve(count);
  std::memset(edges, 0, count * sizeof(std::int32_t));
  std::memset(open, 0, count * sizeof(std::int32_t));
  for (std::int32_t place = 0; place < walk.tail; ++place) alias[place] = place;
  for (std::int32_t i = 0; i < walk.num_repeats; ++i)
    alias[walk.repeat.data()[i].place] = walk.repeat.data()[i].original;
  std::int32_t begin = 0, before = -1;  // links of one parent follow each other: none waits for what another counted
  for (std::int32_t place = walk.num_roots + 1; place < walk.tail; ++place) {
    const std::int32_t parent = walk.parent.data()[place];
    begin = parent == before ? begin : place;
    before = parent;
    first[parent] = begin;
    edges[parent] = place + 1 - begin;
    ++open[alias[place]];
  }
}

/// Names one cycle among the nodes that could not be ordered. Each of them has a link from another of them, so
/// following such links backwards comes round.
[[noreturn, gnu::cold, gnu::noinline]] inline void report_cycle(WalkState& walk,
                                                                std::span<const std::string_view> names) {
  const std::int32_t* const alias = walk.alias.data();
  const std::int32_t* const open = walk.open_edges.data();
  std::int32_t* const back =
      walk.queue.data();  // the place of a link to this node from another that could not be ordered
  std::int32_t at = 0;
  for (std::int32_t place = walk.tail - 1; place > walk.num_roots; --place)
    if (open[alias[place]] > 0 && open[walk.parent.data()[place]] > 0) back[alias[place]] = place, at = alias[place];
  for (std::int32_t step = 0; step < walk.tail; ++step) at = walk.parent.data()[back[at]];  // now surely on the cycle
  std::int64_t length = 0;
  std::int32_t top = at, node = at;
  do {
    node = walk.parent.data()[back[node]];
    top = std::min(top, node);
    ++length;
  } while (node != at);
  fail::cycle(walk, top, length, names[std::size_t(accessor_of(walk, back[top]))]);
}

/// Refuses a second parent. A named child and a container, or two containers, may show the same child of one parent.
/// Links of one parent come in the order of its accessors, so two links that may not lead to the same node follow each
/// other among the links to it.
inline void check_single_parents(WalkState& walk, Kind kind, std::span<const std::string_view> names) {
  std::int32_t* const last = walk.open_edges.data();  // the link to each node that was met last
  std::memset(last, 0, std::size_t(walk.tail) * sizeof(std::int32_t));
  for (std::int32_t place = walk.num_roots + 1; place < walk.tail; ++place) {
    std::int32_t& before = last[walk.alias.data()[place]];
    if (before != 0) {
      const std::int32_t parent_a = walk.parent.data()[before], parent_b = walk.parent.data()[place];
      const int a = accessor_of(walk, before), b = accessor_of(walk, place);
      const bool same_group = a == b || (a < walk.num_named && b < walk.num_named);
      if (parent_a != parent_b || same_group)
        fail::shared_child(walk, walk.alias.data()[place], kind, parent_a, names[std::size_t(a)], parent_b,
                           names[std::size_t(b)]);
    }
    before = place;
  }
}

/// What `measure_forest` does, for structures in which some node was reached more than once. Throws on a cycle, and on
/// shared children unless the kind is dag. `queue` holds the nodes' places then, parents before children.
inline std::int32_t resolve_sharing(WalkState& walk, Kind kind, std::span<const std::string_view> names) {
  index_edges(walk);
  const std::int32_t tail = walk.tail;
  const std::int32_t* const alias = walk.alias.data();
  const std::int32_t* const first = walk.first_edge.data();
  const std::int32_t* const edges = walk.num_edges.data();
  std::int32_t* const open = walk.open_edges.data();
  std::int32_t* const queue = walk.queue.reserve(std::size_t(tail) + 1);
  std::int32_t ordered = 0;
  for (std::int32_t place = 1; place < tail; ++place)
    if (alias[place] == place && open[place] == 0) queue[ordered++] = place;
  for (std::int32_t at = 0; at < ordered; ++at) {  // parents before children
    const std::int32_t place = queue[at];
    for (std::int32_t edge = first[place]; edge < first[place] + edges[place]; ++edge)
      if (--open[alias[edge]] == 0) queue[ordered++] = alias[edge];
  }
  if (ordered < tail - 1 - walk.num_repeats) report_cycle(walk, names);

  std::int32_t* const height = walk.height.reserve(std::size_t(tail) + 1);
  std::int32_t* const length = walk.batch_length.reserve(std::size_t(tail) + 1);
  std::memset(length, 0, std::size_t(tail) * sizeof(std::int32_t));
  std::int32_t heights = 0;
  for (std::int32_t at = ordered - 1; at >= 0; --at) {  // children before parents
    const std::int32_t place = queue[at];
    std::int32_t own = 0;
    for (std::int32_t edge = first[place]; edge < first[place] + edges[place]; ++edge)
      own = std::max(own, height[alias[edge]] + 1);
    height[place] = own;
    ++length[own];
    heights = std::max(heights, own + 1);
  }
  if (kind != Kind::dag) check_single_parents(walk, kind, names);
  walk.aliased = true;
  return heights;
}

/// [place] which batch a node stands in: of a walk in one piece its height, until batches are filled.
inline std::int32_t* batch_of_place(WalkState& walk, const Arrays& arrays) {
  return arrays.num_pieces > 1 ? walk.batch.data() : walk.height.data();
}

/// Gives each batch its range of numbers: the inner nodes' from the highest batch of the last piece, which begins at 0,
/// to the first one's lowest, then the leaves' of the pieces, the last one's first.
inline void lay_out_batches(WalkState& walk, Arrays& arrays) {
  const std::int32_t* const first = arrays.piece_batch;
  const std::int32_t pieces = arrays.num_pieces, batches = first[pieces];
  std::int32_t* const begin = walk.batch_begin.reserve(std::size_t(batches) + 1);
  std::int32_t* const cursor = walk.cursor.reserve(std::size_t(batches) + 1);
  std::int32_t* const cursor_end = walk.cursor_end.reserve(std::size_t(batches) + 1);
  const std::int32_t* const length = walk.batch_length.data();
  std::int32_t next = 0, widest = 0;
  const auto lay_out = [&](std::int32_t b) {
    begin[b] = cursor[b] = next;
    cursor_end[b] = next += length[b];
    widest = std::max(widest, length[b]);
  };
  for (std::int32_t p = pieces; p-- > 0;)
    for (std::int32_t b = first[p + 1] - 1; b > first[p]; --b) lay_out(b);
  arrays.num_internal = next;
  arrays.max_internal_batch = widest;
  for (std::int32_t p = pieces; p-- > 0 && batches > 0;) lay_out(first[p]);
  arrays.num_nodes = next;
  arrays.num_batches = batches;
  arrays.max_batch = widest;
  arrays.batch_begin = begin;
  arrays.batch_length = walk.batch_length.data();
}

/// How many distinct parents each node has, in num_parents[place of its first visit]; roots of their own have none.
inline void count_parents(WalkState& walk) {
  const std::size_t size = std::size_t(walk.tail) * sizeof(std::int32_t);
  std::int32_t* const count = walk.num_parents.reserve(std::size_t(walk.tail) + 1);
  std::int32_t* const last = walk.queue.reserve(std::size_t(walk.tail) + 1);  // the parent that was met last
  std::memset(count, 0, size);
  std::memset(last, 0, size);
  for (std::int32_t place = walk.num_roots + 1; place < walk.tail; ++place) {  // links of one parent follow each other
    const std::int32_t node = walk.num_repeats == 0 ? place : walk.alias.data()[place];
    const std::int32_t parent = walk.parent.data()[place];
    count[node] += last[node] != parent;
    last[node] = parent;
  }
}

/// Gives each part of each batch its range of numbers, in the order of the parts. `assign_numbers` then goes by parts.
inline void lay_out_parts(WalkState& walk, std::int32_t parts, Arrays& arrays) {
  const std::int32_t batches = arrays.num_batches;
  const std::size_t count = std::size_t(batches) * std::size_t(parts);
  if (count > std::size_t(INT32_MAX)) fail::too_many_parts(batches, parts);
  std::int32_t* const begin = walk.part_begin.reserve(count + 1);
  std::int32_t* const length = walk.part_length.reserve(count + 1);
  std::int32_t* const cursor = walk.cursor.reserve(count + 1);
  std::int32_t* const cursor_end = walk.cursor_end.reserve(count + 1);
  std::int32_t* const part = walk.part.data();
  const std::int32_t* const batch = batch_of_place(walk, arrays);
  std::memset(length, 0, count * sizeof(std::int32_t));
  for (std::int32_t place = 1; place < walk.tail; ++place) {
    if (!walk.is_first(place)) continue;
    part[place] += batch[place] * parts;
    ++length[part[place]];
  }
  for (std::int32_t b = 0; b < batches; ++b) {
    std::int32_t next = arrays.batch_begin[b];
    for (std::int32_t p = b * parts; p < (b + 1) * parts; ++p) {
      begin[p] = cursor[p] = next;
      cursor_end[p] = next += length[p];
    }
  }
  arrays.num_parts = parts;
  arrays.part_begin = begin;
  arrays.part_length = length;
}

/// Lists the nodes of each part of all batches of a piece, but for those of its leaves where `inner` nodes alone count.
inline void list_parts(WalkState& walk, bool inner, Arrays& arrays) {
  const std::size_t parts = std::size_t(arrays.num_parts);
  std::int32_t* const offset = walk.part_offset.reserve(std::size_t(arrays.num_pieces) * (parts + 1));
  std::int32_t* const list = walk.part_list.reserve(std::size_t(arrays.num_nodes) + 1);
  std::int32_t* row = offset;
  std::int32_t next = 0;
  for (std::int32_t piece = 0; piece < arrays.num_pieces; ++piece, row += parts + 1) {
    for (std::size_t p = 0; p < parts; ++p) {
      row[p] = next;
      for (std::int32_t b = arrays.piece_batch[piece] + inner; b < arrays.piece_batch[piece + 1]; ++b) {
        const std::size_t part = std::size_t(b) * parts + p;
        for (std::int32_t i = 0; i < arrays.part_length[part]; ++i) list[next++] = arrays.part_begin[part] + i;
      }
    }
    row[parts] = next;
  }
  arrays.part_offset = offset;
  arrays.part_list = list;
}

/// Numbers the nodes of each batch, or of each part of it, in the order of their places.
inline void assign_numbers(WalkState& walk, const Arrays& arrays) {
  const std::int32_t tail = walk.tail;
  std::int32_t* const number = walk.number.reserve(std::size_t(tail) + 8);
  std::int32_t* const order = walk.order.reserve(std::size_t(tail) + 8);
  std::int32_t* const cursor = walk.cursor.data();
  const std::int32_t* const bucket = arrays.part_begin ? walk.part.data() : batch_of_place(walk, arrays);
  const auto assign = [&](std::int32_t place, std::int32_t n) { number[place] = n, order[n] = place; };
  number[0] = arrays.num_nodes;  // what stands for "no child"
  if (!walk.aliased) {
    // From both ends at once: most neighbours are of one batch, and each waits for what the one before has counted.
    std::int32_t* const cursor_end = walk.cursor_end.data();
    std::int32_t low = 1, high = tail - 1;
    for (; low < high; ++low, --high) {
      const std::int32_t first = cursor[bucket[low]]++, last = --cursor_end[bucket[high]];
      assign(low, first);
      assign(high, last);
    }
    if (low == high) assign(low, cursor[bucket[low]]);
  } else {
    const std::int32_t* const alias = walk.alias.data();
    for (std::int32_t place = 1; place < tail; ++place) {  // the first place of a node or value stands before others
      if (alias[place] == place)
        assign(place, cursor[bucket[place]]++);
      else
        number[place] = number[alias[place]];
    }
  }
}

/// Writes the numbers of the roots.
inline void write_roots(WalkState& walk, Arrays& arrays) {
  std::int32_t* const root = walk.root.reserve(std::size_t(walk.num_roots) + 1);
  if (walk.num_roots > 0) std::memcpy(root, walk.number.data() + 1, std::size_t(walk.num_roots) * sizeof(std::int32_t));
  arrays.num_roots = walk.num_roots;
  arrays.root = root;
}

}  // namespace cortex::structure::numbering
