// Models for NVIDIA GPUs as the user has them: compiled without a device, bound, put on one or several devices, called
// on streams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cortex/base/clock.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_bind.hpp"
#include "cortex/runtime/cuda_loaded.hpp"
#include "cortex/runtime/cuda_resident.hpp"
#include "cortex/runtime/cuda_result.hpp"
#include "cortex/runtime/cuda_seam.hpp"
#include "cortex/runtime/functor.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/roots.hpp"

namespace cortex::cuda {

/// How `cuda::compile` compiles.
using CompileOptions = runtime::CudaCompileOptions;

/// How a weight is bound from a device's memory: `{.dtype = ..., .stream = ..., .in_place = ...}`.
using FromDevice = runtime::BindFromDevice;

/// How long a resident model stays on its device, and how much of it it takes: `{.groups = ..., .idle_ms = ...}`.
using ResidentOptions = runtime::ResidentOptions;

/// A GPU of this machine. Copies are handles to the same device.
class Device {
 public:
  explicit Device(std::shared_ptr<const runtime::CudaDevice> device) : device_(std::move(device)) {}
  // Moving copies, as of all handles here: what is left behind is a handle still, and not one to nothing.
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;
  /// What compiling for it depends on.
  const Gpu& gpu() const { return device_->gpu(); }
  const std::string& name() const { return device_->name(); }
  const std::shared_ptr<const runtime::CudaDevice>& shared() const { return device_; }

 private:
  std::shared_ptr<const runtime::CudaDevice> device_;
};

/// The devices of a machine that answer; where there are none, or one does not, `why()` says why.
class Devices {
 public:
  explicit Devices(const runtime::CudaDevices& found) : why_(found.why) {
    for (const auto& device : found.all) all_.emplace_back(device);
  }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  /// Throws `Error{unavailable}` with `why()` if there are not so many.
  const Device& operator[](std::size_t number) const {
    if (number < all_.size()) return all_[number];
    throw Error(Code::unavailable, "GPU " + std::to_string(number) + " is asked for, but there are " +
                                       std::to_string(all_.size()) + (why_.empty() ? "" : ": " + why_));
  }
  const std::string& why() const { return why_; }

 private:
  Vector<Device> all_;
  std::string why_;
};

/// All GPUs that the driver shows. Without a driver, or without a device, an empty list that says why.
inline Devices devices() {
  std::string why;
  const auto driver = jit::find_cuda_driver(why);
  if (!driver) return Devices({{}, why});
  return Devices(runtime::cuda_devices(driver));
}

/// The GPU of a context of the driver's that the caller has made; it has to outlive all that is done with the device.
inline Device device_of(void* context) {
  std::string why;
  const auto driver = jit::find_cuda_driver(why);
  if (!driver) throw Error(Code::unavailable, why);
  return Device(runtime::cuda_device_of(driver, context));
}

template <class Node, class Set, class First>
class Resident;

/// A model on a device. Copies are handles; calls may be made by any number of threads. Groups number their own roots'
/// nodes: what several roots share is computed by each of their groups, and a node that two trees share is seen only
/// where one group has both. Calls throw what those of `Functor` throw, and
///   out_of_memory  the device has no room for the call: nothing is lost, and a smaller call may succeed
///   device_lost    the device has failed, in this call or before it: nothing on it can be used any more
template <class Node, class Set, class First>
class OnDevice {
  using Linearizer = structure::Linearizer<Node, Set>;

 public:
  explicit OnDevice(std::shared_ptr<runtime::CudaLoaded> loaded)
      : loaded_(std::move(loaded)), structure_(runtime::structure_of(loaded_->source().code->executable->graph)) {}
  OnDevice(const OnDevice&) = default;
  OnDevice& operator=(const OnDevice&) = default;

