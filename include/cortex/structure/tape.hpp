// What the linearizer's loops keep in registers: where the walk writes, and what an integer field may be.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cortex/structure/failures.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure {

namespace detail {

/// The arrays of a walk and its table, as values of the loop that fills them: stores through them cannot change them,
/// so they stay in registers.
template <std::size_t num_rows>
struct Tape {
  const void** node;
  std::int32_t* parent;
  std::array<std::int32_t*, num_rows> row;
  Probe table;
  std::int32_t limit;

  explicit Tape(const WalkState& walk) { load(walk); }
  void load(const WalkState& walk) {
    node = walk.node.data();
    parent = walk.parent.data();
    for (std::size_t r = 0; r < num_rows; ++r) row[r] = walk.row[r].data();
    table = walk.probe();
    limit = walk.limit;
  }
};

/// Makes room for `more` places, or refuses a structure that has grown past the workspace's bound.
[[gnu::noinline]] inline void make_room(WalkState& walk, std::int32_t entered, std::int32_t tail, std::int32_t more) {
  walk.tail = tail;
  if (tail - 1 > walk.max_visits) fail::too_many_visits(walk);
  walk.make_room(entered, more);
}

/// The values that an integer field may have, as [low, low + span) in wrapping 64-bit arithmetic.
struct IntegerRange {
  std::uint64_t low, span;
  template <class T>
  static IntegerRange of(std::int64_t limit) {
    constexpr std::uint64_t half = std::uint64_t(1) << 31;
    if (limit >= 0) return {0, std::min(std::uint64_t(limit), half)};
    return is_signed<T>() ? IntegerRange{std::uint64_t(0) - half, 2 * half} : IntegerRange{0, half};
  }
  bool contains(std::uint64_t value) const { return value - low < span; }

 private:
  template <class T>
  static constexpr bool is_signed() {
    if constexpr (std::is_enum_v<T>)
      return std::is_signed_v<std::underlying_type_t<T>>;
    else
      return std::is_signed_v<T>;
  }
};

}  // namespace detail

}  // namespace cortex::structure
