// What is known of the values of an integer expression of a user's, by which indices are held against their dimensions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cortex/ir/expr.hpp"

namespace cortex::ra {

/// The values that an integer expression can take. An end at the limit of i32 stands for one that is not known. `fits`:
/// no known end, of this or of what it is made of, leaves i32; where one does, generated code computes something else.
struct Interval {
  static constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
  static constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
  std::int64_t lo = lowest, hi = highest;
  bool fits = true;

  bool from_below() const { return lo != lowest; }
  bool from_above() const { return hi != highest; }
};

/// The interval [lo, hi], each end given up where it is not known or does not fit i32.
inline Interval interval(bool know_lo, std::int64_t lo, bool know_hi, std::int64_t hi) {
  const auto fits = [](std::int64_t end) { return end >= Interval::lowest && end <= Interval::highest; };
  Interval result;
  if (know_lo && fits(lo)) result.lo = lo;
  if (know_hi && fits(hi)) result.hi = hi;
  result.fits = (!know_lo || fits(lo)) && (!know_hi || fits(hi));
  return result;
}

inline Interval product(const Interval& a, const Interval& b) {
  if (!a.from_below() || !a.from_above() || !b.from_below() || !b.from_above())
    return a.lo >= 0 && b.lo >= 0 ? interval(true, a.lo * b.lo, false, 0) : Interval();
  const std::int64_t corners[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return interval(true, *std::min_element(corners, corners + 4), true, *std::max_element(corners, corners + 4));
}

/// Division and remainder are of a non-negative number by a positive one.
inline Interval quotient(const Interval& a, const Interval& b) {
  return interval(true, std::max<std::int64_t>(a.lo, 0) / b.hi, a.from_above(), a.hi / b.lo);
}
inline Interval remainder(const Interval& a, const Interval& b) {
  return interval(true, 0, a.from_above() || b.from_above(), std::min(a.hi, b.hi - 1));
}

inline Interval values_of(ir::BinaryOp op, const Interval& a, const Interval& b) {
  using enum ir::BinaryOp;
  switch (op) {
    case add:
      return interval(a.from_below() && b.from_below(), a.lo + b.lo, a.from_above() && b.from_above(), a.hi + b.hi);
    case sub:
      return interval(a.from_below() && b.from_above(), a.lo - b.hi, a.from_above() && b.from_below(), a.hi - b.lo);
    case mul: return product(a, b);
    case div: return b.lo >= 1 ? quotient(a, b) : Interval();
    case mod: return b.lo >= 1 ? remainder(a, b) : Interval();
    case min: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case max: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    default: return {0, 1};
  }
}

inline Interval combined(ir::BinaryOp op, const Interval& a, const Interval& b) {
  Interval result = values_of(op, a, b);
  result.fits &= a.fits && b.fits;
  return result;
}

}  // namespace cortex::ra
