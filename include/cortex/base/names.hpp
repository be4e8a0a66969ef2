// Names in messages: in quotes, cut to a length, and which of those that exist may have been meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"

namespace cortex {

/// Longer names are no names: messages show their beginnings, and nobody meant one of them.
inline constexpr std::size_t longest_name = 200;

/// Text of others for a message, of at most `most` bytes.
inline std::string in_quotes(std::string_view text, std::size_t most = longest_name) {
  if (text.size() <= most) return "'" + std::string(text) + "'";
  std::size_t end = most;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // no part of a character of UTF-8
  return "'" + std::string(text.substr(0, end)) + "...' of " + std::to_string(text.size()) + " bytes";
}

/// How many letters must change to make `a` of `b`, in either case.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  Vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto fold = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
      const std::size_t changed = diagonal + (fold(a[i]) != fold(b[j]));
      diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row[b.size()];
}

/// Whether one name is a part of the other between its dots, as 'U_i' is of 'encoder.u_i.weight', in either case.
inline bool is_part(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  for (std::size_t at = 0; !a.empty() && at + a.size() <= b.size(); ++at) {
    const std::size_t end = at + a.size();
    if ((at == 0 || b[at - 1] == '.') && (end == b.size() || b[end] == '.') &&
        edit_distance(a, b.substr(at, a.size())) == 0)
      return true;
  }
  return false;
}

/// What may have been meant by `name`, at most five of `known`, the likeliest first; if there is nothing near, the
/// first of all. Names of more than `longest_name` bytes are near none: comparing takes the product of both lengths.
template <class Names>
std::string near_names(std::string_view name, const Names& known) {
  constexpr std::size_t most = 5;
  const std::size_t far = 2 + name.size() / 3;
  Vector<std::size_t> distances;
  for (const std::string& other : known)
    distances.push_back(std::max(name.size(), other.size()) > longest_name ? far
                        : is_part(name, other)                             ? 0
                                                                           : edit_distance(name, other));
  std::string near, first;
  std::size_t listed = 0;
  for (std::size_t distance = 0; distance < far; ++distance)
    for (std::size_t i = 0; i < distances.size() && listed < most; ++i)
      if (distances[i] == distance) near += (listed++ ? ", " : "") + in_quotes(known[i]);
  if (listed > 0) return "did you mean " + near + "?";
  if (known.empty()) return "it has none";
  for (std::size_t i = 0; i < std::min(known.size(), most); ++i) first += (i ? ", " : "") + in_quotes(known[i]);
  return "it has " + first + (known.size() > most ? " and " + std::to_string(known.size() - most) + " more" : "");
}

}  // namespace cortex
