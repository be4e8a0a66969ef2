// Loads and stores of LLVM IR, and what they say about aliasing: each buffer of the program is its own alias scope.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/codegen/llvm_ops.hpp"
#include "cortex/codegen/memo.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// The memory of a program: its buffers, whose pointers are loaded at entry or given by the caller, and local ones on
/// the stack. A function numbers the buffers that it touches by itself, so that two which differ in buffers alone are
/// one text.
///
/// The pointers are no `noalias` parameters. Such a promise would also hold against the barrier, an opaque call through
/// which other workers change these buffers; alias scopes speak of loads and stores alone.
class LlvmMemory {
 public:
  LlvmMemory(const ir::Program& program, LlvmOps& ops) : program_(program), ops_(ops) {
    for (std::size_t i = 0; i < program.buffers.size(); ++i) declare(program.buffers[i], int(i));
    enter({.is_main = true});
  }

  /// What a function has of its own: its local buffers, and the program's that it touches.
  struct Frame {
    bool is_main = false;  // it numbers buffers as the program does
    std::string allocas = {};
    Vector<int> buffers = {};  // that it touches, by its own numbers
    Vector<int> own = {};      // [buffer of the program] its number here; -1: not touched
  };

  /// Begins another function; returns the one that was begun before.
  Frame enter(Frame frame) {
    frame.own.resize(program_.buffers.size(), -1);
    return std::exchange(frame_, std::move(frame));
  }

  /// The buffers that the function touches, in the order of its numbers for them.
  const Vector<int>& buffers() const { return frame_.buffers; }

  /// The pointer to one of the program's buffers, as a value of the function.
  std::string pointer(int buffer) { return "%b" + std::to_string(own_number(buffer)); }

  /// The same, as operands or as parameters of a function, each with a comma before it.
  static std::string parameters(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += ", ptr noundef %b" + std::to_string(i);
    return text;
  }
  std::string operands(const Vector<int>& buffers) {
    std::string text;
    for (const int buffer : buffers) text += ", ptr " + pointer(buffer);
    return text;
  }

  /// The allocation of local buffers; and the loads of the pointers to all others that the function touches.
  const std::string& allocations() const { return frame_.allocas; }
  std::string loads_of_pointers() const {
    std::string text = "  %buffers = load ptr, ptr %args, align 8, !invariant.load !0\n";
    Vector<int> buffers = frame_.buffers;
    std::sort(buffers.begin(), buffers.end());
    for (const int buffer : buffers) {
      const std::string n = std::to_string(frame_.own[std::size_t(buffer)]);
      text += "  %at" + n + " = getelementptr inbounds ptr, ptr %buffers, i64 " + std::to_string(buffer) + "\n";
      text += "  %b" + n + " = load ptr, ptr %at" + n + ", align 8, !invariant.load !0\n";
    }
    return text;
  }

  /// Room for a local buffer from here on. All of it is allocated in the entry block, from where LLVM promotes it to
  /// registers.
  void allocate(const ir::Buffer& buffer) {
    std::int64_t count = 1;
    for (const Dim& dim : buffer->dims) count *= dim.extent();
    if (count < 1) throw Error(Code::internal, "LLVM text: local buffer " + buffer->name + " has no constant size");
    check_type(buffer);
    const std::string element = llvm_type({buffer->dtype, buffer->lanes}), name = ops_.fresh("a");
    frame_.allocas += "  " + name + " = alloca " +
                      (count == 1 ? element : "[" + std::to_string(count) + " x " + element + "]") +
                      (holds_tiles(buffer) ? ", align 64\n" : "\n");
    places_.insert_or_assign(buffer.id(), Place{name, element, buffer->lanes, "", "", -1});
  }

  /// Room on the stack for so many bytes, all of a line where they fill one.
  std::string room(int bytes) {
    const std::string name = ops_.fresh("a");
    frame_.allocas += "  " + name + " = alloca [" + std::to_string(bytes) + " x i8], align 64\n";
    return name;
  }

  /// The value of `type` at one or several offsets: one of 64 bits, or several of the index's type. `index` is null for
  /// a local buffer without dimensions.
  std::string load(const ir::Buffer& buffer, ir::Type type, const ir::Expr& index, const std::string& offset) {
    const Place place = place_of(buffer);
    const std::string at = index ? element_at(place, index, offset) : place.pointer;
    const bool vector_index = index && index.lanes() > 1;
    if (!vector_index) return load_at(place, {buffer->dtype, place.lanes}, at);
    if (place.lanes > 1) throw Error(Code::internal, "LLVM text: a vector index into vectors of " + buffer->name);
    if (index.as<ir::Broadcast>()) return ops_.splat(load_at(place, {buffer->dtype, 1}, at), type);
    if (index.as<ir::Ramp>()) return load_at(place, type, at);
    const Vector<std::string> addresses = addresses_of_lanes(place, index, offset);
    std::string result = "poison";
    for (int i = 0; i < type.lanes; ++i)
      result = ops_.with_lane(result, type, i, load_at(place, {buffer->dtype, 1}, addresses[std::size_t(i)]));
    return result;
  }

