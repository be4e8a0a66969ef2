// Rows of states that no call gives out: a row serves a node until its last parent is computed, and then others. A
// sequence of any length takes two, or one where a node may overwrite its child's, which stay in the cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cortex/structure/derived.hpp"

namespace cortex::structure::state_rows {

/// Gives each node its row, and one behind all of them to what stands for "no child". Roots keep theirs: they may be
/// read after the call. A row that is read for the last time in level l is free from level l + `apart` on. Levels are
/// the batches of inner nodes, and a piece's leaves are of the level before them. `overwrites`: a node takes the row of
/// its first child that has no other parent.
inline void assign(WalkState& walk, Arrays& arrays, std::int32_t apart, bool overwrites) {
  constexpr std::int32_t none = -1, several = -2, taken = -3;
  const std::int32_t nodes = arrays.num_nodes, batches = arrays.num_batches;
  std::int32_t* const row = walk.state_row.reserve(std::size_t(nodes) + 1);
  std::int32_t* const last = walk.last_reader.reserve(std::size_t(nodes) + 1);    // [node] the level
  std::int32_t* const next = walk.next_of_level.reserve(std::size_t(nodes) + 1);  // [node] with the same last level
  std::int32_t* const first = walk.first_of_level.reserve(std::size_t(batches) + 1);
  std::int32_t* const open = walk.open_rows.reserve(std::size_t(nodes) + 1);
  std::int32_t* const parent = walk.only_parent.reserve(std::size_t(nodes) + 1);  // [node] or none or several, or taken
  const auto for_each_node = [&](auto begin, auto f) {
    std::int32_t level = 0;
    for (std::int32_t p = 0; p < arrays.num_pieces; ++p)
      for (std::int32_t b = arrays.piece_batch[p]; b < arrays.piece_batch[p + 1]; ++b) {
        level += b > arrays.piece_batch[p];
        begin(level);
        for (std::int32_t i = 0; i < arrays.batch_length[b]; ++i) f(arrays.batch_begin[b] + i, level);
      }
  };
  for_each_node([](std::int32_t) {},  // children come before their parents
                [&](std::int32_t n, std::int32_t level) {
                  last[n] = level, parent[n] = none;
                  derived::for_each_child(arrays, walk.num_named, walk.num_containers, n, [&](std::int32_t c) {
                    last[c] = level;
                    parent[c] = parent[c] == none || parent[c] == n ? n : several;
                  });
                });
  for (std::int32_t r = 0; r < arrays.num_roots; ++r) last[arrays.root[r]] = batches, parent[arrays.root[r]] = several;
  std::fill(first, first + batches + 1, none);
  std::int32_t rows = 0, num_open = 0, freed = 0;
  for_each_node(
      [&](std::int32_t level) {
        for (; freed <= level - apart; ++freed)
          for (std::int32_t n = first[freed]; n != none; n = next[n])
            if (parent[n] != taken) open[num_open++] = row[n];
      },
      [&](std::int32_t n, std::int32_t) {
        row[n] = none;
        if (overwrites)
          derived::for_each_child(arrays, walk.num_named, walk.num_containers, n, [&](std::int32_t c) {
            if (row[n] == none && parent[c] == n) row[n] = row[c], parent[c] = taken;
          });
        if (row[n] == none) row[n] = num_open > 0 ? open[--num_open] : rows++;
        next[n] = first[last[n]];
        first[last[n]] = n;
      });
  row[nodes] = rows;
  arrays.num_state_rows = rows;
  arrays.state_row = row;
}

}  // namespace cortex::structure::state_rows
