// What the cost model knows of a machine: a few speeds of one worker.
#pragma once

#include <algorithm>
#include <cmath>

#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"

namespace cortex::schedule {

/// The share of a cache that a slice of weights may take, beside the rows and all else that passes through it, and
/// still be there at the next sweep over it.
inline constexpr double share_kept = 0.6;

/// Speeds of one core. Times are in seconds, rates a second.
struct MachineModel {
  /// A level of the memory hierarchy: how much it holds, and how many bytes a second are read from it.
  struct Level {
    double bytes = 0, rate = 0;
  };

  double flops = 0;            // of f32 multiply-adds (2 each) that wait for nothing
  Vector<Level> levels;        // smallest first; the last one is memory, and holds everything
  double barrier = 0.3e-6;     // until two workers have met and are at work again: half of it signals
  double start = 0.8e-6;       // until others work on a call, too
  double remote_line = 12e-9;  // a cache line that one worker writes and another reads
  double shared_rate = 0.7;    // of a level's rate, for weights that other groups read as well
  double activation = 0;       // a tanh, sigmoid or exp, approximated
  double library = 6e-9;       // the same, of the C library
  double node = 5.4e-9;        // to number a node
  double group_node = 20e-9;   // the same by a group of several: some twice, and each is looked for in the others
  double nest = 25e-9;         // until a nest is at its first row
  double row = 5e-9;           // to find the operands of a row

  /// How fast a slice of `bytes` is read again and again: from the level that holds it, and, since it shares that level
  /// with other data, ever more from the next one when it is larger than what that keeps. A level that replaces what
  /// is to be read next soon holds nothing of a slice that is larger.
  double bandwidth(double bytes) const {
    for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
      const double full = share_kept * levels[l].bytes, none = (l == 0 ? 1.5 : 2) * levels[l].bytes;
      if (bytes <= full) return levels[l].rate;
      if (bytes < none && bytes < share_kept * levels[l + 1].bytes)
        return levels[l].rate + std::log(bytes / full) / std::log(none / full) * (levels[l + 1].rate - levels[l].rate);
    }
    return levels.empty() ? 1e10 : levels.back().rate;
  }
};

/// How large the caches of a core are, in bytes.
struct CacheSizes {
  double first = 32 << 10, second = 1 << 20, last = 32 << 20;
};

/// A machine of today at 2.8 GHz with that target's vectors: two multiply-adds and two loads of a vector a cycle, 48
/// bytes a cycle from the second-level cache. Good enough to compare schedules by.
inline MachineModel nominal_machine(const Target& target, const CacheSizes& caches = {}) {
  constexpr double clock = 2.8e9;
  const double bytes = target.vector_bytes, lanes = bytes / 4;
  MachineModel machine;
  machine.flops = clock * 2 * 2 * lanes;
  machine.levels = {{caches.first, clock * 2 * bytes},
                    {caches.second, clock * std::min(48.0, 2 * bytes)},
                    {caches.last, clock * 12},
                    {HUGE_VAL, clock * 6}};
  machine.activation = 3.75e-9 / lanes;
  return machine;
}

}  // namespace cortex::schedule
