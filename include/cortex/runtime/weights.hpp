// Bound weights: checked, copied once into the layouts that the code reads, and never changed after.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/mutex.hpp"
#include "cortex/base/names.hpp"
#include "cortex/base/this_thread.hpp"
#include "cortex/base/usual_arithmetic.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/published.hpp"
#include "cortex/runtime/storage.hpp"
#include "cortex/runtime/tables.hpp"

namespace cortex::runtime {

/// The weights of a model at one moment. Sets share the blocks of weights that do not differ between them.
struct WeightSet {
  Vector<std::shared_ptr<const Block>> blocks;    // [buffers of the program]; null: no weight, or not bound here
  Vector<std::shared_ptr<const void>> elsewhere;  // [buffers] in place of a block: a `CudaBlock` that holds the same
  Vector<Vector<std::shared_ptr<const Block>>> copies;  // [groups after the first, buffers]; null: as the first one's
  Vector<Vector<std::int64_t>> shapes;                  // [weights] the extents bound; empty: not bound
  Vector<std::shared_ptr<const Tables>> tables;         // [tabulations] made of these weights; null: computed in calls
  Vector<std::int32_t> computes;                        // [tabulations] 0 where there are tables, else 1
  std::string fault;  // why no call is possible; empty: all bound, and they fit together
};

/// "[vocabulary, hidden 256]"
inline std::string shape_text(const Vector<Dim>& dims) {
  std::string result = "[";
  for (const Dim& dim : dims) {
    if (result.size() > 1) result += ", ";
    result += dim.name();
    if (dim.kind() != DimKind::open) result += " " + std::to_string(dim.extent());
  }
  return result + "]";
}

inline std::string shape_text(std::span<const std::int64_t> shape) {
  std::string result = "[";
  for (const std::int64_t extent : shape) result += (result.size() > 1 ? ", " : "") + std::to_string(extent);
  return result + "]";
}

/// The slot of the weight that `buffer` holds, packed or not; -1 if it holds none.
inline int weight_slot(const ir::Buffer& buffer) {
  const ir::BufferInfo* info = &*buffer;
  while (info->packed_from) info = &*info->packed_from;
  return info->role == ir::Role::weight ? info->slot : -1;
}

namespace detail {

/// So many times the runs, the same distance apart.
struct Rows {
  Runs runs;
  std::int64_t count = 1, stride = 0;
  std::int64_t size() const { return count * runs.size(); }
  std::int64_t reach() const { return (count - 1) * stride + reach_of(runs); }
};

/// Where a tensor has its elements, row by row where one stride leads to the next row: all runs of a large table would
/// take more memory than the table.
inline Rows rows_of(const ir::Layout& layout, const Vector<std::int64_t>& shape) {
  const ir::Axis* outer = nullptr;
  int parts = 0;
  for (const ir::Axis& axis : layout.axes)
    if (axis.source == 0) outer = &axis, ++parts;
  if (parts != 1 || outer->divisor != 1 || outer->modulus) return {runs_of(layout, 0, shape)};
  return {runs_of(layout, 1, Vector<std::int64_t>(shape.begin() + 1, shape.end())), shape[0], outer->stride};
}

template <class Element>
void copy_rows(const Rows& rows, const void* from, std::byte* to) {
  const auto* source = static_cast<const Element*>(from);
  auto* target = reinterpret_cast<Element*>(to);
  for (std::int64_t row = 0; row < rows.count; ++row, target += rows.stride)
    for (const std::int64_t begin : rows.runs.begin) {
      std::memcpy(target + begin, source, std::size_t(rows.runs.length) * sizeof(Element));
      source += rows.runs.length;
    }
}

inline std::shared_ptr<const Block> copy_of(const Block& block) {
  auto copy = std::make_shared<Block>(block.size(), Block::store_less, Block::Use::read_again);
  std::memcpy(copy->data(), block.data(), block.size());
  return copy;
}

/// A copy of the dense row-major tensor at `values` in the layout of `buffer`; what the layout does not reach is zero.
inline std::shared_ptr<const Block> packed(const ir::BufferInfo& buffer, const void* values,
                                           const Vector<std::int64_t>& shape, Block::Use use = Block::Use::any) {
  const ir::Layout layout = layout_of(buffer);
  const Rows rows = rows_of(layout, shape);
  const std::int64_t elements =
      layout.fixed_size ? layout.fixed_size : std::max(layout.row_size * shape[0], rows.reach());
  if (rows.reach() > elements)
    throw Error(Code::internal, "the layout of buffer '" + buffer.name + "' reaches past its size");
  auto block = std::make_shared<Block>(std::size_t(elements) * size_of(buffer.dtype), Block::store_less, use);
  if (rows.size() != elements) std::memset(block->data(), 0, block->size());
  switch (size_of(buffer.dtype)) {
    case 1: copy_rows<std::uint8_t>(rows, values, block->data()); break;
    case 2: copy_rows<std::uint16_t>(rows, values, block->data()); break;
    case 4: copy_rows<std::uint32_t>(rows, values, block->data()); break;
    default: copy_rows<std::uint64_t>(rows, values, block->data());
  }
  return block;
}

}  // namespace detail

/// The name of the input of `graph` that a handle stands for. One of another model is refused even if the names agree.
inline const std::string& own_name_of(const ra::Graph& graph, const ir::Buffer& handle) {
  if (graph.find(handle) >= 0) return handle->name;
  const bool namesake = graph.find(handle->name) >= 0;
  throw Error(Code::invalid_weights,
              in_quotes(handle->name) + " belongs to another model than " + in_quotes(graph.name) +
                  (namesake ? ", which has one of that name: bind it by the name, or by its own handle"
                            : ": bind what belongs to this one"));
}

/// Of a weight that is named, which is checked where it is bound, or whose handle is given.
template <class Name>
std::string_view name_of_weight(const ra::Graph& graph, const Name& name) {
  if constexpr (std::is_pointer_v<Name>)
    if (!name)
      throw Error(Code::invalid_weights,
                  "a weight of model " + in_quotes(graph.name) + " was to be bound, but its name is a null pointer");
  if constexpr (std::is_convertible_v<const Name&, std::string_view>)
    return name;
  else
    return own_name_of(graph, name.buffer());
}

/// Binds the weights of one executable. All member functions may be called from any number of threads.
class Weights {
 public:
  explicit Weights(std::shared_ptr<const Executable> executable)
      : executable_(std::move(executable)), published_(first(*executable_)) {}

