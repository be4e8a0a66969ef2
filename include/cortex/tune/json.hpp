// The little JSON that tuning logs are made of: objects of texts and numbers, one a line.
#pragma once

#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cortex::tuning {

/// An object of texts and numbers; numbers as they are written.
using Json = std::map<std::string, std::string>;

/// `text` in quotes, with all escaped that JSON wants escaped. Bytes above 127 stay as they are.
inline std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(static_cast<unsigned char>(c)));
      result += code;
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// Writes an object in one line.
class JsonLine {
 public:
  JsonLine& text(std::string_view key, std::string_view value) { return add(key, json_text(value)); }
  /// `value` is finite, and is read back as it is.
  JsonLine& number(std::string_view key, double value) {
    char digits[32];
    return add(key, {digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
  }
  std::string str() const { return "{" + members_ + "}"; }

 private:
  JsonLine& add(std::string_view key, const std::string& value) {
    members_ += (members_.empty() ? "" : ", ") + json_text(key) + ": " + value;
    return *this;
  }
  std::string members_;
};

namespace detail {

/// Reads an object of texts and numbers. Each function returns whether what it looks for stands there.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  bool object(Json& result) {
    if (!accept('{')) return false;
    if (accept('}')) return at_end();
    do {
      std::string key, value;
      if (!string(key) || !accept(':') || !(string(value) || number(value))) return false;
      if (!result.emplace(std::move(key), std::move(value)).second) return false;
    } while (accept(','));
    return accept('}') && at_end();
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  bool at_end() { return skip_spaces(), at_ == text_.size(); }
  bool accept(char c) {
    skip_spaces();
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there;
    return there;
  }

  bool number(std::string& result) {
    skip_spaces();
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    const bool digit = at_ < text_.size() && (*begin == '-' || (*begin >= '0' && *begin <= '9'));  // no "inf"
    if (error != std::errc() || !digit) return false;
    result.assign(begin, end);
    at_ += result.size();
    return true;
  }

  bool string(std::string& result) {
    if (!accept('"')) return false;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_] != '\\') {
        result += text_[at_++];
      } else if (!escaped(result)) {
        return false;
      }
    }
    return at_ < text_.size() && text_[at_++] == '"';
  }

  bool escaped(std::string& result) {
    constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (++at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (const auto letter = letters.find(c); letter != std::string_view::npos) return result += meant[letter], true;
    unsigned code = 0;
    if (c != 'u' || text_.size() - at_ < 4) return false;
    const char* const end = text_.data() + at_ + 4;
    if (std::from_chars(text_.data() + at_, end, code, 16).ptr != end || code > 127) return false;  // as we write it
    at_ += 4;
    result += char(code);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// The object that `line` is; nothing if it is none, or holds more than texts and numbers.
inline std::optional<Json> parse_json(std::string_view line) {
  Json result;
  return detail::JsonReader(line).object(result) ? std::optional(std::move(result)) : std::nullopt;
}

/// The text, or number, of `key`; empty, or 0, if there is none.
inline std::string text_of(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? std::string() : found->second;
}
inline double number_of(const Json& object, const std::string& key) {
  const std::string text = text_of(object, key);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace cortex::tuning
