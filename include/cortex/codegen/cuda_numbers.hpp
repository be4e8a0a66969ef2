// How numbers that host code goes by come to the text of kernels: printed from the names that they have in C++, so that
// neither side can differ from the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace cortex::codegen {

/// A number under a name of its own.
inline std::string cuda_define(std::string_view name, std::int64_t value) {
  return "#define " + std::string(name) + " " + std::to_string(value) + "\n";
}

/// One of some words that lie side by side: by how many words it is behind the first.
struct CudaWord {
  std::string_view name;
  std::size_t at;
};

/// Where such words are, each under its name.
inline std::string cuda_enum(std::string_view name, std::initializer_list<CudaWord> words) {
  std::string text = "enum " + std::string(name) + " {";
  const char* before = " ";
  for (const CudaWord& word : words) {
    text += before + std::string(word.name) + " = " + std::to_string(word.at);
    before = ", ";
  }
  return text + " };\n";
}

}  // namespace cortex::codegen