  /// Binds `count` elements of `dtype` at `values`, row-major, to the weight called `name`, and publishes the set that
  /// holds them; calls in flight keep the one that they started with. `shape` may be left empty: the extent of an open
  /// first dimension is then count / the other extents. The values are copied. Throws `Error{invalid_weights}` for an
  /// unknown name, another dtype or shape; nothing is changed then.
  void bind(std::string_view name, DType dtype, const void* values, std::size_t count,
            std::span<const std::int64_t> shape = {}) {
    const Place place = place_of(name, dtype, count, shape);
    if (!values) refuse(place, "was given a null pointer");
    const Vector<ir::Buffer>& buffers = executable_->program.buffers;
    Values copies{Vector<std::shared_ptr<const Block>>(buffers.size()),
                  Vector<std::shared_ptr<const void>>(buffers.size())};
    try {
      for (std::size_t b = 0; b < buffers.size(); ++b)
        if (weight_slot(buffers[b]) == int(place.slot)) copies.blocks[b] = copy_of(place, *buffers[b], values);
      replace(place, std::move(copies));
    } catch (const Error& error) {
      if (error.code != Code::out_of_memory) throw;
      throw Error(error.code, "weight " + in_quotes(name) + " of model " + in_quotes(executable_->graph.name) +
                                  " is not bound: " + error.message);
    }
  }

  // ---- binding step by step, for values that do not come from the host ----

