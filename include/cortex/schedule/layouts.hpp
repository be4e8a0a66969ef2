// Where a tensor's elements lie (paper section 5, I8): split, reorder, fuse and pad of the axes in memory. What a
// program says of a tensor, its dimensions and indices, stays. A weight is copied into its layout once, when it is
// bound; the copy is made from the same description that indices are computed from.
//
//   W[hidden=32,input=24]       axes in memory, outermost first: hidden, input
//     layout_split(W, 0, 16)    hidden / 16, hidden % 16, input
//     layout_reorder(W, 0, 2, 1)   hidden / 16, input, hidden % 16
//                                  element [i,j] lies at i / 16 * 384 + j * 16 + i % 16
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "cortex/base/multiples.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/schedule/loop_primitives.hpp"
#include "cortex/schedule/pack_weights.hpp"

namespace cortex::schedule {

namespace detail {

/// One axis in memory: `(index[source] / divisor) % modulus`, of `extent` values, with room for `room`. Extent and room
/// are 0 where only the call knows them, which can be so of the outermost axis alone.
struct MemoryAxis {
  int source;
  std::int64_t divisor, modulus, extent, room;
};

/// The axes of a buffer's layout, outermost first.
inline Vector<MemoryAxis> memory_axes(const ir::Buffer& buffer) {
  Vector<MemoryAxis> axes;
  if (buffer->layout.empty()) {
    for (std::size_t d = 0; d < buffer->dims.size(); ++d) {
      const std::int64_t extent = std::max<std::int64_t>(buffer->dims[d].extent(), 0);
      axes.push_back({int(d), 1, 0, extent, extent});
    }
    return axes;
  }
  Vector<ir::Axis> by_stride;
  for (const ir::Axis& axis : reversed(buffer->layout.axes))
    by_stride.push_back(axis);                        // of equal ones, outermost first
  for (std::size_t i = 1; i < by_stride.size(); ++i)  // few: insertion
    for (std::size_t j = i; j > 0 && by_stride[j - 1].stride < by_stride[j].stride; --j)
      std::swap(by_stride[j - 1], by_stride[j]);
  for (std::size_t a = 0; a < by_stride.size(); ++a) {
    const ir::Axis& axis = by_stride[a];
    const std::int64_t all = std::max<std::int64_t>(buffer->dims[std::size_t(axis.source)].extent(), 0);
    const std::int64_t extent = axis.modulus ? axis.modulus : ceil_div(all, axis.divisor);
    const std::int64_t around = a ? by_stride[a - 1].stride : buffer->layout.fixed_size;
    axes.push_back({axis.source, axis.divisor, axis.modulus, extent, around / axis.stride});
  }
  return axes;
}

/// Offsets of elements are computed in 32 bits.
inline constexpr std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();

inline ir::Layout layout_of_axes(const Vector<MemoryAxis>& axes) {
  ir::Layout layout;
  std::int64_t stride = 1;
  for (const auto& axis : reversed(axes)) {
    layout.axes.push_back({axis.source, axis.divisor, axis.modulus, stride});
    if (!axis.room) {
      layout.row_size = stride;
      return layout;  // the outermost
    }
    stride *= axis.room;
    if (stride > most_elements)
      refuse("the layout has " + std::to_string(stride) + " elements, more than " + std::to_string(most_elements));
  }
  layout.fixed_size = stride;
  return layout;
}

/// The program with `buffer` in the layout of `axes`.
inline ir::Stmt with_layout(const ir::Stmt& body, const ir::Buffer& buffer, const Vector<MemoryAxis>& axes) {
  for (std::size_t a = 1; a < axes.size(); ++a)
    if (!axes[a].room)
      refuse("the axis of '" + buffer->dims[std::size_t(axes[a].source)].name() +
             "' has no constant extent and has to stay outermost");
  ir::BufferInfo info = *buffer;
  info.layout = layout_of_axes(axes);
  if (info.layout == buffer->layout) return body;
  if (buffer->role == ir::Role::weight && !buffer->packed_from) info.packed_from = buffer;
  return ir::with_buffer(body, buffer, ir::Buffer(std::move(info)));
}

struct LaidOut {
  ir::Buffer buffer;
  Vector<MemoryAxis> axes;
};

inline LaidOut laid_out(const ir::Stmt& body, const std::string& name) {
  const ir::Buffer buffer = buffer_named(body, name);
  const bool possible = buffer->role == ir::Role::weight || buffer->role == ir::Role::temp;
  if (!possible || buffer->scope == ir::Scope::local)
    refuse("'" + name +
           "' is neither a weight nor a temporary: states lie as results are read, and fields as they are " +
           "collected");
  return {buffer, memory_axes(buffer)};
}

inline MemoryAxis& axis_at(LaidOut& tensor, std::int64_t axis) {
  if (axis < 0 || axis >= std::int64_t(tensor.axes.size()))
    refuse("'" + tensor.buffer->name + "' has no axis " + std::to_string(axis) + "; it has " +
           std::to_string(tensor.axes.size()));
  return tensor.axes[std::size_t(axis)];
}

}  // namespace detail

/// Axis `axis` of a tensor, counted from the outermost in memory, as two: the index divided by `factor`, and the rest.
inline ir::Stmt layout_split(const ir::Stmt& body, const std::string& name, std::int64_t axis, std::int64_t factor) {
  detail::LaidOut tensor = detail::laid_out(body, name);
  const detail::MemoryAxis whole = detail::axis_at(tensor, axis);
  detail::need_factor(factor, 2);
  if (!whole.extent) refuse("axis " + std::to_string(axis) + " has no constant extent");
  if (whole.modulus && whole.modulus % factor)
    refuse("axis " + std::to_string(axis) + " has " + std::to_string(whole.modulus) + " places, which " +
           std::to_string(factor) + " does not divide");
  const std::int64_t outer = ceil_div(whole.extent, factor);
  detail::MemoryAxis &first = tensor.axes[std::size_t(axis)], second = whole;
  first = {whole.source, whole.divisor * factor, whole.modulus ? whole.modulus / factor : 0, outer, outer};
  second = {whole.source, whole.divisor, factor, factor, factor};
  tensor.axes.insert(tensor.axes.begin() + std::ptrdiff_t(axis) + 1, second);
  return detail::with_layout(body, tensor.buffer, tensor.axes);
}

/// The axes of a tensor in another order: `order` lists the present ones, the new outermost first.
inline ir::Stmt layout_reorder(const ir::Stmt& body, const std::string& name, const Vector<std::int64_t>& order) {
  detail::LaidOut tensor = detail::laid_out(body, name);
  Vector<detail::MemoryAxis> axes;
  Vector<bool> taken(tensor.axes.size());
  for (const std::int64_t axis : order) {
    axes.push_back(detail::axis_at(tensor, axis));
    if (taken[std::size_t(axis)]) refuse("axis " + std::to_string(axis) + " is named twice");
    taken[std::size_t(axis)] = true;
  }
  if (axes.size() != tensor.axes.size())
    refuse("'" + name + "' has " + std::to_string(tensor.axes.size()) + " axes, and " + std::to_string(axes.size()) +
           " are named");
  if (std::is_sorted(order.begin(), order.end())) return body;
  return detail::with_layout(body, tensor.buffer, axes);
}

/// Axis `axis` and the one inside it without room between them; the two halves of a split axis become one again.
inline ir::Stmt layout_fuse(const ir::Stmt& body, const std::string& name, std::int64_t axis) {
  detail::LaidOut tensor = detail::laid_out(body, name);
  detail::MemoryAxis& outer = detail::axis_at(tensor, axis);
  if (axis + 1 == std::int64_t(tensor.axes.size()))
    refuse("axis " + std::to_string(axis) + " of '" + name + "' is the innermost, with none inside it");
  const detail::MemoryAxis inner = detail::axis_at(tensor, axis + 1);
  const bool halves = outer.source == inner.source && inner.modulus && outer.divisor == inner.divisor * inner.modulus;
  if (halves) {
    const std::int64_t all = tensor.buffer->dims[std::size_t(outer.source)].extent();
    const std::int64_t modulus = outer.modulus ? outer.modulus * inner.modulus : 0;
    const std::int64_t extent = modulus ? modulus : ceil_div(all, inner.divisor);
    outer = {inner.source, inner.divisor, modulus, extent, extent};
    tensor.axes.erase(tensor.axes.begin() + std::ptrdiff_t(axis) + 1);
  } else {
    detail::MemoryAxis& second = tensor.axes[std::size_t(axis) + 1];
    if (second.room == second.extent && !tensor.buffer->layout.empty())
      refuse("axes " + std::to_string(axis) + " and " + std::to_string(axis + 1) +
             " have no room between them already");
    second.room = second.extent;
  }
  return detail::with_layout(body, tensor.buffer, tensor.axes);
}

/// Axis `axis` with room for a multiple of `multiple` values.
inline ir::Stmt layout_pad(const ir::Stmt& body, const std::string& name, std::int64_t axis, std::int64_t multiple) {
  detail::LaidOut tensor = detail::laid_out(body, name);
  detail::MemoryAxis& padded = detail::axis_at(tensor, axis);
  detail::need_factor(multiple);
  if (!padded.extent) refuse("axis " + std::to_string(axis) + " has no constant extent");
  padded.room = round_up(padded.extent, multiple);
  return detail::with_layout(body, tensor.buffer, tensor.axes);
}

}  // namespace cortex::schedule
