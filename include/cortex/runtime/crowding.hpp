// Whether the threads of a pool have CPUs to run on, told from what calls on them gain and lose.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cortex::runtime {

/// Keeps an account of what several workers gain a pool's calls. Where other threads want the CPUs too, some worker of
/// a call may have to wait for its turn, and all others wait for it at their next barrier: a call then takes longer
/// than by one worker. What calls lose so, and have not gained before, halves how many workers the next ones take, for
/// 10 ms at first; then one tries the double number again. Each attempt that fails doubles the time until the next, up
/// to a second.
///
/// Any number of threads may note calls at the same time. Notes may get lost between them: the account is for a
/// decision on which results do not depend.
class Crowding {
 public:
  /// Of `wanted` workers, how many a call that begins at `now` should take.
  int limit(int wanted, std::int64_t now) {
    int halvings = halvings_.load(std::memory_order_relaxed);
    if (halvings == 0) [[likely]]
      return wanted;
    if (now >= until_.load(std::memory_order_relaxed)) {
      halvings_.store(--halvings, std::memory_order_relaxed);
      credit_.store(0, std::memory_order_relaxed);  // the first call has to pay
    }
    return std::max(1, wanted >> halvings);
  }
  bool may_limit() const { return halvings_.load(std::memory_order_relaxed) > 0; }

  /// A call of several workers has ended at `now`: one worker alone would have taken it `gained_ns` longer, but for
  /// `late_ns` in which its caller slept since another had not come.
  void note(std::int64_t gained_ns, std::int64_t late_ns, std::int64_t now) {
    const std::int64_t before = credit_.load(std::memory_order_relaxed);
    const std::int64_t credit = std::min(before + gained_ns - late_ns, most_credit);
    if (credit == before) return;
    if (credit >= 0) {
      credit_.store(credit, std::memory_order_relaxed);
      if (credit == most_credit) pause_.store(first_pause, std::memory_order_relaxed);
      return;
    }
    const std::int64_t pause = pause_.load(std::memory_order_relaxed);
    credit_.store(0, std::memory_order_relaxed);
    pause_.store(std::min(2 * pause, longest_pause), std::memory_order_relaxed);
    until_.store(now + pause, std::memory_order_relaxed);
    halvings_.store(std::min(halvings_.load(std::memory_order_relaxed) + 1, most_halvings), std::memory_order_relaxed);
  }

 private:
  static constexpr int most_halvings = 8;  // of 256 workers
  static constexpr std::int64_t most_credit = 10'000'000, first_pause = 10'000'000, longest_pause = 1'000'000'000;

  std::atomic<int> halvings_{0};
  std::atomic<std::int64_t> credit_{most_credit}, pause_{first_pause}, until_{0};  // in nanoseconds
};

}  // namespace cortex::runtime
