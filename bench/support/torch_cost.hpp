// What a call costs on libtorch beside time.
#pragma once

#include <cstddef>

#include "system.hpp"

namespace bench {

struct TorchCost {
  long operators = 0;          // calls of libtorch from the model's code
  std::size_t peak_bytes = 0;  // the most that tensors of a call take at one time
};

/// Of one call of a system on libtorch.
TorchCost torch_cost(System& system, const Roots& roots, float* out);

}  // namespace bench
