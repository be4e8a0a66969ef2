// Memory of tensors: aligned blocks, and where a layout puts elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/memory.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/buffer.hpp"
#include "cortex/runtime/huge_pages.hpp"

namespace cortex::runtime {

/// A piece of memory, aligned to cache lines; from 64 KB up, on huge pages where the system has them, which blocks
/// below 2 MB share. Contents are not initialised.
class Block {
 public:
  Block() = default;
  /// What to do where there is no room for weights and what is made of them.
  static constexpr const char* store_less = "free memory, or store weights in less of it (Schedule::store_weights)";

  /// What memory is for. What is read again and again, whole, is worth the time to find pages that a cache holds.
  enum class Use : std::uint8_t { any, read_again };

  /// Room for `bytes` and the slack. Throws `Error{out_of_memory}` with the advice.
  explicit Block(std::size_t bytes, const char* advice = call_with_less, Use use = Use::any) : size_(bytes) {
    if (bytes > SIZE_MAX / 2) no_memory(double(bytes), advice);
    const std::size_t room = bytes + slack_bytes;
    const bool again = use == Use::read_again;
    if (HugePages::are_for(room)) data_ = HugePages::of_process().take(room, again), from_ = From::shared_pages;
    if (again && HugePages::are_worth_choice(room))
      data_ = map_chosen_pages(ceil_div(room, huge_page)), from_ = From::pages;
    if (!data_) data_ = own(room), from_ = From::heap;
    if (!data_) no_memory(double(bytes), advice);
    std::memset(data_ + bytes, 0, slack_bytes);
  }
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(from_, other.from_);
    return *this;
  }
  ~Block() {
    const std::size_t room = size_ + slack_bytes;
    switch (from_) {
      case From::heap: std::free(data_); break;
      case From::shared_pages: HugePages::of_process().give_back(data_, room); break;
      case From::pages: unmap_pages(data_, ceil_div(room, huge_page));
    }
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  static std::byte* own(std::size_t bytes) {
    const std::size_t alignment = bytes >= huge_page ? huge_page : cache_line;
    const std::size_t rounded = round_up(bytes, alignment);
    auto* const data = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
    if (data && alignment > cache_line) ::madvise(data, rounded, MADV_HUGEPAGE);
    return data;
  }

  enum class From : std::uint8_t { heap, shared_pages, pages };
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  From from_ = From::heap;
};

/// The buffer's layout, or the dense row-major one where storage is not planned.
inline ir::Layout layout_of(const ir::BufferInfo& buffer) {
  if (!buffer.layout.empty()) return buffer.layout;
  ir::Layout layout;
  std::int64_t stride = 1;
  bool fixed = true;
  for (std::size_t d = buffer.dims.size(); d-- > 0;) {
    layout.axes.insert(layout.axes.begin(), ir::Axis{int(d), 1, 0, stride});
    if (buffer.dims[d].kind() == DimKind::dense)
      stride *= buffer.dims[d].extent();
    else
      fixed = false;
  }
  (fixed ? layout.fixed_size : layout.row_size) = stride;
  return layout;
}

/// What index `value` of dimension `source` adds to the element offset.
inline std::int64_t offset_along(const ir::Layout& layout, int source, std::int64_t value) {
  std::int64_t offset = 0;
  for (const ir::Axis& axis : layout.axes) {
    if (axis.source != source) continue;
    const std::int64_t part = value / axis.divisor;
    offset += (axis.modulus ? part % axis.modulus : part) * axis.stride;
  }
  return offset;
}

/// The offsets that the indices [0, extent) of dimension `source` add: a layout's offset is the sum over dimensions.
inline Vector<std::int64_t> offsets_along(const ir::Layout& layout, int source, std::int64_t extent) {
  Vector<std::int64_t> result(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) result[std::size_t(i)] = offset_along(layout, source, i);
  return result;
}

/// The distance of the elements along dimension `source` where each lies as far behind the one before; 0 if they do
/// not.
inline std::int64_t stride_along(const ir::Layout& layout, int source) {
  const ir::Axis* only = nullptr;
  for (const ir::Axis& axis : layout.axes) {
    if (axis.source != source) continue;
    if (only || axis.divisor != 1 || axis.modulus) return 0;
    only = &axis;
  }
  return only ? only->stride : 0;
}

/// A tensor of dense dimensions inside a layout, as runs of elements that lie side by side.
struct Runs {
  std::int64_t length = 1;        // elements of a run
  Vector<std::int64_t> begin{0};  // [run] offset in elements, in row-major order of the logical tensor
  std::int64_t size() const { return length * std::int64_t(begin.size()); }
  bool contiguous() const { return begin.size() == 1; }
};

/// The runs of the last `dims` of `extents`, each extent at least 1; `first` is the number of the first of them in the
/// layout.
inline Runs runs_of(const ir::Layout& layout, int first, const Vector<std::int64_t>& extents) {
  Runs runs;
  for (std::size_t d = extents.size(); d-- > 0;) {
    const bool whole = runs.contiguous() && runs.begin[0] == 0;
    if (whole && stride_along(layout, first + int(d)) == runs.length) {  // without a list as long as the dimension
      runs.length *= extents[d];
      continue;
    }
    const Vector<std::int64_t> along = offsets_along(layout, first + int(d), extents[d]);
    bool joins = whole;
    for (std::size_t i = 0; joins && i < along.size(); ++i) joins = along[i] == std::int64_t(i) * runs.length;
    if (joins) {
      runs.length *= extents[d];
      continue;
    }
    Vector<std::int64_t> begin;
    begin.reserve(along.size() * runs.begin.size());
    for (const std::int64_t outer : along)
      for (const std::int64_t inner : runs.begin) begin.push_back(outer + inner);
    runs.begin = std::move(begin);
  }
  return runs;
}

/// How many runs `runs_of` would list, at most, without listing them.
inline std::int64_t most_runs(const ir::Layout& layout, int first, const Vector<std::int64_t>& extents) {
  std::int64_t runs = 1, length = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (runs == 1 && stride_along(layout, first + int(d)) == length)
      length *= extents[d];
    else
      runs *= extents[d];
  }
  return runs;
}

/// The greatest offset that runs reach, plus one.
inline std::int64_t reach_of(const Runs& runs) {
  return *std::max_element(runs.begin.begin(), runs.begin.end()) + runs.length;
}

}  // namespace cortex::runtime
