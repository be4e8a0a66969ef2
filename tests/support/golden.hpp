// Golden files: texts that a test expects to the letter. CORTEX_UPDATE_GOLDEN=1 rewrites them.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

/// Checks that `text` is what tests/golden/`path_below_golden` holds.
inline void check_golden(const std::string& path_below_golden, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(CORTEX_TEST_DIR) / "golden" / path_below_golden;
  const char* update = std::getenv("CORTEX_UPDATE_GOLDEN");
  if (update && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  INFO("golden file " << path.string() << "; CORTEX_UPDATE_GOLDEN=1 rewrites it");
  REQUIRE(file.is_open());
  std::ostringstream expected;
  expected << file.rdbuf();
  CHECK(text == expected.str());
}
