// What the tests of weights/ share: bytes of files made by hand, refusals, folders that go away.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "cortex/weights/safetensors.hpp"

namespace cortex::test {

inline const std::filesystem::path fixtures = std::filesystem::path(CORTEX_TEST_DIR) / "fixtures" / "safetensors";

inline std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

inline std::vector<std::byte> bytes_of(const std::string& header, std::size_t data) {
  std::vector<std::byte> bytes(8 + header.size() + data);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

/// What `run` is refused with, which must name `source` first.
template <class Run>
std::string refused_by(const std::string& source, Run run) {
  try {
    run();
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_weights);
    CHECK_THAT(error.message, Catch::StartsWith(source + ": "));
    return error.message;
  }
  return "no error";
}
/// A folder that is gone with all that it holds when the test is over.
struct TemporaryFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cortex_test_" + std::to_string(std::random_device()()));
  TemporaryFolder() { std::filesystem::create_directory(path); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const char* name) const { return path / name; }
  std::ptrdiff_t files() const { return std::distance(std::filesystem::directory_iterator(path), {}); }
};

}  // namespace cortex::test
