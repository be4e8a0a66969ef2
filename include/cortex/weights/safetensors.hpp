// Weights in files: the safetensors format, read and written, and bound to models by name.
//
//   const auto file = cortex::SafetensorsFile::open("tree_lstm.safetensors");
//   cortex::bind(model, file);                                     // every input by its own name
//   cortex::bind(model, file, {{"U_i", "encoder.u_i.weight"}});    // some by a foreign one
//
// A file is 8 bytes that say how long its header is, the header (JSON: each tensor's type, shape and place), and the
// tensors' elements, little-endian and row-major. Reading is strict: whatever does not add up is refused with a message
// that names the file and the tensor. Not part of cortex.hpp, because of what its JSON costs to compile; needs
// nlohmann/json.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "cortex/base/error.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/weights/half.hpp"

namespace cortex {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

/// The element types of the format that are read.
enum class TensorType : std::uint8_t { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL };

namespace weights {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr TypeFacts type_facts[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"I16", 2},
                                           {"I8", 1},  {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}};
constexpr bool is_floating(TensorType type) { return type <= TensorType::BF16; }

}  // namespace weights

constexpr std::string_view to_string(TensorType type) { return weights::type_facts[std::size_t(type)].name; }

/// A tensor in a file: its elements are `bytes`, in row-major order of `shape`; a scalar has no dimensions.
struct TensorView {
  std::string name;
  TensorType type = TensorType::F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  std::int64_t size() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) product *= extent;
    return product;
  }
};

namespace weights {

[[noreturn]] inline void refuse(const std::string& source, const std::string& what) {
  throw Error(Code::invalid_weights, source + ": " + what);
}

inline std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

inline std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

/// Reads the header of a file into views of its tensors.
class HeaderReader {
 public:
  HeaderReader(const std::string& source, std::span<const std::byte> file) : source_(source), file_(file) {}

  void run(std::map<std::string, TensorView>& tensors, std::map<std::string, std::string>& metadata) {
    constexpr std::uint64_t longest = 100'000'000;
    if (file_.size() < 8)
      refuse(source_, "is no safetensors file: it has " + std::to_string(file_.size()) + " bytes, and the length of its "
                      "header alone takes 8");
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), 8);
    if (length > longest) refuse(source_, "its header would be " + std::to_string(length) + " bytes long; the format allows " + std::to_string(longest));
    if (length > file_.size() - 8)
      refuse(source_, "its header is " + std::to_string(length) + " bytes long, but only " + std::to_string(file_.size() - 8) +
                      " bytes follow: the file is cut off, or no safetensors file");
    data_ = file_.subspan(8 + std::size_t(length));
    const char* const text = reinterpret_cast<const char*>(file_.data()) + 8;
    const Json header = parse(text, text + length);
    if (!header.is_object()) refuse(source_, "its header is no JSON object");
    for (const auto& [name, value] : header.items())
      if (name == "__metadata__") read_metadata(value, metadata);
      else tensors.emplace(name, tensor(name, value));
    check_coverage(tensors);
  }

 private:
  using Json = nlohmann::json;

  Json parse(const char* begin, const char* end) const {
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    const auto note = [&](int, Json::parse_event_t event, Json& value) {
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
        refuse(source_, "its header names " + in_quotes(value.get<std::string>()) + " twice");
      return true;
    };
    Json header = Json::parse(begin, end, note, false);
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
    const bool fits = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() <= std::uint64_t(std::numeric_limits<std::int64_t>::max());
    if (!fits) fail(name, std::string(of) + " holds " + value.dump(-1, ' ', false, Json::error_handler_t::replace) + ", which is no count");
    return value.get<std::int64_t>();
  }

  TensorView tensor(const std::string& name, const Json& value) const {
    if (!value.is_object()) fail(name, "its entry is no JSON object");
    for (const auto& [key, ignored] : value.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets") fail(name, "its entry has " + in_quotes(key) + ", which the format does not know");
    TensorView view{name, type(name, member(name, value, "dtype")), {}, {}};
    const Json& shape = member(name, value, "shape");
    if (!shape.is_array()) fail(name, "its shape is no list");
    std::int64_t bytes = std::int64_t(type_facts[std::size_t(view.type)].bytes);
    for (const Json& extent : shape) {
      view.shape.push_back(count(name, extent, "its shape"));
      if (__builtin_mul_overflow(bytes, view.shape.back(), &bytes)) fail(name, "its shape holds more elements than can be counted");
    }
    const Json& offsets = member(name, value, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2) fail(name, "its data_offsets are not two numbers");
    const std::int64_t begin = count(name, offsets[0], "data_offsets"), end = count(name, offsets[1], "data_offsets");
    if (begin > end || std::uint64_t(end) > data_.size())
      fail(name, "its elements are said to lie at bytes " + std::to_string(begin) + " to " + std::to_string(end) + ", but the file has " +
                     std::to_string(data_.size()) + " bytes of elements");
    if (end - begin != bytes)
      fail(name, "its elements are said to take " + std::to_string(end - begin) + " bytes, but " + text_of(view.shape) + " of " +
                     std::string(to_string(view.type)) + " takes " + std::to_string(bytes));
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
    const auto place = [](const TensorView* v) { return std::pair(v->bytes.data(), v->bytes.size()); };
    std::sort(order.begin(), order.end(), [&](const TensorView* a, const TensorView* b) { return place(a) < place(b); });
    const std::byte* at = data_.data();
    for (const TensorView* view : order) {
      if (view->bytes.data() < at) fail(view->name, "its elements overlap those of another tensor");
      if (view->bytes.data() > at) fail(view->name, std::to_string(view->bytes.data() - at) + " bytes before its elements belong to no tensor");
      at = view->bytes.data() + view->bytes.size();
    }
    if (at != data_.data() + data_.size())
      refuse(source_, std::to_string(data_.data() + data_.size() - at) + " bytes at its end belong to no tensor");
  }

  const std::string& source_;
  std::span<const std::byte> file_, data_;
};