  /// Roots as a functor takes them: a node, a pointer, a range of either; or an arena and indices. Waits for the
  /// results: the kernel writes the first state of the roots to the host as well, up to 128 KB of dense rows, and what
  /// else is asked for is copied then. In order with what the default stream has been given, but on a stream of the
  /// library's own: so it may also be called while another thread captures a stream, when the default one may not be
  /// used.
  template <class... Roots>
  Result operator()(Roots&&... roots) const {
    Result result = laid_out(runtime::CudaLanding::roots, roots...);
    result.launch(loaded_->device()->ordered_stream());
    result.wait();
    return result;
  }
  Result operator()(std::initializer_list<runtime::ListedRoot<Node>> roots) const { return (*this)(std::span(roots)); }
  Result operator()(Arena<Node> arena, std::initializer_list<std::int64_t> roots) const {
    return (*this)(arena, std::span(roots));
  }
  /// The same, whose error is returned.
  template <class... Roots>
  auto try_call(Roots&&... roots) const {
    return attempt([&] { return (*this)(roots...); });
  }
  auto try_call(std::initializer_list<runtime::ListedRoot<Node>> roots) const {
    return attempt([&] { return (*this)(roots); });
  }
  /// The same without waiting, on `stream`; results stay on the device until they are asked for.
  template <class Roots>
  Result run(Roots&& roots, Stream stream) const {
    return run_on(stream, roots);
  }
  Result run(std::initializer_list<runtime::ListedRoot<Node>> roots, Stream stream) const {
    return run_on(stream, roots);
  }
  template <class Roots>
  Result run(Arena<Node> arena, Roots&& roots, Stream stream) const {
    return run_on(stream, arena, roots);
  }
  Result run(Arena<Node> arena, std::initializer_list<std::int64_t> roots, Stream stream) const {
    return run_on(stream, arena, roots);
  }
  /// A call that is laid out and not yet made: `Result::launch` makes it, as often as you like. That neither waits nor
  /// allocates, so a stream that is being captured takes it into a graph.
  template <class... Roots>
  Result prepare(Roots&&... roots) const {
    return laid_out(runtime::CudaLanding::none, roots...);
  }
  Result prepare(std::initializer_list<runtime::ListedRoot<Node>> roots) const { return prepare(std::span(roots)); }
  Result prepare(Arena<Node> arena, std::initializer_list<std::int64_t> roots) const {
    return prepare(arena, std::span(roots));
  }

  /// Binds a weight of the model, as `Model::bind`, from this device's memory at `at`, where it lies dense and
  /// row-major in `shape`. What the code reads as it lies, such as an embedding table whose rows are whole lines of 64
  /// bytes, is copied on the device, or read in place if `how` says so: the memory and what is in it then have to stay
  /// as long as the weight is bound and calls with it are under way. What is packed or stored in other elements comes
  /// by way of the host. Other devices get copies. Waits for the stream on which the values are made. Throws
  /// `Error{invalid_weights}` as `Model::bind`, and for memory that is not this device's, too little, not aligned or no
  /// place to read from.
  template <class Name>
  const OnDevice& bind_device(const Name& name, std::uint64_t at, std::span<const std::int64_t> shape,
                              const FromDevice& how = {}) const {
    const runtime::CudaSource& source = loaded_->source();
    const std::string_view own_name = runtime::name_of_weight(source.code->executable->graph, name);
    runtime::bind_from_device(source.weights, loaded_->device(), own_name, at, shape, how);
    return *this;
  }
  template <class Name>
  const OnDevice& bind_device(const Name& name, std::uint64_t at, std::initializer_list<std::int64_t> shape,
                              const FromDevice& how = {}) const {
    return bind_device(name, at, std::span<const std::int64_t>(shape.begin(), shape.size()), how);
  }
  /// The same from a pointer, whose type is the elements'.
  template <class Name, class T>
  const OnDevice& bind_device(const Name& name, const T* at, std::initializer_list<std::int64_t> shape,
                              FromDevice how = {}) const {
    how.dtype = dtype_of<T>;
    return bind_device(name, reinterpret_cast<std::uint64_t>(at), shape, how);
  }

