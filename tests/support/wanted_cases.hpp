// How many random cases a test runs and from which seed on: its own, or those that the environment names.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "cortex/base/config.hpp"

namespace cortex::test {

/// CORTEX_CASES of the environment (`tests/run --cases N` sets it), else the test's own number, of which sanitizers,
/// which are several times as slow and look for other things, have a third.
inline int wanted_cases(int usual) {
  const char* text = std::getenv("CORTEX_CASES");
  if (text) return std::atoi(text);
  return CORTEX_ADDRESS_SANITIZER ? (usual + 2) / 3 : usual;
}

/// CORTEX_SEED of the environment, else the test's own first seed.
inline std::uint64_t first_seed(std::uint64_t usual) {
  const char* text = std::getenv("CORTEX_SEED");
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

}  // namespace cortex::test
