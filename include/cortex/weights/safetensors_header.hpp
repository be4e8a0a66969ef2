// The header of a safetensors file, read strictly: JSON that gives each tensor's type, shape and place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cortex/weights/tensor.hpp"

namespace cortex::weights {

/// The longest header that the format allows, in bytes.
inline constexpr std::uint64_t longest_header = 100'000'000;

/// Reads the header of the file in `file`, which errors call `source`. All that does not add up is refused with
/// `Error{invalid_weights}`, whatever the bytes are.
class HeaderReader {
 public:
  HeaderReader(const std::string& source, std::span<const std::byte> file) : source_(source), file_(file) {}

  void run(std::map<std::string, TensorView>& tensors, std::map<std::string, std::string>& metadata) {
    if (file_.size() < 8)
      refuse(source_, "is no safetensors file: it has " + std::to_string(file_.size()) +
                          " bytes, and the length of its header alone takes 8");
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), 8);
    if (length > longest_header)
      refuse(source_, "is no safetensors file: its header would be " + std::to_string(length) +
                          " bytes long, and the format allows " + std::to_string(longest_header));
    if (length > file_.size() - 8)
      refuse(source_, "its header is " + std::to_string(length) + " bytes long, but only " +
                          std::to_string(file_.size() - 8) +
                          " bytes follow: the file is cut off, or no safetensors file");
    data_ = file_.subspan(8 + std::size_t(length));
    const char* const text = reinterpret_cast<const char*>(file_.data()) + 8;
    const Json header = parse(text, text + length);
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__")
        read_metadata(value, metadata);
      else
        tensors.emplace(name, tensor(name, value));
    }
    check_coverage(tensors);
  }

 private:
  using Json = nlohmann::json;

  /// Refuses what a parser lets pass: objects in objects, and keys that stand twice. A pass of its own: the parser's
  /// callbacks go through all tensors at the end of each.
  struct Strictness final : nlohmann::json_sax<Json> {
    explicit Strictness(const std::string& source) : source_(source) {}
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return keys_.emplace_back(), enter(); }
    bool end_object() override { return keys_.pop_back(), leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool key(string_t& name) override {
      if (!keys_.back().insert(name).second) refuse(source_, "its header names " + in_quotes(name) + " twice");
      return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

   private:
    bool enter() {
      if (depth_++ > 2) refuse(source_, "its header nests deeper than the format does");
      return true;
    }
    bool leave() { return --depth_, true; }

    const std::string& source_;
    std::vector<std::set<std::string>> keys_;  // of the objects that are open
    int depth_ = 0;
  };

  Json parse(const char* begin, const char* end) const {
    if (begin == end || *begin != '{') refuse(source_, "its header is no JSON object: it does not begin with '{'");
    // The parser takes a null character for the end of its input, and would not see what follows.
    if (std::find(begin, end, '\0') != end) refuse(source_, "its header is no valid JSON: it holds a null character");
    Strictness strict(source_);
    Json::sax_parse(begin, end, &strict, Json::input_format_t::json, false);  // what it refuses is refused below
    Json header = Json::parse(begin, end, nullptr, false);
    if (header.is_discarded()) refuse(source_, "its header is no valid JSON");
    return header;
  }

  void read_metadata(const Json& value, std::map<std::string, std::string>& metadata) const {
    if (!value.is_object()) refuse(source_, "__metadata__ is no JSON object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse(source_, "__metadata__: " + in_quotes(key) + " is no text");
      metadata.emplace(key, text.get<std::string>());
    }
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    refuse(source_, "tensor " + in_quotes(name) + ": " + what);
  }

  const Json& member(const std::string& name, const Json& tensor, const char* key) const {
    const auto found = tensor.find(key);
    if (found == tensor.end()) fail(name, "it has no " + in_quotes(key));
    return *found;
  }

  /// A count: an integer from 0 on.
  std::int64_t count(const std::string& name, const Json& value, const char* of) const {
    constexpr auto most = std::uint64_t(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
      fail(name, std::string(of) + " holds " +
                     (value.is_number() ? value.dump() : std::string("a ") + value.type_name()) +
                     ", which is no count");
    return value.get<std::int64_t>();
  }

  TensorView tensor(const std::string& name, const Json& value) const {
    if (!value.is_object()) fail(name, "its entry is no JSON object");
    for (const auto& [key, ignored] : value.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail(name, "its entry has " + in_quotes(key) + ", which the format does not know");
    TensorView view{name, type(name, member(name, value, "dtype")), {}, {}};

    const Json& shape = member(name, value, "shape");
    if (!shape.is_array()) fail(name, "its shape is no list");
    auto bytes = std::int64_t(size_of(view.type));
    for (const Json& extent : shape) {
      view.shape.push_back(count(name, extent, "its shape"));
      if (__builtin_mul_overflow(bytes, view.shape.back(), &bytes))
        fail(name, "its shape holds more elements than can be counted");
    }

    const Json& offsets = member(name, value, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) fail(name, "its data_offsets are not two numbers");
    const std::int64_t begin = count(name, offsets[0], "data_offsets"), end = count(name, offsets[1], "data_offsets");
    if (begin > end || std::uint64_t(end) > data_.size())
      fail(name, "its elements are said to lie at bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                     ", but the file has " + std::to_string(data_.size()) + " bytes of elements");
    if (end - begin != bytes)
      fail(name, "its elements are said to take " + std::to_string(end - begin) + " bytes, but " + text_of(view.shape) +
                     " of " + std::string(to_string(view.type)) + " takes " + std::to_string(bytes));
    view.bytes = data_.subspan(std::size_t(begin), std::size_t(bytes));
    return view;
  }

  TensorType type(const std::string& name, const Json& value) const {
    if (!value.is_string()) fail(name, "its dtype is no text");
    const std::string text = value.get<std::string>();
    for (std::size_t t = 0; t < std::size(type_facts); ++t)
      if (type_facts[t].name == text) return TensorType(t);
    fail(name, "its dtype is " + in_quotes(text) + "; known are F64, F32, F16, BF16, I64 to I8, U64 to U8 and BOOL");
  }

  /// The format leaves no byte to two tensors, nor to none.
  void check_coverage(const std::map<std::string, TensorView>& tensors) const {
    std::vector<const TensorView*> order;
    for (const auto& [name, view] : tensors) order.push_back(&view);
    const auto place = [](const TensorView* view) { return std::pair(view->bytes.data(), view->bytes.size()); };
    std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
    const std::byte* at = data_.data();
    for (const TensorView* view : order) {
      const std::byte* const begin = view->bytes.data();
      if (begin < at) fail(view->name, "its elements overlap those of another tensor");
      if (begin > at) fail(view->name, std::to_string(begin - at) + " bytes before its elements belong to no tensor");
      at = begin + view->bytes.size();
    }
    const std::byte* const end = data_.data() + data_.size();
    if (at != end) refuse(source_, std::to_string(end - at) + " bytes at its end belong to no tensor");
  }

  const std::string& source_;
  std::span<const std::byte> file_, data_;
};

}  // namespace cortex::weights
