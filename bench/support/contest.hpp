// Systems side by side over the same ten batches: checked first, then timed in turn.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "floor.hpp"
#include "system.hpp"
#include "systems.hpp"

namespace bench {

/// How long each system is timed.
struct Effort {
  double seconds = 1.5;  // a system and a case; never less than `least_rounds`
  int least_rounds = 3, most_rounds = 60;
};

/// One system on one case. Times are in microseconds a batch: the mean over the ten batches of each one's median, and
/// of each one's least.
struct Row {
  std::string model;
  std::size_t hidden = 0, batch = 0;
  int threads = 1;
  std::string system;
  double median_us = 0, min_us = 0;
  long runs = 0;
  double max_abs_err = 0, linearize_us = 0, nodes = 0;
  bool right = true;                    // whether every state is near the reference
  std::string shortcuts;                // see `System`
  std::vector<std::vector<Work>> work;  // [batch][level]

  double floor_us(const Machine& machine) const { return bench::floor_us(work, threads, machine); }
  double tile_floor_us(const Machine& machine) const { return bench::floor_us(work, threads, machine, true); }
};

/// What a system computes: what the states are, [batch][root, hidden], as far as that is known, and the work,
/// [batch][level].
struct Subject {
  std::vector<std::vector<double>> reference;
  std::vector<std::vector<Work>> work;

  /// An element of a batch's states; `given` is what a system says of it, which stands where nothing else is known, so
  /// that NaN alone is wrong there.
  double expected(std::size_t batch, std::size_t at, float given) const {
    return batch < reference.size() && at < reference[batch].size() ? reference[batch][at] : double(given);
  }
};

/// A system that takes part.
struct Contestant {
  std::string name;
  std::unique_ptr<System> system;
  int threads = 1;  // that it uses
  std::shared_ptr<const Subject> subject{};
  double estimate_us = 0;  // a batch
  int rounds = 0, taken = 0;
  double spent_s = 0;
  std::vector<std::vector<double>> times{};  // [batch]
  double error = 0, linearize_us = 0;
  bool right = true;
};

class Contest {
 public:
  /// Of a model: `add` makes the systems.
  Contest(const Weights& weights, const Batches& batches, int threads)
      : Contest(name_of(weights.model), weights, batches, threads, subject_of(weights, batches)) {}
  /// Of anything else that has weights, whose systems are there already.
  Contest(std::string name, const Weights& weights, const Batches& batches, int threads, Subject subject)
      : name_(std::move(name)),
        weights_(weights),
        batches_(batches),
        threads_(threads),
        subject_(std::make_shared<const Subject>(std::move(subject))),
        out_(batches.roots[0].size() * weights.hidden) {}

  /// Adds a system with as many threads as serve it best, up to those given. False if it has nothing for the model.
  bool add(const SystemKind& kind) {
    std::vector<int> choices{threads_};
    if (kind.chooses_threads)
      for (int t = 1; t < threads_; t *= 2) choices.insert(choices.begin(), t);
    Contestant best;
    for (const int t : choices) {
      Contestant one{kind.name, kind.make({weights_.model, t, weights_}), t, subject_};
      if (!one.system) return false;
      check(one);
      if (!best.system || one.estimate_us < best.estimate_us) best = std::move(one);
    }
    contestants_.push_back(std::move(best));
    return true;
  }
  /// Adds a system that is already there.
  void add(std::string name, std::unique_ptr<System> system) { add(std::move(name), std::move(system), subject_); }
  /// Adds one of something else, whose states are as long.
  void add(std::string name, std::unique_ptr<System> system, std::shared_ptr<const Subject> subject) {
    Contestant one{std::move(name), std::move(system), threads_, std::move(subject)};
    check(one);
    contestants_.push_back(std::move(one));
  }