/// Element `i` of a tensor as `To`: floating-point types to floating-point types (rounded once), integers exactly.
template <class To, class From>
To element(const std::byte* at, std::size_t i) {
  From value;
  std::memcpy(&value, at + i * sizeof(From), sizeof(From));
  return static_cast<To>(value);
}

template <class To>
void convert(const TensorView& tensor, std::vector<To>& out) {
  const std::byte* const at = tensor.bytes.data();
  const auto all = [&](auto read) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = read(i);
  };
  const auto half = [&](std::size_t i) { return element<std::uint16_t, std::uint16_t>(at, i); };
  switch (tensor.type) {
    case TensorType::F64: return all([&](std::size_t i) { return element<To, double>(at, i); });
    case TensorType::F32: return all([&](std::size_t i) { return element<To, float>(at, i); });
    case TensorType::F16: return all([&](std::size_t i) { return To(from_f16(half(i))); });
    case TensorType::BF16: return all([&](std::size_t i) { return To(from_bf16(half(i))); });
    case TensorType::I64: return all([&](std::size_t i) { return element<To, std::int64_t>(at, i); });
    case TensorType::I32: return all([&](std::size_t i) { return element<To, std::int32_t>(at, i); });
    case TensorType::I16: return all([&](std::size_t i) { return element<To, std::int16_t>(at, i); });
    case TensorType::I8: return all([&](std::size_t i) { return element<To, std::int8_t>(at, i); });
    case TensorType::U64: return all([&](std::size_t i) { return element<To, std::uint64_t>(at, i); });
    case TensorType::U32: return all([&](std::size_t i) { return element<To, std::uint32_t>(at, i); });
    case TensorType::U16: return all([&](std::size_t i) { return element<To, std::uint16_t>(at, i); });
    case TensorType::U8:
    case TensorType::BOOL: return all([&](std::size_t i) { return element<To, std::uint8_t>(at, i); });
  }
}

/// Whether every value of an integer type is one of `To`.
template <class To>
constexpr bool holds(TensorType type) {
  const int bits = 8 * int(type_facts[std::size_t(type)].bytes);
  const bool is_signed = type >= TensorType::I64 && type <= TensorType::I8;
  return std::is_signed_v<To> || !is_signed ? bits - is_signed <= std::numeric_limits<To>::digits : false;
}

}  // namespace weights

