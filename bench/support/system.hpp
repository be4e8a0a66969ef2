// What is compared: systems that take batches of nodes and give the first state of each root.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data.hpp"
#include "models.hpp"

namespace bench {

/// What a system is made for. `threads` are the most that it may use.
struct Setting {
  Model model;
  int threads;
  const Weights& weights;  // outlives the system
};

/// One system, set up for one model.
class System {
 public:
  virtual ~System() = default;
  /// Writes the first state of each root, [root][hidden].
  virtual void run(const Roots& roots, float* out) = 0;
  /// Called before a series of runs: settings that systems share in one process, such as a library's threads.
  virtual void before_runs() {}
  /// How long the numbering of a batch takes by itself, in microseconds; 0 for systems that have none.
  virtual double linearize_us(const Roots&) { return 0; }
  /// By what it does less than the arithmetic that the equations ask for, in words; empty: it does all of it.
  virtual std::string shortcuts() const { return {}; }
};

/// Where the time of calls goes, in microseconds, and into how many calls of each kind.
struct Activities {
  struct Part {
    double us = 0;
    long calls = 0;
  };
  Part number, gather, product, pointwise;
};

/// A system that can say more.
class WatchedSystem : public System {
 public:
  /// Adds up in `activities`, until it is null, where the time of calls goes.
  virtual void watch(Activities* activities) = 0;
  /// Bytes of the buffers that calls use, beside weights.
  virtual std::size_t bytes() const = 0;
};

/// A kind of system: makes one for a setting, null if it has nothing to offer for that model.
struct SystemKind {
  std::string name;
  std::function<std::unique_ptr<System>(const Setting&)> make;
  std::string absent{};         // why this build lacks it; empty if it does not
  bool chooses_threads = true;  // whether it may be faster on fewer threads than it is given
};

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace bench
