// The tuner for models on GPUs: finds the schedule that is fastest on a device, for inputs like yours.
//
//   auto tuned = cortex::cuda::tune(program, batches, [&](auto& model) { model.bind("U", u); }, device);
//   auto model = cortex::cuda::compile(program, tuned.schedule, device.gpu());
//
// A header of its own, beside cortex/cuda.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_model.hpp"
#include "cortex/tune/tune.hpp"

namespace cortex {

namespace tuning::detail {

/// The results of a call on a device, all of them copied to the host.
class CopiedResults {
 public:
  explicit CopiedResults(runtime::CudaWorkspace& call) : results(call.plan(), *call.weights()->host.value) {
    const Vector<runtime::StateView>& states = results.plan.states;
    std::size_t roots = 0;
    for (std::size_t g = 0; g < call.num_groups(); ++g) {
      const structure::Arrays& arrays = call.arrays(g);
      roots += std::size_t(arrays.num_roots);
      const std::size_t first = copies_.size();
      for (const runtime::StateView& state : states)
        copies_.push_back(copy(call, call.state(g, state), std::size_t(arrays.num_nodes) * state.row_bytes));
      results.groups.push_back({arrays, [this, &states, first](const runtime::StateView& state, std::int32_t node) {
                                  const std::size_t number = first + std::size_t(&state - states.data());
                                  return copies_[number].data() + std::size_t(node) * state.row_bytes;
                                }});
    }
    for (std::size_t r = 0; r < roots; ++r) results.roots.push_back(runtime::place_of_root(r, call.num_groups()));
  }
  CopiedResults(const CopiedResults&) = delete;

  CallResults results;

 private:
  /// In pieces: the call keeps as much page-locked memory as the largest.
  static Vector<std::byte> copy(runtime::CudaWorkspace& call, jit::CudaPointer from, std::size_t bytes) {
    constexpr std::size_t most = 4 << 20;
    Vector<std::byte> to(bytes);
    for (std::size_t done = 0; done < bytes; done += most) {
      const std::size_t piece = std::min(most, bytes - done);
      const jit::CudaPointer at = from + done;
      call.copy_back(runtime::CudaTransfers({&at, 1}, piece),
                     [&](std::size_t, const std::byte* rows) { std::memcpy(to.data() + done, rows, piece); });
    }
    return to;
  }

  Vector<Vector<std::byte>> copies_;  // [groups, states]
};

/// A candidate of a model for GPUs. Its weights are bound when it is called for the first time, so that candidates
/// which are loaded at the same time hold none.
template <class Model, class Batches, class Bind>
class CudaTrial final : public Trial {
 public:
  CudaTrial(Model model, const cuda::Device& device, const Batches& batches, Bind& bind)
      : model_(std::move(model)), device_(device), batches_(batches), bind_(bind) {}

  std::string code() const override {
    const runtime::Executable& executable = model_.executable();
    return hash_of(model_.source()) + " " + std::to_string(int(executable.schedule.gpu.group)) + " " +
           std::to_string(executable.level_fill) + " " + std::to_string(int(executable.shares_subtrees)) + " " +
           std::to_string(executable.schedule.num_groups) + " " + std::to_string(executable.schedule.table_megabytes);
  }
  void load() override { on_.emplace(model_.to(device_)); }
  void call(std::size_t batch) override { (void)called(batch).template roots<typename Model::Element>(); }
  void inspect(std::size_t batch, FunctionRef<void(const CallResults&)> look) override {
    cuda::Result result = called(batch);
    look(CopiedResults(result.workspace()).results);
  }
  void number(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) override {
    bind_once();
    const auto call = number_with(model_, batches_[batch]);
    for (const auto& block : call->weights().elsewhere)
      if (block)
        throw Error(Code::invalid_weights,
                    "tune: a weight is bound from a device's memory, where candidates cannot be held against the "
                    "equations; bind it from the host's");
    look(*call);
  }

 private:
  cuda::Result called(std::size_t batch) {
    bind_once();
    return call_with(*on_, batches_[batch]);
  }
  void bind_once() {
    if (!is_bound_) bind_(model_);
    is_bound_ = true;
  }

  Model model_;
  const cuda::Device& device_;
  const Batches& batches_;
  Bind& bind_;
  bool is_bound_ = false;
  std::optional<decltype(std::declval<const Model&>().to(std::declval<const cuda::Device&>()))> on_;
};

/// What measurements on a device hold for.
inline std::string device_name(const cuda::Device& device) {
  // The host numbers nodes.
  return machine_name(Target::interpreter()) + "; " + device.name() + ", compute capability " +
         capability_text(device.gpu().sm) + ", " + std::to_string(device.gpu().multiprocessors) +
         " multiprocessors, driver of CUDA " + jit::version_of_driver(device.shared()->driver_version()) + ", NVRTC " +
         jit::version_of(device.shared()->nvrtc());
}

}  // namespace tuning::detail

namespace cuda {

/// Searches the schedules around the default for the one under which calls with `batches` are fastest on `device`, from
/// the caller's roots to their first states on the host: as `cortex::tune`, of which all holds but what is said here.
///
/// `bind` binds the weights of the `cuda::Model` that it is given; all are bound from the host. `compiled`: how
/// candidates are compiled. Which blocks are a group, their threads, the nodes and parts of sums of each, where weights
/// are kept, and how the recursion is run, is varied. Nothing is predicted: a guided search tries the neighbours of the
/// best schedule so far first, and goes on until none of them is better, whatever `patience` is. Schedules of which the
/// compiler makes the same code as of another are refused. Of a model on tensor cores the parts of sums stay those of
/// the default, since what they round is only compared bit by bit.
///
/// Compiles a model for each candidate, in seconds, on all cores for several at the same time, and should have the
/// device for itself: others who use it disturb what is measured. Throws also what `Model::to` throws under the default
/// schedule, and `Error{device_lost}`.
template <class Node, class Set, class... Rest, class Batches, class Bind>
Tuned tune(const Program<Node, Set, Rest...>& program, const Batches& batches, Bind bind, const Device& device,
           const TuneOptions& options = {}, const CompileOptions& compiled = {}) {
  using Model = cuda::Model<Node, Set, Rest...>;
  using Trial = tuning::detail::CudaTrial<Model, Batches, Bind>;
  const Gpu& gpu = device.gpu();
  TuneOptions own = options;
  if (own.start && own.start->gpu.tensor_cores != GpuSchedule::TensorCores::off)
    own.start->gpu.parts = compile(program, *own.start, gpu, compiled).executable().schedule.gpu.parts;
  const auto make = [&](const Schedule& schedule, const Target&) -> std::unique_ptr<tuning::Trial> {
    return std::make_unique<Trial>(compile(program, schedule, gpu, compiled), device, batches, bind);
  };
  tuning::Subject subject{program.graph(), Target::cuda(gpu), 1, std::size(batches), make};
  subject.machine = tuning::detail::device_name(device);
  if (compiled.spin_limit) subject.machine += ", barriers that give up after " + std::to_string(compiled.spin_limit);
  if (compiled.timings) subject.machine += ", calls that are timed";
  subject.loads_at_once = std::size_t(std::clamp(runtime::usable_cores(), 1, 16));
  return tuning::Search(subject, own).run();
}

}  // namespace cuda

}  // namespace cortex
