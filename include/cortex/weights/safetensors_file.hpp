// A safetensors file in memory: its tensors by name.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "cortex/base/error.hpp"
#include "cortex/base/regular_file.hpp"
#include "cortex/runtime/weights.hpp"
#include "cortex/weights/safetensors_header.hpp"
#include "cortex/weights/tensor.hpp"

namespace cortex {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

/// The tensors of a safetensors file, in memory. Immutable, moved but not copied, and read by any number of threads.
/// What fails throws `Error{invalid_weights}`, whose message names the file and the tensor.
class SafetensorsFile {
 public:
  /// Reads a file. Throws for one that cannot be read, and for one that breaks the format in any way: a header that is
  /// no JSON, a name used twice, a type or shape that is none, elements that lie outside the file, overlap, or leave a
  /// byte over. One that does not fit in memory is `Error{out_of_memory}`.
  static SafetensorsFile open(const std::filesystem::path& path) {
    const std::string source = weights::quoted_path(path);
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) weights::refuse(source, "is a folder, not a file of weights");
    if (is_special_file(path.c_str())) weights::refuse(source, "is no regular file");
    errno = 0;
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) weights::refuse(source, std::string("cannot be opened: ") + std::strerror(errno));
    const std::streamoff size = in.tellg();
    std::vector<std::byte> bytes;
    try {
      bytes.resize(size < 0 ? 0 : std::size_t(size));
    } catch (const std::exception&) {
      throw Error(Code::out_of_memory, source + ": its " + std::to_string(size) + " bytes do not fit in memory");
    }
    in.seekg(0);
    if (!in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size())))
      weights::refuse(source, "cannot be read to its end");
    return SafetensorsFile(source, std::move(bytes));
  }

  /// The same for a file that is in memory already; `name` is what errors call it.
  static SafetensorsFile from_bytes(std::vector<std::byte> bytes, const std::string& name = "safetensors") {
    return SafetensorsFile(name, std::move(bytes));
  }

  /// `open` and `from_bytes`, whose error is returned.
  static Result<SafetensorsFile> try_open(const std::filesystem::path& path) {
    return attempt([&] { return open(path); });
  }
  static Result<SafetensorsFile> try_from_bytes(std::vector<std::byte> bytes, const std::string& name = "safetensors") {
    return attempt([&] { return from_bytes(std::move(bytes), name); });
  }

  SafetensorsFile(SafetensorsFile&&) = default;  // a vector's elements stay where they are when it is moved
  SafetensorsFile& operator=(SafetensorsFile&&) = default;
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  /// The tensors' names, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, tensor] : tensors_) result.push_back(name);
    return result;
  }
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }

  /// A tensor by name; holds as long as the file. Throws for a name that the file does not have.
  const TensorView& tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return found->second;
    weights::refuse(source_, "it has no tensor " + in_quotes(name) + "; " + near_names(name, names()));
  }

  /// The elements of a tensor, row-major. Floating-point types are read as float or double: exact but for F64 as float,
  /// which is rounded once. Integers and BOOL are read as an integer type that holds all values of theirs: exact.
  /// Throws for a name that the file does not have, and for other types.
  template <class T>
  std::vector<T> read(const std::string& name) const {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, long double>,
                  "tensors are read as numbers: read<float>(name)");
    const TensorView& view = tensor(name);
    if (!weights::reads_as<T>(view.type))
      weights::refuse(source_, "tensor " + in_quotes(name) + " holds " + std::string(to_string(view.type)) +
                                   ", which cannot be read as " + std::string(to_string(weights::tensor_type<T>())));
    std::vector<T> values(static_cast<std::size_t>(view.size()));
    weights::convert<T>(view, values);
    return values;
  }

  /// What the file says of itself.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// What errors call the file.
  const std::string& source() const { return source_; }

 private:
  SafetensorsFile(std::string source, std::vector<std::byte> bytes)
      : source_(std::move(source)), bytes_(std::move(bytes)) {
    weights::HeaderReader(source_, bytes_).run(tensors_, metadata_);
  }

  std::string source_;
  std::vector<std::byte> bytes_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace cortex
