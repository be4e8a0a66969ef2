// A compiled model on one device: its module, its weights there, and the workspaces at rest.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/mutex.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_workspace.hpp"
#include "cortex/runtime/memory.hpp"
#include "cortex/runtime/turn.hpp"

namespace cortex::runtime {

/// The model on one device. Its calls may be made by any number of threads.
class CudaLoaded {
 public:
  CudaLoaded(std::shared_ptr<const CudaSource> source, std::shared_ptr<const CudaDevice> device)
      : source_(std::move(source)), device_(std::move(device)) {
    const CudaExecutable& code = *source_->code;
    if (code.executable->target.gpu.sm > device_->gpu().sm)
      throw Error(Code::unavailable, "a model that was compiled for compute capability " +
                                         capability_text(code.executable->target.gpu.sm) + " does not run on " +
                                         device_->name() + ", which has " + capability_text(device_->gpu().sm));
    image_ =
        jit::compile_cuda(device_->nvrtc(), code.text.source(), device_->gpu().sm, {.least_sm = least_sm(code.text)});
    module_ = device_->load(image_);
    try {
      prepare_function();
    } catch (...) {
      unload();
      throw;
    }
  }
  CudaLoaded(const CudaLoaded&) = delete;
  ~CudaLoaded() {
    resting_.clear();
    // Who cannot tell whether a kernel runs has to wait for all; where not even that can be done, memory stays.
    for (const auto& workspace : in_doubt_)
      if (!workspace->progress().settle()) {
        new Vector<std::unique_ptr<CudaWorkspace>>(std::move(in_doubt_));
        return;
      }
    in_doubt_.clear();
    unload();
  }

  const CudaSource& source() const { return *source_; }
  const std::shared_ptr<const CudaDevice>& device() const { return device_; }
  jit::CudaHandle function() const { return function_; }
  /// Of `codegen::cuda_gather`.
  jit::CudaHandle gather() const { return gather_; }
  /// Among how many groups the roots of a call can be shared.
  int most_groups() const { return most_groups_; }

  /// A workspace at rest, or a new one. At rest may be one whose call the device has still to make: where its results
  /// have been sent on, nobody waits for them. Two of these are enough for the host and the device to work at the same
  /// time, so it is then one that has to be waited for, the oldest.
  std::unique_ptr<CudaWorkspace> take() {
    constexpr std::size_t most_unfinished = 2;
    device_->refuse_if_lost();
    {
      const Lock lock(mutex_);
      make_room();
      std::size_t chosen = 0;
      while (chosen < resting_.size() && !resting_[chosen]->progress().ready()) ++chosen;
      if (chosen == resting_.size() && chosen >= most_unfinished) chosen = 0;
      if (chosen < resting_.size()) {
        std::unique_ptr<CudaWorkspace> workspace = std::move(resting_[chosen]);
        resting_.erase(resting_.begin() + std::ptrdiff_t(chosen));
        ++num_taken_;
        return workspace;
      }
    }
    auto made = std::make_unique<CudaWorkspace>(source_, device_);
    const Lock lock(mutex_);
    make_room();
    ++num_taken_;
    return made;
  }
  /// One that was taken will not come back.
  void forget_taken() {
    const Lock lock(mutex_);
    --num_taken_;
  }

  bool has_current_weights() { return bool(current_weights()); }

  /// The weights bound now, on the device. They are brought there without the lock, by one thread at a time.
  std::shared_ptr<const CudaWeights> weights() {
    if (auto current = current_weights()) return current;
    const Turn::Holder turn(bringing_);
    if (auto current = current_weights()) return current;
    const std::shared_ptr<const CudaWeights> before = known_weights();
    auto fresh = std::make_shared<CudaWeights>();
    fresh->host = source_->weights.published().current();
    if (!fresh->host.value->fault.empty()) throw Error(Code::invalid_weights, fresh->host.value->fault);
    const WeightSet& set = *fresh->host.value;
    fresh->blocks.resize(set.blocks.size());
    device_->on_own_stream("a copy of weights", [&](jit::CudaHandle stream) {
      for (std::size_t b = 0; b < set.blocks.size(); ++b) {
        const WeightSet* const old = before ? before->host.value.get() : nullptr;
        if (old && old->blocks[b] == set.blocks[b] && old->elsewhere[b] == set.elsewhere[b])
          fresh->blocks[b] = before->blocks[b];
        else if (set.blocks[b])
          fresh->blocks[b] = uploaded(*set.blocks[b], stream);
        else if (set.elsewhere[b])
          fresh->blocks[b] = brought(std::static_pointer_cast<const CudaBlock>(set.elsewhere[b]), stream);
      }
    });
    make_tables_of(*fresh, before.get());
    const CudaDevice::Deferral later(*device_);
    const Lock lock(mutex_);
    weights_ = std::move(fresh);
    for (const auto& workspace : resting_) workspace->forget_replaced(weights_.get());
    return weights_;
  }