  /// Where an address is: what is loaded or stored lies in its buffer, what is asked for ahead may lie past its end.
  enum class Bounds : std::uint8_t { inside, anywhere };

  /// Where an element of the program's buffer is; `offset` is of 64 bits, and empty for the first.
  std::string address(const ir::Buffer& buffer, const std::string& offset, Bounds bounds) {
    const Place place = place_of(buffer);
    return offset.empty() ? place.pointer : gep(place, {DType::i64, 1}, offset, bounds);
  }

  /// So many elements from `row`, whichever buffer that is in.
  std::string address_from(ir::Type type, const std::string& row, const std::string& offset, Bounds bounds) {
    const Place nowhere{row, std::string(llvm_scalar(type.dtype)), 1, "", "", -1};
    return offset.empty() ? row : gep(nowhere, {DType::i64, 1}, offset, bounds);
  }

  /// The value of `type` there.
  std::string load_from(ir::Type type, const std::string& address) {
    return load_at({"", "", 1, "", "", -1}, type, address);
  }

  /// Stores a value of `type`; a scalar goes to every lane of a vector's place.
  void store(const ir::Buffer& buffer, const ir::Expr& index, const std::string& offset, ir::Type type,
             std::string operand) {
    if (is_invariant(buffer))
      throw Error(Code::internal, "LLVM text: a store to " + buffer->name + ", which loads take as constant");
    const Place place = place_of(buffer);
    const bool vector_index = index && index.lanes() > 1;
    if (vector_index && place.lanes > 1)
      throw Error(Code::internal, "LLVM text: a vector index into vectors of " + buffer->name);
    const ir::Type stored{type.dtype, vector_index ? index.lanes() : place.lanes};
    if (type.lanes == 1)
      operand = ops_.splat(operand, stored);
    else if (type != stored)
      throw Error(Code::internal, "LLVM text: a store of another number of lanes to " + buffer->name);
    if (!vector_index || index.as<ir::Ramp>())
      return store_at(place, stored, index ? element_at(place, index, offset) : place.pointer, operand);
    if (index.as<ir::Broadcast>())  // lanes are stored in their order, so the last one stays
      return store_at(place, {type.dtype, 1}, element_at(place, index, offset),
                      ops_.lane(operand, stored, stored.lanes - 1));
    const Vector<std::string> addresses = addresses_of_lanes(place, index, offset);
    for (int i = 0; i < stored.lanes; ++i)
      store_at(place, {type.dtype, 1}, addresses[std::size_t(i)], ops_.lane(operand, stored, i));
  }

  /// The metadata that loads and stores refer to: !0 is empty, !1 the domain, then a scope a buffer, then for each
  /// buffer the list of its own scope and the list of all others.
  std::string metadata() const {
    const std::size_t n = program_.buffers.size();
    std::string text = "!0 = !{}\n!1 = distinct !{!1}\n";
    for (std::size_t i = 0; i < n; ++i) text += scope(i) + " = distinct !{" + scope(i) + ", !1}\n";
    for (std::size_t i = 0; i < n; ++i) {
      std::string others;
      for (std::size_t j = 0; j < n; ++j)
        if (j != i) others += (others.empty() ? "" : ", ") + scope(j);
      text += own_list(i) + " = !{" + scope(i) + "}\n" + other_list(i) + " = !{" + others + "}\n";
    }
    return text;
  }

  /// The expression whose value `load` and `store` want as `offset`: a ramp's base alone, a broadcast's scalar, the
  /// first of places that lie equally far apart.
  static const ir::Expr& offset_of(const ir::Expr& index) {
    if (const auto* ramp = index.as<ir::Ramp>()) return ramp->base;
    if (const auto* same = index.as<ir::Broadcast>()) return same->value;
    if (step_of(index)) return index.as<ir::Binary>()->a.as<ir::Broadcast>()->value;
    return index;
  }

