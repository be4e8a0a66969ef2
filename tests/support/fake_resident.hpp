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
  FakeResident(WatchedMemory& memory, const Emulation::Shape& shape, const Interleaving& order,
               HostKernel::Resident kernel, const codegen::CudaService& launch, const std::uint64_t* clock_ns)
      : launch_(launch), body_{kernel, launch}, emulation_(memory, shape, order) {
    emulation_.set_clock(clock_ns);
    emulation_.begin(body_);
  }
  FakeResident(const FakeResident&) = delete;

  /// Until it waits for the host. Whether it has ended.
  bool go_on() { return emulation_.go_on(true); }
  /// The call that it has told the host to be done.
  std::uint64_t done() const { return reinterpret_cast<const codegen::CudaAnswers*>(launch_.answers)->done; }
  void read_by_host(const void* at, std::size_t bytes) { emulation_.read_by_host(at, bytes); }
  const std::string& what_went_wrong() const { return emulation_.what_went_wrong(); }

  std::uint64_t seen = 0;  // the last `done` that the host has looked for

 private:
  struct Body {
    HostKernel::Resident kernel;
    codegen::CudaService launch;
    void operator()() const { kernel(launch); }
  };
  const codegen::CudaService launch_;
  const Body body_;
  Emulation emulation_;
};

}  // namespace cortex::test
