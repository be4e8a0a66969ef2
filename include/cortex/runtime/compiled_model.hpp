// A compiled model at run time: its code, its weights, and the workspaces of its calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "cortex/base/clock.hpp"
#include "cortex/base/mutex.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/call.hpp"
#include "cortex/runtime/memory.hpp"

namespace cortex::runtime {

class CompiledModel;

/// A workspace that belongs to a call and then to its result; it goes back to its model when the lease ends, which may
/// be after the last functor of the model is gone.
class Lease {
 public:
  Lease() = default;
  explicit Lease(Workspace* workspace) : workspace_(workspace) {}
  Lease(Lease&& other) noexcept : workspace_(std::exchange(other.workspace_, nullptr)) {}
  Lease& operator=(Lease&& other) noexcept {
    std::swap(workspace_, other.workspace_);
    return *this;
  }
  ~Lease();

  Workspace* operator->() const { return workspace_; }
  Workspace& operator*() const { return *workspace_; }
  explicit operator bool() const { return workspace_ != nullptr; }

  /// Ends it without giving the workspace back: its memory goes to whoever needs it.
  void drop();

 private:
  Workspace* workspace_ = nullptr;
};

/// All that the calls of a model share. Lives until the last functor and the last result are gone.
class CompiledModel {
 public:
  /// The handle that functors share.
  static std::shared_ptr<CompiledModel> make(std::shared_ptr<const Executable> executable, AccessorOrder order,
                                             std::shared_ptr<Workers> workers, bool timed) {
    return {new CompiledModel(std::move(executable), std::move(order), std::move(workers), timed),
            [](CompiledModel* model) { model->close(); }};
  }
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Executable>& executable() const { return plan_->executable; }

  void bind(std::string_view name, DType dtype, const void* values, std::size_t count,
            std::span<const std::int64_t> shape) {
    weights_.bind(name, dtype, values, count, shape);
    forget_replaced();
  }
  /// Calls `binds`; the weights that it binds are published at its end, see `Weights::Together`.
  template <class Binds>
  void bind_together(Binds&& binds) {
    Weights::Together together(weights_);
    binds();
    together.publish();
    forget_replaced();
  }

  void use(std::shared_ptr<Workers> workers) {
    workers_.replace([&](const std::shared_ptr<Workers>&) { return std::move(workers); });
    forget_replaced();
  }

  ModelMemory memory() const {
    ModelMemory result = memory_of(*plan_);
    const auto bound = weights_.published().current();
    for (const std::shared_ptr<const Block>& block : bound.value->blocks)
      if (block) result.weights += block->size();
    for (const auto& own : bound.value->copies)
      for (const std::shared_ptr<const Block>& block : own)
        if (block) result.weights += block->size();
    for (const std::shared_ptr<const Tables>& tables : bound.value->tables)
      if (tables) result.tables += tables->bytes();
    return result;
  }

  /// One call. Throws what `numbering` throws, `Error{invalid_weights}` if weights are missing, and what `run` throws;
  /// the workspace goes back then, unless memory ran out: what it had grown to is free for smaller calls.
  Lease call(const Numbering& numbering) {
    Lease lease = take();
    lease->refresh(weights_.published(), workers_);
    lease->computed = true;
    if (!lease->weights().fault.empty()) [[unlikely]]
      throw Error(Code::invalid_weights, lease->weights().fault);
    const auto drop = [&] { lease.drop(); };
    in_memory(drop, [&] {
      if (timed_) [[unlikely]]
        timed(*lease, numbering);
      else
        number_and_run(*lease, numbering, nullptr);
    });
    return lease;
  }

  /// The first half of a call: nodes are numbered, in one group, and nothing is computed. Weights need not be bound.
  Lease number(const Numbering& numbering) {
    Lease lease = take();
    lease->refresh(weights_.published(), workers_);
    lease->set_groups(1);
    lease->computed = false;
    lease->execute_ns = 0;
    const auto number = [&] { numbering.all(*lease); };
    const auto drop = [&] { lease.drop(); };
    in_memory(drop, [&] { timed_ ? void(lease->linearize_ns = ns_of(number)) : number(); });
    return lease;
  }

 private:
  friend class Lease;

  CompiledModel(std::shared_ptr<const Executable> executable, AccessorOrder order, std::shared_ptr<Workers> workers,
                bool timed)
      : plan_(std::make_shared<const Plan>(executable, std::move(order))),
        weights_(std::move(executable)),
        workers_(std::move(workers)),
        timed_(timed) {}
  ~CompiledModel() = default;

  static void timed(Workspace& workspace, const Numbering& numbering) {
    const std::int64_t begin = now_ns();
    std::int64_t middle = begin;
    number_and_run(workspace, numbering, &middle);
    const std::int64_t end = now_ns();
    workspace.linearize_ns = middle - begin;
    workspace.execute_ns = end - middle;
  }

  // ---- workspaces at rest ----
  //
  // Most stand in `places_`, where a thread looks first at the place that it used last: it gets the workspace whose
  // memory is in its core's cache, by one exchange on a line that other threads rarely touch. What finds no place there
  // is listed in `others_`, under the mutex.

