// A turn at what takes long.
#pragma once

#include <atomic>
#include <cstdint>

#include "cortex/runtime/barrier.hpp"
#include "cortex/runtime/forks.hpp"

namespace cortex::runtime {

/// One thread at a time has its turn at something that the host cannot hasten, such as a kernel's end. Unlike a Mutex
/// it delays no fork, and so no thread that waits for one; only those wait that want the next turn. In a child that is
/// forked meanwhile nobody has it.
class Turn {
 public:
  class [[nodiscard]] Holder {
   public:
    explicit Holder(Turn& turn) : turn_(turn), process_(turn.take()) {}
    ~Holder() { turn_.pass_on(process_); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    Turn& turn_;
    const std::uint32_t process_;  // that it was taken in
  };

 private:
  // The state, and above it the process that it is of.
  static constexpr std::uint32_t free = 0, taken = 1, awaited = 2;
  static constexpr int looks_before_sleep = 1000;  // some 20 us

  static std::uint64_t word_of(std::uint32_t process, std::uint32_t state) {
    return std::uint64_t(process) << 32 | state;
  }
  static bool is_taken(std::uint64_t word, std::uint32_t process) {
    return word >> 32 == process && std::uint32_t(word) != free;
  }

  /// Makes the state `to` if nobody has the turn; else `word` is what it was.
  bool try_take(std::uint64_t& word, std::uint32_t process, std::uint32_t to) {
    while (!is_taken(word, process))
      if (word_.compare_exchange_weak(word, word_of(process, to), std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    return false;
  }
  std::uint32_t take() {
    const std::uint32_t process = forks().load(std::memory_order_relaxed);
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (int looks = 0; looks < looks_before_sleep; ++looks) {
      if (try_take(word, process, taken)) return process;
      relax();
      word = word_.load(std::memory_order_relaxed);
    }
    // Whoever has slept takes it as one that others may still sleep for.
    while (!try_take(word, process, awaited)) {
      const std::uint64_t asleep = word_of(process, awaited);
      if (word == asleep || word_.compare_exchange_weak(word, asleep, std::memory_order_relaxed))
        word_.wait(asleep, std::memory_order_relaxed);
      word = word_.load(std::memory_order_relaxed);
    }
    return process;
  }
  void pass_on(std::uint32_t process) {
    if (forks().load(std::memory_order_relaxed) != process) return;  // in a child: it was the parent's
    if (word_.exchange(word_of(process, free), std::memory_order_release) == word_of(process, awaited))
      word_.notify_one();
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace cortex::runtime