/// The tensors of a safetensors file, in memory. Immutable; copies share nothing. Errors are `Error{invalid_weights}`.
class SafetensorsFile {
 public:
  /// Reads a file. Throws also for one that cannot be read.
  static SafetensorsFile open(const std::filesystem::path& path) {
    const std::string source = "'" + path.string() + "'";
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) weights::refuse(source, "is a folder, not a file of weights");
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) weights::refuse(source, std::string("cannot be opened: ") + std::strerror(errno));
    const auto size = in.tellg();
    std::vector<std::byte> bytes(size < 0 ? 0 : std::size_t(size));
    in.seekg(0);
    if (!in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size())))
      weights::refuse(source, "cannot be read");
    return SafetensorsFile(source, std::move(bytes));
  }

  /// The same for what is in memory already; `name` is what errors call it.
  static SafetensorsFile from_bytes(std::vector<std::byte> bytes, const std::string& name = "safetensors") {
    return SafetensorsFile(name, std::move(bytes));
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
    std::string all;
    for (const auto& [known, ignored] : tensors_) all += (all.empty() ? "" : ", ") + weights::in_quotes(known);
    weights::refuse(source_, "it has no tensor " + weights::in_quotes(name) + "; it has " + (all.empty() ? "none" : all));
  }

  /// The elements of a tensor, row-major: any floating-point type as float or double, integers as an integer type that
  /// holds them all. Throws if they do not convert.
  template <class T>
  std::vector<T> read(const std::string& name) const {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, "tensors are read as numbers: read<float>(name)");
    const TensorView& view = tensor(name);
    const bool converts = std::is_floating_point_v<T> ? weights::is_floating(view.type)
                                                      : !weights::is_floating(view.type) && weights::holds<T>(view.type);
    if (!converts)
      weights::refuse(source_, "tensor " + weights::in_quotes(name) + " holds " + std::string(to_string(view.type)) + ", which cannot be read as " +
                                   (std::is_floating_point_v<T> ? "a floating-point type" : "this integer type"));
    std::vector<T> values(static_cast<std::size_t>(view.size()));
    weights::convert(view, values);
    return values;
  }

  /// What the file says of itself.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// What errors call the file.
  const std::string& source() const { return source_; }

 private:
  SafetensorsFile(std::string source, std::vector<std::byte> bytes) : source_(std::move(source)), bytes_(std::move(bytes)) {
    weights::HeaderReader(source_, bytes_).run(tensors_, metadata_);
  }

  std::string source_;
  std::vector<std::byte> bytes_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Names of a model's inputs and of the tensors that they are called in a file, where those differ.
using TensorNames = std::map<std::string, std::string>;

namespace weights {

/// The extents that a tensor of `shape` has in dimensions `dims`, one after the other; empty if it does not fit: row by row
/// the same numbers, so that a dimension may be split, [4 H, D] for [4, H, D], or dimensions joined. An open dimension is
/// as long as the tensor's first.
inline std::vector<std::int64_t> fitted(const std::vector<Dim>& dims, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> wanted;
  for (const Dim& dim : dims)
    wanted.push_back(dim.kind() == DimKind::open ? shape.empty() ? 1 : shape[0] : dim.extent());
  std::size_t a = 0, b = 0;
  while (a < wanted.size() && b < shape.size()) {
    std::int64_t x = wanted[a], y = shape[b];
    const std::size_t from_a = a, from_b = b;
    while (x != y) {  // more of the one or of the other
      if (x < y && a + 1 < wanted.size()) x *= wanted[++a];
      else if (y < x && b + 1 < shape.size()) y *= shape[++b];
      else return {};
    }
    if (a > from_a && b > from_b) return {};  // regrouped: not the same rows
    ++a, ++b;
  }
  while (a < wanted.size() && wanted[a] == 1) ++a;
  while (b < shape.size() && shape[b] == 1) ++b;
  return a == wanted.size() && b == shape.size() ? wanted : std::vector<std::int64_t>();
}

}  // namespace weights

