// A value that is replaced now and then and read on every call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "cortex/base/mutex.hpp"

namespace cortex::runtime {

/// The current version of a `T` that is never changed, only replaced. A reader keeps a `View` of its own between reads:
/// while nothing is replaced, a read is one load of a line that nobody writes. (`std::atomic<std::shared_ptr>` counts
/// references in one line on every read, which threads then fight over.) Readers keep what they have until they
/// refresh.
template <class T>
class Published {
 public:
  struct View {
    std::shared_ptr<T> value;
    std::uint64_t version = 0;
  };

  explicit Published(std::shared_ptr<T> first) : value_(std::move(first)) {}

  /// Makes `view` the version that is current now. A replacement that happened before the call is seen.
  void refresh(View& view) const {
    if (view.version == version_.load(std::memory_order_acquire)) return;
    View fresh = current();
    std::swap(view, fresh);  // what the view held is freed here, outside the lock
  }

  bool is_current(const View& view) const { return view.version == version_.load(std::memory_order_relaxed); }

  View current() const {
    const Lock lock(mutex_);
    return {value_, version_.load(std::memory_order_relaxed)};
  }

  /// Replaces the value by `make(current value)`; replacements come one after the other.
  template <class Make>
  void replace(Make make) {
    std::shared_ptr<T> old;
    const Lock lock(mutex_);
    old = std::exchange(value_, make(value_));
    version_.fetch_add(1, std::memory_order_release);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<T> value_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace cortex::runtime