  /// A weight by its number, and the extents of what is bound to it.
  struct Place {
    std::size_t slot;
    Vector<std::int64_t> extents;
  };
  /// What `bind` checks but for the values themselves. Without a count there are as many as the shape says.
  Place place_of(std::string_view name, DType dtype, std::optional<std::size_t> count,
                 std::span<const std::int64_t> shape) const {
    const std::size_t slot = slot_of(name);
    const WeightSpec& spec = executable_->weights[slot];
    if (dtype != spec.dtype)
      fail(spec, "was given " + std::string(to_string(dtype)) + " elements: convert them, or declare it as input<" +
                     (dtype == DType::f64 ? "double" : "float") + ">");
    return {slot, shape.empty() ? inferred(spec, count) : checked(spec, count, shape)};
  }
  [[noreturn]] void refuse(const Place& place, const std::string& what) const {
    fail(executable_->weights[place.slot], what);
  }
  /// The dense values at `values` as `buffer` holds them, which is one of the weight's. Throws for values that it does
  /// not hold.
  std::shared_ptr<const Block> copy_of(const Place& place, const ir::BufferInfo& buffer, const void* values) const {
    const UsualArithmetic usual;
    if (is_narrow(buffer.dtype) || buffer.is_scales)
      return stored(place.slot, buffer, static_cast<const float*>(values), place.extents);
    return detail::packed(buffer, values, place.extents, use_of(buffer));
  }
  /// As the members of `WeightSet`; null for buffers of other weights.
  struct Values {
    Vector<std::shared_ptr<const Block>> blocks;
    Vector<std::shared_ptr<const void>> elsewhere;
  };
  /// Publishes a set in which the weight has these values; inside of a `Together` of this thread, at its end.
  void replace(const Place& place, Values values) {
    Change change{place, std::move(values)};
    const Binding binding(*this);
    if (Together* const together = innermost())
      together->changes_.push_back(std::move(change));
    else
      publish(Vector<Change>{std::move(change)}, false);
  }

  const Executable& executable() const { return *executable_; }

 private:
  struct Change {
    Place place;
    Values values;
  };
  /// Holds the lock while a set is made of the one before, which goes after that: what of it a device has may wait for
  /// the device.
  class Binding {
   public:
    explicit Binding(Weights& weights) : lock_(weights.binding_) { before_ = weights.published_.current().value; }

   private:
    std::shared_ptr<const WeightSet> before_;
    const Lock lock_;  // goes first
  };

 public:
  /// Collects what its thread binds, to publish it as one set: no call has some of it and lacks the rest. Without
  /// `publish` at the end, nothing of it is bound, nor where `publish` throws, which `Error{invalid_weights}` is for
  /// weights that disagree on the extent of an open dimension. They may be nested.
  class Together {
   public:
    explicit Together(Weights& weights) : weights_(&weights) {
      const Lock lock(weights_->binding_);
      weights_->together_.push_back({thread_, this});
    }
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;
    ~Together() {
      const Lock lock(weights_->binding_);
      close();
    }
    void publish() {
      const Binding binding(*weights_);
      close();
      Together* const outer = weights_->innermost();
      if (!outer) return weights_->publish(std::move(changes_), true);
      outer->changes_.reserve(outer->changes_.size() + changes_.size());  // or else none of them goes on
      for (Change& change : changes_) outer->changes_.push_back(std::move(change));
    }

   private:
    friend class Weights;
    void close() {
      erase_where(weights_->together_,
                  [&](const Open& open) { return open.thread == thread_ && open.together == this; });
    }

    Weights* weights_;
    const std::uint64_t thread_ = this_thread();
    Vector<Change> changes_;
  };

  const Published<const WeightSet>& published() const { return published_; }

 private:
  /// More than any machine has, and so few that sizes in bytes, of padded layouts too, are far from 64 bits.
  static constexpr std::size_t most_elements = std::size_t(1) << 48;

  [[noreturn]] void fail(const WeightSpec& spec, const std::string& what) const {
    throw Error(Code::invalid_weights,
                "weight " + in_quotes(spec.name) + " of model " + in_quotes(executable_->graph.name) + " is " +
                    std::string(to_string(spec.dtype)) + " " + shape_text(spec.dims) + " but " + what);
  }

  std::size_t slot_of(std::string_view name) const {
    const Vector<WeightSpec>& weights = executable_->weights;
    for (std::size_t slot = 0; slot < weights.size(); ++slot)
      if (weights[slot].name == name) return slot;
    std::string all;
    const WeightSpec* closest = nullptr;
    std::size_t least = 0;
    for (const WeightSpec& weight : weights) {
      all += (all.empty() ? "" : ", ") + in_quotes(weight.name);
      if (std::max(name.size(), weight.name.size()) > longest_name) continue;  // distances take the product of lengths
      const std::size_t distance = edit_distance(name, weight.name);
      if (!closest || distance < least) closest = &weight, least = distance;
    }
    std::string message = "model " + in_quotes(executable_->graph.name) + " has no weight " + in_quotes(name);
    if (closest && least <= 1 + name.size() / 3) message += "; did you mean " + in_quotes(closest->name) + "?";
    throw Error(Code::invalid_weights, message + (all.empty() ? "; it has none" : "; its weights are " + all));
  }

