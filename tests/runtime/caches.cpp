// The sizes of caches, as the system tells them.
#include "cortex/runtime/caches.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

using namespace cortex;

TEST_CASE("the system's sizes of data caches are read, and what is missing is assumed", "[caches]") {
  namespace fs = std::filesystem;
  const fs::path system = fs::temp_directory_path() / ("cortex_caches_" + std::to_string(::getpid()));
  const auto cache = [&](int index, const char* level, const char* type, const char* size) {
    const fs::path folder = system / "cpu0" / "cache" / ("index" + std::to_string(index));
    fs::create_directories(folder);
    std::ofstream(folder / "level") << level << "\n";
    std::ofstream(folder / "type") << type << "\n";
    std::ofstream(folder / "size") << size << "\n";
  };
  const schedule::CacheSizes assumed;
  CHECK(runtime::cache_sizes(system.string()).second == assumed.second);
  cache(0, "1", "Data", "48K");
  cache(1, "1", "Instruction", "64K");
  cache(2, "2", "Unified", "2M");
  cache(3, "3", "Unified", "nonsense");
  const schedule::CacheSizes sizes = runtime::cache_sizes(system.string());
  CHECK(sizes.first == 48 * 1024);
  CHECK(sizes.second == 2 * 1024 * 1024);
  CHECK(sizes.last == assumed.last);

  // Two cores of two hardware threads each share the second level, and those of one core the first.
  std::ofstream(system / "cpu0/cache/index0/shared_cpu_list") << "0,2\n";
  std::ofstream(system / "cpu0/cache/index2/shared_cpu_list") << "0-3\n";
  for (int number = 0; number < 4; ++number) {
    const fs::path topology = system / ("cpu" + std::to_string(number)) / "topology";
    fs::create_directories(topology);
    std::ofstream(topology / "core_cpus_list") << (number % 2 ? "1,3\n" : "0,2\n");
  }
  CHECK(runtime::cache_sizes(system.string()).first == 48 * 1024);
  CHECK(runtime::cache_sizes(system.string()).second == 1024 * 1024);

  // Of a CPU that is not online the system tells nothing, nor a container of one that is not its own.
  fs::rename(system / "cpu0", system / "cpu5");
  std::ofstream(system / "online") << "5-7\n";
  CHECK(runtime::cache_sizes(system.string()).first == 48 * 1024);
  fs::remove_all(system);
}

TEST_CASE("the cost model takes this machine's caches for code that runs here", "[caches]") {
  const schedule::CacheSizes here = runtime::cache_sizes();
  Target target;
  CHECK(runtime::machine_model(target).levels[1].bytes == here.second);
  CHECK(runtime::machine_model(Target::x86_64(2)).levels[1].bytes == schedule::CacheSizes{}.second);  // wherever it is
  CHECK(runtime::machine_model(Target::interpreter()).levels[1].bytes == schedule::CacheSizes{}.second);
  CHECK(here.first > 0);
  CHECK(here.second >= here.first);
}
