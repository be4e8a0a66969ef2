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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cortex/weights/tensor.hpp"

namespace cortex::weights {

/// The longest header that the format allows, in bytes.
inline constexpr std::uint64_t longest_header = 100'000'000;

/// The name in a header that is no tensor's.
inline constexpr std::string_view metadata_name = "__metadata__";

/// Reads the header of the file in `file`, which errors call `source`. All that does not add up is refused with
/// `Error{invalid_weights}`, whatever the bytes are. The parser tells of one value after the other, and none of its own
/// are kept: to destroy these takes memory, and ends the process where there is none.
class HeaderReader final : nlohmann::json_sax<nlohmann::json> {
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
    tensors_ = &tensors, metadata_ = &metadata;
    const char* const text = reinterpret_cast<const char*>(file_.data()) + 8;
    parse(text, text + length);
    check_coverage();
  }

 private:
  void parse(const char* begin, const char* end) {
    if (begin == end || *begin != '{') refuse(source_, "its header is no JSON object: it does not begin with '{'");
    // The parser takes a null character for the end of its input, and would not see what follows.
    if (std::find(begin, end, '\0') != end) refuse(source_, "its header is no valid JSON: it holds a null character");
    nlohmann::json_sax<nlohmann::json>* const told = this;
    if (!nlohmann::json::sax_parse(begin, end, told)) refuse(source_, "its header is no valid JSON");
  }

  // ---- what the parser tells ----

  bool null() override { return other_value("a null"); }
  bool boolean(bool) override { return other_value("a boolean"); }
  bool binary(binary_t&) override { return other_value("a binary"); }
  bool number_integer(number_integer_t value) override { return other_value(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return other_value(text); }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != in_list || value > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return other_value(std::to_string(value));
    return list()->push_back(std::int64_t(value)), true;
  }
  bool string(string_t& text) override {
    if (depth_ != in_entry || (!in_metadata() && key_ != "dtype")) return other_value("a string");
    if (in_metadata())
      metadata_->emplace(key_, text);
    else
      type_ = type_named(text);
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ >= in_entry) not_expected();
    type_.reset(), shape_.reset(), offsets_.reset();
    return ++depth_, true;
  }
  bool end_object() override {
    if (depth_ == in_entry && !in_metadata()) tensors_->emplace(name_, tensor());
    return --depth_, true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != in_entry || in_metadata() || key_ == "dtype") not_expected();
    list().emplace();
    return ++depth_, true;
  }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& text) override {
    if (is_taken(text)) refuse(source_, "its header names " + in_quotes(text) + " twice");
    if (depth_ == in_header) return has_metadata_ |= text == metadata_name, name_ = text, true;
    if (!in_metadata() && text != "dtype" && text != "shape" && text != "data_offsets")
      fail(name_, "its entry has " + in_quotes(text) + ", which the format does not know");
    return key_ = text, true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  // ---- what is open ----

  static constexpr int in_header = 1, in_entry = 2, in_list = 3;  // how many objects and lists are

  bool in_metadata() const { return name_ == metadata_name; }
  std::optional<std::vector<std::int64_t>>& list() { return key_ == "shape" ? shape_ : offsets_; }

  bool is_taken(const std::string& key) const {
    if (depth_ == in_header) return key == metadata_name ? has_metadata_ : tensors_->count(key) > 0;
    if (in_metadata()) return metadata_->count(key) > 0;
    return key == "dtype" ? type_.has_value() : key == "shape" ? shape_.has_value() : offsets_ && key == "data_offsets";
  }

  // ---- what is refused ----

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    refuse(source_, "tensor " + in_quotes(name) + ": " + what);
  }

  /// Something that does not stand where it may.
  [[noreturn]] void not_expected() const {
    if (depth_ == in_list) refuse(source_, "its header nests deeper than the format does");
    if (in_metadata())
      refuse(source_, depth_ == in_header ? std::string("__metadata__ is no JSON object")
                                          : "__metadata__: " + in_quotes(key_) + " is no text");
    if (depth_ == in_header) fail(name_, "its entry is no JSON object");
    if (key_ == "dtype") fail(name_, "its dtype is no text");
    fail(name_, key_ == "shape" ? "its shape is no list" : "its data_offsets are not two numbers");
  }
  /// A value that is neither a text where one may be, nor, in a list, a count: an integer from 0 on.
  [[noreturn]] bool other_value(const std::string& what) const {
    if (depth_ != in_list) not_expected();
    fail(name_, (key_ == "shape" ? "its shape" : key_) + " holds " + what + ", which is no count");
  }

  /// The tensor whose entry has been read.
  TensorView tensor() const {
    if (!type_) fail(name_, "it has no 'dtype'");
    if (!shape_) fail(name_, "it has no 'shape'");
    if (!offsets_) fail(name_, "it has no 'data_offsets'");
    auto bytes = std::int64_t(size_of(*type_));
    for (const std::int64_t extent : *shape_)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        fail(name_, "its shape holds more elements than can be counted");
    if (offsets_->size() != 2) fail(name_, "its data_offsets are not two numbers");
    const std::int64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    if (begin > end || std::uint64_t(end) > data_.size())
      fail(name_, "its elements are said to lie at bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                      ", but the file has " + std::to_string(data_.size()) + " bytes of elements");
    if (end - begin != bytes)
      fail(name_, "its elements are said to take " + std::to_string(end - begin) + " bytes, but " + text_of(*shape_) +
                      " of " + std::string(to_string(*type_)) + " takes " + std::to_string(bytes));
    return {name_, *type_, *shape_, data_.subspan(std::size_t(begin), std::size_t(bytes))};
  }

  TensorType type_named(const std::string& text) const {
    for (std::size_t t = 0; t < std::size(type_facts); ++t)
      if (type_facts[t].name == text) return TensorType(t);
    fail(name_, "its dtype is " + in_quotes(text) + "; known are F64, F32, F16, BF16, I64 to I8, U64 to U8 and BOOL");
  }

  /// The format leaves no byte to two tensors, nor to none.
  void check_coverage() const {
    std::vector<const TensorView*> order;
    for (const auto& [name, view] : *tensors_) order.push_back(&view);
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
  std::map<std::string, TensorView>* tensors_ = nullptr;
  std::map<std::string, std::string>* metadata_ = nullptr;
  bool has_metadata_ = false;
  int depth_ = 0;
  std::string name_, key_;  // of the entry that is read, and in it
  std::optional<TensorType> type_;
  std::optional<std::vector<std::int64_t>> shape_, offsets_;
};

}  // namespace cortex::weights