  /// How many groups of blocks run at the same time: so many calls share the device.
  int most_groups() const { return loaded_->most_groups(); }
  const runtime::Executable& executable() const { return *loaded_->source().code->executable; }

  /// The same model, whose kernel stays on the device from one call to the next. Throws as `Model::to`, and
  /// `Error{invalid_argument}` for options that cannot be.
  Resident<Node, Set, First> resident(const ResidentOptions& options = {}) const {
    return Resident<Node, Set, First>(*this, runtime::CudaResident::make(loaded_, options));
  }

 private:
  friend class Resident<Node, Set, First>;

  template <class... Roots>
  Result run_on(Stream stream, Roots&... roots) const {
    if (loaded_->device()->is_capturing(stream))
      throw Error(Code::invalid_argument,
                  "a call on a stream that is being captured: its graph would use memory that the next call takes; "
                  "prepare the call before, launch it on the stream, and keep what `prepare` gave");
    Result result = prepare(roots...);
    result.launch(stream);
    return result;
  }

  template <class... Roots>
  Result laid_out(runtime::CudaLanding landing, Roots&... roots) const {
    runtime::CudaCall call(loaded_, landing);
    const std::size_t count = call.in_memory([&] { return timed_lay_out(call, roots...); });
    return Result(std::move(call), count);
  }

  template <class... Roots>
  std::size_t timed_lay_out(runtime::CudaCall& call, Roots&... roots) const {
    call->begin_linearization();
    const std::size_t count = lay_out(call, roots...);
    call->end_linearization();
    return count;
  }

  template <class Roots>
  std::size_t lay_out(runtime::CudaCall& call, Roots& roots) const {
    return number(call, roots);
  }
  template <class Roots>
  std::size_t lay_out(runtime::CudaCall& call, Arena<Node> arena, Roots& roots) const {
    return number(call, roots, arena);
  }

  /// Numbers the nodes of each group's roots. What is wrong with a root has to name it by its own number, so then one
  /// group has all.
  template <class Roots, class... ArenaIfAny>
  std::size_t number(runtime::CudaCall& call, Roots& roots, const ArenaIfAny&... arena) const {
    static_assert(sizeof...(arena) || !structure::uses_arena<Set, Node>,
                  "children are indices here: pass the arena that they index, cortex::arena(nodes)");
    runtime::CudaRoots& listed = call->given_roots();
    const std::size_t count = runtime::with_roots<Node>(roots, [&](auto& range) {
      using Root = decltype(*structure::begin_of(range));
      static_assert(sizeof...(arena) || !structure::LinkTo<Root, Node> || !structure::is_index_link<Root>,
                    "roots are indices here: pass the arena that they index");
      return structure::Linearizer<Node, structure::Accessors<>>::list(listed.all, range, arena...);
    });
    std::size_t groups = std::min(count, std::size_t(call.most_groups()));
    for (;;) {
      try {
        call->number_groups(groups, count, [&](runtime::Workspace& workspace, std::span<const void* const> own) {
          Linearizer::run_listed(workspace.nodes, structure_, workspace.checks(), own, arena...);
        });
      } catch (const Error&) {
        if (groups <= 1) throw;
        groups = 1;
        continue;
      }
      if (call.prepare(groups)) return count;
    }
  }