  /// How far each lane's place lies behind that of the lane before, in an index as `flatten_storage` makes it, of a
  /// scalar for all lanes and of lanes times a number; nothing in any other.
  static std::optional<std::int64_t> step_of(const ir::Expr& index) {
    const auto* sum = index.as<ir::Binary>();
    if (!sum || sum->op != ir::BinaryOp::add || !sum->a.as<ir::Broadcast>()) return std::nullopt;
    const auto* product = sum->b.as<ir::Binary>();
    if (!product || product->op != ir::BinaryOp::mul) return std::nullopt;
    const auto* cast = product->a.as<ir::Cast>();
    const auto* lanes = (cast ? cast->a : product->a).as<ir::Ramp>();
    const auto* number = product->b.as<ir::Broadcast>();
    return lanes && number && ir::as_int(lanes->base) == 0 ? ir::as_int(number->value) : std::nullopt;
  }

 private:
  struct Place {
    std::string pointer;
    std::string element;  // the type that an index counts
    int lanes;
    std::string loads, stores;  // metadata
    int number;                 // among the program's buffers; -1 for a local one
  };

  /// Whether a local buffer is long enough to be tiles of a matrix unit, which are read and written by lines.
  static bool holds_tiles(const ir::Buffer& buffer) {
    return buffer->lanes == 1 && buffer->dims.size() == 1 && buffer->dims[0].extent() >= ir::TileProduct::sums_of_panel;
  }

  static std::string scope(std::size_t i) { return "!" + std::to_string(2 + i); }
  std::string own_list(std::size_t i) const { return scope(program_.buffers.size() + 2 * i); }
  std::string other_list(std::size_t i) const { return scope(program_.buffers.size() + 2 * i + 1); }

  static void check_type(const ir::Buffer& buffer) {
    if (buffer->dtype == DType::boolean)
      throw Error(Code::internal, "LLVM text: buffer " + buffer->name + " of booleans");
  }

  void declare(const ir::Buffer& buffer, int i) {
    check_type(buffer);
    places_.emplace(buffer.id(), Place{"", std::string(llvm_scalar(buffer->dtype)), 1, "", "", i});
  }

  int own_number(int buffer) {
    int& own = frame_.own[std::size_t(buffer)];
    if (own < 0) {
      own = frame_.is_main ? buffer : int(frame_.buffers.size());
      frame_.buffers.push_back(buffer);
    }
    return own;
  }

  Place place_of(const ir::Buffer& buffer) {
    const auto found = places_.find(buffer.id());
    if (found == places_.end())
      throw Error(Code::internal, "LLVM text: buffer " + buffer->name + " is not the program's");
    Place place = found->second;
    if (place.number < 0) return place;
    const std::size_t own = std::size_t(own_number(place.number));
    place.pointer = pointer(place.number);
    place.stores = ", !alias.scope " + own_list(own) + ", !noalias " + other_list(own);
    place.loads = place.stores + (is_invariant(buffer) ? ", !invariant.load !0" : "");
    return place;
  }

  /// An address that is said to be inside and is not has no value at all, whatever becomes of it.
  std::string gep(const Place& place, ir::Type index, const std::string& offset, Bounds bounds = Bounds::inside) {
    if (offset == "0") return place.pointer;
    return ops_.value("getelementptr ", bounds == Bounds::inside ? "inbounds " : "", place.element, ", ptr ",
                      place.pointer, ", ", llvm_type(index), " ", offset);
  }

  /// The lanes' addresses in a gather or its reverse.
  Vector<std::string> addresses_of_lanes(const Place& place, const ir::Expr& index, const std::string& offset) {
    const auto step = step_of(index);
    Place first = place;
    if (step) first.pointer = gep(place, {DType::i64, 1}, offset);
    Vector<std::string> addresses;
    for (int lane = 0; lane < index.lanes(); ++lane)
      addresses.push_back(step ? gep(first, {DType::i64, 1}, std::to_string(*step * lane))
                               : gep(place, {index.dtype(), 1}, ops_.lane(offset, index.type(), lane)));
    return addresses;
  }

  /// The first or only element's address; for a gather there is none.
  std::string element_at(const Place& place, const ir::Expr& index, const std::string& offset) {
    const ir::Expr& scalar = offset_of(index);
    return scalar.lanes() > 1 ? std::string() : gep(place, {DType::i64, 1}, offset);
  }

  std::string load_at(const Place& place, ir::Type type, const std::string& pointer) {
    return ops_.value("load ", llvm_type(type), ", ptr ", pointer, ", align ", std::to_string(size_of(type.dtype)),
                      place.loads);
  }

  void store_at(const Place& place, ir::Type type, const std::string& pointer, const std::string& operand) {
    ops_.line("store ", llvm_type(type), " ", operand, ", ptr ", pointer, ", align ",
              std::to_string(size_of(type.dtype)), place.stores);
  }

  const ir::Program& program_;
  LlvmOps& ops_;
  PointerMap<Place> places_;
  Frame frame_;
};

}  // namespace cortex::codegen