 private:
  friend class CudaCall;

  std::shared_ptr<const CudaWeights> known_weights() {
    const Lock lock(mutex_);
    return weights_;
  }
  /// None if others have been bound since they came to the device.
  std::shared_ptr<const CudaWeights> current_weights() {
    std::shared_ptr<const CudaWeights> known = known_weights();
    if (known && !source_->weights.published().is_current(known->host)) known = nullptr;
    return known;
  }

  /// For all workspaces that are taken, and one more, to be put back. The caller holds `mutex_`.
  void make_room() {
    for (auto* const list : {&resting_, &in_doubt_}) list->reserve(list->size() + num_taken_ + 1);
  }

  std::shared_ptr<const CudaBlock> uploaded(const Block& block, jit::CudaHandle stream) const {
    auto copy = std::make_shared<CudaBlock>(device_, std::max<std::size_t>(block.size(), 16));
    device_->call("a copy of weights", [&](const jit::CudaDriver& d) {
      return d.MemcpyHtoDAsync(copy->at(), block.data(), block.size(), stream);
    });
    return copy;
  }
  /// `block` itself, or if it is another device's or context's a copy of it.
  std::shared_ptr<const CudaBlock> brought(const std::shared_ptr<const CudaBlock>& block,
                                           jit::CudaHandle stream) const {
    if (block->device()->context() == device_->context()) return block;
    auto copy = std::make_shared<CudaBlock>(device_, block->size());
    device_->call("a copy of weights from " + block->device()->name(), [&](const jit::CudaDriver& d) {
      return d.MemcpyPeerAsync(copy->at(), device_->context(), block->at(), block->device()->context(), block->size(),
                               stream);
    });
    return copy;
  }

  /// Those of the weights before, if they are the same on the device; where there is no room, calls go on without.
  void make_tables_of(CudaWeights& fresh, const CudaWeights* before) const {
    const Executable& executable = *source_->code->executable;
    const std::size_t count = executable.program.tabulations.size();
    fresh.tables.resize(count);
    if (before && before->blocks == fresh.blocks) {
      fresh.tables = before->tables;
    } else {
      make_tables(executable, fresh.host.value->shapes, fresh.tables,
                  [&](const ir::Tabulation& tabulation, const Vector<std::int64_t>& extents, const Vector<int>&) {
                    return CudaTableRun(*source_->code, device_, function_, fresh.blocks, tabulation, extents);
                  });
    }
    for (const auto& tables : fresh.tables) fresh.computes.push_back(!tables);
  }

  void prepare_function() {
    const CudaExecutable& code = *source_->code;
    const auto find = [&](jit::CudaHandle& function, const char* name) {
      device_->call("cuModuleGetFunction",
                    [&](const jit::CudaDriver& d) { return d.ModuleGetFunction(&function, module_, name); });
    };
    find(function_, "cortex_kernel"), find(gather_, "cortex_gather");
    most_groups_ = groups_at_once(*device_, code, function_);
    if (const int asked = code.executable->schedule.num_groups) most_groups_ = std::min(most_groups_, asked);
  }

  void unload() {
    if (module_) device_->give_back(CudaDevice::Given::module, reinterpret_cast<std::uint64_t>(module_));
  }

  /// `take` has made room for it, so that giving back never allocates.
  void put(std::unique_ptr<CudaWorkspace> workspace) {
    const CudaDevice::Deferral later(*device_);
    const Lock lock(mutex_);
    --num_taken_;
    if (workspace->progress().is_in_doubt()) return in_doubt_.push_back(std::move(workspace));
    workspace->forget_replaced(weights_.get());
    resting_.push_back(std::move(workspace));
  }