  std::shared_ptr<runtime::CudaLoaded> loaded_;
  Structure structure_;
};

/// A model whose kernel stays on a device: it is launched by the first call, brings its weights to registers and shared
/// memory, and serves calls as they come, each with a letter in memory of the host instead of a transfer and a launch.
/// Results are the bits of `OnDevice`, and the first state of the roots comes to the host with the answer.
///
/// Copies are handles; calls may be made by any number of threads, and are served one after the other. When no call has
/// come for `idle_ms`, or the kernel has run for `life_ms`, it ends by itself, and the next call launches it again; so
/// do `stop` and the end of the last handle. Meanwhile it occupies its groups' multiprocessors, also while it waits for
/// calls: who waits for the whole device (`cuCtxSynchronize`, `cuMemFree` of one's own) waits for its end, up to
/// `idle_ms` where no calls come and up to `life_ms` where they do. Weights that are bound are in the next call, for
/// which the kernel is launched anew; values that are changed in place, in memory that a weight was bound to with
/// `in_place`, have to be bound again. Calls throw what those of `OnDevice` throw, and
///   unavailable  no answer in `patience_ms`: the kernel is busy with a longer call, or others have the device
template <class Node, class Set, class First>
class Resident {
 public:
  Resident(OnDevice<Node, Set, First> on, std::shared_ptr<runtime::CudaResident> resident)
      : on_(std::move(on)), resident_(std::move(resident)) {}
  Resident(const Resident&) = default;
  Resident& operator=(const Resident&) = default;

  /// Roots as a functor takes them. Waits for the results.
  template <class... Roots>
  Result operator()(Roots&&... roots) const {
    resident_->make_way_for_weights();
    runtime::CudaCall call(on_.loaded_, resident_->most_groups());
    const std::size_t count = call.in_memory([&] {
      const std::size_t listed = on_.timed_lay_out(call, roots...);
      resident_->serve(call);
      return listed;
    });
    return Result(std::move(call), count);
  }
  Result operator()(std::initializer_list<runtime::ListedRoot<Node>> roots) const { return (*this)(std::span(roots)); }
  Result operator()(Arena<Node> arena, std::initializer_list<std::int64_t> roots) const {
    return (*this)(arena, std::span(roots));
  }
  /// The same, whose error is returned.
  template <class... Roots>
  auto try_call(Roots&&... roots) const {
    return attempt([&] { return (*this)(roots...); });
  }
  auto try_call(std::initializer_list<runtime::ListedRoot<Node>> roots) const {
    return attempt([&] { return (*this)(roots); });
  }
  /// Not what a resident model can do: throws `Error{invalid_argument}`. `Result::roots_into` gives results to a
  /// stream.
  template <class... Roots>
  Result run(const Roots&...) const {
    refuse("run: its kernel takes calls from the host, and not from a stream");
  }
  template <class... Roots>
  Result prepare(const Roots&...) const {
    refuse("prepare: a launch is what can be captured into a graph, and a resident model makes none");
  }

  /// Ends the kernel and waits for that; the next call launches it again. Throws `Error{unavailable}` if it does not
  /// end in `patience_ms`, and `Error{device_lost}`.
  void stop() const { resident_->stop(); }
  bool is_running() const { return resident_->is_running(); }
  /// How often the kernel has been launched so far.
  std::uint64_t launches() const { return resident_->launches(); }
  /// Among how many groups of blocks the roots of a call are shared.
  int most_groups() const { return resident_->most_groups(); }

  const runtime::Executable& executable() const { return on_.executable(); }
  /// For `explain`: what of the device the kernel takes, and for how long.
  std::string residence() const { return resident_->residence(); }

 private:
  [[noreturn]] static void refuse(const char* what) {
    throw Error(Code::invalid_argument,
                std::string("a resident model cannot ") + what + "; the model on the device, without resident(), can");
  }

  OnDevice<Node, Set, First> on_;
  std::shared_ptr<runtime::CudaResident> resident_;
};

/// A model compiled for GPUs of one kind. Copies are handles to the same model and share its weights.
template <class Node, class Set, class First = float>
class Model : public runtime::BindForms<Model<Node, Set, First>> {
 public:
  using Element = First;  // of the first state

  explicit Model(std::shared_ptr<const runtime::CudaExecutable> code) {
    runtime::AccessorOrder order = runtime::accessor_order<Set>(code->executable->graph);
    source_ = std::make_shared<runtime::CudaSource>(std::move(code), std::move(order));
  }
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;

  // `bind` and `try_bind` are those of `BindForms`.

