// All systems, and which of them this build has.
#pragma once

#include <string>
#include <vector>

#include "system.hpp"

namespace bench {

/// Every system by its name; one that the build lacks says why.
std::vector<SystemKind> all_systems();

/// What the peers' libraries say of themselves.
std::vector<std::string> descriptions();

/// The first states of each batch by recursion in double, [root][hidden]: the reference.
std::vector<std::vector<double>> reference_states(const Weights& weights, const Batches& batches);

}  // namespace bench
