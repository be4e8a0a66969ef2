// Tensors written to a safetensors file.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cortex/base/error.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/replacement_file.hpp"
#include "cortex/base/usual_arithmetic.hpp"
#include "cortex/weights/safetensors_header.hpp"
#include "cortex/weights/tensor.hpp"

namespace cortex {

/// Elements to be written, which are not copied: those of a contiguous range of numbers, or of a tensor of another
/// file. A container that is a temporary is kept.
class TensorValues {
 public:
  TensorValues() = default;
  template <class Range>
  requires(requires(const Range& range) { std::span(range); } && !std::same_as<Range, TensorValues>)
      TensorValues(const Range& range)
      : TensorValues(std::span(range).data(), std::span(range).size()) {}
  template <class Range>
  requires(requires(const Range& range) { std::span(range); } && !std::same_as<Range, TensorValues> &&
           !std::is_reference_v<Range> && !std::is_const_v<Range> && !std::ranges::borrowed_range<Range>)
      TensorValues(Range&& range)
      : TensorValues(std::make_shared<const Range>(std::move(range))) {}
  template <class T>
  requires std::is_arithmetic_v<T> TensorValues(const T* values, std::size_t count)
      : type(weights::tensor_type<T>()), bytes(std::as_bytes(std::span(values, count))) {}
  TensorValues(const TensorView& tensor) : type(tensor.type), bytes(tensor.bytes) {}

  TensorType type = TensorType::F32;
  std::span<const std::byte> bytes;

 private:
  template <class Range>
  explicit TensorValues(const std::shared_ptr<const Range>& range) : TensorValues(*range) {
    kept_ = range;
  }

  std::shared_ptr<const void> kept_;
};

/// A tensor to be written: `values` in row-major order of `shape`, stored as what they are, or, from float, as
/// `stored_as` F16 or BF16, rounded to the nearest.
struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  TensorValues values;
  std::optional<TensorType> stored_as = std::nullopt;

  TensorType type() const { return stored_as.value_or(values.type); }
};

namespace weights {

/// The elements of `tensor` as bytes of the file; `rounded` holds them where they are not those in memory.
inline std::span<const std::byte> stored(const TensorToWrite& tensor, std::vector<std::uint16_t>& rounded) {
  if (tensor.type() == tensor.values.type) return tensor.values.bytes;
  const UsualArithmetic usual;
  rounded.resize(tensor.values.bytes.size() / sizeof(float));
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    const float value = element<float>(tensor.values.bytes.data(), i);
    rounded[i] = tensor.type() == TensorType::F16 ? to_f16(value) : to_bf16(value);
  }
  return std::as_bytes(std::span(rounded));
}

/// The bytes that `tensor` takes in a file. Throws for a shape that does not fit its values, and for a type that they
/// are not stored as.
inline std::size_t checked_bytes(const std::string& source, const TensorToWrite& tensor) {
  const auto fail = [&](const std::string& what) {
    refuse(source, "tensor " + in_quotes(tensor.name) + " cannot be written: " + what);
  };
  const TensorType from = tensor.values.type, to = tensor.type();
  if (from != to && (from != TensorType::F32 || (to != TensorType::F16 && to != TensorType::BF16)))
    fail(std::string(to_string(from)) + " is not stored as " + std::string(to_string(to)) +
         "; values are stored as what they are, and F32 also as F16 and BF16");
  const std::size_t count = tensor.values.bytes.size() / size_of(from);
  std::int64_t size = 1;
  for (const std::int64_t extent : tensor.shape)
    if (extent < 0 || __builtin_mul_overflow(size, extent, &size))
      fail("its shape " + text_of(tensor.shape) + " is none");
  if (std::size_t(size) != count)
    fail("its shape " + text_of(tensor.shape) + " holds " + std::to_string(size) + " elements, but " +
         std::to_string(count) + " are given");
  return count * size_of(to);
}

/// Text as JSON spells it. Throws what the JSON library throws for text that is no UTF-8.
inline std::string json_text(const std::string& text) { return nlohmann::json(text).dump(); }

/// What the header says of a tensor whose elements lie at bytes `begin` to `end`.
inline std::string entry_of(const TensorToWrite& tensor, std::size_t begin, std::size_t end) {
  std::string shape;
  for (const std::int64_t extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  return "{\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "],\"dtype\":\"" +
         std::string(to_string(tensor.type())) + "\",\"shape\":[" + shape + "]}";
}

/// The header of a file with these tensors' entries, sorted by their names.
inline std::string header_of(std::map<std::string, std::string> entries,
                             const std::map<std::string, std::string>& metadata) {
  if (!metadata.empty()) {
    std::string all;
    for (const auto& [key, text] : metadata) all += (all.empty() ? "" : ",") + json_text(key) + ":" + json_text(text);
    entries[std::string(metadata_name)] = "{" + all + "}";
  }
  std::string header;
  for (const auto& [name, entry] : entries) header += (header.empty() ? "{" : ",") + json_text(name) + ":" + entry;
  return (header.empty() ? "{" : header) + "}";
}

}  // namespace weights

/// Writes a file whole or not at all: it takes the place of an older one once all of it is on disk. Elements begin at a
/// multiple of 8 bytes, larger types first, so that each tensor is aligned. The same tensors give the same bytes.
/// Throws `Error{invalid_weights}` for values that are not as many as the shape says, a name used twice, a type that
/// values are not stored as, text that is no UTF-8, and a path that cannot be written.
inline void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
  const std::string source = weights::quoted_path(path);
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    const std::size_t of_a = size_of(a->type()), of_b = size_of(b->type());
    return of_a != of_b ? of_a > of_b : a < b;
  });

  std::map<std::string, std::string> entries;  // as text: to destroy the library's own values takes memory
  std::size_t end = 0;
  for (const TensorToWrite* tensor : order) {
    if (tensor->name == weights::metadata_name || entries.count(tensor->name))
      weights::refuse(source, "tensor " + in_quotes(tensor->name) + " cannot be written: the name is taken");
    const std::size_t begin = end;
    end += weights::checked_bytes(source, *tensor);
    entries[tensor->name] = weights::entry_of(*tensor, begin, end);
  }
  std::string text;
  try {
    text = weights::header_of(std::move(entries), metadata);
  } catch (const nlohmann::json::exception&) {
    weights::refuse(source, "cannot be written: a name or the metadata is no valid UTF-8");
  }
  text.resize(round_up(text.size(), 8), ' ');
  if (text.size() > weights::longest_header)
    weights::refuse(source, "cannot be written: its header would be " + std::to_string(text.size()) +
                                " bytes long; the format allows " + std::to_string(weights::longest_header));

  ReplacementFile file(path.native(), Code::invalid_weights, source);
  const std::uint64_t length = text.size();
  file.write(&length, sizeof(length));
  file.write(text.data(), text.size());
  std::vector<std::uint16_t> rounded;
  for (const TensorToWrite* tensor : order) {
    const std::span<const std::byte> bytes = weights::stored(*tensor, rounded);
    file.write(bytes.data(), bytes.size());
  }
  file.commit();
}

/// `write_safetensors`, whose error is returned.
inline Result<Done> try_write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                                          const std::map<std::string, std::string>& metadata = {}) {
  return attempt([&] { return write_safetensors(path, tensors, metadata), Done(); });
}

}  // namespace cortex
