// Tests that cannot run here say so: CTest then counts them as skipped, with the reason, and not as passed.
#pragma once

#include <filesystem>
#include <string>

namespace cortex::test {

/// Ends the running test case: prints `SKIPPED: <test case>: <reason>`, and the executable exits with 77 unless a
/// check failed. Callable from helpers too, on the test's own thread and outside CHECK and REQUIRE (a check takes it
/// for an unexpected exception): `const auto sst = sst_directory();` first, checks after.
[[noreturn]] void skip(const std::string& reason);

/// Skips where the library is built without Z3.
inline void need_z3() {
#if !CORTEX_Z3
  skip("built without Z3");
#endif
}

/// The directory of the Stanford Sentiment Treebank (train.txt, dev.txt, test.txt): `CORTEX_SST` in the environment,
/// else ../shared/data/sst beside the repository; skips if it is in neither place.
std::filesystem::path sst_directory();

/// The directory `tests/` of the repository.
inline std::filesystem::path tests_directory() { return CORTEX_TEST_DIR; }

}  // namespace cortex::test