  /// As `Functor::bind_together`, of `bind` and of `bind_device` on any device.
  template <class Binds>
  Model& bind_together(Binds&& binds) {
    const auto source = source_;  // `binds` may assign another model to this one
    runtime::Weights::Together together(source->weights);
    binds();
    together.publish();
    return *this;
  }

  /// The same, whose error is returned; exceptions of other types pass through.
  template <class Binds>
  cortex::Result<Done> try_bind_together(Binds&& binds) {
    return attempt([&] { bind_together(binds); });
  }

  /// Lets later calls share the threads of `workers` while they number nodes: those of several roots, where that takes
  /// longer than to wake threads that sleep, as far as calls before them tell. Accessors that are functions then run on
  /// several threads at once, also for a node that several groups reach. Null: the caller alone numbers them, as at
  /// first. May be called while other threads call.
  Model& use(std::shared_ptr<Workers> workers) {
    source_->workers.replace([&](const std::shared_ptr<Workers>&) { return std::move(workers); });
    return *this;
  }

  /// The model on a device: its kernel is compiled for it there. Throws `Error{unavailable}` if the device lacks what
  /// the schedule takes, or NVRTC is not installed, `compile_failed` with NVRTC's words and the source.
  OnDevice<Node, Set, First> to(const Device& device) const {
    return OnDevice<Node, Set, First>(std::make_shared<runtime::CudaLoaded>(source_, device.shared()));
  }

  /// As `Functor::number`: the nodes of a call that one group makes, numbered and not computed, without a device.
  template <class Roots, class... ArenaIfAny>
  std::unique_ptr<const runtime::Workspace> number(Roots&& roots, const ArenaIfAny&... arena) const {
    auto workspace = std::make_unique<runtime::Workspace>(source_->plan);
    workspace->refresh(source_->weights.published(), runtime::Published<Workers>{nullptr});
    const Structure structure = runtime::structure_of(executable().graph);
    runtime::with_roots<Node>(roots, [&](auto& range) {
      structure::Linearizer<Node, Set>::run(workspace->nodes, structure, workspace->checks(), range, arena...);
    });
    return workspace;
  }

  const runtime::Executable& executable() const { return *source_->code->executable; }
  const runtime::CudaExecutable& code() const { return *source_->code; }
  /// The CUDA C++ that is compiled.
  std::string source() const { return source_->code->text.source(); }
  /// The model as text: "ra" the operator graph, "ilir" the loops made of it, whose names a schedule of loops goes by,
  /// "scheduled" the loops that are left of these, with barriers; "tiled" the same shared among threads. Throws
  /// `Error{invalid_argument}` for any other name.
  std::string print(std::string_view form) const { return runtime::text_of(executable(), form); }

 private:
  friend runtime::BindForms<Model>;
  const ra::Graph& graph() const { return executable().graph; }
  void bind_values(std::string_view name, DType dtype, const void* values, std::size_t count,
                   std::span<const std::int64_t> shape) {
    source_->weights.bind(name, dtype, values, count, shape);
  }

  std::shared_ptr<runtime::CudaSource> source_;
};

/// Compiles a model for a kind of GPU, which need not be there. Throws `Error{invalid_schedule}` for what it cannot do.
template <class Node, class Set, class... Rest>
Model<Node, Set, Rest...> compile(const Program<Node, Set, Rest...>& program, const Schedule& schedule, const Gpu& gpu,
                                  const CompileOptions& options = {}) {
  return Model<Node, Set, Rest...>(runtime::compile_cuda_graph(program.graph(), schedule, gpu, options));
}
/// The same under `Schedule::standard()`.
template <class Node, class Set, class... Rest>
Model<Node, Set, Rest...> compile(const Program<Node, Set, Rest...>& program, const Gpu& gpu,
                                  const CompileOptions& options = {}) {
  return compile(program, Schedule::standard(), gpu, options);
}

}  // namespace cortex::cuda
