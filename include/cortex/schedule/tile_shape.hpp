// The shape of register tiles.
#pragma once

#include <algorithm>

#include "cortex/base/target.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::schedule {

/// The shape of register tiles: how many rows at most, and for each number of rows how many vectors of every gate's
/// outputs.
struct TileShape {
  int most_rows;
  int budget;  // registers for accumulators and weights; the others hold what rows multiply, one row after the other
  int gates;
  int most_vectors = 8;

  /// With a single row a weight is used once, straight from memory, and several vectors hide the latency of the
  /// additions.
  int vectors(int rows) const {
    for (const int v : {8, 4, 2}) {
      const int weights = rows == 1 ? 0 : v * gates;
      if (v <= most_vectors && v * gates <= 12 && rows * gates * v + weights <= budget) return v;
    }
    return 1;
  }
};

/// How many vector registers a tile's accumulators and weights take at most. Of narrow vectors LLVM has several rows'
/// values in registers at once, whatever their order.
inline int tile_registers(const Target& target) {
  return target.vector_registers - (target.vector_bytes > 16 ? 2 : target.vector_registers / 5);
}

/// How many products a tile accumulates side by side at most: so many that it has four rows or more. With three rows,
/// all weights would come from the second-level cache twice as often as with six.
inline int most_gates(const Target& target, const Tiling& tiling = {}) {
  return tiling.gates ? tiling.gates : std::max(1, tile_registers(target) / 5);
}

inline TileShape tile_shape(const Target& target, int gates, const Tiling& tiling = {}) {
  const int budget = tile_registers(target);
  const int per_row = gates == 1 ? 2 : gates;  // one gate alone takes two vectors, to use each broadcast twice
  const int rows = tiling.rows ? tiling.rows : std::clamp((budget - per_row) / per_row, 1, 10);
  return TileShape{rows, budget, gates, tiling.vectors ? tiling.vectors : 8};
}

}  // namespace cortex::schedule