/// Binds every input of `model` to the tensor of its name in `file`, or of the name that `names` gives it, converted to
/// the input's type. All or nothing: throws `Error{invalid_weights}`, which names input and tensor, for one that is
/// missing, of integers, or of another shape, before any is bound. A tensor's dimensions may be split or joined where its
/// rows stay the same: [4 * H, D] binds to [4, H, D]. Tensors that no input asks for are left alone.
template <class Model>
void bind(Model& model, const SafetensorsFile& file, const TensorNames& names = {}) {
  const std::vector<runtime::WeightSpec>& inputs = model.executable().weights;
  for (const auto& [input, tensor] : names)
    if (std::none_of(inputs.begin(), inputs.end(), [&](const auto& w) { return w.name == input; }))
      weights::refuse(file.source(), "the model has no input " + weights::in_quotes(input) + " to bind tensor " + weights::in_quotes(tensor) + " to");
  const auto name_of = [&](const runtime::WeightSpec& input) {
    const auto found = names.find(input.name);
    return found == names.end() ? input.name : found->second;
  };
  std::vector<std::vector<std::int64_t>> shapes;
  for (const runtime::WeightSpec& input : inputs) {
    const TensorView& tensor = file.tensor(name_of(input));
    shapes.push_back(weights::fitted(input.dims, tensor.shape));
    std::string wanted;
    for (const Dim& dim : input.dims)
      wanted += (wanted.empty() ? "" : ", ") + dim.name() + (dim.kind() == DimKind::open ? "" : "=" + std::to_string(dim.extent()));
    if (shapes.back().empty())
      weights::refuse(file.source(), "tensor " + weights::in_quotes(tensor.name) + " has shape " + weights::text_of(tensor.shape) +
                                         ", which does not fit input " + weights::in_quotes(input.name) + " [" + wanted + "]");
    if (!weights::is_floating(tensor.type))
      weights::refuse(file.source(), "tensor " + weights::in_quotes(tensor.name) + " holds " + std::string(to_string(tensor.type)) +
                                         ", but input " + weights::in_quotes(input.name) + " takes floating-point numbers");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = name_of(inputs[i]);
    const std::span<const std::int64_t> shape(shapes[i]);
    if (inputs[i].dtype == DType::f64) model.bind(inputs[i].name, file.read<double>(name), shape);
    else model.bind(inputs[i].name, file.read<float>(name), shape);
  }
}

/// A tensor to be written: `values` in row-major order of `shape`, stored as `type`.
struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
  TensorType type = TensorType::F32;  // F32, F16 or BF16
};

/// Writes a file whole or not at all: it takes the place of an older one when all of it is on disk. Throws
/// `Error{invalid_weights}` for a tensor whose values are not as many as its shape says, a name used twice, a type that is
/// not written, and a path that cannot be.
inline void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
  const std::string source = "'" + path.string() + "'";
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<std::byte> data;
  const auto append = [&](const auto& element) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&element);
    data.insert(data.end(), bytes, bytes + sizeof(element));
  };
  for (const TensorToWrite& t : tensors) {
    const auto fail = [&](const std::string& what) { weights::refuse(source, "tensor " + weights::in_quotes(t.name) + " cannot be written: " + what); };
    if (t.name == "__metadata__" || header.contains(t.name)) fail("the name is taken");
    std::int64_t size = 1;
    for (const std::int64_t extent : t.shape) {
      if (extent < 0) fail("its shape is " + weights::text_of(t.shape));
      size *= extent;
    }
    if (std::uint64_t(size) != t.values.size())
      fail("its shape " + weights::text_of(t.shape) + " holds " + std::to_string(size) + " elements, but " + std::to_string(t.values.size()) + " are given");
    const std::size_t begin = data.size();
    for (const float value : t.values) {
      if (t.type == TensorType::F32) append(value);
      else if (t.type == TensorType::F16) append(weights::to_f16(value));
      else if (t.type == TensorType::BF16) append(weights::to_bf16(value));
      else fail("it is to be stored as " + std::string(to_string(t.type)) + "; F32, F16 and BF16 are written");
    }
    header[t.name] = {{"dtype", to_string(t.type)}, {"shape", t.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    weights::refuse(source, "cannot be written: a name or the metadata is no valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // elements begin at a multiple of 8
  const std::uint64_t length = text.size();
  const std::filesystem::path temporary = path.string() + ".part";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) weights::refuse(source, std::string("cannot be written: ") + std::strerror(errno));
  out.write(reinterpret_cast<const char*>(&length), 8).write(text.data(), std::streamsize(text.size()));
  out.write(reinterpret_cast<const char*>(data.data()), std::streamsize(data.size()));
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(temporary, path, failed);
  if (!out || failed) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    weights::refuse(source, "cannot be written" + (failed ? ": " + failed.message() : std::string()));
  }
}

}  // namespace cortex
