// A kernel's LLVM text as modules that can be compiled at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "cortex/base/vector.hpp"

namespace cortex::codegen {

namespace detail {

/// A text of `llvm_text`'s: its functions, and what stands before and after them.
struct LlvmFunctions {
  std::string_view heading, rest;
  Vector<std::string_view> functions;
};

inline LlvmFunctions functions_of(std::string_view text) {
  constexpr std::string_view begin = "\ndefine ", end = "\n}\n";
  LlvmFunctions found;
  std::size_t at = text.find(begin);
  found.heading = text.substr(0, at == text.npos ? text.size() : at + 1);
  text.remove_prefix(found.heading.size());
  while (text.starts_with(begin.substr(1))) {
    const std::size_t last = text.find(end);
    if (last == text.npos) break;
    found.functions.push_back(text.substr(0, last + end.size()));
    text.remove_prefix(last + end.size());
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  }
  found.rest = text;
  return found;
}

/// The function as those of other modules know it, or as they are to find it: "internal" is within one module.
inline std::string visible(std::string_view function, bool defined) {
  constexpr std::string_view internal = "define internal ";
  const bool is_internal = function.starts_with(internal);
  function.remove_prefix(is_internal ? internal.size() : std::string_view("define ").size());
  std::string text = defined ? "define " : "declare ";
  if (is_internal) text += "hidden ";
  if (defined) return text.append(function).append("\n");
  return text.append(function.substr(0, function.find(" {\n"))).append("\n");
}

}  // namespace detail

/// The same kernel as modules of at least some `least_bytes` of text: the whole text where it is not twice as long.
/// They are of about one length, by which LLVM's time goes, and depend on the text alone. What they call of each other
/// is hidden from all else that is linked.
inline Vector<std::string> llvm_modules(const std::string& text, std::size_t least_bytes) {
  const detail::LlvmFunctions parts = detail::functions_of(text);
  const std::size_t count = std::min(text.size() / least_bytes, parts.functions.size());
  if (count < 2) return {text};
  Vector<std::size_t> order, module_of(parts.functions.size()), bytes(count, 0);
  for (std::size_t f = 0; f < parts.functions.size(); ++f) order.push_back(f);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::size_t of_a = parts.functions[a].size(), of_b = parts.functions[b].size();
    return of_a != of_b ? of_a > of_b : a < b;
  });
  for (const std::size_t f : order) {
    module_of[f] = std::size_t(std::min_element(bytes.begin(), bytes.end()) - bytes.begin());
    bytes[module_of[f]] += parts.functions[f].size();
  }
  Vector<std::string> modules;
  for (std::size_t m = 0; m < count; ++m) {
    std::string module(parts.heading);
    for (std::size_t f = 0; f < parts.functions.size(); ++f)
      module += detail::visible(parts.functions[f], module_of[f] == m);
    modules.push_back(module.append(parts.rest));
  }
  return modules;
}

}  // namespace cortex::codegen
