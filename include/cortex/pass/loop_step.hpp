// One step of a schedule as data and as text, and the reader of such texts.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ra/schedule_text.hpp"

namespace cortex {

/// One step of a loop schedule: a primitive, the loops and tensors that it is applied to or who shares a loop, and its
/// numbers. As text `split(i, 16)`, `bind(i, thread)`.
struct LoopStep {
  std::string primitive;
  Vector<std::string> names;
  Vector<std::int64_t> numbers;
  friend bool operator==(const LoopStep&, const LoopStep&) = default;
};

/// `split(i, 16)`
inline std::string to_string(const LoopStep& step) {
  std::string arguments;
  for (const std::string& name : step.names) arguments += (arguments.empty() ? "" : ", ") + detail::quoted(name);
  for (const std::int64_t number : step.numbers) arguments += (arguments.empty() ? "" : ", ") + std::to_string(number);
  return step.primitive + "(" + arguments + ")";
}

namespace pass::detail {

/// Reads steps from text: one a line or with ';' between them, '#' begins a comment. Names that are no words stand in
/// quotes. Throws `Error{invalid_schedule}` that says what `kind` of text it is and which line is wrong.
class StepReader {
 public:
  StepReader(std::string_view text, std::string kind) : text_(text), kind_(std::move(kind)) {}

  /// The next step; nothing at the end.
  std::optional<LoopStep> next() {
    skip_between();
    begin_ = at_;
    if (at_ == text_.size()) return {};
    return step();
  }

  /// `what` is wrong with the step that has been read last; the line is that on which it begins.
  [[noreturn]] void fail(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + std::ptrdiff_t(begin_), '\n');
    throw Error(Code::invalid_schedule, kind_ + ", line " + std::to_string(line) + ": " + what);
  }

 private:
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  void skip_between() {
    while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == ';' || text_[at_] == '#')) {
      if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else
        ++at_;
    }
  }

  std::string word() {
    skip_spaces();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) fail("a name or a number is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool accept(char c) {
    skip_spaces();
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there;
    return there;
  }

  LoopStep step() {
    LoopStep result;
    result.primitive = word();
    if (!accept('(')) fail("'(' is missing after '" + result.primitive + "'");
    if (!accept(')')) {
      do argument(result);
      while (accept(','));
      if (!accept(')')) fail("')' is missing");
    }
    return result;
  }

  void argument(LoopStep& step) {
    const bool quoted = accept('"');
    const std::string text = quoted ? rest_of_quotes() : word();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!quoted && error == std::errc::result_out_of_range) fail("the number " + text + " is too large");
    const bool is_number = !quoted && error == std::errc() && end == text.data() + text.size();
    if (!is_number && !step.numbers.empty()) fail("'" + text + "' stands after a number; names come first");
    if (is_number)
      step.numbers.push_back(number);
    else
      step.names.push_back(text);
  }

  std::string rest_of_quotes() {
    std::string text;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      const bool escaped = text_[at_] == '\\' && at_ + 1 < text_.size();
      at_ += escaped;
      text += escaped && text_[at_] == 'n' ? '\n' : text_[at_];
    }
    if (at_ == text_.size()) fail("'\"' is missing after a name");
    ++at_;
    return text;
  }

  std::string_view text_;
  std::string kind_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of the step
};

}  // namespace pass::detail
}  // namespace cortex
