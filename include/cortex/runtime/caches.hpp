// How large the caches of this machine are.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cortex/runtime/cpus.hpp"
#include "cortex/schedule/machine_model.hpp"

namespace cortex::runtime {

namespace detail {

/// "48K", "2048K", "1M" in bytes; 0 for anything else.
inline double bytes_of(const std::string& text) {
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  const double factor = *unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : *unit == 'G' ? 1 << 30 : *unit ? 0 : 1;
  return number > 0 ? number * factor : 0;
}

}  // namespace detail

/// The data caches of the first CPU that is online, as the folder `system` tells them: of one that is not, it tells
/// nothing. What it does not tell is as in `CacheSizes`. Of a second-level cache that several cores share, a core's
/// share counts; a last-level cache counts whole, though others use it too.
inline schedule::CacheSizes cache_sizes(const std::string& system = system_cpus) {
  schedule::CacheSizes sizes;
  const Vector<int> online = detail::numbers_of_list(detail::first_line(system + "/online"));
  const std::string cpu = system + "/cpu" + std::to_string(online.empty() ? 0 : online.front());
  for (int index = 0; index < 16; ++index) {
    const std::string folder = cpu + "/cache/index" + std::to_string(index) + "/";
    const double bytes = detail::bytes_of(detail::first_line(folder + "size"));
    if (bytes <= 0 || detail::first_line(folder + "type") == "Instruction") continue;
    const std::string level = detail::first_line(folder + "level");
    if (level == "1") sizes.first = bytes;
    if (level == "2") {
      const Vector<int> sharers = detail::numbers_of_list(detail::first_line(folder + "shared_cpu_list"));
      sizes.second = bytes / std::max(1, count_cores(sharers, system));
    }
    if (level == "3" || level == "4") sizes.last = bytes;
  }
  return sizes;
}

/// What the cost model takes a target for: its vectors, and, where it is this machine, the caches here. Code for a
/// level of CPUs is the same wherever it is compiled.
inline schedule::MachineModel machine_model(const Target& target) {
  const bool here = target.backend == Backend::llvm && !target.level();
  return schedule::nominal_machine(target, here ? cache_sizes() : schedule::CacheSizes{});
}

}  // namespace cortex::runtime
