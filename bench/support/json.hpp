// JSON as it is written here: rows of names, numbers and texts.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "whole_file.hpp"

namespace bench {

/// A value as its text.
class Json {
 public:
  Json(const std::string& text) : text_("\"") {
    for (const char c : text) {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    text_ += '"';
  }
  Json(const char* text) : Json(std::string(text)) {}
  Json(double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", number);
    text_ = std::isfinite(number) ? digits : "null";
  }
  Json(int number) : text_(std::to_string(number)) {}
  Json(long number) : text_(std::to_string(number)) {}
  Json(std::size_t number) : text_(std::to_string(number)) {}

  using Fields = std::vector<std::pair<std::string, Json>>;
  static Json object(const Fields& fields) {
    Json result;
    for (const auto& [name, value] : fields)
      result.text_ += (result.text_.empty() ? "" : ", ") + Json(name).text_ + ": " + value.text_;
    result.text_ = "{" + result.text_ + "}";
    return result;
  }
  /// A list, each of its values on a line of its own.
  template <class Values>
  static Json lines(const Values& values) {
    Json result;
    for (const Json& value : values) result.text_ += (result.text_.empty() ? "\n  " : ",\n  ") + value.text_;
    result.text_ = "[" + result.text_ + "\n]";
    return result;
  }
  template <class Values>
  static Json list(const Values& values) {
    Json result;
    for (const auto& value : values) result.text_ += (result.text_.empty() ? "" : ", ") + Json(value).text_;
    result.text_ = "[" + result.text_ + "]";
    return result;
  }

  const std::string& text() const { return text_; }

 private:
  Json() = default;
  std::string text_;
};

/// Writes a value to a file, which is whole at all times, to the standard output, "-", or to what is no file, as a
/// device.
inline void write_json(const std::string& path, const Json& value) {
  namespace fs = std::filesystem;
  const std::string text = value.text() + "\n";
  if (path != "-" && (!fs::exists(path) || fs::is_regular_file(path))) return WholeFile(path).write(text);
  std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (!file) throw std::runtime_error(path + " cannot be written");
  const bool written = std::fputs(text.c_str(), file) >= 0 && std::fflush(file) == 0;
  if (path != "-") std::fclose(file);
  if (!written) throw std::runtime_error(path + " cannot be written");
}

}  // namespace bench
