// What the machine can do, measured: multiply-adds, reads from the second-level cache, and barriers.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace bench {

/// What is measured; the best of several short tries each, since neighbours and a sinking clock only take
/// away.
struct Machine {
  std::vector<int> threads;                    // for how many threads at once
  std::vector<double> gflops;                  // [threads] of all of them, on registers alone
  std::vector<double> tile_gflops;             // [threads] in tiles of a product, from the first-level cache
  std::vector<std::size_t> slices;             // bytes that each thread reads again and again
  std::vector<std::vector<double>> gigabytes;  // [threads][slices] a second, of all of them
  double barrier_us = 0;
  double register_ghz = 0, tile_ghz = 0;  // the clock of one thread that does either; 0: not known here

  std::size_t at(int t) const { return std::size_t(std::find(threads.begin(), threads.end(), t) - threads.begin()); }
  double peak_gflops(int t) const { return gflops[at(t)]; }
  double peak_tile_gflops(int t) const { return tile_gflops[at(t)]; }

  /// Reads of slices of so many bytes a thread, by t threads, in GB/s; between two sizes measured by their logarithms.
  double bandwidth(double bytes, int t) const {
    const std::vector<double>& row = gigabytes[at(t)];
    if (bytes <= double(slices.front())) return row.front();
    for (std::size_t i = 1; i < slices.size(); ++i) {
      if (bytes > double(slices[i])) continue;
      const double share =
          std::log(bytes / double(slices[i - 1])) / std::log(double(slices[i]) / double(slices[i - 1]));
      return row[i - 1] + share * (row[i] - row[i - 1]);
    }
    return row.back();
  }

  /// How many times more this one does, where the difference is the largest: of arithmetic or in the second-level
  /// cache.
  double gain_over(const Machine& other) const {
    double gain = 1;
    for (std::size_t t = 0; t < gflops.size(); ++t)
      gain = std::max(
          {gain, gflops[t] / other.gflops[t], bandwidth(256e3, threads[t]) / other.bandwidth(256e3, threads[t])});
    return gain;
  }

  /// The share of so many single threads' arithmetic that all of them at once reach, where it is the least: far below 1
  /// if others use the CPUs.
  double scaling() const {
    double least = 1;
    for (const int t : threads) least = std::min(least, peak_gflops(t) / (t * peak_gflops(1)));
    return least;
  }

  /// Keeps the better of two measurements.
  void add(const Machine& other) {
    for (std::size_t t = 0; t < gflops.size(); ++t) {
      gflops[t] = std::max(gflops[t], other.gflops[t]);
      tile_gflops[t] = std::max(tile_gflops[t], other.tile_gflops[t]);
      for (std::size_t s = 0; s < slices.size(); ++s)
        gigabytes[t][s] = std::max(gigabytes[t][s], other.gigabytes[t][s]);
    }
    barrier_us = std::min(barrier_us, other.barrier_us);
    register_ghz = std::max(register_ghz, other.register_ghz), tile_ghz = std::max(tile_ghz, other.tile_ghz);
  }
};

/// For one thread and for these numbers of them, each the best of so many tries, which take a second in all.
Machine probe_machine(std::vector<int> threads, int tries = 10);

/// Which share of the machine's processor time has gone to others since then: other processes, and, where a virtual
/// machine is told of it, other machines. Threads of this one that displace each other do not count.
class OtherWork {
 public:
  double share() const {
    const Seconds now = seconds();
    const double passed = now.all - before_.all;
    // Time is told in hundredths of a second, which say nothing of less.
    return passed > 1 ? std::max(0.0, (now.busy - before_.busy) - (now.own - before_.own)) / passed : 0;
  }

 private:
  struct Seconds {
    double all = 0, busy = 0, own = 0;
  };
  static Seconds seconds() {
    Seconds result;
    std::ifstream stat("/proc/stat");
    std::string cpu;
    stat >> cpu;  // user nice system idle iowait irq softirq steal
    const double tick = 1 / double(sysconf(_SC_CLK_TCK));
    double ticks = 0;
    for (int column = 0; column < 8 && stat >> ticks; ++column) {
      result.all += ticks * tick;
      if (column != 3 && column != 4) result.busy += ticks * tick;
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    for (const timeval& part : {usage.ru_utime, usage.ru_stime})
      result.own += double(part.tv_sec) + double(part.tv_usec) / 1e6;
    return result;
  }
  Seconds before_ = seconds();
};

inline std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

}  // namespace bench
