// Tables of what words decide, on a device: made there by the model's own kernel, so they hold the bits that a call
// would compute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "cortex/runtime/cuda_launch.hpp"
#include "cortex/runtime/tables.hpp"

namespace cortex::runtime {

/// The tables of one tabulation, immutable; as `Tables`.
struct CudaTables {
  Vector<std::int64_t> extents;
  Vector<std::shared_ptr<const CudaBlock>> blocks;
};

/// One run of a model's kernel, by one group, over nodes that stand for the values of a tabulation's fields.
class CudaTableRun {
 public:
  /// `weights`: [buffers of the program]. Waits for the run.
  CudaTableRun(const CudaExecutable& code, std::shared_ptr<const CudaDevice> device, jit::CudaHandle function,
               const Vector<std::shared_ptr<const CudaBlock>>& weights, const ir::Tabulation& tabulation,
               const Vector<std::int64_t>& extents)
      : program_(code.executable->program),
        device_(std::move(device)),
        stream_(device_->own_stream()),
        blocks_(std::size_t(code.shape.blocks)),
        nodes_(program_, tabulation, extents) {
    Vector<jit::CudaPointer> pointers(codegen::CudaPart(program_).words());
    try {
      place(weights, pointers);
      run(code, function, pointers);
    } catch (...) {  // copies of what is about to go may be under way
      device_->in_context([&](const jit::CudaDriver& d) { return d.StreamSynchronize(stream_); });
      throw;
    }
  }

  std::shared_ptr<const CudaTables> take(const ir::Tabulation& tabulation) const {
    auto tables = std::make_shared<CudaTables>();
    if (tabulation.rows != ir::Tabulation::Rows::once) tables->extents = nodes_.extents();
    for (const int buffer : results_of(program_, tabulation)) tables->blocks.push_back(memory_[std::size_t(buffer)]);
    return tables;
  }

 private:
  /// Finds memory for all buffers; `pointers`: a group's part of a call, without arrays (`codegen::cuda_parts`).
  void place(const Vector<std::shared_ptr<const CudaBlock>>& weights, Vector<jit::CudaPointer>& pointers) {
    const codegen::CudaPart part(program_);
    jit::CudaPointer* const table = pointers.data() + part.head;
    for (std::size_t b = 0; b < part.buffers(); ++b) {
      const ir::BufferInfo& buffer = *program_.buffers[b];
      if (ir::is_on_chip(buffer.scope)) {
        memory_.push_back(nullptr);
        continue;
      }
      memory_.push_back(weights[b] ? weights[b] : memory_of(buffer));
      table[b] = memory_[b]->at();
      if (part.is_own(b)) table[part.step(b)] = memory_[b]->size() / blocks_;
    }
  }

  std::shared_ptr<CudaBlock> zeros(std::size_t bytes) const {
    auto block = std::make_shared<CudaBlock>(device_, bytes);
    device_->call("cuMemsetD8",
                  [&](const jit::CudaDriver& d) { return d.MemsetD8Async(block->at(), 0, bytes, stream_); });
    return block;
  }

  /// Of zeros, or an array of the linearizer; with the slack that code may read behind it.
  std::shared_ptr<const CudaBlock> memory_of(const ir::BufferInfo& buffer) {
    if (buffer.role != ir::Role::index)
      return zeros(aligned(nodes_.bytes_of(buffer) + slack_bytes) * (buffer.scope == ir::Scope::worker ? blocks_ : 1));
    const std::shared_ptr<Block> array = arrays_.emplace_back(nodes_.array_of(buffer));
    std::shared_ptr<CudaBlock> block = zeros(aligned(array->size() + slack_bytes));
    device_->call("a copy of a table's words", [&](const jit::CudaDriver& d) {
      return d.MemcpyHtoDAsync(block->at(), array->data(), array->size(), stream_);
    });
    return block;
  }

  void run(const CudaExecutable& code, jit::CudaHandle function, const Vector<jit::CudaPointer>& pointers) const {
    const std::size_t words = std::size_t(codegen::cuda_barrier_words(code.text.barrier, int(blocks_))) * 8;
    const std::shared_ptr<CudaBlock> part = zeros(aligned(pointers.size() * sizeof(jit::CudaPointer))),
                                     barrier = zeros(fault_bytes + words);
    device_->call("a copy of a table's words", [&](const jit::CudaDriver& d) {
      return d.MemcpyHtoDAsync(part->at(), pointers.data(), pointers.size() * sizeof(jit::CudaPointer), stream_);
    });
    codegen::CudaLaunch launch;
    launch.call = part->at(), launch.words = barrier->at() + fault_bytes, launch.fault = barrier->at();
    LaunchAttributes attributes;
    launch_kernel(*device_, function, launch_config(code, 1, stream_, attributes), launch);
    device_->call("the making of tables", [&](const jit::CudaDriver& d) { return d.StreamSynchronize(stream_); });
  }

  const ir::Program& program_;
  const std::shared_ptr<const CudaDevice> device_;
  const jit::CudaHandle stream_;
  const std::size_t blocks_;  // of a group
  const detail::TableNodes nodes_;
  Vector<std::shared_ptr<const CudaBlock>> memory_;  // [buffers of the program]
  Vector<std::shared_ptr<Block>> arrays_;            // of the host, which copies may still read
};

}  // namespace cortex::runtime
