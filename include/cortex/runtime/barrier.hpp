// Waiting between threads that expect each other within microseconds: spin first, then sleep.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cortex/base/clock.hpp"

namespace cortex::runtime {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();  // _mm_pause, without the header, which costs every translation unit 100 MB
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// How long a thread spins before it sleeps: longer than the imbalance of a batch, shorter than what a wake-up costs.
inline constexpr std::int64_t spin_ns = 20000;

/// How long it spins for others that slept when their call began: longer than it takes to wake them, since it would
/// have to be woken itself.
inline constexpr std::int64_t wake_spin_ns = 100000;

/// How long it spins where it waits for the end of a call, or for the next one, that has taken it so long: groups are
/// apart by a small part of what they compute, and waking up (20 to 60 us) would come on top of that.
inline std::int64_t spin_ns_after(std::int64_t call_ns) {
  constexpr std::int64_t most = 1000000;
  return std::clamp(call_ns / 8, spin_ns, most);
}

/// A number that one thread sets and another waits for. Values are below 2^30: the top bit says that someone sleeps, so
/// setting enters the kernel only then, and the next one that the number is disturbed.
class Flag {
 public:
  /// Stores `value`, before which everything that this thread has done is seen by whoever meets it.
  void set(std::uint32_t value) {
    if (word_.exchange(value, std::memory_order_seq_cst) & asleep) word_.notify_all();
  }
  /// Wakes whoever waits, to look again at what else it waits for. The value is no longer what was set, however often
  /// this is done, so that nobody who is about to sleep finds it as it was.
  void disturb() {
    word_.fetch_or(disturbed, std::memory_order_seq_cst);
    word_.notify_all();
  }
  /// Only while nobody waits.
  void reset(std::uint32_t value) { word_.store(value, std::memory_order_relaxed); }
  /// Whether somebody who waits sleeps by now.
  bool has_sleeper() const { return word_.load(std::memory_order_relaxed) & asleep; }
  std::uint32_t get() const { return word_.load(std::memory_order_acquire) & ~asleep; }

  /// Returns the first value seen for which `met(value)`. Sleeps once it has spun for `spin` nanoseconds, and adds to
  /// `asleep_ns` how long.
  template <class Met>
  std::uint32_t wait(Met met, std::int64_t spin, std::int64_t& asleep_ns) {
    // While the other side is only just behind, a pause of the processor (up to 50 ns) is what would be waited for
    // most.
    for (int i = 0; i < 256; ++i)
      if (const std::uint32_t value = get(); met(value)) return value;
    const std::int64_t end = now_ns() + spin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (const std::uint32_t value = get(); met(value)) return value;
        relax();
      }
    } while (now_ns() < end);
    std::uint32_t seen = 0;
    asleep_ns += ns_of([&] { seen = sleep(met); });
    return seen;
  }
  template <class Met>
  std::uint32_t wait(Met met, std::int64_t spin = spin_ns) {
    std::int64_t asleep_ns = 0;
    return wait(met, spin, asleep_ns);
  }

 private:
  static constexpr std::uint32_t asleep = std::uint32_t(1) << 31, disturbed = asleep >> 1;

  template <class Met>
  std::uint32_t sleep(Met met) {
    for (;;) {
      std::uint32_t word = word_.load(std::memory_order_acquire);
      if (met(word & ~asleep)) return word & ~asleep;
      if (!(word & asleep) && !word_.compare_exchange_weak(word, word | asleep, std::memory_order_seq_cst)) continue;
      word_.wait(word | asleep, std::memory_order_acquire);
    }
  }

  std::atomic<std::uint32_t> word_{0};
};

/// What a worker of a call is signalled through, apart from every other worker's: two cache lines, because processors
/// fetch lines in pairs.
struct alignas(128) BarrierLine {
  static constexpr int max_rounds = 8;
  std::array<Flag, max_rounds> round;
  void reset() {
    for (Flag& flag : round) flag.reset(0);
  }
};

/// What `Barrier::wait` throws where some worker of the call has failed and will not come.
struct BrokenBarrier {};

/// The most workers that share one call.
inline constexpr int max_call_workers = 1 << BarrierLine::max_rounds;

/// One worker's end of the barrier of a call: nobody leaves `wait` before all have entered it. Workers signal each
/// other in rounds, over distances 1, 2, 4 ...: two workers exchange one signal each, and nothing is counted in one
/// place.
class Barrier {
 public:
  /// `lines`: one per worker of the call, reset. `broken` is set once a worker has failed. `first_spin`: how long to
  /// spin when the workers meet for the first time. What it sleeps is added to `asleep_ns`.
  Barrier(BarrierLine* const* lines, int worker, int num_workers, std::atomic<bool>& broken, std::int64_t first_spin,
          std::int64_t& asleep_ns)
      : lines_(lines),
        broken_(broken),
        asleep_ns_(asleep_ns),
        worker_(worker),
        num_workers_(num_workers),
        spin_(first_spin) {}

  /// This worker's end of a barrier of the workers [first, first + count) alone, who have met at this one equally often
  /// and then use no other.
  Barrier among(int first, int count) const {
    Barrier own(lines_ + first, worker_ - first, count, broken_, spin_, asleep_ns_);
    own.epoch_ = epoch_;
    return own;
  }

  /// How long a worker spins when the workers meet the next time.
  std::int64_t spin() const { return spin_; }

  /// Throws BrokenBarrier if a worker has failed.
  void wait() {
    ++epoch_;
    int round = 0;
    for (int distance = 1; distance < num_workers_; distance *= 2, ++round) {
      int peer = worker_ + distance;
      if (peer >= num_workers_) peer -= num_workers_;
      lines_[peer]->round[std::size_t(round)].set(epoch_ & mask);
      // The peer behind may be one barrier ahead, and has then signalled both.
      const auto met = [this](std::uint32_t seen) {
        return ((seen - epoch_) & mask) <= 1 || broken_.load(std::memory_order_acquire);
      };
      lines_[worker_]->round[std::size_t(round)].wait(met, spin_, asleep_ns_);
      if (broken_.load(std::memory_order_acquire)) [[unlikely]]
        throw BrokenBarrier{};
    }
    spin_ = spin_ns;
  }

  /// Waits for one thing that another worker of the call says, in place of meeting all.
  template <class Met>
  std::uint32_t wait_for(Flag& flag, Met met) const {
    return flag.wait(met, spin_, asleep_ns_);
  }

  /// Lets all workers know that this one has failed: they leave the barrier at which they wait, and all later ones.
  void break_up() {
    broken_.store(true, std::memory_order_seq_cst);
    for (int w = 0; w < num_workers_; ++w)
      for (Flag& flag : lines_[w]->round) flag.disturb();
  }

  /// `wait` as generated code calls it; that code does not fail, so no worker that runs it meets a broken barrier.
  static void call(void* barrier) { static_cast<Barrier*>(barrier)->wait(); }

 private:
  static constexpr std::uint32_t mask = 0x7fffffffu;
  BarrierLine* const* lines_;
  std::atomic<bool>& broken_;
  std::int64_t& asleep_ns_;
  int worker_, num_workers_;
  std::int64_t spin_;
  std::uint32_t epoch_ = 0;
};

}  // namespace cortex::runtime