  /// Times all systems, interleaved round by round.
  void run(const Effort& effort) {
    int rounds = 0;
    for (Contestant& one : contestants_) {
      const double of_round = one.estimate_us * double(batches_.roots.size()) * 1.5 / 1e6;
      one.rounds = std::clamp(int(effort.seconds / of_round), effort.least_rounds, effort.most_rounds);
      one.times.resize(batches_.roots.size());
      rounds = std::max(rounds, one.rounds);
    }
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < contestants_.size(); ++i) {
        Contestant& one = contestants_[(i + std::size_t(round)) % contestants_.size()];  // nobody is always the first
        // A machine that gets busier than the estimate says does not make it last for ever.
        if (one.spent_s > 3 * effort.seconds && one.taken >= effort.least_rounds) continue;
        if (one.taken < one.rounds * (round + 1) / rounds) take_turn(one);  // slow ones at equal distances
      }
    }
  }

  /// A row for each system.
  std::vector<Row> rows() const {
    std::vector<Row> result;
    for (const Contestant& one : contestants_) {
      Row row;
      row.model = name_, row.hidden = weights_.hidden, row.batch = batches_.roots[0].size();
      row.threads = threads_, row.system = one.name;
      for (std::vector<double> times : one.times) {
        std::sort(times.begin(), times.end());
        const std::size_t half = times.size() / 2;
        const double median = times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2;
        row.median_us += median / double(one.times.size());
        row.min_us += times.front() / double(one.times.size());
        row.runs += long(times.size());
      }
      row.max_abs_err = one.error, row.linearize_us = one.linearize_us, row.work = one.subject->work;
      row.nodes = batches_.mean_nodes(), row.right = one.right, row.shortcuts = one.system->shortcuts();
      result.push_back(row);
    }
    return result;
  }

  const std::vector<Contestant>& contestants() const { return contestants_; }

 private:
  static Subject subject_of(const Weights& weights, const Batches& batches) {
    Subject subject{reference_states(weights, batches), {}};
    for (const Roots& roots : batches.roots) subject.work.push_back(work_of(weights.model, weights.hidden, roots));
    return subject;
  }

  /// Every batch some times: held against the reference, which also makes what is made for a size at first, and then
  /// timed for an estimate, the least of three where that is quick: a single one chose the wrong number of threads.
  void check(Contestant& one) {
    one.system->before_runs();
    double size = 0;  // of what is computed, which the bound goes by
    for (std::size_t b = 0; b < batches_.roots.size(); ++b) {
      std::fill(out_.begin(), out_.end(), NAN);
      one.system->run(batches_.roots[b], out_.data());
      for (std::size_t i = 0; i < out_.size(); ++i) {
        const double expected = one.subject->expected(b, i, out_[i]), difference = std::abs(double(out_[i]) - expected);
        size = std::max(size, std::abs(expected));
        one.error = std::isnan(difference) || difference > one.error ? difference : one.error;
        if (std::isnan(one.error)) break;
      }
    }
    one.right = one.error <= allowed_error(size, weights_.hidden);
    std::vector<double> linearize;
    one.estimate_us = INFINITY;
    const double begin = now_us();
    for (int pass = 0; pass < 3 && (pass == 0 || now_us() - begin < 3e5); ++pass) {
      const double start = now_us();
      for (const Roots& roots : batches_.roots) one.system->run(roots, out_.data());
      one.estimate_us = std::min(one.estimate_us, (now_us() - start) / double(batches_.roots.size()));
    }
    for (int run = 0; run < 5; ++run) {
      double sum = 0;
      for (const Roots& roots : batches_.roots) sum += one.system->linearize_us(roots);
      linearize.push_back(sum / double(batches_.roots.size()));
    }
    std::sort(linearize.begin(), linearize.end());
    one.linearize_us = linearize[linearize.size() / 2];
  }

  /// All ten batches, after calls that are not timed: they bring the system's weights back into the caches, its code
  /// into the branch predictor, and wake its threads. One call does that if it is long.
  void take_turn(Contestant& one) {
    // The threads of the system before spin for a while (see `bench/run`); they are not to be in this one's way.
    if (threads_ > 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const double turn = now_us();
    one.system->before_runs();
    const std::size_t before = one.estimate_us < 1000 ? batches_.roots.size() : 1;
    for (std::size_t b = 0; b < before; ++b) one.system->run(batches_.roots[b], out_.data());
    for (std::size_t b = 0; b < batches_.roots.size(); ++b) {
      const double start = now_us();
      one.system->run(batches_.roots[b], out_.data());
      one.times[b].push_back(now_us() - start);
    }
    one.spent_s += (now_us() - turn) / 1e6;
    ++one.taken;
  }

  std::string name_;
  const Weights& weights_;
  const Batches& batches_;
  int threads_;
  std::shared_ptr<const Subject> subject_;
  std::vector<float> out_;
  std::vector<Contestant> contestants_;
};

}  // namespace bench