  Vector<std::int64_t> inferred(const WeightSpec& spec, std::optional<std::size_t> known) const {
    Vector<std::int64_t> extents;
    std::int64_t row = 1;
    for (const Dim& dim : spec.dims) {
      extents.push_back(dim.extent());
      if (dim.kind() != DimKind::open) row *= dim.extent();
    }
    const bool open = !spec.dims.empty() && spec.dims[0].kind() == DimKind::open;
    if (open && !known) fail(spec, "was given no shape, which says how many rows there are");
    const std::size_t count = known.value_or(std::size_t(row));
    if (!open && count != std::size_t(row))
      fail(spec, "was given " + std::to_string(count) + " elements, not " + std::to_string(row));
    if (open && count == 0) fail(spec, "was given no elements; it has at least one row of " + std::to_string(row));
    if (open && count % std::size_t(row) != 0)
      fail(spec, "was given " + std::to_string(count) + " elements, which is no whole number of rows of " +
                     std::to_string(row));
    if (count > most_elements) fail(spec, "was given " + std::to_string(count) + " elements, which no memory holds");
    if (open) extents[0] = std::int64_t(count / std::size_t(row));
    return extents;
  }

  Vector<std::int64_t> checked(const WeightSpec& spec, std::optional<std::size_t> count,
                               std::span<const std::int64_t> shape) const {
    const std::string given = "was given the shape " + shape_text(shape);
    if (shape.size() != spec.dims.size()) fail(spec, given + " of " + std::to_string(shape.size()) + " dimensions");
    std::size_t product = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Dim& dim = spec.dims[d];
      if (shape[d] < 1 && dim.kind() == DimKind::open)
        fail(spec, given + ", but of " + in_quotes(dim.name()) + " there is at least 1");
      if (shape[d] < 1 || (dim.kind() != DimKind::open && shape[d] != dim.extent()))
        fail(spec, given + ", which differs in dimension " + in_quotes(dim.name()));
      if (__builtin_mul_overflow(product, std::size_t(shape[d]), &product) || product > most_elements)
        fail(spec, given + ", which no memory holds");
    }
    if (count && *count != product)
      fail(spec, given + " of " + std::to_string(product) + " elements with " + std::to_string(*count) + " elements");
    return {shape.begin(), shape.end()};
  }

  /// A copy in elements of another type, or the scales of such a copy.
  std::shared_ptr<const Block> stored(std::size_t slot, const ir::BufferInfo& buffer, const float* values,
                                      Vector<std::int64_t> extents) const {
    std::string fault;
    const Vector<std::byte> elements = executable_->store(buffer, values, extents, fault);
    if (!fault.empty()) fail(executable_->weights[slot], fault);
    return detail::packed(buffer, elements.data(), extents, use_of(buffer));
  }

  /// What is packed, a CPU sweeps over; a GPU has copies.
  Block::Use use_of(const ir::BufferInfo& buffer) const {
    const bool swept = buffer.packed_from && executable_->target.backend == Backend::llvm;
    return swept ? Block::Use::read_again : Block::Use::any;
  }

  /// Weights that are read and missing, or that disagree. Such a set may be bound, because two weights are replaced one
  /// after the other, but not called with.
  static std::string fault_of(const Executable& executable, const Vector<Vector<std::int64_t>>& shapes) {
    std::string missing;
    for (std::size_t slot = 0; slot < shapes.size(); ++slot)
      if (shapes[slot].empty() && executable.weights[slot].read)
        missing += (missing.empty() ? "" : ", ") + in_quotes(executable.weights[slot].name);
    if (missing.empty()) return disagreement_of(executable, shapes);
    return "model " + in_quotes(executable.graph.name) + " is called before these weights are bound: " + missing;
  }

