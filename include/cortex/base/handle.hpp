// Nodes that count their handles. One class, whatever the node: std::make_shared is a family of classes for each type
// of node, which every translation unit would pay for.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace cortex {

/// The base of nodes: made by `new`, kept by handles, gone with the last of them.
class Counted {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 protected:
  Counted() = default;
  virtual ~Counted() = default;

 private:
  friend class Handle;
  mutable std::atomic<std::size_t> handles_{0};
};

/// Keeps a node, or nothing. Handles of one node may be copied and dropped by several threads at once.
class Handle {
 public:
  Handle() = default;
  explicit Handle(const Counted* node) noexcept : node_(node) {
    if (node_) node_->handles_.fetch_add(1, std::memory_order_relaxed);
  }
  Handle(const Handle& other) noexcept : Handle(other.node_) {}
  Handle(Handle&& other) noexcept : node_(other.node_) { other.node_ = nullptr; }
  Handle& operator=(Handle other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Handle() {
    if (node_ && node_->handles_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }

  const Counted* get() const { return node_; }

 private:
  const Counted* node_ = nullptr;
};

}  // namespace cortex
