// Numbers and tables as `explain` writes them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"

namespace cortex::runtime::detail {

/// "1 234 567", or with a decimal where it is no integer.
inline std::string grouped(double value) {
  const double rounded = std::round(value * 10) / 10;
  std::string digits = std::to_string(std::int64_t(rounded));
  for (int at = int(digits.size()) - 3; at > 0; at -= 3) digits.insert(std::size_t(at), " ");
  const int tenth = int(std::round((rounded - std::floor(rounded)) * 10));
  return tenth ? digits + "." + std::to_string(tenth) : digits;
}

inline std::string bytes_text(double bytes) {
  char text[32];
  if (bytes < 10 * 1024) return grouped(bytes) + " B";
  const bool mega = bytes >= 1024 * 1024;
  std::snprintf(text, sizeof text, mega ? "%.1f MB" : "%.0f KB", bytes / (mega ? 1024.0 * 1024 : 1024.0));
  return text;
}

/// "a leaf", "an edge".
inline std::string per(const std::string& unit) {
  const bool vowel = std::string("aeiou").find(unit[0]) != std::string::npos;
  return (vowel ? "an " : "a ") + unit;
}

inline std::string joined(const Vector<std::string>& words, const char* between = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// Rows of cells in columns as wide as their widest cells. Text stands left, numbers (from column `numbers` on, up to
/// `after`) right.
class Table {
 public:
  Table(std::size_t numbers, std::size_t after) : numbers_(numbers), after_(after) {}
  void row(Vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// A line that keeps to no column.
  void line(std::string text) { rows_.push_back({std::move(text)}); }

  std::string text() const {
    Vector<std::size_t> widths;
    for (const auto& cells : rows_)
      for (std::size_t c = 0; cells.size() > 1 && c < cells.size(); ++c) {
        if (c == widths.size()) widths.push_back(0);
        widths[c] = std::max(widths[c], cells[c].size());
      }
    std::string result;
    for (const auto& cells : rows_) {
      std::string line = " ";
      for (std::size_t c = 0; c < cells.size(); ++c) {
        const std::string pad(cells.size() > 1 ? widths[c] - cells[c].size() : 0, ' ');
        line += " " + (c >= numbers_ && c < after_ ? pad + cells[c] : cells[c] + pad) + " ";
      }
      line.erase(line.find_last_not_of(' ') + 1);
      result += line + "\n";
    }
    return result;
  }

 private:
  std::size_t numbers_, after_;
  Vector<Vector<std::string>> rows_;
};

}  // namespace cortex::runtime::detail