  /// Two weights that are read and differ in the extent of an open dimension. Empty if there are none.
  static std::string disagreement_of(const Executable& executable, const Vector<Vector<std::int64_t>>& shapes) {
    const auto is_there = [&](std::size_t slot) { return executable.weights[slot].read && !shapes[slot].empty(); };
    for (std::size_t b = 1; b < shapes.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const WeightSpec &first = executable.weights[a], &second = executable.weights[b];
        if (!is_there(a) || !is_there(b) || first.dims[0] != second.dims[0] || shapes[a][0] == shapes[b][0]) continue;
        return "model " + in_quotes(executable.graph.name) + ": dimension " + in_quotes(first.dims[0].name()) +
               " has " + std::to_string(shapes[a][0]) + " elements in weight " + in_quotes(first.name) + " and " +
               std::to_string(shapes[b][0]) + " in " + in_quotes(second.name) + "; bind both alike";
      }
    }
    return {};
  }

  /// The tables go that follow from weight `slot`, also by the range of a field.
  void drop_tables(WeightSet& set, int slot) const {
    for (std::size_t t = 0; t < set.tables.size(); ++t) {
      const ir::Tabulation& tabulation = executable_->program.tabulations[t];
      bool follows = contains(tabulation.weights, slot);
      for (const ir::Tabulation::Key& key : tabulation.keys)
        follows |= executable_->fields[std::size_t(key.field)].weight == slot;
      if (follows) set.tables[t] = nullptr;
    }
  }

  /// One that is not ended, and whose it is. In a child process those of other threads are gone, with all that is in
  /// them, and stay listed.
  struct Open {
    std::uint64_t thread;
    Together* together;
  };

  /// The last `Together` that this thread has begun and not ended.
  Together* innermost() const {
    for (const Open& open : reversed(together_))
      if (open.thread == this_thread()) return open.together;
    return nullptr;
  }

  /// Publishes the set with these changes, and with the tables that it lacks if it is complete. Calls do not wait for
  /// their making. Changes that were made together are to agree.
  void publish(Vector<Change> changes, bool together) {
    if (changes.empty()) return;
    auto set = std::make_shared<WeightSet>(*published_.current().value);
    for (Change& change : changes) apply(std::move(change), *set);
    const std::string refused = together ? disagreement_of(*executable_, set->shapes) : "";
    if (!refused.empty()) throw Error(Code::invalid_weights, refused);
    set->fault = fault_of(*executable_, set->shapes);
    copy_for_groups(*set);
    if (!set->tables.empty() && set->fault.empty()) make_tables(*executable_, set->blocks, set->shapes, set->tables);
    for (std::size_t t = 0; t < set->tables.size(); ++t) set->computes[t] = !set->tables[t];
    published_.replace([&](const std::shared_ptr<const WeightSet>&) { return std::move(set); });
  }

  void apply(Change change, WeightSet& set) const {
    const int slot = int(change.place.slot);
    for (std::size_t b = 0; b < set.blocks.size(); ++b) {
      if (weight_slot(executable_->program.buffers[b]) != slot) continue;
      set.blocks[b] = std::move(change.values.blocks[b]);
      for (auto& own : set.copies) own[b] = nullptr;
      set.elsewhere[b] = std::move(change.values.elsewhere[b]);
    }
    set.shapes[change.place.slot] = std::move(change.place.extents);
    drop_tables(set, slot);
  }

  /// Gives groups after the first what they lack of weights of their own.
  void copy_for_groups(WeightSet& set) const {
    for (auto& own : set.copies)
      for (std::size_t b = 0; b < own.size(); ++b)
        if (!own[b] && set.blocks[b] && executable_->read_whole[b]) own[b] = detail::copy_of(*set.blocks[b]);
  }

  static std::shared_ptr<const WeightSet> first(const Executable& executable) {
    auto set = std::make_shared<WeightSet>();
    set->blocks.resize(executable.program.buffers.size());
    set->elsewhere.resize(executable.program.buffers.size());
    set->copies.resize(std::size_t(executable.groups_with_weights - 1));
    for (auto& own : set->copies) own.resize(set->blocks.size());
    set->shapes.resize(executable.weights.size());
    set->fault = fault_of(executable, set->shapes);
    // A GPU's are made on it, since its kernel makes them.
    if (executable.target.backend != Backend::cuda)
      set->tables.resize(executable.program.tabulations.size());
    set->computes.assign(executable.program.tabulations.size(), 1);
    return set;
  }

  std::shared_ptr<const Executable> executable_;
  Mutex binding_;          // held while a set is made of the one before
  Vector<Open> together_;  // those that are not ended
  Published<const WeightSet> published_;
};

}  // namespace cortex::runtime
