// Weights that are on a device already: taken from there into the layouts that the code reads, or left where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "cortex/runtime/cuda_pointer.hpp"
#include "cortex/runtime/weights.hpp"

namespace cortex::runtime {

/// How a weight is bound from a device's memory.
struct BindFromDevice {
  DType dtype = DType::f32;          // of the elements there
  jit::CudaHandle stream = nullptr;  // after whose work the values are there
  bool in_place = false;             // the memory is read by calls, and not copied
};

namespace detail {

/// Whether `buffer` holds a weight of these extents as the user does: dense, row-major, in elements of the same type.
inline bool holds_as_given(const ir::BufferInfo& buffer, const Vector<std::int64_t>& extents) {
  if (is_narrow(buffer.dtype) || buffer.is_scales || buffer.fragments) return false;
  const ir::Layout layout = layout_of(buffer);
  const Runs runs = runs_of(layout, 0, extents);
  return runs.contiguous() && runs.begin[0] == 0 && (!layout.fixed_size || layout.fixed_size == runs.size());
}

}  // namespace detail

/// `Weights::bind` of dense, row-major values at `at` on `device`: which are copied there if the code reads them as
/// they lie, and else by way of the host. Waits for the stream. `shape` may be empty for a weight without an open
/// dimension. Throws `Error{invalid_weights}` with the weight's name, also for memory that is not the device's; nothing
/// is changed then.
inline void bind_from_device(Weights& weights, const std::shared_ptr<const CudaDevice>& device, std::string_view name,
                             jit::CudaPointer at, std::span<const std::int64_t> shape, const BindFromDevice& how) {
  const Weights::Place place = weights.place_of(name, how.dtype, std::nullopt, shape);
  std::size_t bytes = size_of(how.dtype);
  for (const std::int64_t extent : place.extents) bytes *= std::size_t(extent);
  constexpr std::size_t alignment_in_place = 16;
  if (const std::string fault =
          fault_of_memory(*device, at, bytes, how.in_place ? alignment_in_place : size_of(how.dtype));
      !fault.empty())
    weights.refuse(place, fault);

  if (device->is_capturing(how.stream))
    weights.refuse(place,
                   "was to be copied on a stream that is being captured, on which nothing is copied yet: name "
                   "another in BindFromDevice::stream");

  const Vector<ir::Buffer>& buffers = weights.executable().program.buffers;
  for (const ir::Buffer& buffer : buffers)
    if (how.in_place && weight_slot(buffer) == int(place.slot) && !detail::holds_as_given(*buffer, place.extents))
      weights.refuse(place,
                     "was given to be read in place, but the code reads it in a layout or in elements of its own: "
                     "let it be copied");
  Weights::Values bound;
  bound.blocks.resize(buffers.size()), bound.elsewhere.resize(buffers.size());
  std::unique_ptr<Block> on_host;
  const auto wait = [&] {
    device->call("a copy of weights", [&](const jit::CudaDriver& d) { return d.StreamSynchronize(how.stream); });
  };
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (weight_slot(buffers[b]) != int(place.slot)) continue;
    if (detail::holds_as_given(*buffers[b], place.extents)) {
      auto own = std::make_shared<CudaBlock>(how.in_place ? CudaBlock::of_others(device, at, bytes)
                                                          : CudaBlock(device, std::max<std::size_t>(bytes, 16)));
      if (!how.in_place)
        device->call("a copy of weights",
                     [&](const jit::CudaDriver& d) { return d.MemcpyDtoDAsync(own->at(), at, bytes, how.stream); });
      bound.elsewhere[b] = std::move(own);
      continue;
    }
    if (!on_host) {
      on_host = std::make_unique<Block>(bytes);
      device->call("a copy of weights",
                   [&](const jit::CudaDriver& d) { return d.MemcpyDtoHAsync(on_host->data(), at, bytes, how.stream); });
      wait();
    }
    bound.blocks[b] = weights.copy_of(place, *buffers[b], on_host->data());
  }
  wait();
  weights.replace(place, std::move(bound));
}

}  // namespace cortex::runtime
