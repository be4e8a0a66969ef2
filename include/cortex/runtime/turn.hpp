// A turn at what takes long.
#pragma once

#include <atomic>
#include <cstdint>

#include "cortex/runtime/forks.hpp"

namespace cortex::runtime {

/// Threads take their turns one after the other, in the order in which they come, at something that the host cannot
/// hasten, such as a kernel's end. A fork waits for who holds a Mutex, and other threads for the fork; nobody waits for
/// who has a turn but those who come for the next. In a child that is forked meanwhile nobody has it.
class Turn {
 public:
  class [[nodiscard]] Holder {
   public:
    explicit Holder(Turn& turn) : turn_(turn) { turn_.take(); }
    ~Holder() { turn_.pass_on(); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    Turn& turn_;
  };

 private:
  /// Who has come, and whose turn it is, by numbers that wrap; and in which process.
  struct State {
    std::uint32_t process;
    std::uint16_t come, now;
  };

  static std::uint64_t packed(const State& state) {
    return std::uint64_t(state.process) << 32 | std::uint64_t(state.come) << 16 | state.now;
  }
  /// The state that a word stands for in this process.
  static State state_of(std::uint64_t word) {
    const std::uint32_t process = forks().load(std::memory_order_relaxed);
    if (word >> 32 != process) return {process, 0, 0};
    return {process, std::uint16_t(word >> 16), std::uint16_t(word)};
  }

  void take() {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    State state;
    do {
      state = state_of(word);
      ++state.come;
    } while (!word_.compare_exchange_weak(word, packed(state), std::memory_order_acquire, std::memory_order_relaxed));
    const std::uint16_t own = std::uint16_t(state.come - 1);
    for (word = packed(state); std::uint16_t(word) != own; word = word_.load(std::memory_order_acquire))
      word_.wait(word, std::memory_order_acquire);
  }
  void pass_on() {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    State state;
    do {
      state = state_of(word);
      if (state.now == state.come) return;  // taken in the process that this one was forked from
      ++state.now;
    } while (!word_.compare_exchange_weak(word, packed(state), std::memory_order_release, std::memory_order_relaxed));
    word_.notify_all();
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace cortex::runtime