  static constexpr std::size_t num_places = 32, num_probes = 4;
  struct alignas(128) Place {
    std::atomic<Workspace*> workspace{nullptr};
  };

  /// Stands in every place once the last functor is gone: nothing is put there any more.
  static Workspace* closed() { return reinterpret_cast<Workspace*>(alignof(Workspace)); }

  /// The place at which this thread looks first: threads' own memory lies apart, at distances that this hash spreads.
  static std::size_t home() {
    static thread_local constinit char mark = 0;
    return std::size_t((reinterpret_cast<std::uintptr_t>(&mark) >> 6) * 0x9E3779B97F4A7C15u >> 32);
  }
  std::atomic<Workspace*>& place(std::size_t number) { return places_[number % num_places].workspace; }

  Lease take() {
    const std::size_t first = home();
    for (std::size_t probe = 0; probe < num_probes; ++probe) {
      std::atomic<Workspace*>& at = place(first + probe);
      if (!at.load(std::memory_order_relaxed)) continue;
      if (Workspace* workspace = at.exchange(nullptr, std::memory_order_acquire)) return Lease(workspace);
    }
    return take_other();
  }

  /// A workspace at rest wherever it is, or a new one: as many are made as calls were in flight at the same time.
  [[gnu::noinline]] Lease take_other() {
    for (Place& at : places_)
      if (at.workspace.load(std::memory_order_relaxed))
        if (Workspace* workspace = at.workspace.exchange(nullptr, std::memory_order_acquire)) return Lease(workspace);
    {
      const Lock lock(mutex_);
      if (!others_.empty()) {
        Workspace* const workspace = others_.back();
        others_.pop_back();
        return Lease(workspace);
      }
      others_.reserve(++num_workspaces_);  // putting back never allocates
    }
    references_.fetch_add(1, std::memory_order_relaxed);
    try {
      auto workspace = std::make_unique<Workspace>(plan_);
      workspace->owner_ = this;
      return Lease(workspace.release());
    } catch (...) {
      release();
      throw;
    }
  }

  void put(Workspace* workspace) noexcept {
    workspace->forget_replaced(weights_.published(), workers_);
    const std::size_t first = home();
    for (std::size_t probe = 0; probe < num_probes; ++probe) {
      std::atomic<Workspace*>& at = place(first + probe);
      Workspace* expected = nullptr;
      // From here on the model may be gone: whoever closes it takes the workspace from its place.
      if (at.load(std::memory_order_relaxed) == nullptr &&
          at.compare_exchange_strong(expected, workspace, std::memory_order_release, std::memory_order_relaxed))
        return;
    }
    put_other(workspace);
  }

  [[gnu::noinline]] void put_other(Workspace* workspace) noexcept {
    {
      const Lock lock(mutex_);
      if (!closed_) return others_.push_back(workspace);
    }
    delete workspace;
    release();
  }

  /// The last functor is gone: workspaces at rest go now, the others with their results.
  void close() noexcept {
    Vector<Workspace*> resting;
    {
      const Lock lock(mutex_);
      closed_ = true;
      resting.swap(others_);
    }
    for (Place& at : places_)
      if (Workspace* workspace = at.workspace.exchange(closed(), std::memory_order_acquire))
        delete workspace, release();
    for (Workspace* workspace : resting) delete workspace, release();
    release();
  }

  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// Takes replaced weights and workers from the workspaces at rest, one after the other and under no mutex: a pool
  /// waits for its threads when it goes, and what users have it do then may call the model. Those in use let go of them
  /// when they are put back.
  void forget_replaced() {
    while (Workspace* workspace = take_outdated()) put(workspace);
    for (Place& at : places_) {
      Workspace* workspace = at.workspace.exchange(nullptr, std::memory_order_acquire);
      if (!workspace) continue;
      workspace->forget_replaced(weights_.published(), workers_);
      Workspace* expected = nullptr;
      if (!at.workspace.compare_exchange_strong(expected, workspace, std::memory_order_release,
                                                std::memory_order_relaxed))
        put_other(workspace);
    }
  }

  /// One of the list that has weights or workers which are replaced; null if none has.
  Workspace* take_outdated() {
    const Lock lock(mutex_);
    for (Workspace*& workspace : others_) {
      if (!workspace->has_replaced(weights_.published(), workers_)) continue;
      Workspace* const found = std::exchange(workspace, others_.back());
      others_.pop_back();
      return found;
    }
    return nullptr;
  }

  const std::shared_ptr<const Plan> plan_;
  Weights weights_;
  Published<Workers> workers_;
  const bool timed_;
  std::array<Place, num_places> places_;
  Mutex mutex_;
  Vector<Workspace*> others_;
  std::size_t num_workspaces_ = 0;
  bool closed_ = false;
  std::atomic<std::int64_t> references_{1};  // the functors together, and each workspace
};

inline Lease::~Lease() {
  if (workspace_) workspace_->owner_->put(workspace_);
}

inline void Lease::drop() {
  Workspace* const workspace = std::exchange(workspace_, nullptr);
  CompiledModel* const model = workspace->owner_;
  delete workspace;
  model->release();
}

}  // namespace cortex::runtime
