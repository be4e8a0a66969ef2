// A model with a kernel that stays on an emulated device, for tests of what passes between the two.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/bound.hpp"

namespace cortex::test {

using OnFake = decltype(std::declval<Compiled>().to(std::declval<cuda::Device>()));
using ResidentFake = decltype(std::declval<OnFake>().resident());

/// A model on a machine without other work, to be made resident.
struct Stay {
  Bound b{16, 3, 6};
  FakeCuda fake;
  Compiled model = (fake.gpu.multiprocessors = 3, b.compile());
  std::optional<OnFake> on = model.to(cuda::Device(fake.device()));

  std::vector<float> call(const ResidentFake& resident) {
    cuda::Result result = resident(b.items.roots);
    return all_roots(result);
  }
  /// Whether a call gives what is right.
  bool serves(const ResidentFake& resident) { return difference(call(resident), b.right) <= 1; }
  /// Lets go of a kernel that has served a call, and answers the next one no more.
  void leave_behind(ResidentFake resident) {
    CHECK(serves(resident));
    fake.deaf = true;
    CHECK(error_of_call([&] { call(resident); }) != "no error");
  }
};

}  // namespace cortex::test
