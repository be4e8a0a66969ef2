// A kernel of an emulated GPU that takes calls from a mailbox: it goes on when the host looks after its stream, and the
// time that it reads passes when a test says so.
#pragma once

#include <cstdint>
#include <string>

#include "cortex/codegen/cuda_serve.hpp"
#include "support/cuda_emulation.hpp"
#include "support/host_kernel.hpp"

namespace cortex::test {

class FakeResident {
 public:
  FakeResident(int device, WatchedMemory& memory, const Emulation::Shape& shape, const Interleaving& order,
               HostKernel::Resident kernel, const codegen::CudaService& launch, std::uint64_t* clock_ns)
      : device(device), launch_(launch), body_{kernel, launch}, emulation_(memory, shape, order) {
    emulation_.set_clock(clock_ns);
    emulation_.stop_at_problems();
    emulation_.begin(body_);
  }
  FakeResident(const FakeResident&) = delete;

  /// Until it waits for the host. Whether it has ended. The host writes its memory before it posts a call, though not
  /// the end, and reads it behind the answer: `host_memory(touch)` gives each piece of it to `touch(at, bytes)`.
  template <class HostMemory>
  bool go_on(const HostMemory& host_memory) {
    const auto touch = [&](bool write) {
      host_memory([&](const void* at, std::size_t bytes) { emulation_.touch_by_host(at, bytes, write); });
    };
    if (posted() != posted_ && posted() % (1 << codegen::cuda_number_at)) touch(true);
    posted_ = posted();
    const bool ended = emulation_.go_on(true);
    if (done() != done_) touch(false);
    done_ = done();
    return ended;
  }
  void read_by_host(const void* at, std::size_t bytes) { emulation_.touch_by_host(at, bytes, false); }
  const std::string& what_went_wrong() const { return emulation_.what_went_wrong(); }

  const int device;

 private:
  std::uint64_t posted() const { return reinterpret_cast<const codegen::CudaMail*>(launch_.mail)->posted; }
  std::uint64_t done() const { return reinterpret_cast<const codegen::CudaAnswers*>(launch_.answers)->done; }

  struct Body {
    HostKernel::Resident kernel;
    codegen::CudaService launch;
    void operator()() const { kernel(launch); }
  };
  const codegen::CudaService launch_;
  const Body body_;
  Emulation emulation_;
  std::uint64_t posted_ = posted(), done_ = done();  // as the host was seen to write and to read them last
};

}  // namespace cortex::test
