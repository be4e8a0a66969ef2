// Buffers: named tensors over named dimensions, and the physical layout that their elements lie in.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/dim.hpp"
#include "cortex/base/dtype.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"

namespace cortex::ir {

/// Where a buffer's contents come from.
enum class Role : std::uint8_t {
  weight,  // bound by the user: weights, embedding tables
  field,   // floating-point data of the user's nodes, copied by the linearizer
  state,   // the result of the recursion at every node
  temp,    // an intermediate of the compiler
  index,   // an integer array of the linearizer
};

/// Who sees a buffer.
enum class Scope : std::uint8_t {
  shared,    // all workers of a call
  worker,    // each worker has its own copy
  local,     // one loop iteration, or what a thread keeps: registers, once the loops around its uses are unrolled
  chip,      // each worker has its own copy, in fast memory for the time of a call: the shared memory of a GPU's block
  spread,    // each worker has a part in fast memory, which all of a cluster read there
  recent,    // as chip, for rows of another buffer, which change
  mirrored,  // the same, and what a worker stores goes to the copies of all: of the blocks of a cluster
};

/// Whether it has rows of another buffer, on chip.
constexpr bool has_recent_rows(Scope scope) { return scope == Scope::recent || scope == Scope::mirrored; }

/// Whether workers have a weight, or a part of it, in fast memory of their own.
constexpr bool keeps_weights(Scope scope) { return scope == Scope::chip || scope == Scope::spread; }
/// Whether workers have it in fast memory of their own, and not where a call has its memory.
constexpr bool is_on_chip(Scope scope) { return keeps_weights(scope) || has_recent_rows(scope); }

/// One physical axis of a layout: the part `(index[source] / divisor) % modulus` of a logical index, times `stride`.
/// A modulus of 0 takes the whole quotient.
struct Axis {
  int source;
  std::int64_t divisor;
  std::int64_t modulus;
  std::int64_t stride;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// How a buffer's logical index becomes an element offset: the sum over its axes. Only the outermost axis may be of
/// an extent that is unknown at compile time, so strides are constants.
struct Layout {
  Vector<Axis> axes;
  std::int64_t fixed_size = 0;  // elements, for buffers of known extents; else 0
  std::int64_t row_size = 0;    // elements from one outermost index to the next, where that extent is unknown
  bool empty() const { return axes.empty() && fixed_size == 0 && row_size == 0; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct BufferInfo;

/// A handle to a buffer; two handles are equal if they name the same buffer.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(BufferInfo info);
  const BufferInfo* operator->() const { return &**this; }
  const BufferInfo& operator*() const;
  explicit operator bool() const { return node_.get() != nullptr; }
  const void* id() const { return node_.get(); }
  friend bool operator==(const Buffer& a, const Buffer& b) { return a.id() == b.id(); }

 private:
  struct Node;
  Handle node_;
};

/// The facts of a buffer. `packed_from` is the weight that a packed copy is made from at bind; `stored_in` the
/// temporary whose memory this one uses at other times. A weight stored as i8 is a whole number times a scale, one for
/// each index of the weight's dimensions in `channels` (bit d: dimension d); `is_scales` says that this copy is these
/// scales, a tensor over those dimensions.
struct BufferInfo {
  std::string name;
  DType dtype = DType::f32;
  Vector<Dim> dims;
  Role role = Role::temp;
  Scope scope = Scope::shared;
  // weight: number of the input; field, index: which array of the linearizer; dims over edges: which container
  int slot = -1;
  int kept = -1;          // temporaries whose rows tables hold too: their number; such memory is not shared
  bool recycled = false;  // states: rows serve several nodes, as the linearizer says (structure/state_rows.hpp), which
                          // counts on a barrier in each level that writes some (pass/insert_barriers.hpp)
  int lanes = 1;          // local buffers: the element is a vector of so many
  Layout layout;          // empty until storage is planned
  Buffer packed_from;
  Buffer stored_in;
  std::uint32_t channels = 0;
  bool is_scales = false;
  std::int64_t share = 0;   // spread: elements of a worker's part
  bool tiles = false;       // laid out as a CPU's matrix unit multiplies them: `schedule::tile_layout`
  bool transposed = false;  // its last two dimensions are the model's in the other order
  int parts = 1;            // of a sum, whose threads find theirs side by side: `schedule::part_layout`
  bool fragments = false;   // laid out in tiles, as the threads of a warp hold them: `schedule::fragment_layout`
};

struct Buffer::Node : Counted {
  explicit Node(BufferInfo i) : info(std::move(i)) {}
  BufferInfo info;
};

inline Buffer::Buffer(BufferInfo info) : node_(new Node(std::move(info))) {
  if ((**this).name.empty()) throw Error(Code::internal, "a buffer needs a name");
}
inline const BufferInfo& Buffer::operator*() const { return static_cast<const Node*>(node_.get())->info; }

/// Whether the code of a call writes it. All else is there before the code runs, and stays as it is.
inline bool changes_in_calls(const BufferInfo& buffer) {
  return buffer.role == Role::state || buffer.role == Role::temp;
}

/// What the first dimension of a buffer ranges over, and its rows are of; `dense` of one without dimensions.
inline DimKind kind_of_rows(const BufferInfo& buffer) {
  return buffer.dims.empty() ? DimKind::dense : buffer.dims[0].kind();
}

/// Elements of what a buffer has of all its dimensions of known extent: the whole of a weight without open ones, a row
/// of a state.
inline double dense_elements(const BufferInfo& buffer) {
  double elements = 1;
  for (const Dim& dim : buffer.dims)
    if (dim.extent() > 0) elements *= double(dim.extent());
  return elements;
}
inline double dense_bytes(const BufferInfo& buffer) { return dense_elements(buffer) * double(size_of(buffer.dtype)); }

/// Whether rows are matrices so large that it pays to have few of them, whose numbers are looked up.
inline bool has_large_rows(const BufferInfo& state) {
  int dims = 0;
  for (const Dim& dim : state.dims) dims += dim.extent() > 0;
  return dims > 1 && dense_bytes(state) >= 4096;
}

/// Bytes that a buffer on chip takes of each worker's fast memory, where all begin at multiples of 16.
inline std::int64_t chip_bytes(const BufferInfo& buffer) {
  const std::int64_t elements = buffer.scope == Scope::spread ? buffer.share : buffer.layout.fixed_size;
  return round_up(elements * std::int64_t(size_of(buffer.dtype)), 16);
}

}  // namespace cortex::ir
