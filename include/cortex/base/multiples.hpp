// Division that rounds up, and rounding up to whole multiples. Of numbers that are not negative, and whose sum with the
// divisor their type holds.
#pragma once

#include <type_traits>

namespace cortex {

/// How many pieces of `size` cover `count`.
template <class T>
constexpr T ceil_div(T count, std::type_identity_t<T> size) {
  return (count + size - 1) / size;
}

/// The least multiple of `step` that is not below `count`.
template <class T>
constexpr T round_up(T count, std::type_identity_t<T> step) {
  return ceil_div(count, step) * step;
}

}  // namespace cortex
