// The memory of emulated GPUs, and of the host as far as they reach it: the host's in both cases.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <map>

#include "cortex/jit/cuda_driver.hpp"
#include "support/cuda_emulation.hpp"

namespace cortex::test {

class FakeMemory {
 public:
  FakeMemory() = default;
  FakeMemory(const FakeMemory&) = delete;
  ~FakeMemory() {
    for (const auto& [at, piece] : allocated_) std::free(reinterpret_cast<void*>(at));
    protect_pinned(PROT_READ | PROT_WRITE);
    for (const auto& [at, piece] : pinned_) std::free(reinterpret_cast<void*>(at));
  }

  /// What kernels of a device reach.
  WatchedMemory& of(int device) { return watched_[device]; }
  /// Pieces that have been allocated and not given back, and bytes of those of a device.
  std::size_t pieces() const { return allocated_.size() + pinned_.size(); }
  std::size_t used(int device) const {
    std::size_t sum = 0;
    for (const auto& [at, piece] : allocated_)
      if (piece.device == device) sum += piece.bytes;
    return sum;
  }

  std::uint64_t place(int device, std::size_t bytes) { return place(device, bytes, primary_context(device)); }
  std::uint64_t place(int device, std::size_t bytes, void* context) {
    void* const memory = memory_of(device, bytes);
    allocated_[address(memory)] = {device, bytes, context};
    return address(memory);
  }
  void release(std::uint64_t at) { release(allocated_, at); }
  void* place_pinned(int device, std::size_t bytes) {
    void* const memory = memory_of(device, bytes, page);
    watched_[device].written_by_host(memory, bytes);
    pinned_[address(memory)] = {device, bytes, primary_context(device)};
    return memory;
  }
  void release_pinned(void* at) { release(pinned_, address(at)); }

  bool holds(int device, std::uint64_t at, std::size_t bytes) const {
    const auto* in = find(at);
    return in && in->second.device == device && at + bytes <= in->first + in->second.bytes;
  }
  bool is_pinned(const void* at, std::size_t bytes) const {
    auto found = pinned_.upper_bound(address(at));
    return found != pinned_.begin() && (--found, address(at) + bytes <= found->first + found->second.bytes);
  }
  void written(std::uint64_t at, std::size_t bytes) {
    if (const auto* in = find(at)) watched_[in->second.device].written_by_host(reinterpret_cast<void*>(at), bytes);
  }
  /// An attribute of a pointer, as the driver has it.
  void describe(int which, void* value, std::uint64_t at) const {
    using A = jit::cuda::PointerAttribute;
    const auto* in = find(at);
    if (which == A::context) *static_cast<void**>(value) = in ? in->second.context : nullptr;
    if (which == A::memory_type) *static_cast<unsigned*>(value) = in ? 2 : is_pinned(reinterpret_cast<void*>(at), 1);
    if (which == A::device_ordinal) *static_cast<int*>(value) = in ? in->second.device : -2;
    if (which == A::range_start) *static_cast<std::uint64_t*>(value) = in ? in->first : 0;
    if (which == A::range_bytes) *static_cast<std::size_t*>(value) = in ? in->second.bytes : 0;
  }
  /// Of the host's memory nothing can be read or written any more.
  void unmap_pinned() { protect_pinned(PROT_NONE); }
  /// Gives each piece of the host's to `touch(at, bytes)`.
  template <class Touch>
  void each_pinned(const Touch& touch) const {
    for (const auto& [at, piece] : pinned_) touch(reinterpret_cast<void*>(at), piece.bytes);
  }

 private:
  static constexpr std::size_t page = 4096;
  static void* primary_context(int device) { return reinterpret_cast<void*>(std::intptr_t(device + 1)); }
  void protect_pinned(int how) const {
    for (const auto& [at, piece] : pinned_)
      ::mprotect(reinterpret_cast<void*>(at), (piece.bytes + page - 1) / page * page, how);
  }
  struct Piece {
    int device;
    std::size_t bytes;
    void* context;
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  static std::uint64_t address(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
  void* memory_of(int device, std::size_t bytes, std::size_t alignment = 256) {
    void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    watched_[device].add(memory, bytes);
    return memory;
  }
  void release(Pieces& pieces, std::uint64_t at) {
    const auto found = pieces.find(at);
    watched_[found->second.device].remove(reinterpret_cast<void*>(at));
    pieces.erase(found);
    std::free(reinterpret_cast<void*>(at));
  }
  /// The piece of a device's that `at` lies in; null outside of all.
  const Pieces::value_type* find(std::uint64_t at) const {
    auto found = allocated_.upper_bound(at);
    if (found == allocated_.begin()) return nullptr;
    --found;
    return at < found->first + found->second.bytes ? &*found : nullptr;
  }

  std::map<int, WatchedMemory> watched_;  // [device]
  Pieces allocated_, pinned_;             // on devices, and of the host
};

}  // namespace cortex::test
