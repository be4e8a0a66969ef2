// Which CPUs and cores this process may use.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"

namespace cortex::runtime {

/// Where the system describes its CPUs.
inline constexpr const char* system_cpus = "/sys/devices/system/cpu";

namespace detail {

inline constexpr int most_cpus = 1 << 16;  // as a bound on numbers in files

/// The first line of a small file without its end of line; empty if it cannot be read.
inline std::string first_line(const std::string& path) {
  std::string line;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char text[512];
    if (std::fgets(text, sizeof text, file)) line.assign(text, std::strcspn(text, "\n"));
    std::fclose(file);
  }
  return line;
}

/// CPUs that "max 100000" or "150000 100000" (quota and period in microseconds) allows, rounded down but at least 1;
/// 0: no limit. Rounded down, because threads beyond the quota spin until the kernel stops the whole group.
inline int cpus_of_quota(const std::string& text) {
  char* rest = nullptr;
  const double quota = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str() || quota <= 0) return 0;
  const double period = std::strtod(rest, nullptr);
  return period > 0 ? std::max(1, int(std::min(quota / period, 1e6))) : 0;
}

/// The path of this process in a cgroup hierarchy, from /proc/self/cgroup: lines "0::/path" (version 2) or
/// "4:cpu,cpuacct:/path" (version 1).
inline std::string cgroup_path(bool version_2) {
  std::string result;
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (!file) return result;
  char text[4096];
  while (std::fgets(text, sizeof text, file)) {
    text[std::strcspn(text, "\n")] = 0;
    const char* first = std::strchr(text, ':');
    const char* second = first ? std::strchr(first + 1, ':') : nullptr;
    if (!second) continue;
    const std::string controllers = "," + std::string(first + 1, second) + ",";
    if (version_2 ? controllers == ",," : controllers.find(",cpu,") != std::string::npos) result = second + 1;
  }
  std::fclose(file);
  return result;
}

/// The numbers in a list as the kernel writes them, "0-3,8,10-11"; those before whatever is no such list.
inline Vector<int> numbers_of_list(const std::string& text) {
  Vector<int> result;
  const char* at = text.c_str();
  for (;;) {
    char* rest = nullptr;
    const long first = std::strtol(at, &rest, 10);
    if (rest == at || first < 0 || first >= most_cpus) return result;
    long last = first;
    if (*rest == '-') last = std::strtol(rest + 1, &rest, 10);
    for (long number = first; number <= last && number < most_cpus; ++number) result.push_back(int(number));
    if (*rest != ',') return result;
    at = rest + 1;
  }
}

/// The least limit of the process's group and those around it; 0: none. Inside a container the path may be that of
/// the host, so the root of what is mounted counts in any case.
inline int cpus_of_cgroup(const std::string& mount, std::string path, bool version_2) {
  int least = 0;
  for (;;) {
    const std::string folder = mount + path + "/";
    const int limit = cpus_of_quota(version_2 ? first_line(folder + "cpu.max")
                                              : first_line(folder + "cpu.cfs_quota_us") + " " +
                                                    first_line(folder + "cpu.cfs_period_us"));
    if (limit > 0) least = least > 0 ? std::min(least, limit) : limit;
    if (path.empty()) return least;
    path.resize(std::min(path.rfind('/'), path.size() - 1));
  }
}

}  // namespace detail

/// The numbers of the CPUs in the affinity mask of this thread, which threads that it starts inherit; none if
/// `affinity`, the system's, does not tell. It refuses masks that have less room than the kernel's own, whose size it
/// does not say: one of 1024 CPUs is too small for a kernel that is ready for more, even where few are there.
inline Vector<int> usable_cpu_numbers(int (*affinity)(pid_t, std::size_t, cpu_set_t*) = &::sched_getaffinity) {
  Vector<int> result;
  for (int room = CPU_SETSIZE; room <= detail::most_cpus; room *= 2) {
    Vector<cpu_set_t> mask(std::size_t(room) / CPU_SETSIZE);
    const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (affinity(0, bytes, mask.data()) != 0) continue;
    for (int cpu = 0; cpu < room; ++cpu)
      if (CPU_ISSET_S(std::size_t(cpu), bytes, mask.data())) result.push_back(cpu);
    return result;
  }
  return result;
}

/// Keeps `thread` on one CPU; false if the system does not.
inline bool pin(pthread_t thread, int cpu) {
  if (cpu < 0 || cpu >= detail::most_cpus) return false;
  Vector<cpu_set_t> mask(std::size_t(cpu) / CPU_SETSIZE + 1);
  const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
  CPU_SET_S(std::size_t(cpu), bytes, mask.data());
  return ::pthread_setaffinity_np(thread, bytes, mask.data()) == 0;
}

/// Which core a CPU is a thread of: the number of that core's first CPU, as the folder `system` tells; where it does
/// not, the CPU's own.
inline int core_of(int cpu, const std::string& system = system_cpus) {
  const std::string topology = system + "/cpu" + std::to_string(cpu) + "/topology/";
  for (const char* name : {"core_cpus_list", "thread_siblings_list"})  // the latter before Linux 5.3
    if (const Vector<int> threads = detail::numbers_of_list(detail::first_line(topology + name)); !threads.empty())
      return threads.front();
  return cpu;
}

/// `cpus` in an order in which the first ones are of different cores: one of each core, then a second one of each that
/// has it, and so on. Otherwise as they were.
inline Vector<int> of_different_cores_first(const Vector<int>& cpus, const std::string& system = system_cpus) {
  Vector<int> cores, rest = cpus, result;
  while (!rest.empty()) {
    Vector<int> others;
    cores.clear();
    for (const int cpu : rest) {
      const int core = core_of(cpu, system);
      const bool taken = contains(cores, core);
      (taken ? others : result).push_back(cpu);
      if (!taken) cores.push_back(core);
    }
    rest = std::move(others);
  }
  return result;
}

/// How many cores `cpus` are of.
inline int count_cores(const Vector<int>& cpus, const std::string& system = system_cpus) {
  Vector<int> cores;
  for (const int cpu : cpus) cores.push_back(core_of(cpu, system));
  std::sort(cores.begin(), cores.end());
  return int(std::unique(cores.begin(), cores.end()) - cores.begin());
}

/// The CPUs that this process may use: those of its affinity mask, as far as the CPU limits of its control groups
/// (versions 1 and 2) allow. At least 1.
inline int usable_cpus() {
  int cpus = int(usable_cpu_numbers().size());
  if (cpus == 0) cpus = int(::sysconf(_SC_NPROCESSORS_ONLN));
  const int limits[] = {detail::cpus_of_cgroup("/sys/fs/cgroup", detail::cgroup_path(true), true),
                        detail::cpus_of_cgroup("/sys/fs/cgroup/cpu", detail::cgroup_path(false), false)};
  for (const int limit : limits)
    if (limit > 0) cpus = std::min(cpus, limit);
  return std::max(cpus, 1);
}

/// The same, but only one CPU of each core: threads of one core share what multiplies, and its caches, so that two of
/// them compute no faster than one.
inline int usable_cores() {
  const Vector<int> cpus = usable_cpu_numbers();
  return cpus.empty() ? usable_cpus() : std::min(usable_cpus(), count_cores(cpus));
}

}  // namespace cortex::runtime
