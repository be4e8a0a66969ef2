// Memory that is used up, at each allocation in turn, where no call is made: errors are returned, files of weights are
// read and written, and maps of the compiler's grow. Under AddressSanitizer no allocation fails.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "cortex/base/config.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/pointer_map.hpp"
#include "cortex/weights/safetensors.hpp"
#include "runtime/count_allocations.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// Runs `f` once for each of its allocations, which fails then, and once without; it must be true each time. How many
/// failed.
template <class F>
int with_each_allocation_failing(F f) {
  for (int failed = 0;; ++failed) {
    refuse_allocation(failed);
    const bool right = f();
    const bool refused = refuse_allocation(-1);
    CHECK(right);
    if (!refused) return failed;
  }
}

struct Alive {
  static inline int count = 0;
  Alive() { ++count; }
  Alive(const Alive&) { ++count; }
  ~Alive() { --count; }
};

}  // namespace

TEST_CASE("an error is returned where there is no memory for its message", "[memory]") {
  const Error wrong(Code::invalid_weights, std::string(100, 'x'));
  int short_messages = 0;
  const auto count = [&](const Error& error, Code code, const std::string& message) {
    CHECK(error.code == code);
    if (error.message == "out of memory")
      ++short_messages;
    else
      CHECK_THAT(error.message, Catch::StartsWith(message));
  };
  for (int allocation = 0; allocation < 3; ++allocation) {
    refuse_allocation(allocation);
    const auto used_up = attempt([] { throw std::bad_alloc(); });
    refuse_allocation(-1);
    count(used_up.error(), Code::out_of_memory, "the host's memory was used up");
  }
  for (int allocation = 1; allocation < 4; ++allocation) {  // the first is that of what is thrown
    refuse_allocation(allocation);
    const auto refused = attempt([&] { throw wrong; });
    refuse_allocation(-1);
    count(refused.error(), Code::invalid_weights, wrong.message);
  }
  CHECK(short_messages == (CORTEX_ADDRESS_SANITIZER ? 0 : 2));
}

TEST_CASE("a file of weights for which there is no memory is an error, read or written", "[memory][weights]") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cortex_memory_used_up" + std::to_string(::getpid()));
  const std::vector<float> a(8, 1.5f);
  const std::vector<TensorToWrite> tensors{{"encoder.a", {2, 4}, a}, {"a name that is longer than those", {8}, a}};
  const std::map<std::string, std::string> metadata{{"format", "one that is long enough to be allocated"}};
  int read = 0, written = 0;
  const int failed_writes = with_each_allocation_failing([&] {
    const auto done = try_write_safetensors(path, tensors, metadata);
    written += done.has_value();
    return done || done.error().code == Code::out_of_memory;
  });
  const int failed_reads = with_each_allocation_failing([&] {
    const auto file = attempt([&] { return SafetensorsFile::open(path); });
    read += file.has_value();
    return file ? file->metadata() == metadata : file.error().code == Code::out_of_memory;
  });
  CHECK((written >= 1 && read >= 1));
  if (!CORTEX_ADDRESS_SANITIZER) CHECK((failed_writes > 20 && failed_reads > 20));
  std::filesystem::remove(path);
}

TEST_CASE("a map that cannot grow loses nothing", "[memory]") {
  const int keys[40]{};
  const int failed = with_each_allocation_failing([&] {
    PointerMap<Alive> map;
    PointerSet set;
    for (const int& key : keys) {
      try {
        map.emplace(&key, {});
        set.insert(&key);
      } catch (const std::bad_alloc&) {
        map.emplace(&key, {});
        set.insert(&key);
      }
      if (!map.contains(&key) || !set.contains(&key)) return false;
    }
    return map.size() == 40 && Alive::count == 40;
  });
  CHECK(Alive::count == 0);
  if (!CORTEX_ADDRESS_SANITIZER) CHECK(failed > 80);
}

TEST_CASE("a zero in a name does not end a message", "[memory]") {
  const Error error(Code::invalid_argument, "'a" + std::string(1, '\0') + "b': it has a zero in its name");
  CHECK(std::string(error.what()) == "'a?b': it has a zero in its name");
}