  const std::shared_ptr<const CudaSource> source_;
  const std::shared_ptr<const CudaDevice> device_;
  jit::CudaImage image_;
  jit::CudaHandle module_ = nullptr, function_ = nullptr, gather_ = nullptr;
  int most_groups_ = 0;
  Turn bringing_;  // at making the weights current
  Mutex mutex_;    // of what follows
  std::shared_ptr<const CudaWeights> weights_;
  Vector<std::unique_ptr<CudaWorkspace>> resting_;
  Vector<std::unique_ptr<CudaWorkspace>> in_doubt_;  // whose work may go on, though nothing tells its end
  std::size_t num_taken_ = 0;
};

/// A call: a workspace of a model on a device, which goes back to it when the call and its results are let go of.
class CudaCall {
 public:
  CudaCall() = default;
  CudaCall(std::shared_ptr<CudaLoaded> loaded, CudaLanding landing)
      : loaded_(std::move(loaded)),
        workspace_(loaded_->take()),
        most_groups_(loaded_->most_groups()),
        landing_(landing) {}
  /// For a kernel that stays on the device, with so many groups.
  CudaCall(std::shared_ptr<CudaLoaded> loaded, int groups) : CudaCall(std::move(loaded), CudaLanding::roots) {
    most_groups_ = groups, way_ = CudaWay::letter;
  }
  CudaCall(CudaCall&&) noexcept = default;
  CudaCall& operator=(CudaCall&& other) noexcept {
    std::swap(loaded_, other.loaded_), std::swap(workspace_, other.workspace_);
    std::swap(most_groups_, other.most_groups_), std::swap(way_, other.way_);
    std::swap(landing_, other.landing_);
    return *this;
  }
  ~CudaCall() {
    if (workspace_) loaded_->put(std::move(workspace_));
  }
  CudaWorkspace* operator->() const { return workspace_.get(); }
  explicit operator bool() const { return workspace_ != nullptr; }
  CudaLoaded& loaded() const { return *loaded_; }
  /// Among how many groups its roots can be shared.
  int most_groups() const { return most_groups_; }
  /// Takes away its memory, which may never be used again.
  std::unique_ptr<CudaWorkspace> give_up() {
    loaded_->forget_taken();
    return std::move(workspace_);
  }
  /// `work` of this call. Where memory does not suffice for it the call is over, and what it had grown to is free for
  /// smaller ones.
  template <class Work>
  auto in_memory(const Work& work) {
    return runtime::in_memory([&] { drop(); }, work);
  }

  /// Lays out the call on what the first `groups` groups have numbered. False if weights have been bound since they
  /// were checked against them: then they are to be numbered anew.
  bool prepare(std::size_t groups) {
    const std::shared_ptr<const CudaWeights> weights = loaded_->weights();
    for (std::size_t g = 0; g < groups; ++g)
      if (&workspace_->checked_weights(g) != weights->host.value.get()) return false;
    workspace_->prepare(groups, weights, way_, landing_);
    return true;
  }
  void launch(jit::CudaHandle stream) {
    if (way_ == CudaWay::letter)
      throw Error(Code::invalid_argument,
                  "a call of a resident model is made by the kernel that stays on the device, and not on a stream: to "
                  "launch one, or to capture it into a graph, prepare it with the model on the device");
    workspace_->launch(loaded_->function(), stream);
  }
  void gather(const StateView& state, jit::CudaPointer out, jit::CudaHandle stream) {
    workspace_->gather(loaded_->gather(), state, out, stream);
  }
  const std::byte* gather_back(const StateView& state) { return workspace_->gather_back(loaded_->gather(), state); }

 private:
  void drop() {
    if (workspace_ && !workspace_->progress().is_in_doubt()) give_up();
  }

  std::shared_ptr<CudaLoaded> loaded_;
  std::unique_ptr<CudaWorkspace> workspace_;
  int most_groups_ = 0;
  CudaWay way_ = CudaWay::transfer;
  CudaLanding landing_ = CudaLanding::none;
};

}  // namespace cortex::runtime
